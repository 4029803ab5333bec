"""An identity provider on loopback, as real as the client can see: discovery, authorization, token, keys, userinfo.

with IdentityProvider() as there:
    there.person = Person("7", "alice@example.com")     who is signed in at it
    there.lie(nonce="another")                          claims that its next ID tokens hold instead
    there.broken["token"] = lambda: Response("<html>")  an endpoint that answers otherwise
"""

from __future__ import annotations

import base64
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from types import TracebackType
from typing import Any
from urllib.parse import urlencode

from joserfc import jwt
from joserfc.jwk import KeySet, OctKey, RSAKey
from werkzeug import Request, Response
from werkzeug.serving import make_server

CLIENT_ID, CLIENT_SECRET = "allgone-here", "a secret of the client's"


@dataclass
class Person:
    """Who is signed in at the provider."""

    subject: str
    email: str | None = None
    verified: Any = True


@dataclass
class IdentityProvider:
    """One provider with one client. `asked` is every path that it was asked for."""

    person: Person | None = None
    claims: dict[str, Any] = field(default_factory=dict)  # laid over an ID token's own; None takes one out
    userinfo_only: bool = False  # the address is in userinfo, not in the ID token
    broken: dict[str, Callable[[], Response]] = field(default_factory=dict)
    document: dict[str, Any] = field(default_factory=dict)  # laid over the discovery document
    sign: Callable[[dict[str, Any]], str] | None = None
    asked: list[str] = field(default_factory=list)
    secret: str = CLIENT_SECRET
    codes: dict[str, dict[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.key = RSAKey.generate_key(2048, {"kid": "one", "use": "sig"})
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True)
        self.issuer = f"http://127.0.0.1:{self._server.server_port}/realm"

    def __enter__(self) -> IdentityProvider:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def lie(self, **claims: Any) -> None:
        """What the next ID tokens say instead."""
        self.claims = claims

    def _answer(self, environ: dict[str, Any], start: Any) -> Any:
        request = Request(environ)
        name = request.path.rsplit("/", 1)[-1]
        self.asked.append(name)
        answer = (
            self.broken[name]()
            if name in self.broken
            else getattr(self, f"_{name.replace('-', '_')}")(request)
        )
        return answer(environ, start)

    def _openid_configuration(self, _request: Request) -> Response:
        return _json(
            {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "jwks_uri": f"{self.issuer}/keys",
                "userinfo_endpoint": f"{self.issuer}/userinfo",
                **self.document,
            }
        )

    def _authorize(self, request: Request) -> Response:
        """Asks nobody: whoever is signed in is sent back with a code; nobody, with an error."""
        asked = request.args
        assert (asked["response_type"], asked["client_id"]) == ("code", CLIENT_ID)
        assert (asked["code_challenge_method"], "openid" in asked["scope"].split()) == ("S256", True)
        back = {"state": asked["state"], "iss": self.issuer}
        if self.person is None:
            back["error"] = "access_denied"
        else:
            back["code"] = secrets.token_urlsafe(16)
            self.codes[back["code"]] = asked.to_dict()
        return Response(status=302, headers={"Location": f"{asked['redirect_uri']}?{urlencode(back)}"})

    def _token(self, request: Request) -> Response:
        sent, who = request.form, request.authorization
        if self.secret and (who is None or (who.username, who.password) != (CLIENT_ID, self.secret)):
            return _json({"error": "invalid_client"}, 401)
        asked = self.codes.pop(sent.get("code", ""), None)  # good once
        digest = sha256(sent.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if (
            asked is None
            or sent.get("redirect_uri") != asked["redirect_uri"]
            or challenge != asked["code_challenge"]
            or self.person is None
        ):
            return _json({"error": "invalid_grant"}, 400)
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "sub": self.person.subject,
            "aud": CLIENT_ID,
            "iat": now,
            "exp": now + 300,
        }
        claims |= {"nonce": asked["nonce"]}
        if not self.userinfo_only and self.person.email is not None:
            claims |= {"email": self.person.email, "email_verified": self.person.verified}
        claims = {name: value for name, value in (claims | self.claims).items() if value is not None}
        signed = (self.sign or self.signed)(claims)
        return _json({"access_token": "an access token", "token_type": "Bearer", "id_token": signed})

    def signed(self, claims: dict[str, Any]) -> str:
        return jwt.encode({"alg": "RS256", "kid": self.key.kid}, claims, self.key, algorithms=["RS256"])

    def signed_with_the_secret(self, claims: dict[str, Any]) -> str:
        """As one who knows the client's secret alone, or the public key, might."""
        return jwt.encode({"alg": "HS256"}, claims, OctKey.import_key(CLIENT_SECRET), algorithms=["HS256"])

    def _keys(self, _request: Request) -> Response:
        return _json(KeySet([self.key]).as_dict(private=False))

    def _userinfo(self, request: Request) -> Response:
        assert request.headers["Authorization"] == "Bearer an access token"
        assert self.person is not None
        told = {"sub": self.claims.get("userinfo_sub", self.person.subject)}
        return _json({**told, "email": self.person.email, "email_verified": self.person.verified})


def _json(value: Any, status: int = 200) -> Response:
    import json

    return Response(json.dumps(value), status, content_type="application/json")

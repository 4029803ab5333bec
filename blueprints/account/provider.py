"""OpenID Connect with one identity provider, by the authorization code flow (OpenID Connect Core 1.0, 3.1; RFC 9700).

| step | what is checked |
|---|---|
| discovery | the document names the very issuer that we were told; every endpoint is private (https, or this machine) |
| `begun` | a fresh state, nonce and PKCE verifier (S256) for each try |
| `finished` | the code, with the verifier, is changed for an ID token |
| ID token | its signature, by a key of the provider; issuer, audience, authorized party, times, nonce |
| address | of the ID token, else of userinfo for the same subject; it counts when it is said to be verified |

What the provider says is read within bounds (outbound.py), without redirects, by few at once. Whatever it does then
is a ProviderFault with a sentence for the reader: `away` when it may be better later, else `refused`.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar
from urllib.parse import urlsplit

import orjson
import requests
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.requests_client import OAuth2Session
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from blueprints.account.outbound import Bounded, Late, in_time
from models.addresses import is_private

WHOLE_SECONDS = 10.0
AT_ONCE = 4
KEPT_SECONDS = 3600.0  # of the provider's document and keys
AGAIN_SECONDS = 60.0  # before keys are fetched again for one that is unknown
LEEWAY = 60  # seconds between two clocks
# Signatures that only the provider can make: none that is keyed by a secret of ours, and not "none".
ALGORITHMS = (
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "EdDSA",
    "Ed25519",
)

# What libraries raise over an answer that is not what they expect, one of 100,000 brackets for example.
ODD = (ValueError, TypeError, KeyError, AttributeError, RecursionError)

R = TypeVar("R")


class ProviderFault(Exception):
    """The provider did not say who somebody is. `kind` is a word for the log, `said` a sentence for the reader."""

    def __init__(self, kind: str, said: str, *, away: bool = False) -> None:
        super().__init__(kind)
        self.kind, self.said, self.away = kind, said, away


@dataclass(frozen=True, slots=True)
class Begun:
    """A way to the provider: where the browser goes, and what comes back with it."""

    address: str
    state: str
    nonce: str
    verifier: str


@dataclass(frozen=True, slots=True)
class Told:
    """Whom the provider means. `email` is "" unless it says that the address is verified; `label` is for showing."""

    issuer: str
    subject: str
    email: str
    label: str


@cache
def provider(issuer: str, client_id: str, client_secret: str, name: str) -> Provider:
    """The provider of those settings, one for the process, so that its document is fetched once an hour."""
    return Provider(issuer, client_id, client_secret, name)


class Provider:
    """One identity provider. Safe for many threads."""

    def __init__(self, issuer: str, client_id: str, client_secret: str, name: str) -> None:
        self.issuer, self.client_id, self._secret, self.name = issuer, client_id, client_secret, name
        self._document: tuple[float, dict[str, Any]] | None = None
        self._keys: tuple[float, KeySet] | None = None
        self._room = threading.BoundedSemaphore(AT_ONCE)

    def begun(self, callback: str) -> Begun:
        """A new way to the provider that comes back to `callback`. Raises ProviderFault."""
        return self._in_time(lambda: self._begun(callback))

    def finished(self, callback: str, code: str, nonce: str, verifier: str) -> Told:
        """Whom the provider means by `code`. Raises ProviderFault."""
        return self._in_time(lambda: self._finished(callback, code, nonce, verifier))

    def _begun(self, callback: str) -> Begun:
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        with self._session(callback) as session:
            address, _ = session.create_authorization_url(
                self._endpoint("authorization_endpoint"), state=state, nonce=nonce, code_verifier=verifier
            )
        return Begun(address, state, nonce, verifier)

    def _finished(self, callback: str, code: str, nonce: str, verifier: str) -> Told:
        with self._session(callback) as session:
            try:
                token = session.fetch_token(
                    self._endpoint("token_endpoint"),
                    grant_type="authorization_code",
                    code=code,
                    code_verifier=verifier,
                    redirect_uri=callback,
                    allow_redirects=False,
                )
            except AuthlibBaseError as fault:  # the provider refuses the code, politely
                raise self._refused("code_refused") from fault
            except requests.RequestException as fault:
                raise self._away("token_endpoint") from fault
            except ODD as fault:
                raise self._away("token_garbage") from fault
            claims = self._claims(token, nonce)
            email, verified = claims.get("email"), claims.get("email_verified")
            if not email and self._get_document().get("userinfo_endpoint"):
                told = self._read(session, self._endpoint("userinfo_endpoint"), signed=True)
                if told.get("sub") != claims["sub"]:
                    raise self._refused("userinfo_of_another")
                email, verified = told.get("email"), told.get("email_verified")
        # Some providers say it as a string.
        sure = verified is True or verified == "true"
        address = email if isinstance(email, str) and email.isprintable() else ""
        return Told(self.issuer, claims["sub"], address if sure else "", address[:254] or claims["sub"])

    def _claims(self, token: Any, nonce: str) -> CodeIDToken:
        text = token.get("id_token") if isinstance(token, dict) else None
        if not isinstance(text, str) or not text:
            raise self._refused("no_id_token")
        options = {
            "iss": {"essential": True, "value": self.issuer},
            "aud": {"essential": True, "value": self.client_id},
        }
        params = {"nonce": nonce, "client_id": self.client_id, "access_token": token.get("access_token")}
        try:
            decoded = self._decoded(text)
            claims = CodeIDToken(decoded.claims, decoded.header, options, params)
            claims.validate(leeway=LEEWAY)
        except (JoseError, *ODD) as fault:
            raise self._refused(f"id_token_{getattr(fault, 'error', type(fault).__name__)}") from fault
        subject = claims["sub"]
        if not isinstance(subject, str) or not 0 < len(subject) <= 255 or not subject.isprintable():
            raise self._refused("subject")
        return claims

    def _decoded(self, text: str) -> jwt.Token:
        try:
            return jwt.decode(text, self._get_keys(), algorithms=ALGORITHMS)
        except (JoseError, ValueError):
            # A key that is new since we asked, perhaps.
            if self._keys is None or time.monotonic() - self._keys[0] < AGAIN_SECONDS:
                raise
            self._keys = None
            return jwt.decode(text, self._get_keys(), algorithms=ALGORITHMS)

    def _get_keys(self) -> KeySet:
        if self._keys is None or time.monotonic() - self._keys[0] > KEPT_SECONDS:
            with self._session("") as session:
                told = self._read(session, self._endpoint("jwks_uri"))
            try:
                self._keys = (time.monotonic(), KeySet.import_key_set(told))  # type: ignore[arg-type]
            except (JoseError, *ODD) as fault:
                raise self._away("keys_garbage") from fault
        return self._keys[1]

    def _get_document(self) -> dict[str, Any]:
        if self._document is None or time.monotonic() - self._document[0] > KEPT_SECONDS:
            with self._session("") as session:
                told = self._read(session, f"{self.issuer.rstrip('/')}/.well-known/openid-configuration")
            if told.get("issuer") != self.issuer:
                raise self._away("another_issuer")
            self._document = (time.monotonic(), told)
        return self._document[1]

    def _endpoint(self, name: str) -> str:
        address = self._get_document().get(name)
        try:
            if (
                isinstance(address, str)
                and address.isprintable()
                and urlsplit(address).netloc
                and is_private(address)
            ):
                return address
        except ValueError:
            pass
        raise self._away(f"no_{name}")

    def _read(self, session: OAuth2Session, address: str, *, signed: bool = False) -> dict[str, Any]:
        try:
            answer = session.get(address, withhold_token=not signed, allow_redirects=False)
            told = orjson.loads(answer.content) if answer.status_code == 200 else None
        except requests.RequestException as fault:
            raise self._away("no_answer") from fault
        except (AuthlibBaseError, orjson.JSONDecodeError) as fault:
            raise self._away("garbage") from fault
        if not isinstance(told, dict):
            raise self._away("garbage")
        return told

    def _session(self, callback: str) -> OAuth2Session:
        methods = self._document[1].get("token_endpoint_auth_methods_supported") if self._document else None
        post = (
            isinstance(methods, list)
            and "client_secret_basic" not in methods
            and "client_secret_post" in methods
        )
        method = "client_secret_post" if post else "client_secret_basic"
        session = OAuth2Session(
            self.client_id,
            self._secret or None,
            token_endpoint_auth_method=method if self._secret else "none",
            scope="openid email",
            redirect_uri=callback or None,
            code_challenge_method="S256",
        )
        session.headers["Accept-Encoding"] = "identity"
        for scheme in ("https://", "http://"):
            session.mount(scheme, Bounded())
        return session

    def _in_time(self, work: Callable[[], R]) -> R:
        try:
            return in_time(self._room, WHOLE_SECONDS, work)
        except Late as fault:
            raise self._away(str(fault)) from None

    def _away(self, kind: str) -> ProviderFault:
        said = (
            f"{self.name} does not answer as it should. Nothing was changed; try again later, or use a link."
        )
        return ProviderFault(kind, said, away=True)

    def _refused(self, kind: str) -> ProviderFault:
        said = (
            f"{self.name} did not confirm who you are, so nobody was signed in. Try again from the beginning."
        )
        return ProviderFault(kind, said)

"""Who asks: a bearer token at `/v1`, a signed-in browser elsewhere, an operator at the operator's pages.

Flask's own session is touched in this file alone; all it holds is the id of a sign-in, which is revocable, the CSRF
secret, and, before a sign-in, where its reader wanted to be and what a way to a provider began with. A token or sign-in
that is unknown, expired or revoked is refused alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple, ParamSpec, TypeVar

from flask import Flask, Response, current_app, g, make_response, redirect, request, session, url_for
from flask.sessions import SecureCookieSessionInterface
from flask_wtf.csrf import CSRFError, validate_csrf
from itsdangerous import BadSignature
from sqlalchemy import ColumnElement, LargeBinary, bindparam, func, literal_column, select, update
from werkzeug.wrappers import Response as BaseResponse
from wtforms import ValidationError

from blueprints.attempts import count_failure
from blueprints.database import reading, resources
from blueprints.errors import answer
from blueprints.places import HOME, safe_place
from models.accounts import TOKEN_PREFIX, Owner, Principal, Token, hashed
from models.base import Id
from models.errors import Forbidden, NotFound, Unauthorized
from models.ids import is_id
from models.prepared import Prepared
from models.sign_ins import SignIn

P = ParamSpec("P")
R = TypeVar("R")

SIGN_IN = "sign_in"
TRIES, TRIES_MAX, TRY_SECONDS = "tries", 3, 600  # ways to the identity provider that have not come back
PLACE = "place"  # where a reader wanted to be who had to sign in first
# A busy token is written to once a minute. Spelled in SQL: a bound interval has no type when it is prepared.
USE_NOTED: ColumnElement[Any] = literal_column("interval '1 minute'")
SEEN_NOTED: ColumnElement[Any] = literal_column("interval '5 minutes'")
_TOKEN = Prepared(
    "access_token",
    select(
        Token.tenant_id,
        Token.principal_id,
        Token.scopes,
        func.coalesce(Token.last_used_at < func.now() - USE_NOTED, True),
    )
    .where(Token.hash == bindparam("hash", type_=LargeBinary()), Token.revoked_at.is_(None))
    .where(Token.expires_at.is_(None) | (Token.expires_at > func.now())),
)
_SIGNED_IN = Prepared(
    "access_signed_in",
    select(
        Principal.id,
        Principal.tenant_id,
        Principal.email,
        Principal.operator,
        SignIn.seen_at < func.now() - SEEN_NOTED,
    )
    .join(SignIn, SignIn.principal_id == Principal.id)
    .where(
        SignIn.id == bindparam("sign_in_id", type_=Id()),
        SignIn.revoked_at.is_(None),
        SignIn.expires_at > func.now(),
    ),
)


class Reader(NamedTuple):
    """Who is signed in."""

    id: str
    tenant_id: str
    email: str
    operator: bool


def bearer(scope: str) -> Owner:
    """Whose token this request carries; its hash is `g.token_hash` then.

    Raises Unauthorized, RateLimited after too many wrong ones, or Forbidden when it lacks `scope`.
    """
    kind, _, secret = request.headers.get("Authorization", "").partition(" ")
    secret = secret.strip()  # RFC 9110, 11.4: one blank or more
    row = None
    if kind.lower() == "bearer" and secret.startswith(TOKEN_PREFIX) and len(secret) < 200:
        g.token_hash = hashed(secret)
        with reading() as connection:
            row = _TOKEN.row(connection, {"hash": g.token_hash})
    if row is None:
        if secret:  # a guess, not a caller who forgot
            count_failure(resources(), request.remote_addr)
        raise Unauthorized("This needs a valid token: Authorization: Bearer TOKEN.")
    tenant_id, principal_id, scopes, note_use = row
    if note_use:
        _note_use(g.token_hash)
    if scope not in scopes:
        raise Forbidden(f"This token lacks the scope {scope}.", scope=scope)
    return Owner(tenant_id, principal_id)


def _note_use(token_hash: bytes) -> None:
    unnoted = func.coalesce(Token.last_used_at < func.now() - USE_NOTED, True)
    # Whoever is noting the same token does it for all: nobody waits for the row.
    wanted = select(Token.id).where(Token.hash == token_hash, unnoted).with_for_update(skip_locked=True)
    with reading() as connection:
        connection.execute(
            update(Token).where(Token.id.in_(wanted.scalar_subquery())).values(last_used_at=func.now())
        )


def signed_in_id() -> str:
    """The id of the sign-in that the cookie names, unchecked; "" when it names none."""
    value = session.get(SIGN_IN, "")
    return value if isinstance(value, str) else ""


def cookie_reader(app: Flask) -> Callable[[str], str]:
    """Gives the id of the sign-in that a cookie's value names, for who asks before Flask has opened its session.

    "" when it is none of ours, is spoilt, or is over: the same signature and life as Flask's own reading of it.
    """
    signer = SecureCookieSessionInterface().get_signing_serializer(app)
    life = int(app.permanent_session_lifetime.total_seconds())

    def read(value: str) -> str:
        try:
            held = signer.loads(value, max_age=life) if signer and value else {}
        except BadSignature:
            return ""
        found = held.get(SIGN_IN, "")
        return found if isinstance(found, str) else ""

    return read


def reader() -> Reader | None:
    """The signed-in principal, asked for once a request; None when nobody is."""
    if "reader" not in g:
        g.reader = None
        sign_in_id = signed_in_id()
        if is_id(sign_in_id):
            with reading() as connection:
                row = _SIGNED_IN.row(connection, {"sign_in_id": sign_in_id})
            if row and row[4]:
                _note_seen(sign_in_id)
            g.reader = Reader(*row[:4]) if row else None
    held: Reader | None = g.reader
    return held


def _note_seen(sign_in_id: str) -> None:
    # For its holder to read, and for nothing else: it prolongs nothing.
    mine = select(SignIn.id).where(SignIn.id == sign_in_id).with_for_update(skip_locked=True)
    with reading() as connection:
        connection.execute(
            update(SignIn).where(SignIn.id.in_(mine.scalar_subquery())).values(seen_at=func.now())
        )


def owner() -> Owner:
    """The signed-in principal as an owner. Raises Unauthorized."""
    row = reader()
    if row is None:
        raise Unauthorized("You are not signed in.")
    return Owner(row.tenant_id, row.id)


def sign_in(sign_in_id: str) -> None:
    """Makes this browser the sign-in's; everything the cookie held before is dropped."""
    session.clear()
    session[SIGN_IN] = sign_in_id
    session.permanent = True


def forget_browser() -> None:
    """Empties the cookie."""
    session.clear()


def keep_try(state: str, held: dict[str, str]) -> None:
    """Keeps what a way to the identity provider began with, for this browser alone; the last few of them."""
    tries = {**session.get(TRIES, {}), state: {**held, "at": str(int(time.time()))}}
    session[TRIES] = dict(list(tries.items())[-TRIES_MAX:])


def take_try(state: str) -> dict[str, str] | None:
    """What that way began with: told once, within ten minutes, to the browser that began it."""
    tries = dict(session.get(TRIES, {}))
    held: dict[str, str] | None = tries.pop(state, None)
    session[TRIES] = tries
    return held if held and time.time() - int(held["at"]) < TRY_SECONDS else None


def to_sign_in() -> Response:
    """Sends the whole page to sign-in, also when htmx asked for a part of it."""
    part = request.headers.get("HX-Request")
    wanted = request.headers.get("HX-Current-URL", "") if part else request.full_path
    place = safe_place(wanted) if part or request.method == "GET" else HOME
    there = url_for("account.sign_in_page", next=place if place != HOME else None)
    if part:
        response = make_response("", 200)
        response.headers["HX-Redirect"] = there
        return response
    return make_response(redirect(there, 303))


def keep_place(address: str) -> None:
    """Remembers where a reader wants to be once they are signed in, by whatever way; HOME forgets it."""
    if (place := safe_place(address)) != HOME:
        session[PLACE] = place
    else:
        session.pop(PLACE, None)


def take_place() -> str:
    """Where the reader wanted to be; HOME when that is not known. Told once."""
    return safe_place(str(session.pop(PLACE, HOME)))


def signed_in_only(view: Callable[P, R]) -> Callable[P, R | BaseResponse]:
    """A page for signed-in readers; others are sent to sign-in."""

    @wraps(view)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R | BaseResponse:
        return to_sign_in() if reader() is None else view(*args, **kwargs)

    return guarded


def operators_only() -> BaseResponse | None:
    """A `before_request` for the operator's pages: nobody else learns that they exist."""
    row = reader()
    if row is None or not row.operator:
        raise NotFound("There is nothing at this address.")
    return None


def is_operator() -> bool:
    """Whether the reader is an operator, for templates."""
    row = reader()
    return bool(row and row.operator)


def register(app: Flask) -> None:
    """Gives templates `signed_in()` and `is_operator()`, and answers a form whose CSRF token is not this sign-in's."""
    app.add_template_global(reader, "signed_in")
    app.add_template_global(is_operator)
    app.register_error_handler(CSRFError, _stale_form)


def check_form(token: str) -> None:
    """Refuses a form whose CSRF token is not this sign-in's, for a view that reads its body by itself."""
    try:
        validate_csrf(token)
    except ValidationError as fault:
        raise CSRFError(str(fault)) from None


def _stale_form(_fault: CSRFError) -> Response:
    if reader() is None:
        if request.path == "/sign-in" or request.path.startswith("/sign-in/"):
            return make_response(redirect(url_for("account.sign_in_page", again="1"), 303))
        return to_sign_in()
    detail = "This page was opened under another sign-in, so nothing was done. Load the page again, then try once more."
    return answer("forbidden", detail, {"reload": safe_place(request.referrer or HOME)})


def cookie_settings(secret_key: str, https: bool) -> dict[str, Any]:
    """Flask's settings of the cookie: `Secure` exactly when served by https."""
    return {
        "SECRET_KEY": secret_key,
        "SESSION_COOKIE_NAME": "__Host-allgone" if https else "allgone",
        "SESSION_COOKIE_SECURE": https,
        "SESSION_COOKIE_HTTPONLY": True,
        "SESSION_COOKIE_SAMESITE": "Lax",
        "SESSION_REFRESH_EACH_REQUEST": False,  # a poll must not keep a sign-in alive
        "PERMANENT_SESSION_LIFETIME": 30 * 24 * 3600,
        "WTF_CSRF_TIME_LIMIT": None,  # the token lives as long as the session it is bound to
        "WTF_CSRF_SSL_STRICT": False,  # behind a proxy the Referer names PUBLIC_URL, not what we see
    }


def current_https() -> bool:
    """Whether readers reach this app by https."""
    return bool(current_app.config["SESSION_COOKIE_SECURE"])

"""The password: set, changed, removed.

Whoever does it shows first that they are no passer-by at an open browser: by the password they have, or by having
proved who they are within the last quarter of an hour. A change signs out everywhere else.
"""

from __future__ import annotations

from flask import Response, redirect, request, url_for
from werkzeug.wrappers import Response as BaseResponse

from blueprints import access
from blueprints.account import hashing
from blueprints.account.page import answered, back, question
from blueprints.account.routes import account
from blueprints.attempts import ACCOUNT, count, forgive
from blueprints.database import resources, transaction
from models import sign_ins, ways
from models.base import database_time
from models.errors import Invalid, RateLimited
from models.password_rules import MOST, checked, normalised

STALE = (
    "Show first that it is you: sign out, and in again by a link, then come back within a quarter of an hour."
)


@account.post("/account/password")
@access.signed_in_only
def set_password() -> Response | BaseResponse:
    """Sets or changes the password; every other browser is signed out then."""
    owner, form = access.owner(), request.form
    try:
        kept = _allowed(form.get("current_password", ""))
        reader = access.reader()
        text = checked(form.get("new_password", ""), reader.email if reader else "")
        if form.get("repeated_password", "") != form.get("new_password", ""):
            raise Invalid("repeated_password", "The two are not the same.")
        made = hashing.hashed_password(text)
    except Invalid as refusal:
        return answered(400, faults={refusal.details["field"]: refusal.detail})
    except RateLimited as refusal:
        return _busy(refusal)
    with transaction() as db:
        ways.set_password(db, owner.principal_id, made)
        if kept is not None:
            sign_ins.sign_out_elsewhere(db, owner, access.signed_in_id())
    return back("password", "password-changed" if kept is not None else "password-set")


@account.get("/account/password/remove")
@access.signed_in_only
def ask_to_remove_password() -> str:
    """The question."""
    return question(
        "Remove your password?",
        ["From then on you sign in by a link. Browsers that are signed in stay so."],
        url_for("account.remove_password"),
        "Remove password",
        part="password",
    )


@account.post("/account/password/remove")
@access.signed_in_only
def remove_password() -> BaseResponse | Response:
    """Removes the password."""
    with transaction() as db:
        ways.remove_password(db, access.owner().principal_id)
    return back("password", "password-removed")


def _allowed(current: str) -> str | None:
    """The hash that is kept, once the reader may change it; None without one. Raises Invalid, RateLimited."""
    owner = access.owner()
    with transaction() as db:
        held = ways.password_of(db, owner.principal_id)
        kept = held.hash if held else None
        here = db.get(sign_ins.SignIn, access.signed_in_id())
        fresh = here is not None and here.fresh(database_time(db))
    if fresh and not current:
        return kept
    if kept is None:
        if fresh:
            return None
        raise Invalid("current_password" if kept else "new_password", STALE)
    reader = access.reader()
    email = reader.email.lower() if reader else ""
    count(resources(), ACCOUNT, email)
    text = normalised(current[: MOST + 1])
    if not _encodes(text) or not hashing.verified(kept, text):
        raise Invalid("current_password", "This is not your password.")
    forgive(resources(), ACCOUNT, email)
    return kept


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _busy(refusal: RateLimited) -> Response:
    answer = answered(429, faults={"current_password": refusal.detail})
    answer.headers["Retry-After"] = str(refusal.details["retry_after"])
    return answer


@account.get("/.well-known/change-password")
def change_password() -> BaseResponse:
    """Where password managers look for the form (W3C, "A Well-Known URL for Changing Passwords")."""
    return redirect(url_for("account.page", _anchor="password"), 302)

"""Signing in by a one-time link or a password, and out.

Following a link consumes it and answers 303 to an address without it, so that neither the history of the browser
nor a Referer holds a key. A wrong address, an address without a password and a wrong password have one answer, and
take the same time.
"""

from __future__ import annotations

from flask import Response, redirect, request, url_for
from werkzeug.wrappers import Response as BaseResponse

from blueprints import access
from blueprints.account import arriving, hashing
from blueprints.account.routes import account
from blueprints.attempts import ACCOUNT, PASSWORDS, count, forgive
from blueprints.database import resources, transaction
from blueprints.places import HOME
from models import sign_ins, ways
from models.errors import RateLimited, Unauthorized
from models.password_rules import MOST, normalised

WRONG = "This address and this password do not belong together. Try again, or sign in by a link."
AGAIN = "Nothing was sent: this page was open for too long, or your browser keeps no cookie of ours. Try once more."


@account.get("/sign-in")
def sign_in_page() -> str:
    """Says how to get in; a signed-in reader finds the way to the history. `?next=` is where to go afterwards."""
    access.keep_place(request.args.get("next", HOME))
    return arriving.sign_in_html(AGAIN if request.args.get("again") else "")


@account.get("/sign-in/<secret>")
def follow_link(secret: str) -> BaseResponse | Response:
    """Consumes the link and signs its user in; while another user is signed in here, asks first.

    What only looks (HEAD, a scanner's or a browser's prefetch) consumes nothing.
    """
    if request.method == "HEAD" or "prefetch" in request.headers.get(
        "Sec-Purpose", request.headers.get("Purpose", "")
    ):
        return Response(status=204)
    reader = access.reader()
    with transaction() as db:
        whose = sign_ins.link_owner(db, secret)
        if reader is not None and whose is not None and whose.id != reader.id:
            return arriving.ask_to_replace(reader.email, whose.email, secret)
    return arriving.follow(secret)


@account.post("/sign-in")
def replace_sign_in() -> BaseResponse | Response:
    """The answer to the question above: signs the link's user in instead."""
    return arriving.follow(request.form.get("secret", ""))


@account.post("/sign-in/password")
def sign_in_by_password() -> BaseResponse | Response:
    """Signs in by address and password. Every refusal but a full house says the same."""
    email = request.form.get("email", "").strip()
    password = normalised(request.form.get("password", "")[: MOST + 1])
    try:
        count(resources(), PASSWORDS, request.remote_addr or "unknown")
        count(resources(), ACCOUNT, email.lower())
        principal_id = _proved(email, password)
    except RateLimited as refusal:
        answer = arriving.refused(refusal.detail, 429, email)
        answer.headers["Retry-After"] = str(refusal.details["retry_after"])
        return answer
    except Unauthorized as refusal:
        return arriving.refused(refusal.detail, 401, email)
    forgive(resources(), ACCOUNT, email.lower())
    return arriving.arrive(principal_id, sign_ins.PASSWORD)


@account.post("/sign-out")
def sign_out() -> BaseResponse:
    """Revokes this browser's sign-in and forgets it."""
    with transaction() as db:
        sign_ins.sign_out(db, access.signed_in_id())
    access.forget_browser()
    return redirect(url_for("account.sign_in_page"), 303)


def _proved(email: str, password: str) -> str:
    with transaction() as db:
        found = ways.password_at(db, email)
    # No transaction is open while argon2 works. Without a user it works on nobody's hash, for as long.
    kept = found[1] if found else None
    try:
        text = password if len(password) <= MOST else ""
        text.encode()
    except UnicodeEncodeError:
        text = ""
    if not hashing.verified(kept, text) or found is None:
        raise Unauthorized(WRONG)
    if hashing.outdated(found[1]):
        new = hashing.hashed_password(text)
        with transaction() as db:
            ways.rehash_password(db, found[0], found[1], new)
    return found[0]

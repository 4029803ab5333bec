"""How each way in ends: a new sign-in for this browser, or the question whether to replace another user's.

A sign-in is always a new one, also for somebody who was in already: what an attacker may have put into a browser
before is worth nothing after. The one that it replaces is ended.
"""

from __future__ import annotations

import secrets

from flask import Response, make_response, redirect, render_template, request
from sqlalchemy.orm import Session
from werkzeug.wrappers import Response as BaseResponse

from blueprints import access
from blueprints.account.agents import browser_of
from blueprints.database import resources, transaction
from models import sign_ins, ways
from models.accounts import Principal
from models.base import database_time
from models.errors import Unauthorized


def browser() -> str:
    """The browser that asks, in a few words."""
    return browser_of(request.headers.get("User-Agent", "")[:1000])


def arrive(principal_id: str, method: str) -> BaseResponse | Response:
    """Signs in a principal who has just proved who they are; asks first where another user is signed in."""
    reader = access.reader()
    if reader is not None and reader.id != principal_id:
        secret = secrets.token_urlsafe(32)
        with transaction() as db:
            principal = db.get_one(Principal, principal_id)
            sign_ins.create_link(db, principal, secret, method=method, proved_at=database_time(db))
            return ask_to_replace(reader.email, principal.email, secret)
    with transaction() as db:
        sign_in_id = settle(db, sign_ins.begin(db, principal_id, method, browser()))
    return enter(sign_in_id)


def follow(secret: str) -> BaseResponse | Response:
    """Signs in whoever a one-time secret belongs to; a used one is refused, but lets those who are in go on."""
    try:
        with transaction() as db:
            sign_in_id = settle(db, sign_ins.use_link(db, secret, browser()))
    except Unauthorized as refusal:
        if access.reader() is not None:  # a link followed twice by someone who is in: let them in
            return redirect(access.take_place(), 303)
        return refused(refusal.detail)
    return enter(sign_in_id)


def settle(db: Session, sign_in: sign_ins.SignIn) -> str:
    """Ends the sign-in that this browser had; returns the new one's id."""
    sign_ins.sign_out(db, access.signed_in_id())
    return sign_in.id


def enter(sign_in_id: str) -> BaseResponse:
    """Makes this browser the sign-in's, and goes to where it wanted to be."""
    place = access.take_place()
    access.sign_in(sign_in_id)
    return redirect(place, 303)


def ask_to_replace(here: str, there: str, secret: str) -> Response:
    """The question whether `there` may take the place of `here`; `secret` is a link that holds the sign-in."""
    return make_response(render_template("account/replace.html", here=here, link=there, secret=secret))


def refused(said: str, status: int = 401, email: str = "") -> Response:
    """The sign-in page with what went wrong."""
    return make_response(sign_in_html(refusal=said, email=email), status)


def sign_in_html(refusal: str = "", email: str = "") -> str:
    """The sign-in page: every way in that there is."""
    reader = access.reader()
    with transaction() as db:
        passwords = reader is None and ways.any_password(db)
    ended = reader is None and bool(access.signed_in_id())  # the cookie names a sign-in that is over
    return render_template(
        "account/sign_in.html",
        reader=reader,
        refusal=refusal,
        email=email,
        passwords=passwords,
        provider=resources().settings.oidc_name,
        ended=ended,
    )

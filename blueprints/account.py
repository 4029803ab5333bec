"""Signing in by a one-time link, and out (PRODUCT.md 7, "Sign-in link").

Following a link consumes it and answers 303 to an address without it, so that neither the history of the browser
nor a Referer holds a key. It never replaces another user's sign-in unasked.
"""

from __future__ import annotations

from flask import Blueprint, Response, make_response, redirect, render_template, request, url_for
from werkzeug.wrappers import Response as BaseResponse

from blueprints import access
from blueprints.database import transaction
from models import sign_ins
from models.errors import Unauthorized

account = Blueprint("account", __name__)


@account.get("/sign-in")
def sign_in_page() -> str:
    """Says how to get in; a signed-in reader finds the way to the history."""
    return render_template("account/sign_in.html", reader=access.reader())


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
            page = render_template("account/replace.html", here=reader.email, link=whose.email, secret=secret)
            return make_response(page)
    return _sign_in(secret)


@account.post("/sign-in")
def replace_sign_in() -> BaseResponse | Response:
    """The answer to the question above: signs the link's user in instead."""
    return _sign_in(request.form.get("secret", ""))


@account.post("/sign-out")
def sign_out() -> BaseResponse:
    """Revokes this browser's sign-in and forgets it."""
    with transaction() as db:
        sign_ins.sign_out(db, access.signed_in_id())
    access.forget_browser()
    return redirect(url_for("account.sign_in_page"), 303)


def _sign_in(secret: str) -> BaseResponse | Response:
    try:
        with transaction() as db:
            replaced = access.signed_in_id()
            sign_in = sign_ins.use_link(db, secret)
            sign_ins.sign_out(db, replaced)
            sign_in_id = sign_in.id
    except Unauthorized as refusal:
        if access.reader() is not None:  # a link followed twice by someone who is in: let them in
            return redirect(url_for("sidebar.history"), 303)
        page = render_template("account/sign_in.html", reader=None, refusal=refusal.detail)
        return make_response(page, 401)
    access.sign_in(sign_in_id)
    return redirect(url_for("sidebar.history"), 303)

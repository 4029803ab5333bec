"""Closing one's account: the question with what goes, and a page that says how far it is.

That page is for somebody who is signed out for good, so its address carries a signed receipt: the account's id, which
says nothing to anybody, and leads to counts alone.
"""

from __future__ import annotations

from flask import Response, current_app, make_response, redirect, render_template, request, url_for
from itsdangerous import BadData, URLSafeSerializer
from werkzeug.wrappers import Response as BaseResponse

from blueprints import access
from blueprints.account.routes import account
from blueprints.database import resources, transaction
from models import closing
from models.errors import InvalidState, NotFound
from tasks.closing import close_account


@account.get("/account/close")
@access.signed_in_only
def ask_to_close() -> Response:
    """The question, with what goes and what stays."""
    return _question()


@account.post("/account/close")
@access.signed_in_only
def close() -> Response | BaseResponse:
    """Closes the account of a reader who typed its address; signs out everywhere and goes to the receipt."""
    owner, reader = access.owner(), access.reader()
    typed = request.form.get("address", "").strip()
    if reader is None or typed.casefold() != reader.email.casefold():
        return _question("This is not the address of this account. Nothing was closed.", 400)
    try:
        close_account(resources(), owner)
    except InvalidState as refusal:
        return _question(refusal.detail, 409, possible=False)
    access.forget_browser()
    return redirect(url_for("account.closed", receipt=_box().dumps(owner.principal_id)), 303)


@account.get("/closed/<receipt>")
def closed(receipt: str) -> str:
    """What is left of a closed account. Raises NotFound for a receipt that is not ours."""
    try:
        principal_id = _box().loads(receipt)
    except BadData:
        raise NotFound("There is nothing at this address.") from None
    with transaction() as db:
        standing = closing.standing(db, principal_id)
    if standing is None:
        raise NotFound("There is nothing at this address.")
    return render_template("account/closed.html", standing=standing)


def _question(fault: str = "", status: int = 200, *, possible: bool = True) -> Response:
    reader = access.reader()
    with transaction() as db:
        held = closing.holdings(db, access.owner())
    page = render_template(
        "account/close.html",
        held=held,
        email=reader.email if reader else "",
        fault=fault,
        possible=possible,
    )
    return make_response(page, status)


def _box() -> URLSafeSerializer:
    return URLSafeSerializer(str(current_app.secret_key), salt="allgone-closed")

"""Sign-in links for another device: made and shown once, with a code to scan; taken back."""

from __future__ import annotations

import secrets

import segno
from flask import Response, request, url_for
from markupsafe import Markup
from werkzeug.wrappers import Response as BaseResponse

from blueprints import access
from blueprints.account.page import answered, back
from blueprints.account.routes import account
from blueprints.database import resources, transaction
from models import accounts, sign_ins
from models.errors import InvalidState


@account.post("/account/links")
@access.signed_in_only
def make_link() -> Response:
    """Makes a link good once within ten minutes, and answers with the page that shows it, this once.

    It hands on when this browser's holder last proved who they are: a link is no new proof.
    """
    secret = secrets.token_urlsafe(32)
    try:
        with transaction() as db:
            principal = db.get_one(accounts.Principal, access.owner().principal_id)
            here = db.get_one(sign_ins.SignIn, access.signed_in_id())
            once = request.form.get("once", "")
            sign_ins.create_link(db, principal, secret, link_id=once, proved_at=here.proved_at)
    except InvalidState as refusal:
        return answered(409, faults={"link": refusal.detail})
    address = f"{resources().settings.public_url}{url_for('account.follow_link', secret=secret)}"
    return answered(shown={"kind": "link", "secret": address, "code": code(address)})


@account.post("/account/links/<link_id>/revoke")
@access.signed_in_only
def revoke_link(link_id: str) -> BaseResponse:
    """Takes a link back. Raises NotFound for one that was used or is over."""
    with transaction() as db:
        sign_ins.revoke_link(db, access.owner(), link_id)
    return back("links", "link-revoked")


def code(address: str) -> Markup:
    """The QR code of an address, as SVG without a style: black on white in every light, as scanners want it."""
    drawn = segno.make(address, micro=False, error="m")
    return Markup(drawn.svg_inline(omitsize=True, border=4, dark="#000", light="#fff"))  # noqa: S704  segno's own paths

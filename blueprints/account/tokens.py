"""Tokens: made and shown once, ended with a question before."""

from __future__ import annotations

import secrets
from datetime import timedelta

from flask import Response, request, url_for
from werkzeug.wrappers import Response as BaseResponse

from blueprints import access
from blueprints.account.page import LIVES, answered, back, question
from blueprints.account.routes import account
from blueprints.database import transaction
from models import accounts
from models.errors import Invalid, InvalidState, NotFound
from models.ids import is_id


@account.post("/account/tokens")
@access.signed_in_only
def make_token() -> Response:
    """Makes a token and answers with the page that shows it, this once.

    The form carries the token's id: sent again by a reload, it makes no second one, and shows none.
    """
    form = request.form
    scopes, name, days = form.getlist("scope"), form.get("name", "").strip(), form.get("expires_in", "")
    secret = accounts.TOKEN_PREFIX + secrets.token_urlsafe(32)
    values = {"name": name, "scope": scopes, "expires_in": days}
    try:
        if days not in dict(LIVES):
            raise Invalid("expires_in", "Choose one of these.")
        if not name:
            raise Invalid("name", "Give it a name, so that you know later what it was for.")
        if not scopes:
            raise Invalid("scope", "Choose at least one thing that it may do.")
        with transaction() as db:
            principal = db.get_one(accounts.Principal, access.owner().principal_id)
            life = timedelta(days=int(days)) if days else None
            once = form.get("once", "")
            accounts.create_token(db, principal, secret, scopes, name=name, expires_in=life, token_id=once)
    except Invalid as refusal:
        faults = {refusal.details["field"]: refusal.detail}
        return answered(400, faults=faults, values=values)
    except InvalidState as refusal:
        return answered(409, faults={"token": refusal.detail})
    return answered(shown={"kind": "token", "secret": secret, "name": name})


@account.get("/account/tokens/<token_id>/revoke")
@access.signed_in_only
def ask_to_revoke_token(token_id: str) -> str:
    """The question. Raises NotFound."""
    with transaction() as db:
        token = db.get(accounts.Token, token_id) if is_id(token_id) else None
        if token is None or token.principal_id != access.owner().principal_id:
            raise NotFound("There is no such token. It may have been revoked.")
        return question(
            "Revoke this token?",
            [
                "Whatever uses it is refused from that moment on. This cannot be undone; you can make another one."
            ],
            url_for("account.revoke_token", token_id=token_id),
            "Revoke token",
            name=token.name or "A token without a name",
            part="tokens",
        )


@account.post("/account/tokens/<token_id>/revoke")
@access.signed_in_only
def revoke_token(token_id: str) -> BaseResponse:
    """Ends a token at once. Raises NotFound."""
    with transaction() as db:
        accounts.revoke_token(db, token_id, of=access.owner())
    return back("tokens", "token-revoked")

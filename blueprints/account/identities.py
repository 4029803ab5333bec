"""Signing in through an identity provider, and linking one's account there to the one here.

| who comes back from the provider | what happens |
|---|---|
| an identity that is linked | that user is signed in |
| another one, whose verified address is a user's here | it is linked to that user, who is signed in |
| another one | nobody is signed in; the page says why |
| whoever asked for it at the Account page | is asked, and then it is linked |

The last asks because the way to the provider begins with a link that any page could open: what is linked is what
its reader has seen and confirmed.
"""

from __future__ import annotations

import structlog
from flask import Response, current_app, render_template, request, url_for
from itsdangerous import BadData, URLSafeTimedSerializer
from werkzeug.wrappers import Response as BaseResponse

from blueprints import access
from blueprints.account import arriving
from blueprints.account.page import answered, back, question
from blueprints.account.provider import Provider, ProviderFault, Told, provider
from blueprints.account.routes import account
from blueprints.attempts import PROVIDER, count
from blueprints.database import resources, transaction
from blueprints.errors import elsewhere
from models import sign_ins, ways
from models.base import database_time
from models.errors import Forbidden, InvalidState, NotFound, RateLimited

HELD_SECONDS = 600  # that a question whether to link an identity may stay open
OVER = "This way of signing in was begun in another browser, used already, or is over 10 minutes old. Begin again."

log = structlog.get_logger()


@account.get("/sign-in/provider")
def to_provider() -> BaseResponse | Response:
    """Sends the browser to the provider; `?link=1` to link an account there. Raises NotFound without a provider."""
    told = _provider()
    if request.method == "HEAD" or "prefetch" in request.headers.get("Sec-Purpose", ""):
        return Response(status=204)
    try:
        count(resources(), PROVIDER, request.remote_addr or "unknown")
        begun = told.begun(_callback())
    except (ProviderFault, RateLimited) as fault:
        return _refused(fault)
    link = "1" if request.args.get("link") and access.reader() is not None else ""
    access.keep_try(begun.state, {"nonce": begun.nonce, "verifier": begun.verifier, "link": link})
    return elsewhere(begun.address)


@account.get("/sign-in/provider/answer")
def from_provider() -> BaseResponse | Response:
    """Where the provider sends the browser back to. A state is good once, in the browser that began with it."""
    told = _provider()
    held = access.take_try(request.args.get("state", ""))
    if held is None:
        return arriving.refused(OVER, 400)
    if request.args.get("iss", told.issuer) != told.issuer:  # RFC 9207
        return arriving.refused(OVER, 400)
    code = request.args.get("code", "")
    if request.args.get("error") or not code:
        return arriving.refused(f"{told.name} did not sign you in. Nothing was changed.", 403)
    try:
        count(resources(), PROVIDER, request.remote_addr or "unknown")
        whom = told.finished(_callback(), code, held["nonce"], held["verifier"])
    except (ProviderFault, RateLimited) as fault:
        return _refused(fault)
    if held["link"]:
        return _ask_to_link(told, whom)
    return _arrive(told, whom)


@account.post("/account/identities")
@access.signed_in_only
def link_identity() -> BaseResponse | Response:
    """Links the identity that its reader was asked about, in the browser that was asked."""
    try:
        held = _box().loads(request.form.get("held", ""), max_age=HELD_SECONDS)
    except BadData:
        return answered(400, faults={"identity": OVER})
    if held["here"] != access.signed_in_id():
        return answered(400, faults={"identity": OVER})
    owner = access.owner()
    try:
        with transaction() as db:
            ways.link_identity(db, owner.principal_id, held["issuer"], held["subject"], held["email"])
    except InvalidState as refusal:
        return answered(409, faults={"identity": refusal.detail})
    return back("provider", "identity-linked")


@account.get("/account/identities/<identity_id>/unlink")
@access.signed_in_only
def ask_to_unlink(identity_id: str) -> str:
    """The question. Raises NotFound."""
    with transaction() as db:
        mine = {one.id: one for one in ways.identities_of(db, access.owner())}
        if identity_id not in mine:
            raise NotFound("There is no such account at a provider. It may have been taken back already.")
        return question(
            "Unlink this account?",
            [
                "It no longer signs you in here. Browsers that are signed in stay so, and a link still signs you in."
            ],
            url_for("account.unlink_identity", identity_id=identity_id),
            "Unlink",
            name=mine[identity_id].email or mine[identity_id].subject,
            part="provider",
        )


@account.post("/account/identities/<identity_id>/unlink")
@access.signed_in_only
def unlink_identity(identity_id: str) -> BaseResponse:
    """Takes an identity back at once. Raises NotFound."""
    with transaction() as db:
        ways.unlink_identity(db, access.owner(), identity_id)
    return back("provider", "identity-unlinked")


def _arrive(told: Provider, whom: Told) -> BaseResponse | Response:
    with transaction() as db:
        principal_id = ways.identified(db, whom.issuer, whom.subject)
        if principal_id is None and whom.email:
            user = ways.user_at(db, whom.email)
            if user is not None:
                ways.link_identity(db, user.id, whom.issuer, whom.subject, whom.email)
                principal_id = user.id
    if principal_id is not None:
        return arriving.arrive(principal_id, sign_ins.PROVIDER)
    if not whom.email:
        said = (
            f"{told.name} does not say that your address is verified, so it cannot be told who you are here."
        )
    else:
        said = f"Nobody here has the address {whom.email}. Whoever runs this server can add you."
    return arriving.refused(said, 403)


def _ask_to_link(told: Provider, whom: Told) -> Response:
    owner = access.reader()
    if owner is None:
        return arriving.refused(OVER, 400)
    with transaction() as db:
        here = db.get(sign_ins.SignIn, access.signed_in_id())
        if here is None or not here.fresh(database_time(db)):
            raise Forbidden("Show first that it is you: sign out, and in again, then link your account.")
    held = {
        "issuer": whom.issuer,
        "subject": whom.subject,
        "email": whom.label,
        "here": access.signed_in_id(),
    }
    return Response(
        render_template(
            "account/link_identity.html",
            provider=told.name,
            name=whom.label,
            here=owner.email,
            held=_box().dumps(held),
        )
    )


def _refused(fault: ProviderFault | RateLimited) -> Response:
    if isinstance(fault, RateLimited):
        return arriving.refused(fault.detail, 429)
    log.warning("provider_fault", fault=fault.kind)
    return arriving.refused(fault.said, 503 if fault.away else 403)


def _provider() -> Provider:
    settings = resources().settings
    if not settings.oidc_issuer:
        raise NotFound("There is nothing at this address.")
    return provider(
        settings.oidc_issuer, settings.oidc_client_id, settings.oidc_client_secret, settings.oidc_name
    )


def _callback() -> str:
    return resources().settings.public_url + url_for("account.from_provider")


def _box() -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(str(current_app.secret_key), salt="allgone-identity")

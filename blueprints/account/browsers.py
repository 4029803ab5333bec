"""The browsers in which one is signed in: one of them signed out, or all but this one."""

from __future__ import annotations

from werkzeug.wrappers import Response as BaseResponse

from blueprints import access
from blueprints.account.page import back
from blueprints.account.routes import account
from blueprints.database import transaction
from models import sign_ins
from models.errors import NotFound


@account.post("/account/browsers/<sign_in_id>/sign-out")
@access.signed_in_only
def sign_out_browser(sign_in_id: str) -> BaseResponse:
    """Ends one sign-in at once. Raises NotFound for one that is over already."""
    with transaction() as db:
        if not sign_ins.sign_out(db, sign_in_id, of=access.owner()):
            raise NotFound("That browser is signed out already.")
    return back("browsers", "signed-out")


@account.post("/account/browsers/sign-out")
@access.signed_in_only
def sign_out_elsewhere() -> BaseResponse:
    """Ends every sign-in but this browser's, and every link that nobody followed."""
    with transaction() as db:
        sign_ins.sign_out_elsewhere(db, access.owner(), access.signed_in_id())
    return back("browsers", "signed-out-elsewhere")

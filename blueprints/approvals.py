"""An approval decided where it stands in the transcript (PRODUCT.md 7).

`POST /conversations/<id>/approvals/<approval_id>` with `decision=approve|deny` answers the approval's card as it is
now: 200 when it is as was asked for, by this or an earlier decision; 409 when it was decided otherwise before, and the
card says so. A browser without scripts is sent back to the approval's place.
"""

from __future__ import annotations

from flask import Blueprint, Response, make_response, redirect, render_template, request, url_for
from sqlalchemy.orm import Session
from werkzeug.wrappers import Response as BaseResponse

from blueprints import access, days
from blueprints.database import resources, transaction
from blueprints.transcript import Item, approval
from models import approvals, transcript
from models.errors import Invalid, InvalidState, NotFound
from models.ids import is_id
from tasks.news import tell

deciding = Blueprint("approvals", __name__, url_prefix="/conversations/<session_id>/approvals")

SAID = {"approve": "approved", "deny": "denied"}


@deciding.post("/<approval_id>")
@access.signed_in_only
def decide(session_id: str, approval_id: str) -> Response | BaseResponse:
    """Decides, once. Raises NotFound, and Invalid for a decision that is none."""
    owner = access.owner()
    decision = request.form.get("decision", "")
    if decision not in SAID:
        raise Invalid("decision", "A decision is approve or deny.")
    problem = ""
    try:
        with transaction() as db:
            _here(db, session_id, approval_id)
            approvals.decide(db, owner, approval_id, decision)
        tell(resources(), session_id)
    except InvalidState as refusal:
        if refusal.details.get("reason") != "already_decided":
            raise
        problem = "decided"
    with transaction() as db:
        card = _here(db, session_id, approval_id)
    if problem and card.decided_at is not None:
        when = days.written(card.decided_at, days.zone())
        problem = f"Nothing was changed: this was {SAID[card.status]} on {when}, before your answer came."
    if not request.headers.get("HX-Request"):
        place = url_for("talk.page", session_id=session_id, at=card.seq, _anchor=f"e-{card.seq}")
        return redirect(place, 303)
    here = f"/conversations/{session_id}"
    body = render_template("conversation/_approval.html", item=card, here=here, problem=problem)
    return make_response(body, 409 if problem else 200)


def _here(db: Session, session_id: str, approval_id: str) -> Item:
    """The card of an approval of that conversation; whose it is, the verb asks. Raises NotFound."""
    row = None
    if is_id(session_id) and is_id(approval_id):
        row = transcript.approvals(db, session_id, [approval_id]).get(approval_id)
    if row is None:
        raise NotFound(approvals.MISSING)
    return approval(row)

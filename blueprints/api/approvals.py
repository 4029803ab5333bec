"""Approvals: what runs wait for (PRODUCT.md 3.1)."""

from __future__ import annotations

from typing import Literal

from flask import Response

from blueprints.api import views, wire
from blueprints.api.contract import Asked, Given, operation
from blueprints.api.sessions import Cursor, Limit
from blueprints.database import resources, transaction
from models import approvals
from models.accounts import Owner
from models.rules import PAGE_DEFAULT
from tasks.news import tell


class ApprovalsAsked(Asked):
    state: Literal["pending", "decided"] | None = None
    limit: Limit = PAGE_DEFAULT
    cursor: Cursor = None


class Decision(Given):
    decision: Literal["approve", "deny"]


@operation(
    "GET",
    "/approvals",
    scope="session.read",
    query=ApprovalsAsked,
    answers={200: views.Approvals},
    refuses=("invalid", "invalid_cursor"),
)
def list_approvals(owner: Owner, query: ApprovalsAsked) -> Response:
    """A page of approvals, newest first."""
    below = wire.below(owner, query.cursor, "approvals")
    with transaction() as db:
        rows = approvals.page(db, owner, query.limit + 1, state=query.state, below=below)
        data = [views.approval(row) for row in rows[: query.limit]]
    following = wire.id_cursor(owner, data[-1]["id"], "approvals") if len(rows) > query.limit else None
    return wire.listed(data, following)


@operation(
    "POST",
    "/approvals/{approval_id}/decision",
    scope="approval.write",
    body=Decision,
    answers={200: views.ApprovalView},
    refuses=("invalid", "not_found", "invalid_state"),
)
def decide_approval(owner: Owner, approval_id: str, body: Decision) -> Response:
    """Decide once; the same decision again is 200, a different one 409 `already_decided`."""
    with transaction() as db:
        approval = approvals.decide(db, owner, approval_id, body.decision)
        session_id, view = approval.session_id, views.approval(approval)
    tell(resources(), session_id)
    return wire.answered(view)

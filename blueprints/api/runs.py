"""Runs: started by the user's message, written by one worker, ended by it or by its lease (PRODUCT.md 3.1)."""

from __future__ import annotations

from typing import Annotated, Any

from flask import Response
from pydantic import BeforeValidator, Field

from blueprints.api import views, wire
from blueprints.api.contract import Given, IdGiven, operation
from blueprints.database import resources, transaction
from models import reading, runs
from models.accounts import Owner
from models.append import BATCH_MAX, Draft, append, lock_conversation
from models.base import database_time
from models.errors import Invalid, NotFound, Refusal, TooLarge
from models.rules import LEASE_DEFAULT, LEASE_MAX, LEASE_MIN, NAME_MAX
from tasks.news import tell

BATCH_BYTES = 16 * 1024 * 1024  # of a batch's body
OURS = {  # types that no client writes
    "artifact_created": "artifact_created is written by its own route.",
    "approval_decided": "approval_decided is written by its own route.",
    "session_deleted": "session_deleted is a stream's last word, and no event.",
}


class Message(Given):
    content: str | list[dict[str, Any]] = Field(
        description='A text, or blocks such as {"type": "text", "text": …}.'
    )


def _whole(value: object) -> object:
    # 60.0 is a whole number to JSON Schema.
    return int(value) if isinstance(value, float) and value.is_integer() else value


class NewRun(Given):
    message: Message
    lease_s: Annotated[int, BeforeValidator(_whole), Field(ge=LEASE_MIN, le=LEASE_MAX)] = LEASE_DEFAULT


class NewEvent(Given):
    type: Annotated[str, Field(min_length=1, max_length=NAME_MAX)]
    payload: dict[str, Any]
    parent_id: IdGiven | None = Field(None, description="Set on a nested event, such as a sub-agent's.")


class Batch(Given):
    events: Annotated[list[NewEvent], Field(min_length=1, max_length=BATCH_MAX)]


class NoBody(Given):
    """Nothing to say."""


@operation(
    "POST",
    "/sessions/{session_id}/runs",
    scope="run.write",
    body=NewRun,
    body_max=BATCH_BYTES,
    answers={201: views.RunView},
    refuses=("invalid", "not_found", "invalid_state", "too_large"),
)
def start_run(owner: Owner, session_id: str, body: NewRun) -> Response:
    """Append the user's message and start the run that answers it; 409 `active_run_exists` while another is active."""
    with transaction() as db:
        conversation = lock_conversation(db, owner, session_id)
        run = runs.start(db, conversation, database_time(db), body.lease_s)
        message = Draft("user_message", {"content": body.message.content})
        try:
            append(db, owner, session_id, [message], run_id=run.id)
        except (Invalid, TooLarge) as refusal:
            raise _as_sent(refusal) from None
        view = views.run(run)
    tell(resources(), session_id)
    return wire.answered(view, 201)


def _as_sent(refusal: Invalid | TooLarge) -> Refusal:
    """The refusal of the event that a message becomes, naming what the caller sent."""
    ours, theirs = "events[0].payload", "message"
    field = str(refusal.details.get("field", "")).replace(ours, theirs)
    detail = refusal.detail.replace(ours, theirs)
    return Invalid(field, detail) if isinstance(refusal, Invalid) else TooLarge(detail, field=field)


@operation(
    "GET", "/runs/{run_id}", scope="session.read", answers={200: views.RunView}, refuses=("not_found",)
)
def show_run(owner: Owner, run_id: str) -> Response:
    """A run; its worker reads `cancel_requested` here."""
    with transaction() as db:
        return wire.answered(views.run(reading.run(db, owner, run_id)))


@operation(
    "POST",
    "/runs/{run_id}/events",
    scope="run.write",
    body=Batch,
    body_max=BATCH_BYTES,
    answers={201: views.Events},
    refuses=("invalid", "not_found", "invalid_state", "too_large"),
)
def append_events(owner: Owner, run_id: str, body: Batch) -> Response:
    """Append a batch, all or nothing, in order, and renew the lease; 409 `run_ended` once the run has ended."""
    for index, one in enumerate(body.events):
        if one.type in OURS:
            raise Invalid(f"events[{index}].type", OURS[one.type])
    drafts = [Draft(one.type, one.payload, one.parent_id) for one in body.events]
    with transaction() as db:
        session_id = reading.run(db, owner, run_id).session_id
        try:
            written = append(db, owner, session_id, drafts, run_id=run_id)
        except NotFound:
            raise NotFound(reading.MISSING_RUN) from None
    tell(resources(), session_id)
    data = [views.event(one, session_id, draft.parent_id) for one, draft in zip(written, drafts, strict=True)]
    return wire.answered(views.listed(data, None), 201)


@operation(
    "POST",
    "/runs/{run_id}/cancel",
    scope="run.write",
    body=NoBody,
    answers={202: views.RunView},
    refuses=("invalid", "not_found", "invalid_state"),
)
def cancel_run(owner: Owner, run_id: str, body: NoBody) -> Response:
    """Ask the worker to stop; it sees `cancel_requested` and ends the run itself. 409 `run_ended` when it has."""
    with transaction() as db:
        session_id = reading.run(db, owner, run_id).session_id
        try:
            conversation = lock_conversation(db, owner, session_id)
        except NotFound:
            raise NotFound(reading.MISSING_RUN) from None
        runs.cancel(db, conversation, run_id, database_time(db))
        view = views.run(reading.run(db, owner, run_id))
    tell(resources(), session_id)
    return wire.answered(view, 202)

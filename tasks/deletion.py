"""Delete Everywhere as every edge asks for it: the transaction, then the bytes at once, then a worker for the rest."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import structlog
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from models.accounts import Owner
from models.errors import InvalidState, NotFound
from models.purge import Deleted, delete_conversation
from models.rules import INLINE_BUDGET
from tasks.news import tell
from tasks.outbox import drain_later, drain_soon
from tasks.resources import Resources

MANY_SECONDS = 8.0  # of one request for many, after which it answers with what is left

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the deletion did, and whether bytes are still owed at the moment of the answer."""

    deleted: Deleted
    bytes_owed: bool


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What became of each of many: gone, kept with a reason (`active_run_exists`, `failed`), or not tried in time."""

    gone: Sequence[str]
    kept: Mapping[str, str]
    untried: Sequence[str]
    since: datetime | None  # of the first deletion that this did


def delete_many(
    resources: Resources, owner: Owner, session_ids: Sequence[str], seconds: float = MANY_SECONDS
) -> Outcomes:
    """Deletes each everywhere, in its own transaction; begins none after `seconds`. Bytes are tried after all rows.

    One that is kept costs the others nothing. What is not there any more counts as gone.
    """
    deadline = time.monotonic() + seconds
    gone: list[str] = []
    kept: dict[str, str] = {}
    owing, times = [], []
    left = list(dict.fromkeys(session_ids))
    while left and time.monotonic() < deadline:
        session_id = left.pop(0)
        try:
            deleted = delete_now(resources, owner, session_id, budget=None).deleted
        except NotFound:
            deleted = None
        except InvalidState as refusal:
            kept[session_id] = str(refusal.details["reason"])
            continue
        except DBAPIError as fault:
            log.warning("deletion_failed", session_id=session_id, error=type(fault).__name__)
            kept[session_id] = "failed"
            continue
        gone.append(session_id)
        if deleted is not None and not deleted.again:
            times.append(deleted.deleted_at)
            owing += [session_id] if deleted.files else []
    budget = time.monotonic() + INLINE_BUDGET
    for session_id in owing:
        if not drain_soon(resources, session_id, max(0.0, budget - time.monotonic())):
            drain_later(resources)
            break
    return Outcomes(gone, kept, left, min(times, default=None))


def delete_now(
    resources: Resources, owner: Owner, session_id: str, budget: float | None = INLINE_BUDGET
) -> Outcome:
    """Deletes a conversation everywhere. After this returns, nothing of it is readable by anyone.

    Without a `budget` its bytes are left to a caller that deletes many, and then wakes one worker for all of them.
    Raises NotFound and InvalidState("active_run_exists"). A failing store or queue fails nothing here.
    """
    with Session(resources.engine) as db, db.begin():
        deleted = delete_conversation(db, owner, session_id)
    tell(resources, session_id)
    owed = bool(deleted.files)
    if deleted.files and budget is not None:
        owed = not drain_soon(resources, session_id, budget)
        if owed:
            drain_later(resources)
    if not deleted.again:
        log.info(
            "conversation_deleted", session_id=session_id, memories=deleted.memories, files=deleted.files
        )
    return Outcome(deleted, bytes_owed=owed)

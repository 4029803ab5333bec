"""Which rows each type of event becomes (PRODUCT.md 3.2, the table).

`apply` writes the rows of a whole batch, one statement a table where the table allows it; `models/payloads.py`
has refused what cannot be written. A type that is not named here is stored as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from models.accounts import Owner
from models.artifacts import Artifact
from models.bulk import Bulk, json_text
from models.errors import Invalid
from models.history import Approval, Checkpoint, Projection, RecallTrace, ToolInvocation
from models.indexing import SAID, index
from models.knowledge import KnowledgeDocument, lock_skills, publish_skill
from models.memories import (
    Consolidation,
    ConsolidationInput,
    MemoryRejection,
    form,
    held_ids,
    lock_all_workspaces,
    lock_workspaces,
    make_workspaces,
)
from models.rules import WORKSPACE

INPUTS_MAX = 10_000  # memories that one batch draws from


@dataclass(frozen=True, slots=True)
class Written:
    """One event as it is stored, beside which its rows are written."""

    id: str
    seq: int
    run_id: str | None
    type: str
    payload: dict[str, Any]
    created_at: datetime
    nested: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """Where a batch goes: whose conversation, the `seq` of its first event, and the database's time."""

    owner: Owner
    session_id: str
    first_seq: int
    now: datetime

    def field(self, event: Written, name: str) -> str:
        """What an error names: a key in the payload of one event of the batch."""
        return f"events[{event.seq - self.first_seq}].payload.{name}"


def apply(db: Session, place: Place, events: Sequence[Written]) -> None:
    """Writes what `events`, in order, become. Raises Invalid when they name what is not there or not theirs.

    The caller holds the conversation's lock; the workspaces are locked here, all before the first of their rows.
    """
    named = {
        e.payload.get("workspace") or WORKSPACE for e in events if e.type in ("memory_formed", "consolidated")
    }
    if any(event.type == "consolidated" for event in events):
        # Its inputs may lie in any workspace, and none may go before the record that names it is committed.
        make_workspaces(db, place.owner, named)
        lock_all_workspaces(db, place.owner)
    elif named:
        lock_workspaces(db, place.owner, named)
    for kinds, write in APPLIED:
        mine = [event for event in events if event.type in kinds]
        if mine:
            write(db, place, mine)


def _base(place: Place, event: Written) -> dict[str, Any]:
    return {
        "session_id": place.session_id,
        "seq": event.seq,
        "run_id": event.run_id,
        "created_at": event.created_at,
    }


_CHECKPOINTS = Bulk(Checkpoint, ["session_id", "seq", "run_id", "state", "created_at"])
_INPUTS = Bulk(ConsolidationInput, ["memory_id", "session_id", "seq"])
_TOOLS = Bulk(
    ToolInvocation,
    ["session_id", "call_id", "run_id", "name", "arguments", "output", "status", "created_at"],
    """
    ON CONFLICT (session_id, call_id) DO UPDATE SET
        name = coalesce(excluded.name, tool_invocations.name),
        arguments = coalesce(excluded.arguments, tool_invocations.arguments),
        output = coalesce(excluded.output, tool_invocations.output),
        status = coalesce(nullif(excluded.status, 'called'), tool_invocations.status)
    """,
)


def _messages(db: Session, place: Place, events: Sequence[Written]) -> None:
    shown = [(event.seq, event.payload) for event in events if not event.nested]
    index(db, place.owner.principal_id, place.session_id, shown)


def _checkpoints(db: Session, place: Place, events: Sequence[Written]) -> None:
    _CHECKPOINTS.write(
        db,
        [
            (place.session_id, event.seq, event.run_id, json_text(event.payload["state"]), event.created_at)
            for event in events
        ],
    )


def _projections(db: Session, place: Place, events: Sequence[Written]) -> None:
    latest = {event.payload["name"]: event for event in events}
    write = insert(Projection).values(
        [
            {
                "session_id": place.session_id,
                "name": name,
                "seq": event.seq,
                "run_id": event.run_id,
                "state": event.payload["state"],
                "updated_at": event.created_at,
            }
            for name, event in latest.items()
        ]
    )
    new = {name: write.excluded[name] for name in ("seq", "run_id", "state", "updated_at")}
    db.execute(write.on_conflict_do_update(index_elements=["session_id", "name"], set_=new))


def _tools(db: Session, place: Place, events: Sequence[Written]) -> None:
    merged: dict[str, dict[str, Any]] = {}
    for event in events:
        payload = event.payload
        blank = {
            "session_id": place.session_id,
            "call_id": payload["call_id"],
            "run_id": event.run_id,
            "name": None,
            "arguments": None,  # absent, unlike a JSON null that was sent
            "output": None,
            "status": "called",
            "created_at": event.created_at,
        }
        row = merged.setdefault(payload["call_id"], blank)
        if event.type == "tool_call":
            row |= {"name": payload["name"], "arguments": json_text(payload["arguments"])}
        else:
            row |= {"output": json_text(payload["output"]), "status": payload["status"]}
            row["name"] = row["name"] or payload.get("name")
    _TOOLS.write(db, [tuple(row.values()) for row in merged.values()])


def _approvals(db: Session, place: Place, events: Sequence[Written]) -> None:
    rows = [
        {
            **_base(place, event),
            "id": event.id,  # an approval is its event, waiting for an answer
            "principal_id": place.owner.principal_id,
            "summary": event.payload["summary"],
            "tool": event.payload.get("tool"),
            "arguments": event.payload.get("arguments"),
        }
        for event in events
    ]
    db.execute(insert(Approval), rows)


def _recalls(db: Session, place: Place, events: Sequence[Written]) -> None:
    rows = [
        {
            **_base(place, event),
            "query": event.payload["query"],
            "memory_ids": event.payload["memory_ids"],
        }
        for event in events
    ]
    db.execute(insert(RecallTrace), rows)


def _memories(db: Session, place: Place, events: Sequence[Written]) -> None:
    for event in events:
        form(
            db,
            place.owner,
            event.payload["text"],
            event.payload.get("workspace") or WORKSPACE,
            source="conversation",
            now=place.now,
            session_id=place.session_id,
            run_id=event.run_id,
        )


def _rejections(db: Session, place: Place, events: Sequence[Written]) -> None:
    rows = [
        {**_base(place, event), "text": event.payload["text"], "reason": event.payload["reason"]}
        for event in events
    ]
    db.execute(insert(MemoryRejection), rows)


def _consolidations(db: Session, place: Place, events: Sequence[Written]) -> None:
    if sum(len(event.payload["memory_ids"]) for event in events) > INPUTS_MAX:
        # A batch holds the user's workspaces, and whoever else writes memories waits for it.
        raise Invalid("events", f"A batch consolidates at most {INPUTS_MAX} memories; send several batches.")
    for event in events:
        inputs = list(dict.fromkeys(event.payload["memory_ids"]))
        formed = form(
            db,
            place.owner,
            event.payload["text"],
            event.payload.get("workspace") or WORKSPACE,
            source="consolidation",
            now=place.now,
            session_id=place.session_id,
            run_id=event.run_id,
        )
        missing = sorted(set(inputs) - held_ids(db, place.owner, inputs))
        if missing:
            raise Invalid(place.field(event, "memory_ids"), f"There is no memory {missing[0]}.")
        row = {**_base(place, event), "memory_id": formed.memory_id, "made": formed.made}
        db.execute(insert(Consolidation).values(row))
        _INPUTS.write(db, [(one, place.session_id, event.seq) for one in inputs])


def _artifacts(db: Session, place: Place, events: Sequence[Written]) -> None:
    rows = [
        {
            **_base(place, event),
            "id": event.payload["artifact_id"],
            "principal_id": place.owner.principal_id,
            "name": event.payload["name"],
            "content_type": event.payload["content_type"],
            "size": event.payload["size"],
            "sha256": bytes.fromhex(event.payload["sha256"]),
        }
        for event in events
    ]
    db.execute(insert(Artifact), rows)


def _documents(db: Session, place: Place, events: Sequence[Written]) -> None:
    for event in events:
        artifact_id = event.payload["artifact_id"]
        held = select(Artifact.id).where(Artifact.id == artifact_id, Artifact.session_id == place.session_id)
        if db.execute(held).scalar_one_or_none() is None:
            raise Invalid(
                place.field(event, "artifact_id"), f"This conversation has no artifact {artifact_id}."
            )
        row = _base(place, event)
        del row["run_id"]
        db.execute(
            insert(KnowledgeDocument).values(
                **row,
                principal_id=place.owner.principal_id,
                artifact_id=artifact_id,
                title=event.payload["title"],
                chunks=event.payload["chunks"],
            )
        )


def _skills(db: Session, place: Place, events: Sequence[Written]) -> None:
    lock_skills(db, place.owner, (event.payload["name"] for event in events))
    for event in events:
        name, body = event.payload["name"], event.payload["body"]
        publish_skill(db, place.owner, name, body, place.session_id, event.run_id, event.created_at)


APPLIED: Sequence[tuple[tuple[str, ...], Callable[[Session, Place, Sequence[Written]], None]]] = (
    (SAID, _messages),
    (("checkpoint",), _checkpoints),
    (("projected",), _projections),
    (("tool_call", "tool_result"), _tools),
    (("approval_requested",), _approvals),
    (("recall",), _recalls),
    (("memory_rejected",), _rejections),
    (("artifact_created",), _artifacts),
    (("knowledge_added",), _documents),
    (("skill_published",), _skills),
    # Last, in the order of the locks: session, workspace, list version.
    (("memory_formed",), _memories),
    (("consolidated",), _consolidations),
)

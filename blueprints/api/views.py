"""What `/v1` answers: each view as the document names it, and the function that builds it from a row.

Answers are built as plain mappings, since what we made ourselves needs no validation; the models beside them are
what the document shows, and a test holds each function against its model.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Generic, Literal, TypeVar

from pydantic import Field

from blueprints.api.contract import View
from blueprints.api.wire import time_text
from models.artifacts import Artifact
from models.history import Approval, Run
from models.memories import Memory
from models.project import Written
from models.reading import Read

T = TypeVar("T", bound=View)
Identity = Field(description="UUIDv7", pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")


class Listed(View, Generic[T]):
    """A page of a list; `next_cursor` is null on the last."""

    data: list[T]
    next_cursor: str | None


class SessionView(View):
    """One conversation, as the index shows it."""

    id: str = Identity
    title: str = Field(description='At most 64 code points; empty until the first message: show "Untitled".')
    created_at: datetime
    updated_at: datetime
    active_run_id: str | None
    last_run_id: str | None = Field(description="The newest run that ended.")


class EventView(View):
    """One immutable event; `seq` is dense per session from 1."""

    id: str = Identity
    session_id: str
    run_id: str | None
    seq: int
    type: str
    parent_id: str | None
    payload: dict[str, Any]
    created_at: datetime


class RunView(View):
    """One run of an agent."""

    id: str = Identity
    session_id: str
    status: Literal["running", "succeeded", "failed", "cancelled", "expired"]
    cancel_requested: bool
    lease_expires_at: datetime
    created_at: datetime
    ended_at: datetime | None


class ApprovalView(View):
    """Something a run asked leave for."""

    id: str = Identity
    session_id: str
    run_id: str | None
    state: Literal["pending", "decided"]
    summary: str
    tool: str | None
    arguments: Any
    decision: Literal["approve", "deny"] | None
    created_at: datetime
    decided_at: datetime | None


class ArtifactView(View):
    """What is known of some bytes."""

    id: str = Identity
    session_id: str
    run_id: str | None
    name: str
    content_type: str
    size: int = Field(description="bytes")
    sha256: str = Field(description="64 hex digits")
    created_at: datetime


class MemoryView(View):
    """One memory of the caller's home."""

    id: str = Identity
    key: str = Field(description="SHA-256 of the text after secrets were masked, 64 hex digits")
    text: str
    workspace: str
    source: str
    session_id: str | None
    recorded_at: datetime


class Problem(View):
    """RFC 9457, with a stable `code` to branch on."""

    status: int
    title: str
    detail: str
    code: Literal[
        "unauthorized",
        "forbidden",
        "not_found",
        "invalid",
        "invalid_cursor",
        "invalid_state",
        "too_large",
        "rate_limited",
        "internal",
    ]
    details: dict[str, Any]


class Sessions(Listed[SessionView]):
    """A page of conversations, newest activity first."""


class Events(Listed[EventView]):
    """Events in order; `next_cursor` is the `after` of the next page."""


class Approvals(Listed[ApprovalView]):
    """A page of approvals, newest first."""


class Memories(Listed[MemoryView]):
    """A page of memories, newest first."""


def event(row: Read | Written, session_id: str, parent_id: str | None) -> dict[str, Any]:
    """EventView of a stored event."""
    return {
        "id": row.id,
        "session_id": session_id,
        "run_id": row.run_id,
        "seq": row.seq,
        "type": row.type,
        "parent_id": parent_id,
        "payload": row.payload,
        "created_at": time_text(row.created_at),
    }


def run(row: Run) -> dict[str, Any]:
    """RunView."""
    return {
        "id": row.id,
        "session_id": row.session_id,
        "status": row.status,
        "cancel_requested": row.cancel_requested,
        "lease_expires_at": time_text(row.lease_expires_at),
        "created_at": time_text(row.created_at),
        "ended_at": _time(row.ended_at),
    }


def approval(row: Approval) -> dict[str, Any]:
    """ApprovalView."""
    return {
        "id": row.id,
        "session_id": row.session_id,
        "run_id": row.run_id,
        "state": "pending" if row.decision is None else "decided",
        "summary": row.summary,
        "tool": row.tool,
        "arguments": row.arguments,
        "decision": row.decision,
        "created_at": time_text(row.created_at),
        "decided_at": _time(row.decided_at),
    }


def artifact(row: Artifact) -> dict[str, Any]:
    """ArtifactView."""
    return {
        "id": row.id,
        "session_id": row.session_id,
        "run_id": row.run_id,
        "name": row.name,
        "content_type": row.content_type,
        "size": row.size,
        "sha256": bytes(row.sha256).hex(),
        "created_at": time_text(row.created_at),
    }


def memory(row: Memory) -> dict[str, Any]:
    """MemoryView."""
    return {
        "id": row.id,
        "key": bytes(row.key).hex(),
        "text": row.text,
        "workspace": row.workspace,
        "source": row.source,
        "session_id": row.session_id,
        "recorded_at": time_text(row.recorded_at),
    }


def listed(data: Sequence[dict[str, Any]], next_cursor: str | None) -> dict[str, Any]:
    """A list."""
    return {"data": data, "next_cursor": next_cursor}


def _time(at: datetime | None) -> str | None:
    return None if at is None else time_text(at)

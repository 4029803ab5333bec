"""What a reader sees of one conversation: its events a page at a time, what became of them, and what stands beside.

A page is one statement along the primary key of `events`, so it costs the same in a conversation of any length; it
ends after `PAGE` events or `PAGE_BYTES` of payloads. A worker's own book-keeping is left out. Callers have found the
conversation as its owner's before they ask here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ARRAY, Connection, Text, and_, any_, case, cast, func, literal, select
from sqlalchemy.orm import Session

from models.accounts import Owner
from models.artifacts import Artifact
from models.base import Id
from models.history import Approval, Conversation, Event, Run, ToolInvocation
from models.memories import Consolidation, ConsolidationInput, Memory

PAGE = 100  # events of one page
PAGE_BYTES = 2 * 1024 * 1024  # of payloads, after which a page ends before its limit
BESIDE_MAX = 200  # memories, files or open questions named on one page
OUTPUT_MAX = 20_000  # characters of a tool's output that are read beside a page
SILENT = ("checkpoint", "projected")  # a worker's own book-keeping


class Said(NamedTuple):
    """One event as it is shown; `parent_id` is set when it is a sub-agent's."""

    id: str
    seq: int
    type: str
    payload: dict[str, Any]
    parent_id: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Part:
    """Events in their order. `before` is the `seq` below which earlier ones are found, None at the beginning;
    `after` the one above which later ones are, None at the end."""

    events: Sequence[Said]
    before: int | None
    after: int | None


class Called(NamedTuple):
    """A tool invocation: whether its call is known, and its result as text, cut at `OUTPUT_MAX`; None without one."""

    call_id: str
    name: str | None
    called: bool
    output: str | None
    whole: bool  # False where `output` was cut
    status: str


class Stamp(NamedTuple):
    """What changes when a conversation does: a page that shows another one asks for what is new."""

    session_id: str
    last_seq: int
    run_id: str | None
    stopping: bool

    def __str__(self) -> str:
        run = self.run_id[-12:] if self.run_id else "0"
        return f"{self.last_seq}.{run}.{int(self.stopping)}"


def newest(db: Connection | Session, session_id: str, limit: int = PAGE) -> Part:
    """The last `limit` events. One statement, as the next two are."""
    rows, more = _walk(db, session_id, limit, Event.seq > 0, descending=True)
    return Part(rows, rows[0].seq if more else None, None)


def below(db: Connection | Session, session_id: str, before: int, limit: int = PAGE) -> Part:
    """The `limit` events just below `before`; later ones are taken for granted."""
    rows, more = _walk(db, session_id, limit, Event.seq < before, descending=True)
    return Part(rows, rows[0].seq if more else None, before - 1)


def above(db: Connection | Session, session_id: str, after: int, limit: int = PAGE) -> Part:
    """The `limit` events just above `after`; earlier ones are taken for granted."""
    rows, more = _walk(db, session_id, limit, Event.seq > after, descending=False)
    return Part(rows, after + 1 if after > 0 else None, rows[-1].seq if more else None)


def around(db: Connection | Session, session_id: str, at: int, limit: int = PAGE) -> Part:
    """The page that holds the event `at`, with as much before it as after. Two statements."""
    lower = below(db, session_id, at + 1, limit // 2)
    upper = above(db, session_id, at, limit - limit // 2)
    return Part([*lower.events, *upper.events], lower.before, upper.after)


def invocations(db: Connection | Session, session_id: str, call_ids: Sequence[str]) -> dict[str, Called]:
    """The tool invocations of these calls, by `call_id`: for a page that shows one half of them."""
    if not call_ids:
        return {}
    table = ToolInvocation
    text = case(
        (func.jsonb_typeof(table.output) == "string", table.output.op("#>>")(literal([], ARRAY(Text)))),
        else_=func.jsonb_pretty(table.output),
    )
    wanted = select(
        table.call_id,
        table.name,
        table.arguments.is_not(None),
        func.left(text, OUTPUT_MAX),
        func.coalesce(func.length(text), 0) <= OUTPUT_MAX,
        table.status,
    ).where(table.session_id == session_id, table.call_id == any_(literal(list(call_ids), ARRAY(Text))))
    return {row[0]: Called(*row) for row in db.execute(wanted)}


def output(db: Connection | Session, session_id: str, call_id: str) -> Any:
    """What a tool answered, whole; None when it has not."""
    wanted = select(ToolInvocation.output).where(
        ToolInvocation.session_id == session_id, ToolInvocation.call_id == call_id
    )
    return db.execute(wanted).scalar_one_or_none()


def approvals(db: Connection | Session, session_id: str, ids: Sequence[str]) -> dict[str, Any]:
    """Rows (id, seq, summary, tool, arguments, decision, created_at, decided_at) of these approvals, by id."""
    if not ids:
        return {}
    wanted = _approvals(session_id).where(Approval.id == any_(literal(list(ids), ARRAY(Id()))))
    return {row.id: row for row in db.execute(wanted)}


def pending(db: Connection | Session, session_id: str) -> Sequence[Any]:
    """Rows like those of `approvals`: the first that wait for a decision, oldest first."""
    wanted = _approvals(session_id).where(Approval.decision.is_(None))
    return db.execute(wanted.order_by(Approval.seq).limit(BESIDE_MAX)).all()


def stamps(db: Connection | Session, session_ids: Sequence[str]) -> dict[str, Stamp]:
    """The stamps of the conversations among these that are there. One statement."""
    asked = func.coalesce(Run.cancel_requested, False)
    named = Conversation.id == any_(literal(list(session_ids), ARRAY(Id())))
    wanted = (
        select(Conversation.id, Conversation.last_seq, Conversation.active_run_id, asked)
        .outerjoin(Run, Run.id == Conversation.active_run_id)
        .where(named)
    )
    return {row[0]: Stamp(*row) for row in db.execute(wanted)}


def origin(db: Connection | Session, session_id: str) -> tuple[str, str] | None:
    """(kind of export, id of the first event) of an imported conversation; the id tells when that was written here."""
    first = select(Event.id).where(Event.session_id == session_id).order_by(Event.seq).limit(1)
    wanted = select(Conversation.origin, first.scalar_subquery()).where(
        Conversation.id == session_id, Conversation.origin.is_not(None)
    )
    row = db.execute(wanted).one_or_none()
    return None if row is None or row[1] is None else (row[0], row[1])


def memories(db: Connection | Session, owner: Owner, session_id: str) -> Sequence[Any]:
    """Rows (id, text, source, workspace) of the first memories formed in this conversation, oldest first."""
    wanted = select(Memory.id, Memory.text, Memory.source, Memory.workspace).where(
        Memory.session_id == session_id, Memory.principal_id == owner.principal_id
    )
    return db.execute(wanted.order_by(Memory.id).limit(BESIDE_MAX)).all()


def memory(db: Connection | Session, owner: Owner, memory_id: str) -> Any | None:
    """The row (id, text, session_id) of one memory, or None."""
    wanted = select(Memory.id, Memory.text, Memory.session_id).where(
        Memory.id == memory_id, Memory.principal_id == owner.principal_id
    )
    return db.execute(wanted).one_or_none()


def is_drawn_from(db: Connection | Session, memory_id: str) -> bool:
    """Whether a memory was made out of this one, and so goes with it."""
    link, made = ConsolidationInput, Consolidation
    joined = (made.session_id == link.session_id, made.seq == link.seq, made.made.is_(True))
    wanted = select(link.seq).join(made, and_(*joined)).where(link.memory_id == memory_id).limit(1)
    return db.execute(wanted).first() is not None


def files(db: Connection | Session, owner: Owner, session_id: str) -> Sequence[Any]:
    """Rows (id, name, content_type, size) of the conversation's first artifacts, oldest first."""
    wanted = select(Artifact.id, Artifact.name, Artifact.content_type, Artifact.size).where(
        Artifact.session_id == session_id, Artifact.principal_id == owner.principal_id
    )
    return db.execute(wanted.order_by(Artifact.seq).limit(BESIDE_MAX)).all()


def files_named(db: Connection | Session, owner: Owner, session_id: str, ids: Sequence[str]) -> Sequence[Any]:
    """Rows like those of `files`: the conversation's artifacts among these ids."""
    if not ids:
        return []
    wanted = select(Artifact.id, Artifact.name, Artifact.content_type, Artifact.size).where(
        Artifact.id == any_(literal(list(ids), ARRAY(Id()))),
        Artifact.session_id == session_id,
        Artifact.principal_id == owner.principal_id,
    )
    return db.execute(wanted).all()


def file(db: Connection | Session, owner: Owner, session_id: str, artifact_id: str) -> Any | None:
    """The row (name, content_type, size) of one artifact of this conversation, or None."""
    wanted = select(Artifact.name, Artifact.content_type, Artifact.size).where(
        Artifact.id == artifact_id,
        Artifact.session_id == session_id,
        Artifact.principal_id == owner.principal_id,
    )
    return db.execute(wanted).one_or_none()


def _approvals(session_id: str) -> Any:
    columns = ("id", "seq", "summary", "tool", "arguments", "decision", "created_at", "decided_at")
    return select(*(getattr(Approval, name) for name in columns)).where(Approval.session_id == session_id)


def _walk(
    db: Connection | Session, session_id: str, limit: int, place: Any, *, descending: bool
) -> tuple[list[Said], bool]:
    """Up to `limit` events in that direction, given in their order, and whether there are more that way."""
    columns = [getattr(Event, name) for name in Said._fields]
    there = select(*columns).where(Event.session_id == session_id, place, Event.type.not_in(SILENT))
    page = there.order_by(Event.seq.desc() if descending else Event.seq).limit(limit + 1).subquery()
    order = page.c.seq.desc() if descending else page.c.seq
    own = func.octet_length(cast(page.c.payload, Text))
    taken = (func.sum(own).over(order_by=order, rows=(None, 0)) - own).label("taken")
    sized = select(page, taken, func.count().over().label("found")).subquery()
    kept = select(*(sized.c[name] for name in Said._fields), sized.c.found).where(sized.c.taken < PAGE_BYTES)
    rows = db.execute(kept.order_by(sized.c.seq.desc() if descending else sized.c.seq).limit(limit)).all()
    more = bool(rows) and rows[0].found > len(rows)
    said = [Said(*row[:-1]) for row in rows]
    return (said[::-1] if descending else said), more

"""Memories of an account's home, what they were made from, and the records of their deletion.

Source: ADR 0176; PRODUCT.md 4.1.

(principal, workspace, dataset, key) is a memory's identity; its key is the SHA-256 of its masked text. The
same text formed again raises `recorded_at` and keeps the first source. `forget` is the one verb that removes
memories on purpose: it records each deletion before the row goes, and takes along what was consolidated from it.

Every verb here first locks the (principal, workspace) row: under READ COMMITTED a check for a deletion record
followed by an insert would otherwise slip past a purge that commits in between (PARTS.md).
Lock order, for everyone: session, workspace, list version.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import BigInteger, Boolean, Index, Select, Text, UniqueConstraint, any_, literal, select, text
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import ARRAY, insert
from sqlalchemy.orm import Mapped, Session, mapped_column

from models.accounts import Owner, Principal
from models.base import Base, Id, IdKey, IdRef, database_time
from models.errors import NotFound
from models.history import session_key
from models.ids import is_id, new_id
from models.rules import DATASET, copy_time, key_of


class Workspace(Base):
    """A principal's workspace; its row is what everyone locks before memories of it change."""

    __tablename__ = "workspaces"
    principal_id: Mapped[IdKey]
    name: Mapped[str] = mapped_column(Text, primary_key=True)


class Memory(Base):
    """One memory. `made_at` is the time of first making; `session_id` and `run_id` name what formed it first."""

    __tablename__ = "memories"
    id: Mapped[IdKey]
    principal_id: Mapped[IdRef]
    workspace: Mapped[str] = mapped_column(Text)
    dataset: Mapped[str] = mapped_column(Text)
    key: Mapped[bytes]
    logical_id: Mapped[IdRef]
    text: Mapped[str] = mapped_column(Text)
    source: Mapped[str] = mapped_column(Text)
    session_id: Mapped[str | None] = session_key(nullable=True)
    run_id: Mapped[str | None] = mapped_column(Id())
    made_at: Mapped[datetime]
    recorded_at: Mapped[datetime]
    recorded_device: Mapped[IdRef]
    __table_args__ = (
        UniqueConstraint("principal_id", "workspace", "dataset", "key"),
        Index("ix_memories_order", "principal_id", "id"),
    )


class DeletionRecord(Base):
    """What was deleted on purpose: a key and the later of its deletions' times. `raised_at` dates its keeping."""

    __tablename__ = "deletion_records"
    principal_id: Mapped[IdKey]
    workspace: Mapped[str] = mapped_column(Text, primary_key=True)
    dataset: Mapped[str] = mapped_column(Text, primary_key=True)
    key: Mapped[bytes] = mapped_column(primary_key=True)
    deleted_at: Mapped[datetime]
    raised_at: Mapped[datetime]


class MemoryTombstone(Base):
    """That a memory was deleted by its id: what makes a repeated DELETE a success. Holds nothing of it."""

    __tablename__ = "memory_tombstones"
    memory_id: Mapped[IdKey]
    principal_id: Mapped[IdRef]
    deleted_at: Mapped[datetime]


class MemoryRejection(Base):
    """A text that a run considered and did not keep, with its reason."""

    __tablename__ = "memory_rejections"
    session_id: Mapped[str] = session_key(primary_key=True)
    seq: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    run_id: Mapped[str | None] = mapped_column(Id())
    text: Mapped[str] = mapped_column(Text)
    reason: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]


class Consolidation(Base):
    """That memories were drawn together into one. `made` is False when its text was held from elsewhere already."""

    __tablename__ = "consolidations"
    session_id: Mapped[str] = session_key(primary_key=True)
    seq: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    run_id: Mapped[str | None] = mapped_column(Id())
    memory_id: Mapped[IdRef]
    made: Mapped[bool] = mapped_column(Boolean)
    created_at: Mapped[datetime]


class ConsolidationInput(Base):
    """One memory that a consolidation was drawn from."""

    __tablename__ = "consolidation_inputs"
    memory_id: Mapped[IdKey]
    session_id: Mapped[str] = session_key(primary_key=True, index=False)
    seq: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    __table_args__ = (Index("ix_consolidation_inputs_session_id", "session_id", "seq"),)


@dataclass(frozen=True, slots=True)
class Formed:
    """What an act made of a text: the memory's id, and whether the text was new."""

    memory_id: str
    made: bool


def make_workspaces(db: Session, owner: Owner, names: Iterable[str]) -> None:
    """Makes the named workspaces that are new, in the order of their names, and locks no other."""
    rows = [{"principal_id": owner.principal_id, "name": name} for name in sorted(set(names))]
    db.execute(insert(Workspace).values(rows).on_conflict_do_nothing())


def lock_workspaces(db: Session, owner: Owner, names: Iterable[str]) -> None:
    """Locks the named workspaces' rows, in the order of their names; new ones are made."""
    ordered = sorted(set(names))
    make_workspaces(db, owner, ordered)
    named = Workspace.name == any_(literal(ordered, ARRAY(Text)))
    locked = select(Workspace.name).where(named, Workspace.principal_id == owner.principal_id)
    db.execute(locked.order_by(Workspace.name).with_for_update()).all()


def lock_all_workspaces(db: Session, owner: Owner) -> None:
    """Locks every workspace of a principal, in the order of their names: for a purge, which may reach any of them."""
    rows = select(Workspace.name).where(Workspace.principal_id == owner.principal_id)
    db.execute(rows.order_by(Workspace.name).with_for_update()).all()


def form(
    db: Session,
    owner: Owner,
    text: str,
    workspace: str,
    *,
    source: str,
    now: datetime,
    session_id: str | None = None,
    run_id: str | None = None,
) -> Formed:
    """An act: makes the memory of a masked `text`, or raises `recorded_at` of the one that is held.

    A copy made again is stamped past any deletion of its key, so it stays (PRODUCT.md 4.4, Time and Acts).
    The caller has locked the workspace.
    """
    key = key_of(text)
    identity = {
        "principal_id": owner.principal_id,
        "workspace": workspace,
        "dataset": DATASET,
        "key": key,
    }
    deleted_at = db.execute(select(DeletionRecord.deleted_at).filter_by(**identity)).scalar_one_or_none()
    held = db.execute(select(Memory).filter_by(**identity)).scalar_one_or_none()
    if held is not None:
        held.recorded_at = copy_time(now, deleted_at, held.recorded_at)
        db.flush()
        return Formed(held.id, made=False)
    at = copy_time(now, deleted_at)
    memory_id = new_id()
    home = select(Principal.device_id).where(Principal.id == owner.principal_id).scalar_subquery()
    db.execute(
        insert(Memory).values(
            id=memory_id,
            **identity,
            logical_id=new_id(),
            text=text,
            source=source,
            session_id=session_id,
            run_id=run_id,
            made_at=at,
            recorded_at=at,
            recorded_device=home,
        )
    )
    return Formed(memory_id, made=True)


def page(
    db: Session, owner: Owner, limit: int, *, workspace: str | None = None, below: str | None = None
) -> Sequence[Memory]:
    """Up to `limit` memories below the id `below`, newest first; of one workspace when it is named."""
    wanted = select(Memory).where(Memory.principal_id == owner.principal_id)
    if workspace is not None:
        wanted = wanted.where(Memory.workspace == workspace)
    if below is not None:
        wanted = wanted.where(Memory.id < below)
    return db.scalars(wanted.order_by(Memory.id.desc()).limit(limit)).all()


def delete_memory(db: Session, owner: Owner, memory_id: str) -> bool:
    """Deletes one memory and what was consolidated from it; True, or False when it was deleted before.

    Raises NotFound for a foreign or missing one alike.
    """
    missing = NotFound("There is no such memory. It may have been deleted.")
    if not is_id(memory_id):
        raise missing
    lock_all_workspaces(db, owner)
    now = database_time(db)
    mine = select(Memory.id).where(Memory.id == memory_id, Memory.principal_id == owner.principal_id)
    if forget(db, mine, now):
        db.add(MemoryTombstone(memory_id=memory_id, principal_id=owner.principal_id, deleted_at=now))
        db.flush()
        return True
    stone = db.get(MemoryTombstone, memory_id)
    if stone is None or stone.principal_id != owner.principal_id:
        raise missing
    return False


def held_ids(db: Session, owner: Owner, memory_ids: list[str]) -> set[str]:
    """Those of `memory_ids` that are this principal's."""
    if not memory_ids:
        return set()
    named = Memory.id == any_(literal(memory_ids, ARRAY(Id())))
    return set(db.scalars(select(Memory.id).where(named, Memory.principal_id == owner.principal_id)))


def formed_in(owner: Owner, session_id: str) -> Select[str]:
    """The ids of the memories whose first source is this conversation."""
    return select(Memory.id).where(Memory.session_id == session_id, Memory.principal_id == owner.principal_id)


def forget(db: Session, seeds: Select[str], now: datetime) -> int:
    """Records and removes the memories that `seeds` selects, and all that was consolidated from them, in one statement.

    Each record's time is `rules.deletion_time(now, recorded_at)`. The caller has locked their workspaces.
    Returns how many memories went. Source: ADR 0176, "a deletion is recorded before the memory is removed";
    PRODUCT.md 3.2, consolidated.
    """
    compiled = seeds.compile(dialect=postgresql.dialect(paramstyle="named"))  # type: ignore[no-untyped-call]
    result = db.connection().execute(
        text(_FORGET.replace(":seeds", str(compiled))), {**compiled.params, "forget_now": now}
    )
    return result.rowcount


_FORGET = """
WITH RECURSIVE gone (id) AS (
    (:seeds)
    UNION
    SELECT c.memory_id
    FROM gone
    JOIN consolidation_inputs i ON i.memory_id = gone.id
    JOIN consolidations c ON c.session_id = i.session_id AND c.seq = i.seq
    WHERE c.made
),
recorded AS (
    INSERT INTO deletion_records (principal_id, workspace, dataset, key, deleted_at, raised_at)
    SELECT m.principal_id, m.workspace, m.dataset, m.key,
           greatest(:forget_now, m.recorded_at + interval '1 microsecond'), :forget_now
    FROM memories m JOIN gone USING (id)
    ON CONFLICT (principal_id, workspace, dataset, key) DO UPDATE
    SET deleted_at = greatest(deletion_records.deleted_at, excluded.deleted_at), raised_at = excluded.raised_at
),
fed AS (
    DELETE FROM consolidations c
    USING consolidation_inputs i JOIN gone ON gone.id = i.memory_id
    WHERE c.session_id = i.session_id AND c.seq = i.seq
    RETURNING c.session_id, c.seq
),
unfed AS (
    DELETE FROM consolidation_inputs i USING fed WHERE i.session_id = fed.session_id AND i.seq = fed.seq
)
DELETE FROM memories m USING gone WHERE m.id = gone.id
"""

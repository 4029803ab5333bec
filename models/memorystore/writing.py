"""Memories in and out of their table: the one way in for a copy made elsewhere, and what all verbs share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from sqlalchemy import and_, delete, exists, func, insert, literal, select, update

from models.copies import Copy, merged
from models.marks import Mark, Verdict, joined, outdated, verdict
from models.memorystore.columns import Moment, Sixteen, later
from models.memorystore.store import (
    EVERYWHERE,
    Held,
    Place,
    Store,
    held,
    in_portions,
    marks,
    records,
    word_line,
)
from models.memorystore.tables import GOING, MARKS, MEMORIES, ON_A_DEVICE, RECORDS, WORKSPACES
from models.rules import dominates

AT_ONCE = 2_000  # memories from which on their words may be forgotten together
SHARE = 30  # what forgetting a memory's words costs, in memories that are indexed anew


def row_of(store: Store, one: Held) -> dict[str, Any]:
    """A memory as the row that a device keeps."""
    return {
        "principal_id": store.principal,
        **one.place._asdict(),
        "key": one.key,
        "text": one.text,
        "words": word_line(one.text),
        **_facts(one.copy),
    }


def make_workspace(store: Store, name: str) -> None:
    """Makes a workspace that is new, whoever brings a memory there: its user, a sync, a mark. In their transaction."""
    if name != EVERYWHERE.workspace:
        row = {"principal_id": store.principal, "name": name}
        store.db.execute(store.insert(WORKSPACES).values(row).on_conflict_do_nothing())


def insert_rows(store: Store, some: Sequence[Held]) -> None:
    """Writes memories whose keys are not kept in their places; a workspace that is new is made."""
    for workspace in {one.place.workspace for one in some}:
        make_workspace(store, workspace)
    store.db.execute(insert(ON_A_DEVICE), [row_of(store, one) for one in some])


def _facts(copy: Copy) -> dict[str, Any]:
    return {
        "logical_id": copy.logical_id,
        "source": copy.source,
        "made_at": copy.made_at,
        "recorded_at": copy.recorded_at,
        "recorded_device": copy.device,
    }


def put(store: Store, one: Held) -> bool:
    """Keeps a memory, merged with the one that is kept under its key; True when that changed anything.

    Older versions of the same memory go once a younger one than its redaction is there. In the caller's transaction.
    """
    mine = held(store, one.place, [one.key]).get(one.key)
    changed = _write(store, one, mine)
    supersede(store, [one.copy.logical_id])
    return changed


def _write(store: Store, one: Held, mine: Held | None) -> bool:
    if mine is None:
        insert_rows(store, [one])
        return True
    copy = merged(mine.copy, one.copy)
    if copy == mine.copy:
        return False
    same = store.mine(MEMORIES, one.place) & (MEMORIES.c.key == one.key)
    store.db.execute(update(MEMORIES).where(same).values(_facts(copy)))
    return True


def bring(store: Store, place: Place, arriving: Sequence[Held]) -> int:
    """The one way in for copies made elsewhere: sync, import, an older release. How many were new or changed.

    None that a deletion or a mark dominates is taken; a marked one goes where its mark places it. One transaction.
    Source: ADR 0176, "no device admits"; PRODUCT.md 4.2, Marks; 4.4, First source.
    """
    keys = [one.key for one in arriving]
    deleted = records(store, place, keys)
    marked = marks(store, [one.copy.logical_id for one in arriving])
    kept = dict(held(store, place, keys))
    fresh: dict[bytes, Held] = {}
    changed = 0
    for one in arriving:
        if one.copy.logical_id in marked:
            changed += _bring_marked(store, one, marked[one.copy.logical_id])
            continue
        if one.key in deleted and dominates(deleted[one.key], one.copy.recorded_at):
            continue
        if one.key in fresh:
            before = fresh[one.key]
            fresh[one.key] = before._replace(copy=merged(before.copy, one.copy))
        elif one.key in kept:
            changed += _write(store, one, kept[one.key])
            kept[one.key] = kept[one.key]._replace(copy=merged(kept[one.key].copy, one.copy))
        else:
            fresh[one.key] = one
            changed += 1
    rest = []
    for one in fresh.values():  # a marked one of the same key may have come in between
        if marked and (mine := held(store, place, [one.key]).get(one.key)):
            _write(store, one, mine)
        else:
            rest.append(one)
    if rest:
        insert_rows(store, rest)
    return changed


def _bring_marked(store: Store, one: Held, mark: Mark) -> bool:
    deleted = records(store, one.place, [one.key]).get(one.key)
    if deleted is not None and dominates(deleted, one.copy.recorded_at):
        return False
    match verdict(mark, one.place.workspace, one.copy.recorded_at):
        case Verdict.STAYS:
            return put(store, one)
        case Verdict.ELSEWHERE:
            assert mark.workspace is not None
            return _bring_marked(store, one._replace(place=Place(mark.workspace, one.place.dataset)), mark)
    return False


def move_row(store: Store, mine: Held, there: Place) -> None:
    """Brings a memory into another place, merged with what is kept there under its key."""
    same = store.mine(MEMORIES, mine.place) & (MEMORIES.c.key == mine.key)
    make_workspace(store, there.workspace)
    other = MEMORIES.alias("other")
    kept = exists().where(store.mine(other, there), other.c.key == mine.key)
    moved = update(MEMORIES).where(same, ~kept).values(there._asdict())
    if not store.db.execute(moved).rowcount:
        put(store, mine._replace(place=there))
        store.db.execute(delete(MEMORIES).where(same))


def supersede(store: Store, logical_ids: Sequence[bytes] | None = None) -> None:
    """Drops older versions of redacted texts, where a younger one is there: so a redaction never empties a place.

    Of some logical IDs, or of all that have a mark.
    """
    younger = MEMORIES.alias("younger")
    pairs = and_(store.mine(MARKS), MARKS.c.logical_id == MEMORIES.c.logical_id)
    older = select(MEMORIES.c.id).join_from(MARKS, MEMORIES, pairs)
    older = older.where(store.mine(MEMORIES), outdated(MEMORIES.c.recorded_at, MARKS.c.redacted_at))
    is_there = exists().where(
        younger.c.principal_id == store.principal,
        younger.c.logical_id == MARKS.c.logical_id,
        ~outdated(younger.c.recorded_at, MARKS.c.redacted_at),
    )
    older = older.where(is_there)
    for some in [None] if logical_ids is None else in_portions(logical_ids):
        chosen = older if some is None else older.where(MARKS.c.logical_id.in_(some))
        store.db.execute(delete(MEMORIES).where(MEMORIES.c.id.in_(chosen)))


def write_marks(store: Store, told: Mapping[bytes, Mark], now: datetime) -> None:
    """Joins marks to those that are known. In the transaction of what was deleted."""
    known = marks(store, list(told))
    rows = []
    for logical_id, mark in told.items():
        both = joined(mark, known.get(logical_id, Mark()))
        rows.append(
            {
                "principal_id": store.principal,
                "logical_id": logical_id,
                "redacted_at": both.redacted_at,
                "placed_at": both.placed_at,
                "workspace": both.workspace,
                "raised_at": now,
            }
        )
    if not rows:
        return
    new = store.insert(MARKS)
    halves = {name: new.excluded[name] for name in ("redacted_at", "placed_at", "workspace", "raised_at")}
    store.db.execute(new.on_conflict_do_update(["principal_id", "logical_id"], set_=halves), rows)


def record_going(store: Store, now: datetime) -> tuple[int, int]:
    """Writes the records and marks of what stands in `going`; how many of each. In the caller's transaction."""
    chosen = [GOING.c.workspace, GOING.c.dataset, GOING.c.key, GOING.c.deleted_at]
    source = select(literal(store.principal, Sixteen()), *chosen, literal(now, Moment())).where(
        GOING.c.recorded == 1
    )
    new = store.insert(RECORDS).from_select(
        ["principal_id", "workspace", "dataset", "key", "deleted_at", "raised_at"], source
    )
    recorded = store.db.execute(
        new.on_conflict_do_update(
            ["principal_id", "workspace", "dataset", "key"],
            set_={
                "deleted_at": later(RECORDS.c.deleted_at, new.excluded.deleted_at),
                "raised_at": new.excluded.raised_at,
            },
        )
    ).rowcount
    gone = select(GOING.c.logical_id, GOING.c.deleted_at).where(GOING.c.marked == 1)
    told: dict[bytes, Mark] = {}
    for logical_id, at in store.db.execute(gone):
        told[logical_id] = joined(Mark(placed_at=at), told.get(logical_id, Mark()))
    for some in in_portions(list(told)):
        write_marks(store, {one: told[one] for one in some}, now)
    return recorded, len(told)


@contextmanager
def words_at_once(store: Store, count: int) -> Iterator[None]:
    """Around the removal of `count` memories: where they are many, the search index forgets their words together.

    Word by word that costs milliseconds a memory, which is nothing for one and half an hour for half a million; made
    anew from the memories that stay, the index holds none of them either. In one transaction with the removal.
    """
    lite = store.db.dialect.name == "sqlite"
    total = (
        store.db.execute(select(func.count()).select_from(MEMORIES)).scalar_one() if count >= AT_ONCE else 0
    )
    if not lite or count < AT_ONCE or count < total // SHARE:
        yield
        return
    setting = "INSERT INTO memory_words (memory_words, rank) VALUES ('secure-delete', ?)"
    store.db.exec_driver_sql(setting, (0,))
    yield
    store.db.exec_driver_sql("INSERT INTO memory_words (memory_words) VALUES ('rebuild')")
    store.db.exec_driver_sql(setting, (1,))


def remove_going(store: Store) -> int:
    """Removes the memories that stand in `going`, and empties it; how many went."""
    count = store.db.execute(select(func.count()).select_from(GOING)).scalar_one()
    same = and_(
        store.mine(MEMORIES),
        GOING.c.workspace == MEMORIES.c.workspace,
        GOING.c.dataset == MEMORIES.c.dataset,
        GOING.c.key == MEMORIES.c.key,
        dominates(GOING.c.deleted_at, MEMORIES.c.recorded_at),
    )
    chosen = select(MEMORIES.c.id).join_from(GOING, MEMORIES, same)
    with words_at_once(store, count):
        gone = store.db.execute(delete(MEMORIES).where(MEMORIES.c.id.in_(chosen))).rowcount
    store.db.execute(delete(GOING))
    return gone

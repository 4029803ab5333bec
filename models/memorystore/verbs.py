"""What a user does with memories: remember, forget, redact, move, wipe; and what the next start finishes.

Where a deletion is recorded, the records are committed before the memories go; `settle` at the next start removes
what a crash in between left. Source: ADR 0176, the table "Deletion | Recorded"; PRODUCT.md 4.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import and_, delete, exists, func, insert, literal, select, update

from models import rules
from models.copies import Copy
from models.errors import Invalid, NotFound
from models.marks import Mark, Verdict, verdict
from models.memorystore.columns import Moment, later
from models.memorystore.store import MANY, Held, Place, Store, as_held, held, in_portions, records
from models.memorystore.tables import GOING, MARKS, MEMORIES, RECORDS
from models.memorystore.writing import (
    bring,
    move_row,
    put,
    record_going,
    remove_going,
    supersede,
    words_at_once,
    write_marks,
)
from models.recorded import RECORDED, Deleting, Recorded, is_recorded
from models.redaction import masked
from models.rules import MEMORY_MAX, NAME_MAX


class Remembered(NamedTuple):
    """What an act made of a text: its key, and whether the text was new there."""

    key: bytes
    made: bool


@dataclass(frozen=True, slots=True)
class Gone:
    """How many memories a verb removed, and how many deletion records it wrote."""

    deleted: int
    recorded: int


def remember(store: Store, said: str, place: Place, source: str) -> Remembered:
    """An act: keeps the text, its secrets masked, or raises the `recorded_at` of the memory that holds it.

    A copy made again is stamped past any deletion of its key. The workspace is made when it is new.
    Raises Invalid for a text without a character or over MEMORY_MAX, and for a workspace's name that cannot be.
    Source: PRODUCT.md 4.4, Time and Acts.
    """
    check_workspace(place.workspace)
    said = masked(checked_text(said))
    key = rules.key_of(said)
    with store.phase("remembered"):
        deleted = records(store, place, [key]).get(key)
        mine = held(store, place, [key]).get(key)
        at = rules.copy_time(store.clock(), deleted, mine.copy.recorded_at if mine else None)
        if mine is not None:
            same = store.mine(MEMORIES, place) & (MEMORIES.c.key == key)
            store.db.execute(update(MEMORIES).where(same).values(recorded_at=at))
            return Remembered(key, made=False)
        copy = Copy(at, store.device, store.chance(16), source, at)
        put(store, Held(place, key, said, copy))
    return Remembered(key, made=True)


def checked_text(said: str) -> str:
    """A text that can be a memory. Raises Invalid("text")."""
    if not said.strip() or "\0" in said:
        raise Invalid(
            "text", "A memory needs a text; this one is empty or holds a character that no text has."
        )
    if len(said) > MEMORY_MAX:
        raise Invalid("text", f"A memory's text has at most {MEMORY_MAX:,} characters.")
    try:
        said.encode()
    except UnicodeEncodeError:
        raise Invalid("text", "This text is not whole: it holds half a character.") from None
    return said


def check_workspace(name: str) -> None:
    """Raises Invalid("workspace") for a name that no workspace can have."""
    if not name.strip() or len(name) > NAME_MAX or not name.isprintable():
        raise Invalid("workspace", f"A workspace's name has 1 to {NAME_MAX} printable characters.")


def forget(store: Store, place: Place, keys: Sequence[bytes], why: Deleting = Deleting.FORGET) -> Gone:
    """Deletes those of some keys that are held in a place, for a reason that says what is recorded of it."""
    chosen = [MEMORIES.c.key.in_(some) for some in in_portions(list(keys))]
    return _delete(store, [store.mine(MEMORIES, place) & one for one in chosen], why)


def forget_all(store: Store, place: Place, why: Deleting) -> Gone:
    """Deletes every memory of a place."""
    return _delete(store, [store.mine(MEMORIES, place)], why)


def _delete(store: Store, chosen: Sequence[Any], why: Deleting) -> Gone:
    kept = RECORDED[why]
    now = store.clock()
    own = MEMORIES.c.recorded_device == literal(store.device, MEMORIES.c.recorded_device.type)
    recorded: Any = {Recorded.ALL: literal(1), Recorded.OWN: own, Recorded.NONE: literal(0)}[kept]
    # Forgotten after a redaction or a move: no other copy of it may return either.
    marked: Any = exists().where(store.mine(MARKS), MARKS.c.logical_id == MEMORIES.c.logical_id)
    with store.recording("recorded") as ticket:
        store.db.execute(delete(GOING))
        for one in chosen:
            at = rules.deletion_time(literal(now, Moment()), MEMORIES.c.recorded_at, later)
            rows = select(
                MEMORIES.c.workspace, MEMORIES.c.dataset, MEMORIES.c.key, MEMORIES.c.logical_id, at, recorded,
                marked if is_recorded(why, own=True) else literal(0),
            ).where(one)  # fmt: skip
            store.db.execute(insert(GOING).from_select([c.name for c in GOING.c], rows))
        written, _ = record_going(store, now)
    with store.removing("deleted", ticket):
        return Gone(remove_going(store), written)


def redact(store: Store, place: Place, key: bytes, said: str) -> bytes:
    """The masked text supersedes the old one, by a mark and without a record; its key. None of the old key is kept.

    Raises NotFound. Source: PRODUCT.md 4.2, scrub and redaction.
    """
    said = masked(checked_text(said))
    with store.recording("marked") as ticket:
        mine = _held_one(store, place, key)
        at = rules.deletion_time(store.clock(), mine.copy.recorded_at)
        write_marks(store, {mine.copy.logical_id: Mark(redacted_at=at)}, store.clock())
        store.db.execute(delete(RECORDS).where(store.mine(RECORDS, place), RECORDS.c.key == key))
    with store.removing("redacted", ticket):
        store.db.execute(delete(MEMORIES).where(store.mine(MEMORIES, place), MEMORIES.c.key == key))
        new = Held(place, rules.key_of(said), said, mine.copy._replace(recorded_at=at))
        put(store, new)
    return new.key


def move(store: Store, place: Place, key: bytes, workspace: str) -> None:
    """Brings a memory into another workspace, made when it is new; a mark carries the move. Raises NotFound."""
    check_workspace(workspace)
    there = Place(workspace, place.dataset)
    if there == place:
        with store.reading():
            _held_one(store, place, key)
        return
    with store.recording("marked") as ticket:
        mine = _held_one(store, place, key)
        at = rules.deletion_time(store.clock(), mine.copy.recorded_at)
        write_marks(store, {mine.copy.logical_id: Mark(placed_at=at, workspace=workspace)}, store.clock())
    with store.removing("moved", ticket):
        move_row(store, mine, there)


def admit(store: Store, place: Place, arriving: Sequence[Held]) -> int:
    """Takes in copies made elsewhere, each past every rule; how many were new or changed. Their texts are masked again.

    A text that our detectors mask differently is kept masked, under its logical ID. Source: PRODUCT.md 4.2, 4.3.
    """
    with store.phase("admitted"):
        return bring(store, place, [_masked(one) for one in arriving])


def _masked(one: Held) -> Held:
    said = masked(one.text)
    return one if said == one.text else one._replace(text=said, key=rules.key_of(said))


def settle(store: Store) -> int:
    """What each start, and each sync, does first: finishes deletions and moves that a crash cut off; how many went.

    Held copies that an own record dominates go, and those that a mark places elsewhere go there. Where everything that
    began was finished, that is two rows to look at; else each memory is held against what was deleted.
    """
    with store.reading():
        if store.whole():
            return 0
    dominated = select(MEMORIES.c.id).join_from(
        MEMORIES,
        RECORDS,
        and_(
            store.mine(RECORDS),
            RECORDS.c.workspace == MEMORIES.c.workspace,
            RECORDS.c.dataset == MEMORIES.c.dataset,
            RECORDS.c.key == MEMORIES.c.key,
            rules.dominates(RECORDS.c.deleted_at, MEMORIES.c.recorded_at),
        ),
    )
    with store.phase("settled"):
        left = dominated.where(store.mine(MEMORIES))
        with words_at_once(
            store, store.db.execute(select(func.count()).select_from(left.subquery())).scalar_one()
        ):
            gone: int = store.db.execute(delete(MEMORIES).where(MEMORIES.c.id.in_(left))).rowcount
        gone += _follow_marks(store)
        supersede(store)
        store.finish()
    return gone


def _follow_marks(store: Store) -> int:
    pairs = and_(store.mine(MARKS), MARKS.c.logical_id == MEMORIES.c.logical_id)
    marked = select(MEMORIES, MARKS.c.redacted_at, MARKS.c.placed_at, MARKS.c.workspace.label("placed_in"))
    marked = marked.join_from(MEMORIES, MARKS, pairs).where(store.mine(MEMORIES)).order_by(MEMORIES.c.id)
    gone, rows = 0, marked
    while some := store.db.execute(rows.limit(MANY)).all():
        rows = marked.where(MEMORIES.c.id > some[-1].id)
        for row in some:
            mine = as_held(row)
            mark = Mark(row.redacted_at, row.placed_at, row.placed_in)
            match verdict(mark, mine.place.workspace, mine.copy.recorded_at):
                case Verdict.ELSEWHERE:
                    assert mark.workspace is not None
                    move_row(store, mine, Place(mark.workspace, mine.place.dataset))
                case Verdict.GONE:
                    gone += store.db.execute(delete(MEMORIES).where(MEMORIES.c.id == row.id)).rowcount
    return gone


def _held_one(store: Store, place: Place, key: bytes) -> Held:
    mine = held(store, place, [key]).get(key)
    if mine is None:
        raise NotFound(
            "There is no such memory here. It may have been forgotten, or be in another workspace."
        )
    return mine

"""The acts of a swap on a store: what `relay/effects.py` asks for, each in transactions of its own.

What the two listed and asked is kept in the connection's own temporary tables, so that nothing grows with the size of
a set, and each question over it is one statement. Read `settle` for the whole of what a peer can do here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from sqlalchemy import and_, case, delete, exists, insert, select

from models import rules
from models.copies import Copy, teaches
from models.marks import Mark, Verdict, verdict
from models.memorystore.columns import micros, moment
from models.memorystore.store import Held, Place, Store, as_held, as_mark, held, in_portions
from models.memorystore.tables import ASKED, ASKED_MARKS, FACTS, GOING, HEARD, MARKS, MEMORIES, RECORDS, TOLD
from models.memorystore.verbs import admit, settle
from relay import effects as ask
from relay.frames import Deletion, Marked
from relay.manifest import ITEM
from relay.settling import here, settle_asked
from relay.stream import TEXT_MAX, Body
from relay.sums import StoredSums

PORTION = 1000  # deletions, or marks, of one frame
GIVEN = 64  # memories that are read at a time, each of up to TEXT_MAX bytes
MARKED = 2  # in `want`: a mark has a say in it


@dataclass
class Acts:
    """One device's side of one sync. `shared` are the workspaces that this pairing shares."""

    store: Store
    pairing: bytes
    shared: frozenset[str]
    listed: Counter[tuple[str, Place]] = field(default_factory=Counter)
    deleted: int = 0
    conclusion: ask.Conclude | None = None

    def act(self, effect: Any) -> Any:
        """Performs an effect that is no frame; the answer that the swap is sent."""
        return _ACTS[type(effect)](self, effect)

    # -- what was listed ----------------------------------------------------------------------------------------

    def prepare(self, _effect: ask.Prepare) -> None:
        settle(self.store)
        with self.store.reading():
            for table in (HEARD, TOLD, ASKED, ASKED_MARKS, GOING):
                self.store.db.execute(delete(table))

    def look(self, effect: ask.Look) -> StoredSums:
        return StoredSums(self.store, _place(effect))

    def heard_of(self, effect: ask.HeardOf) -> None:
        self._list(HEARD, effect)

    def told_of(self, effect: ask.ToldOf) -> None:
        self._list(TOLD, effect)

    def _list(self, table: Any, effect: Any) -> None:
        place = _place(effect)
        first = self.listed[table.name, place]
        rows = [(*place, first + at, *ITEM.unpack(item)) for at, item in enumerate(effect.items)]
        self.listed[table.name, place] += len(rows)
        with self.store.reading():
            # Straight at the driver: a million items would spend most of their time on their way through the types.
            into = f"INSERT INTO {table.name} VALUES (?, ?, ?, ?, ?, ?, ?)"  # noqa: S608  a table of ours
            self.store.db.exec_driver_sql(into, rows)

    # -- naming -------------------------------------------------------------------------------------------------

    def name(self, effect: ask.Name) -> Iterator[Sequence[Deletion]]:
        place = _place(effect)
        store = self.store
        again = exists().where(store.mine(MEMORIES, place), MEMORIES.c.key == RECORDS.c.key)
        pairs = and_(store.mine(RECORDS, place), RECORDS.c.key == HEARD.c.key)
        rows = select(RECORDS.c.key, RECORDS.c.deleted_at).join_from(HEARD, RECORDS, pairs)
        rows = rows.where(here(HEARD, place), ~again).order_by(HEARD.c.key).limit(PORTION)
        last = b""
        while some := self._read(rows.where(HEARD.c.key > last)):
            yield [Deletion(key, micros(at)) for key, at in some]
            last = some[-1].key

    def name_marks(self, effect: ask.NameMarks) -> Iterator[Sequence[Marked]]:
        place = _place(effect)
        pairs = and_(self.store.mine(MARKS), MARKS.c.logical_id == HEARD.c.logical_id)
        rows = select(MARKS, HEARD.c.recorded_at, HEARD.c.number).join_from(HEARD, MARKS, pairs)
        rows = rows.where(here(HEARD, place)).order_by(HEARD.c.number).limit(PORTION)
        last = -1
        while some := self._read(rows.where(HEARD.c.number > last)):
            last = some[-1].number
            told = []
            for row in some:
                mark = as_mark(row)
                if verdict(mark, place.workspace, row.recorded_at) is not Verdict.STAYS:
                    # A workspace that the two do not share is none of the other's business: for it the memory is gone.
                    shared = mark.workspace if mark.workspace in self.shared else None
                    told.append(
                        Marked(row.logical_id, micros(mark.redacted_at), micros(mark.placed_at), shared)
                    )
            if told:
                yield told

    def _read(self, rows: Any) -> Sequence[Any]:
        # Portion by portion, so that no transaction is open while a frame waits for its receiver.
        with self.store.reading():
            return self.store.db.execute(rows).all()

    # -- what was asked -----------------------------------------------------------------------------------------

    def asked(self, effect: ask.Asked) -> int:
        """Keeps what was asked for of what we listed; how many we did not list."""
        place = _place(effect)
        ours = self._told(place, TOLD.c.key, [one.key for one in effect.deletions])
        rows = [
            {**place._asdict(), "key": key, "logical_id": ours[key], "deleted_at": moment(at), "marked": 0}
            for key, at in effect.deletions
            if key in ours
        ]
        if rows:
            new = self.store.insert(ASKED)
            again = new.on_conflict_do_update(
                ["workspace", "dataset", "key"], set_={"deleted_at": new.excluded.deleted_at}
            )
            with self.store.reading():
                self.store.db.execute(again, rows)
        return sum(one.key not in ours for one in effect.deletions)

    def asked_marks(self, effect: ask.AskedMarks) -> int:
        place = _place(effect)
        ours = self._told(place, TOLD.c.logical_id, [one.logical_id for one in effect.marks])
        rows = [
            {
                **place._asdict(), "logical_id": one.logical_id, "redacted_at": moment(one.redacted_at),
                "placed_at": moment(one.placed_at), "placed_in": one.workspace,
            }
            for one in effect.marks
            if one.logical_id in ours
        ]  # fmt: skip
        if rows:
            with self.store.reading():
                self.store.db.execute(insert(ASKED_MARKS), rows)
        return sum(one.logical_id not in ours for one in effect.marks)

    def _told(self, place: Place, column: Any, values: Sequence[bytes]) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        with self.store.reading():
            if column is TOLD.c.logical_id:
                self.store.db.exec_driver_sql(
                    "CREATE INDEX IF NOT EXISTS told_logical_id ON told (workspace, dataset, logical_id)"
                )
            for some in in_portions(values):
                rows = select(column, TOLD.c.logical_id).where(here(TOLD, place), column.in_(some))
                found.update(self.store.db.execute(rows).all())
        return found

    def settle(self, effect: ask.Settle) -> ask.Settled:
        settled = settle_asked(self.store, self.pairing, _place(effect), effect.refuse, named=effect.named)
        self.deleted += settled.deleted
        return settled

    # -- data ---------------------------------------------------------------------------------------------------

    def want(self, effect: ask.Want) -> bytes:
        place, store = _place(effect), self.store
        mine = and_(store.mine(MEMORIES, place), MEMORIES.c.key == HEARD.c.key)
        deleted = and_(store.mine(RECORDS, place), RECORDS.c.key == HEARD.c.key)
        marked = and_(store.mine(MARKS), MARKS.c.logical_id == HEARD.c.logical_id)
        listed = (HEARD.c.made_at, HEARD.c.logical_id, HEARD.c.recorded_at)
        ours = (MEMORIES.c.made_at, MEMORIES.c.logical_id, MEMORIES.c.recorded_at)
        wanted = case(
            (rules.dominates(RECORDS.c.deleted_at, HEARD.c.recorded_at), 0),
            (MARKS.c.logical_id.is_not(None), MARKED),
            (MEMORIES.c.key.is_(None), 1),
            (teaches(*listed, ours), 1),
            else_=0,
        )
        rows = (
            select(wanted)
            .select_from(HEARD)
            .join(MEMORIES, mine, isouter=True)
            .join(RECORDS, deleted, isouter=True)
            .join(MARKS, marked, isouter=True)
            .where(here(HEARD, place))
            .order_by(HEARD.c.number)
        )
        bits = bytearray()
        by_mark: list[int] = []
        with store.reading():
            for at, (bit,) in enumerate(store.db.execute(rows.execution_options(yield_per=PORTION))):
                if at % 8 == 0:
                    bits.append(0)
                if bit == MARKED:
                    by_mark.append(at)
                else:
                    bits[-1] |= bit << at % 8
        for some in in_portions(by_mark):
            for at in self._wanted_by_mark(place, some):
                bits[at // 8] |= 1 << at % 8
        return bytes(bits)

    def _wanted_by_mark(self, place: Place, numbers: Sequence[int]) -> Iterator[int]:
        pairs = and_(self.store.mine(MARKS), MARKS.c.logical_id == HEARD.c.logical_id)
        rows = select(HEARD, MARKS.c.redacted_at, MARKS.c.placed_at, MARKS.c.workspace.label("placed_in"))
        rows = rows.join_from(HEARD, MARKS, pairs).where(here(HEARD, place), HEARD.c.number.in_(numbers))
        for row in self._read(rows):
            mark = Mark(row.redacted_at, row.placed_at, row.placed_in)
            there = place
            match verdict(mark, place.workspace, row.recorded_at):
                case Verdict.REDACTED | Verdict.GONE:
                    continue
                case Verdict.ELSEWHERE:
                    assert mark.workspace is not None
                    there = Place(mark.workspace, place.dataset)
            with self.store.reading():
                mine = held(self.store, there, [row.key]).get(row.key)
            if mine is None or teaches(
                row.made_at, row.logical_id, row.recorded_at,
                (mine.copy.made_at, mine.copy.logical_id, mine.copy.recorded_at),
            ):  # fmt: skip
                yield row.number

    def give(self, effect: ask.Give) -> Iterator[Body]:
        place, store = _place(effect), self.store
        pairs = and_(store.mine(MEMORIES, place), MEMORIES.c.key == TOLD.c.key)
        rows = (
            select(*FACTS).join_from(TOLD, MEMORIES, pairs).where(here(TOLD, place)).order_by(TOLD.c.number)
        )
        for some in _portions(_ones(effect.bits), GIVEN):
            for mine in map(as_held, self._read(rows.where(TOLD.c.number.in_(some)))):
                if len(mine.text) * 4 <= TEXT_MAX or len(mine.text.encode()) <= TEXT_MAX:
                    copy = mine.copy
                    yield Body(
                        mine.key, copy.logical_id, copy.device, micros(copy.made_at), micros(copy.recorded_at),
                        copy.source, mine.text,
                    )  # fmt: skip

    def admit(self, effect: ask.Admit) -> int:
        place = _place(effect)
        arriving = [
            Held(
                place, body.key, body.text,
                Copy(moment(body.made_at), body.device, body.logical_id, body.source, moment(body.recorded_at)),
            )
            for body in effect.bodies
            if rules.key_of(body.text) == body.key  # else the peer's fault: its text is not what it named
        ]  # fmt: skip
        return admit(self.store, place, arriving)

    def conclude(self, effect: ask.Conclude) -> None:
        self.conclusion = effect


def _ones(bits: bytes) -> Iterator[int]:
    return (8 * at + bit for at, byte in enumerate(bits) if byte for bit in range(8) if byte >> bit & 1)


def _portions(numbers: Iterator[int], size: int) -> Iterator[Sequence[int]]:
    while some := list(islice(numbers, size)):
        yield some


def _place(effect: Any) -> Place:
    return Place(effect.place.workspace, effect.place.dataset)


_ACTS: dict[type, Callable[[Acts, Any], Any]] = {
    ask.Prepare: Acts.prepare,
    ask.Look: Acts.look,
    ask.HeardOf: Acts.heard_of,
    ask.ToldOf: Acts.told_of,
    ask.Name: Acts.name,
    ask.NameMarks: Acts.name_marks,
    ask.Asked: Acts.asked,
    ask.AskedMarks: Acts.asked_marks,
    ask.Settle: Acts.settle,
    ask.Want: Acts.want,
    ask.Give: Acts.give,
    ask.Admit: Acts.admit,
    ask.Conclude: Acts.conclude,
}

"""The acts of a swap on a store: what `relay/effects.py` asks for, each in transactions of its own.

What the two listed and asked is kept in the connection's own temporary tables, so that nothing grows with the size of
a set, and each question over it is one statement. Read `settle` for the whole of what a peer can do here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from sqlalchemy import and_, delete, exists, func, select

from models import rules
from models.copies import Copy
from models.marks import Mark, Verdict, verdict
from models.memorystore.columns import micros, moment
from models.memorystore.store import Held, Place, Store, as_held, as_mark, held
from models.memorystore.tables import ASKED, GOING, HEARD, MARKS, MEMORIES, RECORDS, TOLD
from models.memorystore.verbs import admit, settle
from relay import effects as ask
from relay.frames import Deletion, Marked
from relay.manifest import ITEM
from relay.settling import here, settle_asked
from relay.stream import TEXT_MAX, Body
from relay.sums import StoredSums

PORTION = 1000  # deletions, or marks, of one frame
DAY = timedelta(days=1)


@dataclass
class Acts:
    """One device's side of one sync. `shared` are the workspaces that this pairing shares."""

    store: Store
    pairing: bytes
    shared: frozenset[str]
    marks: dict[Place, list[Marked]] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=lambda: {"heard": 0, "told": 0})
    deleted: int = 0
    conclusion: ask.Conclude | None = None

    def act(self, effect: Any) -> Any:
        """Performs an effect that is no frame; the answer that the swap is sent."""
        return _ACTS[type(effect)](self, effect)

    # -- what was listed ----------------------------------------------------------------------------------------

    def prepare(self, _effect: ask.Prepare) -> None:
        settle(self.store)
        with self.store.phase("prepared"):
            for table in (HEARD, TOLD, ASKED, GOING):
                self.store.db.execute(delete(table))

    def look(self, effect: ask.Look) -> StoredSums:
        return StoredSums(self.store, _place(effect))

    def heard_of(self, effect: ask.HeardOf) -> None:
        self._list(HEARD, effect)

    def told_of(self, effect: ask.ToldOf) -> None:
        self._list(TOLD, effect)

    def _list(self, table: Any, effect: Any) -> None:
        first = self.numbers[table.name]
        rows = [
            (effect.place.workspace, effect.place.dataset, first + at, *ITEM.unpack(item))
            for at, item in enumerate(effect.items)
        ]
        self.numbers[table.name] += len(rows)
        with self.store.phase("listed"):
            # Straight at the driver: a million items would spend most of their time on their way through the types.
            into = f"INSERT INTO {table.name} VALUES (?, ?, ?, ?, ?, ?, ?)"  # noqa: S608  a table of ours
            self.store.db.exec_driver_sql(into, rows)

    # -- naming -------------------------------------------------------------------------------------------------

    def name(self, effect: ask.Name) -> Iterator[Sequence[Deletion]]:
        place = _place(effect)
        store = self.store
        listed = exists().where(here(HEARD, place), HEARD.c.key == RECORDS.c.key)
        again = exists().where(store.mine(MEMORIES, place), MEMORIES.c.key == RECORDS.c.key)
        rows = select(RECORDS.c.key, RECORDS.c.deleted_at).where(store.mine(RECORDS, place), listed, ~again)
        for some in self._portions(rows):
            yield [Deletion(key, micros(at)) for key, at in some]

    def name_marks(self, effect: ask.NameMarks) -> Iterator[Sequence[Marked]]:
        place = _place(effect)
        pairs = and_(self.store.mine(MARKS), MARKS.c.logical_id == HEARD.c.logical_id)
        rows = select(MARKS, HEARD.c.recorded_at).join_from(HEARD, MARKS, pairs).where(here(HEARD, place))
        for some in self._portions(rows.order_by(HEARD.c.number)):
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

    def _portions(self, rows: Any) -> Iterator[Sequence[Any]]:
        with self.store.reading():
            yield from self.store.db.execute(rows.execution_options(yield_per=PORTION)).partitions(PORTION)

    # -- what was asked -----------------------------------------------------------------------------------------

    def asked(self, effect: ask.Asked) -> int:
        """Keeps what was asked for of what we listed; how many we did not list."""
        place = _place(effect)
        ours = self._told(place, TOLD.c.key, [one.key for one in effect.deletions])
        rows = [
            {"workspace": place.workspace, "dataset": place.dataset, "key": key, "deleted_at": moment(at)}
            for key, at in effect.deletions
            if key in ours
        ]
        if rows:
            new = self.store.insert(ASKED)
            again = new.on_conflict_do_update(
                ["workspace", "dataset", "key"], set_={"deleted_at": new.excluded.deleted_at}
            )
            with self.store.phase("asked"):
                self.store.db.execute(again, rows)
        return len(effect.deletions) - sum(one.key in ours for one in effect.deletions)

    def asked_marks(self, effect: ask.AskedMarks) -> int:
        place = _place(effect)
        ours = self._told(place, TOLD.c.logical_id, [one.logical_id for one in effect.marks])
        self.marks.setdefault(place, []).extend(one for one in effect.marks if one.logical_id in ours)
        return sum(one.logical_id not in ours for one in effect.marks)

    def _told(self, place: Place, column: Any, values: Sequence[bytes]) -> set[bytes]:
        found: set[bytes] = set()
        with self.store.reading():
            for at in range(0, len(values), 500):
                some = select(column).where(here(TOLD, place), column.in_(values[at : at + 500]))
                found.update(row[0] for row in self.store.db.execute(some))
        return found

    def settle(self, effect: ask.Settle) -> ask.Settled:
        told = self.marks.pop(_place(effect), [])
        settled = settle_asked(self.store, self.pairing, _place(effect), told, effect.refuse)
        self.deleted += settled.deleted
        return settled

    # -- data ---------------------------------------------------------------------------------------------------

    def want(self, effect: ask.Want) -> bytes:
        place, store = _place(effect), self.store
        mine = and_(store.mine(MEMORIES, place), MEMORIES.c.key == HEARD.c.key)
        deleted = and_(store.mine(RECORDS, place), RECORDS.c.key == HEARD.c.key)
        marked = and_(store.mine(MARKS), MARKS.c.logical_id == HEARD.c.logical_id)
        rows = (
            select(
                HEARD.c.key, HEARD.c.logical_id, HEARD.c.made_at, HEARD.c.recorded_at, RECORDS.c.deleted_at,
                MEMORIES.c.made_at, MEMORIES.c.logical_id, MEMORIES.c.recorded_at, MARKS.c.redacted_at,
                MARKS.c.placed_at, MARKS.c.workspace,
            )
            .select_from(HEARD)
            .join(MEMORIES, mine, isouter=True)
            .join(RECORDS, deleted, isouter=True)
            .join(MARKS, marked, isouter=True)
            .where(here(HEARD, place))
            .order_by(HEARD.c.number)
        )  # fmt: skip
        packed = bytearray()
        with store.reading():
            for at, row in enumerate(store.db.execute(rows.execution_options(yield_per=PORTION))):
                if at % 8 == 0:
                    packed.append(0)
                packed[-1] |= self._wanted(place, row) << at % 8
        return bytes(packed)

    def _wanted(self, place: Place, row: Any) -> bool:
        key, logical_id, made_at, recorded_at, deleted_at, mine_made, mine_id, mine_recorded, *mark = row
        if deleted_at is not None and rules.dominates(deleted_at, recorded_at):
            return False
        if mark[0] is not None:
            found = Mark(*mark)
            match verdict(found, place.workspace, recorded_at):
                case Verdict.REDACTED | Verdict.GONE:
                    return False
                case Verdict.ELSEWHERE:
                    assert found.workspace is not None
                    other = held(self.store, Place(found.workspace, place.dataset), [key]).get(key)
                    mine_made = other.copy.made_at if other else None
                    mine_id = other.copy.logical_id if other else None
                    mine_recorded = other.copy.recorded_at if other else None
        if mine_made is None:
            return True
        earlier = made_at < mine_made or (made_at == mine_made and logical_id != mine_id)
        return bool(earlier or recorded_at > mine_recorded)

    def give(self, effect: ask.Give) -> Iterator[Body]:
        place, store = _place(effect), self.store
        first = select(func.min(TOLD.c.number)).where(here(TOLD, place))
        with store.reading():
            begin = store.db.execute(first).scalar_one()
        if begin is None:
            return
        numbers = [
            begin + 8 * at + bit
            for at, byte in enumerate(effect.bits)
            if byte
            for bit in range(8)
            if byte >> bit & 1
        ]
        for at in range(0, len(numbers), 500):
            pairs = and_(store.mine(MEMORIES, place), MEMORIES.c.key == TOLD.c.key)
            rows = select(MEMORIES).join_from(TOLD, MEMORIES, pairs)
            rows = rows.where(here(TOLD, place), TOLD.c.number.in_(numbers[at : at + 500])).order_by(
                TOLD.c.number
            )
            with store.reading():
                some = [as_held(row) for row in store.db.execute(rows)]
            for mine in some:
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

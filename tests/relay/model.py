"""A device in memory: the store that a swap needs, said in the plainest way, and two of them joined frame by frame.

It is the yardstick for the stores to come, so it does nothing cleverly: dictionaries, and the rules by their names.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

from models import rules
from models.copies import Copy, merged
from models.marks import Mark, Verdict, joined, verdict
from models.recorded import Deleting, is_recorded
from relay import effects as ask
from relay.frames import VERSION, Deletion, Frame, Hello, Marked, Place, Refused, decode, encode
from relay.manifest import ITEM, KEPT, Range, Sum, prefix, summed
from relay.stream import Body
from relay.swap import DELETIONS, swap

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


class Cut(Exception):
    """The connection is gone."""


def micros(at: datetime) -> int:
    return (at - EPOCH) // rules.TICK


def moment(at: int) -> datetime:
    return EPOCH + timedelta(microseconds=at)


def key_of(text: str) -> bytes:
    return sha256(text.encode()).digest()


@dataclass(frozen=True)
class Memory:
    text: str
    copy: Copy


@dataclass
class Pairing:
    """One side's own copy of a pairing."""

    sends: bool = True
    receives: bool = True
    workspaces: set[str] = field(default_factory=lambda: {"default", "work"})
    open: dict[Place, dict[bytes, datetime]] = field(default_factory=dict)  # refused sets that wait for a yes


@dataclass
class Device:
    """One device. `clock` is its own; `chance` makes its logical IDs."""

    name: bytes
    clock: datetime
    chance: random.Random
    capabilities: tuple[str, ...] = (DELETIONS,)
    memories: dict[Place, dict[bytes, Memory]] = field(default_factory=dict)
    records: dict[Place, dict[bytes, datetime]] = field(default_factory=dict)
    marks: dict[bytes, Mark] = field(default_factory=dict)
    spent: list[tuple[Place, datetime, int]] = field(default_factory=list)
    pairings: dict[bytes, Pairing] = field(default_factory=dict)

    def held(self, place: Place) -> dict[bytes, Memory]:
        return self.memories.setdefault(place, {})

    def recorded(self, place: Place) -> dict[bytes, datetime]:
        return self.records.setdefault(place, {})

    # -- what its user does -------------------------------------------------------------------------------------

    def remember(self, text: str, place: Place, source: str = "typed") -> bytes:
        """An act: made, or made again past any deletion."""
        key = key_of(text)
        deleted, mine = self.recorded(place).get(key), self.held(place).get(key)
        at = rules.copy_time(self.clock, deleted, mine.copy.recorded_at if mine else None)
        if mine:
            self.held(place)[key] = replace(mine, copy=mine.copy._replace(recorded_at=at))
        else:
            copy = Copy(at, self.name, self.chance.randbytes(16), source, at)
            self.held(place)[key] = Memory(text, copy)
        return key

    def delete(self, place: Place, key: bytes, why: Deleting = Deleting.FORGET) -> None:
        mine = self.held(place).get(key)
        if mine is None:
            return
        if is_recorded(why, own=mine.copy.device == self.name):
            self._record(place, key, rules.deletion_time(self.clock, mine.copy.recorded_at))
        if mine.copy.logical_id in self.marks and is_recorded(why, own=True):
            # Forgotten after a redaction or a move: no other copy of it may return either.
            at = rules.deletion_time(self.clock, mine.copy.recorded_at)
            self._mark(mine.copy.logical_id, Mark(placed_at=at))
        del self.held(place)[key]

    def redact(self, place: Place, key: bytes, text: str) -> None:
        """The masked text supersedes the old one, by a mark and without a record; none of the old key is kept."""
        mine = self.held(place).pop(key)
        at = rules.deletion_time(self.clock, mine.copy.recorded_at)
        self._mark(mine.copy.logical_id, Mark(redacted_at=at))
        self.recorded(place).pop(key, None)
        self._put(place, Memory(text, mine.copy._replace(recorded_at=at)))

    def move(self, place: Place, key: bytes, workspace: str) -> None:
        mine = self.held(place).pop(key)
        at = rules.deletion_time(self.clock, mine.copy.recorded_at)
        self._mark(mine.copy.logical_id, Mark(placed_at=at, workspace=workspace))
        self._put(Place(workspace, place.dataset), mine)

    def follow_marks(self) -> None:
        """What a crash, or another copy of the same memory, left where its mark says that it is not."""
        for place, held in list(self.memories.items()):
            for key, mine in list(held.items()):
                mark = self.marks.get(mine.copy.logical_id, Mark())
                match verdict(mark, place.workspace, mine.copy.recorded_at):
                    case Verdict.GONE:
                        del held[key]
                    case Verdict.ELSEWHERE:
                        assert mark.workspace is not None
                        self._put(Place(mark.workspace, place.dataset), held.pop(key))
        for logical_id in self.marks:
            self._supersede(logical_id)

    def confirm(self, peer: bytes) -> None:
        """The user's yes: applied at once, from the stored keys and times, against the copies of this moment."""
        for place, refused in self.pairings[peer].open.items():
            for key, at in refused.items():
                mine = self.held(place).get(key)
                if mine and rules.dominates(at, mine.copy.recorded_at):
                    self._record(place, key, at)
                    del self.held(place)[key]
        self.pairings[peer].open.clear()

    def bring(self, place: Place, memory: Memory) -> bool:
        """The one way in for a copy made elsewhere: sync, import, an older release. True when it changed anything."""
        key = key_of(memory.text)
        deleted = self.recorded(place).get(key)
        if deleted is not None and rules.dominates(deleted, memory.copy.recorded_at):
            return False
        mark = self.marks.get(memory.copy.logical_id, Mark())
        match verdict(mark, place.workspace, memory.copy.recorded_at):
            case Verdict.STAYS:
                return self._put(place, memory)
            case Verdict.ELSEWHERE:
                assert mark.workspace is not None
                return self.bring(Place(mark.workspace, place.dataset), memory)
        return False

    def _put(self, place: Place, memory: Memory) -> bool:
        key = key_of(memory.text)
        mine = self.held(place).get(key)
        after = replace(memory, copy=merged(mine.copy, memory.copy)) if mine else memory
        self.held(place)[key] = after
        self._supersede(memory.copy.logical_id)
        return after != mine

    def _supersede(self, logical_id: bytes) -> None:
        """Drops older versions of a redacted text, once a younger one is here: so a redaction never empties a place."""
        mark = self.marks.get(logical_id, Mark())
        versions = [
            (place, key, memory.copy.recorded_at)
            for place, held in self.memories.items()
            for key, memory in held.items()
            if memory.copy.logical_id == logical_id
        ]
        if any(at >= mark.redacted_at for _, _, at in versions):
            for place, key, at in versions:
                if at < mark.redacted_at:
                    del self.held(place)[key]

    def _record(self, place: Place, key: bytes, at: datetime) -> None:
        self.recorded(place)[key] = max(at, self.recorded(place).get(key, EPOCH))

    def _mark(self, logical_id: bytes, mark: Mark) -> None:
        self.marks[logical_id] = joined(mark, self.marks.get(logical_id, Mark()))

    # -- one session --------------------------------------------------------------------------------------------

    def session(self, peer: Device, key: bytes, *, opens: bool) -> Session:
        pairing = self.pairings[peer.name]
        hello = Hello(
            VERSION, self.capabilities, micros(self.clock), self.name, pairing.sends, pairing.receives,
            tuple(sorted(pairing.workspaces)),
        )  # fmt: skip
        return Session(self, pairing, swap(hello, key, opens=opens))


class Summary:
    """Sums and items of one place, made anew at each look."""

    def __init__(self, held: dict[bytes, Memory]) -> None:
        self._items = sorted(item_of(key, memory) for key, memory in held.items())

    def sums(self, of: Range, deeper: int) -> Sequence[Sum]:
        assert of.bits + deeper <= KEPT
        first = of.value << deeper
        return [summed(self.items(Range(of.bits + deeper, first + n))) for n in range(1 << deeper)]

    def items(self, of: Range) -> Sequence[bytes]:
        return [item for item in self._items if prefix(item, of.bits) == of.value]


def item_of(key: bytes, memory: Memory) -> bytes:
    copy = memory.copy
    return ITEM.pack(key, copy.logical_id, micros(copy.made_at), micros(copy.recorded_at))


@dataclass
class Session:
    """One device's side of a swap: performs the effects on its store."""

    device: Device
    pairing: Pairing
    machine: Any
    heard: dict[Place, list[bytes]] = field(default_factory=dict)
    told: dict[Place, list[bytes]] = field(default_factory=dict)
    asked: dict[Place, dict[bytes, datetime]] = field(default_factory=dict)
    asked_marks: dict[Place, list[Marked]] = field(default_factory=dict)
    conclusion: ask.Conclude | None = None
    deleted: int = 0

    def act(self, effect: Any) -> Any:
        """The answer to an effect that is no frame."""
        match effect:
            case ask.Prepare():
                for place, records in self.device.records.items():
                    for key, at in records.items():
                        mine = self.device.held(place).get(key)
                        if mine and rules.dominates(at, mine.copy.recorded_at):
                            del self.device.held(place)[key]
                self.device.follow_marks()
            case ask.Look(place):
                return Summary(self.device.held(place))
            case ask.HeardOf(place, items):
                self.heard.setdefault(place, []).extend(items)
            case ask.ToldOf(place, items):
                self.told.setdefault(place, []).extend(items)
            case ask.Name(place):
                return iter(self._names(place))
            case ask.NameMarks(place):
                return iter(self._marks(place))
            case ask.Asked(place, deletions):
                ours = {item[:32] for item in self.told.get(place, ())}
                asked = self.asked.setdefault(place, {})
                for key, at in deletions:
                    if key in ours:
                        asked[key] = moment(at)
                return sum(deletion.key not in ours for deletion in deletions)
            case ask.AskedMarks(place, marks):
                ours = {item[32:48] for item in self.told.get(place, ())}
                self.asked_marks.setdefault(place, []).extend(m for m in marks if m.logical_id in ours)
                return sum(mark.logical_id not in ours for mark in marks)
            case ask.Settle(place, refuse, named):
                return self._settle(place, refuse, named=named)
            case ask.Want(place):
                bits = [self._wants(place, item) for item in self.heard.get(place, ())]
                packed = bytearray((len(bits) + 7) // 8)
                for at, wanted in enumerate(bits):
                    packed[at // 8] |= wanted << at % 8
                return bytes(packed)
            case ask.Give(place, bits):
                return self._give(place, bits)
            case ask.Admit(place, bodies):
                return sum(self._admit(place, body) for body in bodies)
            case ask.Conclude():
                self.conclusion = effect
            case _:
                raise AssertionError(effect)
        return None

    def _names(self, place: Place) -> list[list[Deletion]]:
        listed = {item[:32] for item in self.heard.get(place, ())}
        held = self.device.held(place)
        named = [
            Deletion(key, micros(at))
            for key, at in self.device.recorded(place).items()
            if key in listed and key not in held
        ]
        return [named[at : at + 3] for at in range(0, len(named), 3)]

    def _marks(self, place: Place) -> list[list[Marked]]:
        named = []
        for item in self.heard.get(place, ()):
            _, logical_id, _, recorded_at = ITEM.unpack(item)
            mark = self.device.marks.get(logical_id, Mark())
            if verdict(mark, place.workspace, moment(recorded_at)) is not Verdict.STAYS:
                # A workspace that the two do not share is none of the other's business: for it the memory is gone.
                shared = mark.workspace if mark.workspace in self.pairing.workspaces else None
                named.append(Marked(logical_id, micros(mark.redacted_at), micros(mark.placed_at), shared))
        return [named[at : at + 2] for at in range(0, len(named), 2)]

    def _settle(self, place: Place, refuse: str | None, *, named: bool) -> ask.Settled:
        asked, marks = self.asked.pop(place, {}), self.asked_marks.pop(place, [])
        if refuse:
            keys = len(asked) + len(marks)
            return ask.Settled(0, (Refused(keys, refuse),) if keys else ())
        device, held = self.device, self.device.held(place)
        waiting = self.pairing.open.setdefault(place, {})
        going: dict[bytes, datetime] = {}
        future = 0
        gone: dict[bytes, Marked] = {}
        for told in marks:
            told_mark = Mark(moment(told.redacted_at), moment(told.placed_at), told.workspace)
            for key, memory in list(held.items()):
                if memory.copy.logical_id != told.logical_id:
                    continue
                what = verdict(told_mark, place.workspace, memory.copy.recorded_at)
                if what is Verdict.GONE:
                    asked.setdefault(key, moment(told.placed_at))
                    gone[key] = told
                    continue
                device._mark(told.logical_id, told_mark)
                if what is Verdict.ELSEWHERE:
                    assert told.workspace is not None
                    device._put(Place(told.workspace, place.dataset), held.pop(key))
                device._supersede(told.logical_id)
        for key in set(waiting) - set(asked) if named else ():
            del waiting[key]  # asked no more, so there is nothing to say yes or no to
        for key, at in asked.items():
            mine = held.get(key)
            if mine is None or not rules.dominates(at, mine.copy.recorded_at):
                continue
            if key in waiting and waiting[key] >= at:
                continue
            if rules.too_far_ahead(at, device.clock, mine.copy.recorded_at):
                future += 1
            else:
                going[key] = at
        refused = [Refused(future, "future")] if future else []
        spent = sum(n for where, at, n in device.spent if where == place and at > device.clock - DAY)
        if not rules.within_cap(len(going), len(held), spent):
            waiting.update(going)
            refused.append(Refused(len(going), "too_many"))
            going = {}
        for key, at in going.items():
            if key in gone:
                device._mark(gone[key].logical_id, Mark(placed_at=at))
            else:
                device._record(place, key, at)
            del held[key]
        if going:
            device.spent.append((place, device.clock, len(going)))
        self.deleted += len(going)
        return ask.Settled(len(going), tuple(refused))

    def _wants(self, place: Place, item: bytes) -> bool:
        key, logical_id, made_at, recorded_at = ITEM.unpack(item)
        deleted = self.device.recorded(place).get(key)
        if deleted is not None and rules.dominates(deleted, moment(recorded_at)):
            return False
        mark = self.device.marks.get(logical_id, Mark())
        match verdict(mark, place.workspace, moment(recorded_at)):
            case Verdict.REDACTED | Verdict.GONE:
                return False
            case Verdict.ELSEWHERE:
                assert mark.workspace is not None
                place = Place(mark.workspace, place.dataset)
        mine = self.device.held(place).get(key)
        if mine is None:
            return True
        theirs = (moment(made_at), logical_id, moment(recorded_at))
        ours = (mine.copy.made_at, mine.copy.logical_id, mine.copy.recorded_at)
        return theirs[0] < ours[0] or (theirs[0] == ours[0] and theirs[1] != ours[1]) or theirs[2] > ours[2]

    def _give(self, place: Place, bits: bytes) -> Iterator[Body]:
        for at, item in enumerate(self.told.get(place, ())):
            if at // 8 < len(bits) and bits[at // 8] >> at % 8 & 1:
                memory = self.device.held(place).get(item[:32])
                if memory:
                    copy = memory.copy
                    yield Body(
                        item[:32], copy.logical_id, copy.device, micros(copy.made_at), micros(copy.recorded_at),
                        copy.source, memory.text,
                    )  # fmt: skip

    def _admit(self, place: Place, body: Body) -> bool:
        if key_of(body.text) != body.key:
            return False
        copy = Copy(moment(body.made_at), body.device, body.logical_id, body.source, moment(body.recorded_at))
        return self.device.bring(place, Memory(body.text, copy))


def sync(
    one: Device,
    other: Device,
    *,
    cut: int | None = None,
    watch: Callable[[Device, Frame], None] = lambda _sender, _frame: None,
) -> tuple[Session, Session] | None:
    """One sync, every frame as bytes. `cut`: the connection ends after so many frames; None is then returned."""
    key = one.chance.randbytes(32)
    sides = (one.session(other, key, opens=True), other.session(one, key, opens=False))
    wires: tuple[list[bytes], list[bytes]] = ([], [])  # to each side
    waiting: list[Any] = [None, None]
    done = [False, False]
    frames = 0
    answer: list[Any] = [None, None]
    while not all(done):
        moved = False
        for at, side in enumerate(sides):
            while not done[at]:
                try:
                    if waiting[at] is None:
                        waiting[at] = side.machine.send(answer[at])
                        answer[at] = None
                    effect = waiting[at]
                    if isinstance(effect, ask.Receive):
                        if not wires[at]:
                            break
                        answer[at] = decode(wires[at].pop(0))
                    elif isinstance(effect, ask.Send):
                        if cut is not None and frames >= cut:
                            return None
                        frames += 1
                        watch(side.device, effect.frame)
                        wires[1 - at].append(encode(effect.frame))
                    else:
                        answer[at] = side.act(effect)
                    waiting[at] = None
                    moved = True
                except StopIteration:
                    done[at] = moved = True
        assert moved, "both sides wait for each other"
    return sides


def snapshot(device: Device) -> Any:
    """All that a device holds, to compare with later."""
    return deepcopy((device.memories, device.records, device.marks, device.pairings))

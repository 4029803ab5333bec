"""Three devices and home do whatever they like, in any order, and the promises of ADR 0176 hold after each step.

A failure prints the steps that led to it, and `@reproduce_failure` repeats them. A hundred walks run in CI;
`ALLGONE_WALKS=20000 pytest tests/relay/test_swap_machine.py` takes longer ones.
"""

from __future__ import annotations

import os
import random
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from models import rules
from models.recorded import Deleting
from models.rules import DATASET as MEMORIES
from relay.frames import Deletions, Frame, Manifest, Marks, Place
from relay.manifest import ITEM, Items
from tests.relay.model import DAY, Device, Pairing, key_of, sync

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
NAMES = ("laptop", "phone", "tablet", "home")
PLACES = (Place("default", MEMORIES), Place("work", MEMORIES))
TEXTS = tuple("abcdef")
whose = st.integers(0, 3)
where = st.sampled_from(PLACES)
what = st.sampled_from(TEXTS)
ENDING = (Deleting.FORGET, Deleting.PURGE, Deleting.REPLACED, Deleting.FILE_GONE, Deleting.WIPE)


class Walk(RuleBasedStateMachine):
    """Few texts and places, so that everything meets."""

    def __init__(self) -> None:
        super().__init__()
        self.devices = [self.make(name) for name in NAMES]
        for one in self.devices:
            one.pairings = {other.name: Pairing() for other in self.devices if other is not one}
        self.redacted: set[bytes] = set()

    def make(self, name: str) -> Any:
        return Device(name.encode().ljust(16, b"\0"), NOW, random.Random(name))

    def join(self, one: Any, other: Any, **options: Any) -> Any:
        return sync(one, other, **options)

    # -- what users do ------------------------------------------------------------------------------------------

    @rule(at=whose, place=where, text=what)
    def remember(self, at: int, place: Place, text: str) -> None:
        if key_of(text) in self.redacted:
            return  # masked before it is hashed, from then on
        self.devices[at].remember(text, place)
        assert key_of(text) in self.devices[at].held(place)

    @rule(at=whose, place=where, text=what, why=st.sampled_from(ENDING))
    def delete(self, at: int, place: Place, text: str, why: Deleting) -> None:
        self.devices[at].delete(place, key_of(text), why)

    @rule(at=whose, place=where, text=what)
    def redact(self, at: int, place: Place, text: str) -> None:
        held = self.devices[at].held(place)
        if key_of(text) in held:
            copies = [one.held(each).get(key_of(text)) for one in self.devices for each in PLACES]
            # A mark follows the memory, not its text: the same words made anew where nobody had them yet are another
            # memory until the two have met, and no hash is kept by which to know them.
            if len({copy.copy.logical_id for copy in copies if copy}) == 1:
                self.redacted.add(key_of(text))
            self.devices[at].redact(place, key_of(text), f"{text} [redacted]")

    @rule(at=whose, place=where, text=what)
    def move(self, at: int, place: Place, text: str) -> None:
        if key_of(text) in self.devices[at].held(place):
            other = next(each for each in PLACES if each != place)
            self.devices[at].move(place, key_of(text), other.workspace)

    @rule(at=whose, minutes=st.integers(-8, 8))
    def set_the_clock(self, at: int, minutes: int) -> None:
        self.devices[at].clock += timedelta(minutes=minutes)

    @rule(hours=st.integers(1, 48))
    def wait(self, hours: int) -> None:
        for one in self.devices:
            one.clock += timedelta(hours=hours)

    @rule(at=whose, to=whose, sends=st.booleans(), receives=st.booleans())
    def set_a_direction(self, at: int, to: int, sends: bool, receives: bool) -> None:
        if at != to:
            pairing = self.devices[at].pairings[self.devices[to].name]
            pairing.sends, pairing.receives = sends, receives

    @rule(at=whose, to=whose)
    def confirm(self, at: int, to: int) -> None:
        if at != to:
            self.devices[at].confirm(self.devices[to].name)

    # -- syncs --------------------------------------------------------------------------------------------------

    @rule(at=whose, to=whose, cut=st.none() | st.integers(0, 25))
    def sync(self, at: int, to: int, cut: int | None) -> None:
        if at == to:
            return
        sides = (self.devices[at], self.devices[to])
        sizes = [{place: len(side.held(place)) for place in PLACES} for side in sides]
        listed: dict[bytes, set[bytes]] = {side.name: set() for side in sides}
        logical: dict[bytes, set[bytes]] = {side.name: set() for side in sides}

        def watch(sender: Device, frame: Frame) -> None:
            (peer,) = (side for side in sides if side is not sender)
            if isinstance(frame, Manifest):
                for record in frame.records:
                    if isinstance(record, Items):
                        for key, logical_id, _, _ in ITEM.iter_unpack(record.items):
                            listed[sender.name].add(key)
                            logical[sender.name].add(logical_id)
            if isinstance(frame, Deletions):
                assert {one.key for one in frame.deletions} <= listed[peer.name]
                assert not frame.deletions or sender.pairings[peer.name].sends
            if isinstance(frame, Marks):
                assert {one.logical_id for one in frame.marks} <= logical[peer.name]

        self.join(*sides, cut=cut, watch=watch)
        for side, before in zip(sides, sizes, strict=True):
            for place in PLACES:
                recent = sum(n for p, when, n in side.spent if p == place and when > side.clock - DAY)
                assert recent <= max(rules.CAP, (before[place] + recent) // 2)

    # -- promises -----------------------------------------------------------------------------------------------

    @invariant()
    def nothing_dominated_is_held(self) -> None:
        for one in self.devices:
            for place in PLACES:
                for key, memory in one.held(place).items():
                    deleted = one.recorded(place).get(key)
                    assert deleted is None or not rules.dominates(deleted, memory.copy.recorded_at)

    @invariant()
    def every_key_is_the_hash_of_its_text(self) -> None:
        for one in self.devices:
            for place in PLACES:
                assert all(key == key_of(memory.text) for key, memory in one.held(place).items())

    @rule()
    def come_to_rest(self) -> None:
        """With everything open and the clocks near, two rounds make all agree, and a third moves nothing."""
        newest = max(one.clock for one in self.devices)
        for one in self.devices:
            one.clock = newest + timedelta(days=2)
            for pairing in one.pairings.values():
                pairing.sends = pairing.receives = True
                pairing.open.clear()
        for _ in range(3):
            for at, one in enumerate(self.devices):
                for other in self.devices[at + 1 :]:
                    self.join(one, other)
        first = self.devices[0]
        for one in self.devices[1:]:
            assert one.memories.get(PLACES[0], {}) == first.memories.get(PLACES[0], {})
            assert one.memories.get(PLACES[1], {}) == first.memories.get(PLACES[1], {})
        for at, one in enumerate(self.devices):
            for other in self.devices[at + 1 :]:
                sides = self.join(one, other)
                assert sides is not None
                for side in sides:
                    assert side.conclusion is not None
                    assert side.conclusion.sent == side.deleted == side.conclusion.faults == 0
        for key in self.redacted:
            assert not any(key in one.held(place) for one in self.devices for place in PLACES)


Walk.TestCase.settings = settings(
    max_examples=int(os.environ.get("ALLGONE_WALKS", "100")),
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestWalk = Walk.TestCase

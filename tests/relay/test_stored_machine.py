"""The same walks as test_swap_machine.py, on real files beside the yardstick: after each step both hold the same.

`ALLGONE_WALKS=2000` takes longer ones.
"""

from __future__ import annotations

import os
import random
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings

from relay.frames import Frame
from tests.relay.model import Device, Pairing, sync
from tests.relay.stored import StoredDevice, folders
from tests.relay.test_swap_machine import NOW, PLACES, Walk


class Open(dict[Any, Any]):
    """A pairing's open requests: cleared in both worlds at once."""

    def __init__(self, clear: Any) -> None:
        super().__init__()
        self._clear = clear

    def clear(self) -> None:
        super().clear()
        self._clear()


class Twin:
    """One device in both worlds; whatever is asked of it is done in both and must come out alike."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name.encode().ljust(16, b"\0")
        self.model = Device(self.name, NOW, random.Random(name))
        self.real = StoredDevice(self.name, NOW, random.Random(name), folder)
        self._pairings: dict[bytes, Pairing] = {}

    @property
    def clock(self) -> Any:
        return self.model.clock

    @clock.setter
    def clock(self, at: Any) -> None:
        self.model.clock = self.real.clock = at

    @property
    def pairings(self) -> dict[bytes, Pairing]:
        return self._pairings

    @pairings.setter
    def pairings(self, held: dict[bytes, Pairing]) -> None:
        for peer, pairing in held.items():
            pairing.open = Open(lambda peer=peer: self.real.forget_requests(peer))
        self._pairings = self.model.pairings = self.real.pairings = held

    def compare(self) -> None:
        for place in PLACES:
            assert self.real.held(place) == self.model.held(place)
            assert self.real.recorded(place) == self.model.recorded(place)
        assert self.real.marks == self.model.marks
        assert sorted(self.real.spent) == sorted(self.model.spent)
        for peer, pairing in self._pairings.items():
            told = {place: keys for place, keys in pairing.open.items() if keys}
            assert self.real.waiting(peer) == told

    def __getattr__(self, name: str) -> Any:
        if name in {"remember", "delete", "redact", "move", "confirm"}:

            def both(*given: Any) -> None:
                getattr(self.model, name)(*given)
                getattr(self.real, name)(*given)
                self.compare()

            return both
        return getattr(self.model, name)


class StoredWalk(Walk):
    """Walks of twins."""

    def __init__(self) -> None:
        self._root = tempfile.TemporaryDirectory(prefix="allgone-walk-")
        self._folders = folders(Path(self._root.name))
        super().__init__()

    def make(self, name: str) -> Any:
        return Twin(name, next(self._folders))

    def join(self, one: Twin, other: Twin, **options: Any) -> Any:
        watch = options.pop("watch", None)
        frames: tuple[list[Frame], list[Frame]] = ([], [])

        def told(sender: Any, frame: Frame) -> None:
            frames[0].append(frame)
            if watch:
                watch({one.name: one, other.name: other}[sender.name], frame)

        sides = sync(one.model, other.model, watch=told, **options)
        again = sync(one.real, other.real, watch=lambda _, frame: frames[1].append(frame), **options)
        assert (sides is None) == (again is None)
        for twin in (one, other):
            twin.compare()
        if sides is not None and again is not None:
            for side, real in zip(sides, again, strict=True):
                assert side.conclusion == real.conclusion
                assert side.deleted == real.deleted
        return again

    def teardown(self) -> None:
        for twin in self.devices:
            twin.real.close()
        self._root.cleanup()


StoredWalk.TestCase.settings = settings(
    max_examples=int(os.environ.get("ALLGONE_WALKS", "100")) // 20,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestStoredWalk = StoredWalk.TestCase

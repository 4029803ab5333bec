"""A device's store on real files, with a clock that stands until a test moves it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from models.memorystore.opening import open_files
from models.memorystore.store import Place, Store

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
HERE = Place("default", "memories")


@dataclass
class Home:
    """One home directory. `store` is open; `again` closes it and opens it anew, as the next start does."""

    folder: Path
    name: bytes = b"laptop".ljust(16, b"\0")
    now: datetime = NOW
    points: list[str] = field(default_factory=list)  # the crash points that were passed

    def __post_init__(self) -> None:
        self.chance = random.Random(self.name)
        self.store = self._open()

    def _open(self) -> Store:
        self._engine = open_files(self.folder)
        return Store(
            self._engine.connect(), self.name, lambda: self.now, self.chance.randbytes, self.points.append
        )

    def close(self) -> None:
        self.store.db.close()
        self._engine.dispose()

    def again(self) -> Store:
        self.close()
        self.store = self._open()
        return self.store


@pytest.fixture
def home_at(tmp_path: Path) -> Iterator[Callable[..., Home]]:
    """Makes a home directory of a name, or opens it again."""
    opened = []

    def make(name: str = "laptop") -> Home:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        opened.append(Home(folder, name.encode().ljust(16, b"\0")))
        return opened[-1]

    yield make
    for one in opened:
        one.close()


@pytest.fixture
def home(home_at: Callable[..., Home]) -> Home:
    return home_at()

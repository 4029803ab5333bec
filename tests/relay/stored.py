"""A device whose store is real: two SQLite files, with the face of `tests.relay.model.Device`, so that the same walks
and the same syncs run over it, and each step can be compared with the yardstick's."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import select

from models.marks import Mark
from models.memorystore import looking, verbs
from models.memorystore.opening import open_files
from models.memorystore.requests import confirm, keep, requests
from models.memorystore.store import Place as Where
from models.memorystore.store import Store
from models.memorystore.tables import MEMORIES, RECORDS, SPENT
from models.recorded import Deleting
from relay.acts import Acts
from relay.frames import VERSION, Hello, Place
from relay.swap import DELETIONS, swap
from tests.relay.model import Memory, Pairing, micros, moment


@dataclass
class StoredDevice:
    """`folder` holds its two files."""

    name: bytes
    clock: datetime
    chance: random.Random
    folder: Path
    capabilities: tuple[str, ...] = (DELETIONS,)
    pairings: dict[bytes, Pairing] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.open()

    def open(self) -> None:
        self.engine = open_files(self.folder)
        with self.engine.connect() as connection:
            driver = connection.connection.driver_connection
            assert driver is not None
            for file in ("main", "deletions"):
                driver.execute(f"PRAGMA {file}.synchronous = OFF")  # a walk's files die with it
        self.store = Store(self.engine.connect(), self.name, lambda: self.clock, self.chance.randbytes)

    def close(self) -> None:
        self.store.db.close()
        self.engine.dispose()

    # -- the face of the yardstick --------------------------------------------------------------------------------

    def remember(self, text: str, place: Place, source: str = "typed") -> bytes:
        return verbs.remember(self.store, text, _where(place), source).key

    def delete(self, place: Place, key: bytes, why: Deleting = Deleting.FORGET) -> None:
        verbs.forget(self.store, _where(place), [key], why)

    def redact(self, place: Place, key: bytes, text: str) -> None:
        verbs.redact(self.store, _where(place), key, text)

    def move(self, place: Place, key: bytes, workspace: str) -> None:
        verbs.move(self.store, _where(place), key, workspace)

    def confirm(self, peer: bytes) -> None:
        for one in requests(self.store):
            if one.pairing == peer:
                confirm(self.store, one)

    def keep(self, peer: bytes) -> None:
        for one in requests(self.store):
            if one.pairing == peer:
                keep(self.store, one)

    def asked_for(self) -> list[int]:
        return [one.asked for one in requests(self.store)]

    def held(self, place: Place) -> dict[bytes, Memory]:
        return {
            one.key: Memory(one.text, one.copy)
            for one in looking.memories(self.store, _where(place), dataset=place.dataset)
        }

    @property
    def memories(self) -> Mapping[Place, dict[bytes, Memory]]:
        with self.store.reading():
            places = self.store.db.execute(select(MEMORIES.c.workspace, MEMORIES.c.dataset).distinct()).all()
        return {Place(*place): self.held(Place(*place)) for place in places}

    def recorded(self, place: Place) -> dict[bytes, datetime]:
        rows = select(RECORDS.c.key, RECORDS.c.deleted_at).where(self.store.mine(RECORDS, _where(place)))
        with self.store.reading():
            return dict(self.store.db.execute(rows).all())

    @property
    def marks(self) -> dict[bytes, Mark]:
        return looking.all_marks(self.store)

    @property
    def spent(self) -> Sequence[tuple[Place, datetime, int]]:
        rows = select(SPENT.c.workspace, SPENT.c.dataset, SPENT.c.at, SPENT.c["count"])
        with self.store.reading():
            return [(Place(where, dataset), at, n) for where, dataset, at, n in self.store.db.execute(rows)]

    def forget_requests(self, peer: bytes) -> None:
        with self.store.phase("cleared"):
            self.store.db.exec_driver_sql("DELETE FROM deletion_requests WHERE pairing = ?", (peer,))

    def waiting(self, peer: bytes) -> dict[Place, dict[bytes, datetime]]:
        found: dict[Place, dict[bytes, datetime]] = {}
        sql = "SELECT workspace, dataset, key, deleted_at FROM deletion_requests WHERE pairing = ?"
        with self.store.reading():
            for workspace, dataset, key, at in self.store.db.exec_driver_sql(sql, (peer,)):
                found.setdefault(Place(workspace, dataset), {})[key] = moment(at)
        return found

    def session(self, peer: Any, key: bytes, *, opens: bool) -> StoredSession:
        pairing = self.pairings[peer.name]
        hello = Hello(
            VERSION, self.capabilities, micros(self.clock), self.name, pairing.sends, pairing.receives,
            tuple(sorted(pairing.workspaces)),
        )  # fmt: skip
        acts = Acts(self.store, peer.name, frozenset(pairing.workspaces))
        return StoredSession(self, acts, swap(hello, key, opens=opens))


@dataclass
class StoredSession:
    """One device's side of a swap."""

    device: StoredDevice
    acts: Acts
    machine: Any

    def act(self, effect: Any) -> Any:
        return self.acts.act(effect)

    @property
    def deleted(self) -> int:
        return self.acts.deleted

    @property
    def conclusion(self) -> Any:
        return self.acts.conclusion


def _where(place: Place) -> Where:
    return Where(place.workspace, place.dataset)


def folders(root: Path) -> Iterator[Path]:
    """Fresh folders in `root`, one after the other."""
    number = 0
    while True:
        number += 1
        made = root / str(number)
        made.mkdir()
        yield made

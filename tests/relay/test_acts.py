"""The acts of a sync on real stores: what the walks are too small to meet."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path

import pytest

from models.copies import Copy
from models.memorystore import verbs
from models.memorystore.store import Held
from models.memorystore.store import Place as Where
from models.memorystore.verbs import admit
from models.rules import CAP, key_of
from models.rules import DATASET as MEMORIES
from relay.frames import Deletions, Frame, Manifest, Marks, Place
from relay.manifest import Items
from tests.relay.model import Pairing, sync
from tests.relay.stored import StoredDevice
from tests.relay.test_swap_machine import NOW

DEFAULT, WORK = Place("default", MEMORIES), Place("work", MEMORIES)
Make = Callable[..., StoredDevice]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Makes devices, each paired with all before it."""
    made: list[StoredDevice] = []

    def one(name: str) -> StoredDevice:
        folder = tmp_path / name
        folder.mkdir()
        device = StoredDevice(name.encode().ljust(16, b"\0"), NOW, random.Random(name), folder)
        for other in made:
            device.pairings[other.name], other.pairings[device.name] = Pairing(), Pairing()
        made.append(device)
        return device

    yield one
    for device in made:
        device.close()


def alike(one: StoredDevice, other: StoredDevice) -> bool:
    return all(one.held(place) == other.held(place) for place in (DEFAULT, WORK))


def fill(device: StoredDevice, place: Place, texts: Iterable[str], by: str = "both") -> None:
    """Memories that came from elsewhere, alike on each device that is filled with them."""
    there = Where(*place)
    some = []
    for text in texts:
        copy = Copy(NOW, by.encode().ljust(16, b"\0"), key_of(text)[:16], "typed", NOW)
        some.append(Held(there, key_of(text), text, copy))
    admit(device.store, there, some)


def test_two_workspaces_that_differ_here_and_there_are_listed_by_turns_and_none_is_mistaken(
    make: Make,
) -> None:
    laptop, phone = make("laptop"), make("phone")
    for place in (DEFAULT, WORK):
        for device in (laptop, phone):
            fill(device, place, (f"{place.workspace} {number}" for number in range(3000)))
            fill(device, place, (f"{place.workspace} {number} of {device.name!r}" for number in range(100)))
    lists: list[Place] = []

    def watch(_: StoredDevice, frame: Frame) -> None:
        if isinstance(frame, Manifest) and any(isinstance(one, Items) for one in frame.records):
            lists.append(frame.place)

    assert sync(laptop, phone, watch=watch)
    assert len(list(groupby(lists))) > 2  # one place, the other, and the first again
    assert alike(laptop, phone)
    assert len(laptop.held(DEFAULT)) == len(laptop.held(WORK)) == 3200


def test_no_transaction_is_open_while_a_frame_waits(make: Make) -> None:
    """A peer may take minutes to answer; another process of this device must be able to write meanwhile."""
    laptop, phone = make("laptop"), make("phone")
    for device in (laptop, phone):
        fill(device, DEFAULT, (f"note {number}" for number in range(6000)))
    verbs.forget(laptop.store, Where(*DEFAULT), [key_of(f"note {number}") for number in range(2000)])
    for number in range(3000, 4100):
        laptop.move(DEFAULT, key_of(f"note {number}"), "work")
    fill(phone, DEFAULT, (f"other {number}" for number in range(200)))
    seen: Counter[type] = Counter()

    def watch(sender: StoredDevice, frame: Frame) -> None:
        seen[type(frame)] += 1
        assert not sender.store.db.in_transaction(), frame

    assert sync(laptop, phone, watch=watch)
    assert seen[Deletions] > 4
    assert seen[Marks] > 4
    assert alike(laptop, phone)
    assert len(phone.held(DEFAULT)) == 6000 - 2000 - 1100 + 200


def test_a_kept_request_is_asked_no_more_until_the_other_deletes_again(make: Make) -> None:
    """PRODUCT.md 4.4, Cap: `keep` lasts while the peer names the keys."""
    laptop, phone = make("laptop"), make("phone")
    keys = [key_of(f"note {number}") for number in range(CAP + 1)]
    for device in (laptop, phone):
        fill(device, DEFAULT, (f"note {number}" for number in range(CAP + 1)))
    verbs.forget(laptop.store, Where(*DEFAULT), keys)
    told = sync(laptop, phone)
    assert told is not None
    assert [refused.keys for one in told[0].conclusion.there.told for refused in one.refused] == [CAP + 1]
    phone.keep(laptop.name)
    for _ in range(2):
        told = sync(laptop, phone)
        assert told is not None
        assert not any(one.refused for one in told[0].conclusion.there.told)
        assert len(phone.held(DEFAULT)) == CAP + 1
    assert phone.asked_for() == []
    # Made again there, and deleted again: that is another deletion, and asks anew.
    for key_text in (f"note {number}" for number in range(CAP + 1)):
        laptop.remember(key_text, DEFAULT)
    sync(laptop, phone)
    assert phone.waiting(laptop.name) == {}
    verbs.forget(laptop.store, Where(*DEFAULT), keys)
    sync(laptop, phone)
    assert phone.asked_for() == [CAP + 1]

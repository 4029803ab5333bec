"""One sync between two devices: what each side names, takes and refuses (ADR 0176; PRODUCT.md 4.3, 4.4, 5)."""

from __future__ import annotations

import random
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from models.recorded import Deleting
from models.rules import DATASET as MEMORIES
from relay import effects as ask
from relay.frames import (
    VERSION,
    Bye,
    Data,
    Deletion,
    Deletions,
    Frame,
    Hello,
    Manifest,
    Marks,
    Place,
    Refused,
    Wanted,
)
from relay.manifest import ITEM, Faulty, Items
from relay.stream import Body
from relay.swap import DELETIONS, Ended, agreed, swap
from tests.relay.model import Device, Pairing, Session, key_of, snapshot, sync

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
DEFAULT, WORK = Place("default", MEMORIES), Place("work", MEMORIES)


def device(name: str) -> Device:
    return Device(name.encode().ljust(16, b"\0"), NOW, random.Random(name))


def paired(*devices: Device) -> tuple[Device, ...]:
    for one in devices:
        for other in devices:
            if one is not other:
                one.pairings[other.name] = Pairing()
    return devices


@pytest.fixture
def two() -> tuple[Device, Device]:
    one, other = paired(device("laptop"), device("phone"))
    return one, other


def texts(held: Device, place: Place = DEFAULT) -> set[str]:
    return {memory.text for memory in held.held(place).values()}


def whole(sides: tuple[Session, Session] | None) -> tuple[Session, Session]:
    assert sides is not None
    return sides


def later(*devices: Device) -> None:
    for one in devices:
        one.clock += HOUR


def test_each_side_gets_what_only_the_other_has(two: tuple[Device, Device]) -> None:
    one, other = two
    one.remember("tea", DEFAULT)
    other.remember("coffee", DEFAULT)
    other.remember("meeting", WORK)
    mine, theirs = whole(sync(one, other))
    assert texts(one) == texts(other) == {"tea", "coffee"}
    assert texts(one, WORK) == {"meeting"}
    assert one.memories == other.memories
    assert mine.conclusion is not None
    assert theirs.conclusion is not None
    assert mine.conclusion.here == theirs.conclusion.there
    assert (mine.conclusion.sent, theirs.conclusion.sent) == (1, 2)


def test_a_deletion_reaches_the_other_device_and_does_not_come_back(two: tuple[Device, Device]) -> None:
    one, other = two
    key = one.remember("tea", DEFAULT)
    one.remember("coffee", DEFAULT)
    sync(one, other)
    later(one, other)
    one.delete(DEFAULT, key)
    at = one.recorded(DEFAULT)[key]
    sync(other, one)
    assert texts(one) == texts(other) == {"coffee"}
    assert other.recorded(DEFAULT) == {key: at}  # with its original time
    before = snapshot(one), snapshot(other)
    for _ in range(10):
        sync(one, other)
    assert (snapshot(one), snapshot(other)) == before


def test_a_deletion_goes_down_a_chain_whose_ends_never_met() -> None:
    first, middle, last = device("first"), device("middle"), device("last")
    paired(first, middle)
    paired(middle, last)
    key = first.remember("tea", DEFAULT)
    sync(first, middle)
    sync(middle, last)
    later(first, middle, last)
    first.delete(DEFAULT, key)
    sync(first, middle)
    sync(last, middle)
    assert texts(last) == texts(middle) == texts(first) == set()


def test_a_copy_made_again_after_the_deletion_stays_and_is_sent_back(two: tuple[Device, Device]) -> None:
    one, other = two
    key = one.remember("tea", DEFAULT)
    sync(one, other)
    one.clock += HOUR
    one.delete(DEFAULT, key)
    other.clock += 2 * HOUR
    other.remember("tea", DEFAULT)
    sync(one, other)
    assert texts(one) == texts(other) == {"tea"}


@pytest.mark.parametrize("behind", [0 * MINUTE, 5 * MINUTE, 9 * MINUTE])
def test_at_equal_times_and_with_a_slow_clock_the_deletion_wins(
    two: tuple[Device, Device], behind: timedelta
) -> None:
    """FAULTS.md D39."""
    one, other = two
    key = other.remember("tea", DEFAULT)
    sync(one, other)
    one.clock -= behind
    one.delete(DEFAULT, key)
    sync(one, other)
    assert texts(other) == texts(one) == set()


def test_only_keys_that_the_other_listed_are_named(two: tuple[Device, Device]) -> None:
    """ADR 0176: a key hashes a text, so naming one that the other never held would let it check its guesses."""
    one, other = two
    secret = one.remember("nobody else knows", DEFAULT)
    shared = one.remember("both know", DEFAULT)
    other.remember("both know", DEFAULT)
    one.delete(DEFAULT, secret)
    one.delete(DEFAULT, shared)
    later(one, other)
    one.delete(DEFAULT, one.remember("nobody, again", DEFAULT))
    seen: list[tuple[bytes, Frame]] = []
    sync(one, other, watch=lambda sender, frame: seen.append((sender.name, frame)))
    named = [
        deletion.key
        for name, frame in seen
        if name == one.name and isinstance(frame, Deletions)
        for deletion in frame.deletions
    ]
    assert named == [shared]
    said = [frame for name, frame in seen if name == one.name and isinstance(frame, Manifest)]
    assert not any(
        isinstance(record, Items) and secret in record.items for frame in said for record in frame.records
    )


def test_a_side_that_may_not_send_names_nothing_and_one_that_may_not_receive_ignores_it(
    two: tuple[Device, Device],
) -> None:
    one, other = two
    key = one.remember("tea", DEFAULT)
    sync(one, other)
    later(one, other)
    one.delete(DEFAULT, key)
    one.pairings[other.name].sends = False
    sync(one, other)
    assert texts(other) == {"tea"}
    assert texts(one) == set()  # nor does it take back what it deleted
    one.pairings[other.name].sends = True
    other.pairings[one.name].receives = False
    _, theirs = whole(sync(one, other))
    assert texts(other) == {"tea"}
    assert theirs.conclusion is not None
    assert [told.refused for told in theirs.conclusion.here.told if told.place == DEFAULT] == [
        (Refused(1, "direction"),)
    ]
    other.pairings[one.name].receives = True
    sync(one, other)
    assert texts(other) == set()


def test_data_goes_only_where_both_let_it(two: tuple[Device, Device]) -> None:
    one, other = two
    one.remember("mine", DEFAULT)
    other.remember("theirs", DEFAULT)
    one.pairings[other.name].sends = False
    sync(one, other)
    assert (texts(one), texts(other)) == ({"mine", "theirs"}, {"theirs"})
    one.pairings[other.name] = Pairing(receives=False)
    other.remember("more", DEFAULT)
    sync(other, one)
    assert texts(one) == {"mine", "theirs"}
    assert texts(other) == {"mine", "theirs", "more"}


def test_half_goes_and_one_more_is_refused_whole_until_the_user_says_yes(two: tuple[Device, Device]) -> None:
    """FAULTS.md D27."""
    one, other = two
    keys = [one.remember(f"memory {number}", DEFAULT) for number in range(1_000)]
    sync(one, other)
    later(one, other)
    for key in keys[:501]:
        one.delete(DEFAULT, key)
    _, theirs = whole(sync(one, other))
    assert len(texts(other)) == 1_000
    assert other.recorded(DEFAULT) == {}
    assert theirs.conclusion is not None
    assert theirs.conclusion.here.told[0].refused == (Refused(501, "too_many"),)
    mine, theirs = whole(sync(one, other))  # it is neither announced twice nor sent back
    assert theirs.conclusion is not None
    assert mine.conclusion is not None
    assert theirs.conclusion.here.told[0].refused == ()
    assert (mine.conclusion.sent, theirs.conclusion.sent) == (0, 0)
    assert len(texts(one)) == 499
    other.confirm(one.name)
    assert texts(other) == texts(one)
    assert set(other.recorded(DEFAULT)) == set(keys[:501])


def test_half_after_half_does_not_add_up_within_a_day(two: tuple[Device, Device]) -> None:
    one, other = two
    keys = [one.remember(f"memory {number}", DEFAULT) for number in range(1_000)]
    sync(one, other)
    later(one, other)
    for portion in (keys[:500], keys[500:750]):
        for key in portion:
            one.delete(DEFAULT, key)
        sync(one, other)
    assert len(texts(other)) == 500
    one.clock += timedelta(days=2)
    other.clock += timedelta(days=2)
    other.pairings[one.name].open.clear()
    sync(one, other)
    assert len(texts(other)) == 250


def test_workspaces_are_judged_each_by_itself(two: tuple[Device, Device]) -> None:
    """FAULTS.md D33."""
    one, other = two
    keys = {place: [one.remember(f"{place} {n}", place) for n in range(600)] for place in (DEFAULT, WORK)}
    sync(one, other)
    later(one, other)
    for key in keys[DEFAULT][:240] + keys[DEFAULT][240:300]:
        one.delete(DEFAULT, key)
    for key in keys[WORK][:301]:
        one.delete(WORK, key)
    sync(one, other)
    assert (len(texts(other)), len(texts(other, WORK))) == (300, 600)


def test_a_workspace_that_is_not_shared_stays_where_it_is(two: tuple[Device, Device]) -> None:
    one, other = two
    one.pairings[other.name].workspaces = {"default"}
    one.remember("private", WORK)
    other.remember("also private", WORK)
    seen: list[Frame] = []
    sync(one, other, watch=lambda _, frame: seen.append(frame))
    assert (texts(one, WORK), texts(other, WORK)) == ({"private"}, {"also private"})
    assert not any(getattr(frame, "place", DEFAULT) == WORK for frame in seen)


@pytest.mark.parametrize(("gap", "waits"), [(599, False), (601, True), (-601, True)])
def test_with_clocks_far_apart_data_syncs_and_deletions_wait(
    two: tuple[Device, Device], gap: int, waits: bool
) -> None:
    """FAULTS.md D42."""
    one, other = two
    key = one.remember("tea", DEFAULT)
    sync(one, other)
    later(one, other)
    one.delete(DEFAULT, key)
    one.remember("coffee", DEFAULT)
    one.clock += timedelta(seconds=gap)
    mine, _ = whole(sync(one, other))
    assert texts(other) == ({"tea", "coffee"} if waits else {"coffee"})
    assert mine.conclusion is not None
    assert mine.conclusion.gap == -timedelta(seconds=gap)
    one.clock = other.clock
    sync(one, other)
    assert texts(other) == {"coffee"}


def test_an_older_release_swaps_no_deletions_and_data_all_the_same(two: tuple[Device, Device]) -> None:
    one, other = two
    key = one.remember("tea", DEFAULT)
    sync(one, other)
    later(one, other)
    one.delete(DEFAULT, key)
    other.remember("coffee", DEFAULT)
    other.capabilities = ()
    seen: list[Frame] = []
    sync(one, other, watch=lambda _, frame: seen.append(frame))
    assert not any(isinstance(frame, Deletions | Marks) for frame in seen)
    assert texts(one) == {"coffee"}  # what it deleted is not admitted again
    assert texts(other) == {"tea", "coffee"}


def test_a_redacted_text_is_nowhere_again_and_no_record_holds_its_hash(two: tuple[Device, Device]) -> None:
    one, other = two
    key = one.remember("the code is 1234", DEFAULT)
    sync(one, other)
    later(one, other)
    one.redact(DEFAULT, key, "the code is [redacted]")
    seen: list[bytes] = []
    sync(
        other,
        one,
        watch=lambda sender, frame: seen.append(bytes(repr(frame), "utf-8")) if sender is one else None,
    )
    for held in (one, other):
        assert texts(held) == {"the code is [redacted]"}
        assert key not in held.recorded(DEFAULT)
    assert not any(repr(key).encode() in frame for frame in seen)
    sync(one, other)
    assert texts(one) == texts(other) == {"the code is [redacted]"}


def test_a_moved_memory_is_in_one_place_on_both(two: tuple[Device, Device]) -> None:
    one, other = two
    key = one.remember("tea", DEFAULT)
    sync(one, other)
    later(one, other)
    one.move(DEFAULT, key, "work")
    sync(one, other)
    sync(other, one)
    for held in (one, other):
        assert (texts(held), texts(held, WORK)) == (set(), {"tea"})
        assert held.records.get(DEFAULT, {}) == {}


def test_a_memory_moved_out_of_what_is_shared_is_gone_for_the_other_without_the_places_name(
    two: tuple[Device, Device],
) -> None:
    one, other = two
    for each, peer in ((one, other), (other, one)):
        each.pairings[peer.name].workspaces = {"default"}
    key = one.remember("tea", DEFAULT)
    sync(one, other)
    later(one, other)
    one.move(DEFAULT, key, "secret place")
    seen: list[Frame] = []
    sync(one, other, watch=lambda _, frame: seen.append(frame))
    assert texts(other) == set()
    assert "secret place" not in repr(seen)


def test_the_first_source_and_the_later_time_stand_on_both(two: tuple[Device, Device]) -> None:
    one, other = two
    key = one.remember("tea", DEFAULT, source="typed")
    one.clock += HOUR
    other.clock += 2 * HOUR
    other.remember("tea", DEFAULT, source="conversation")
    one.clock = other.clock
    sync(one, other)
    (mine,), (theirs,) = one.held(DEFAULT).values(), other.held(DEFAULT).values()
    assert mine == theirs
    assert (mine.copy.source, mine.copy.made_at, mine.copy.recorded_at) == ("typed", NOW, NOW + 2 * HOUR)
    assert key == key_of("tea")


def test_a_sync_cut_at_any_frame_is_mended_by_the_next(two: tuple[Device, Device]) -> None:
    """FAULTS.md D5, D45."""
    one, other = two
    keys = [one.remember(f"memory {number}", DEFAULT) for number in range(60)]
    sync(one, other)
    later(one, other)
    for key in keys[:20]:
        one.delete(DEFAULT, key)
    other.delete(DEFAULT, keys[30])
    for number in range(20):
        other.remember(f"other {number}", DEFAULT)
    expected = deepcopy((one, other))
    sync(*expected)
    frames = 0
    while True:
        mine, theirs = deepcopy((one, other))
        if sync(mine, theirs, cut=frames) is not None:
            break
        assert texts(theirs) >= texts(expected[1]) - {f"other {n}" for n in range(20)}
        sync(mine, theirs)
        assert texts(mine) == texts(theirs) == texts(expected[0])
        frames += 1
    assert frames > 10


# -- who does not keep to it -----------------------------------------------------------------------------------


HELLO = Hello(VERSION, (DELETIONS,), 1_000_000, b"d" * 16, True, True, ("default",))


def take(machine: Any, frames: list[Frame]) -> list[Any]:
    """Gives a machine that waits for a frame these ones, and all else it asks for; what it asked meanwhile."""
    seen = []
    for frame in frames:
        effect = machine.send(frame)
        seen.append(effect)
        while not isinstance(effect, ask.Receive):
            effect = machine.send(_nothing(effect))
            seen.append(effect)
    return seen


def _nothing(effect: Any) -> Any:
    held = Device(b"e" * 16, NOW, random.Random(0))
    match effect:
        case ask.Look() | ask.Name() | ask.NameMarks() | ask.Give() | ask.Want() | ask.Settle():
            return Session(held, Pairing(), None).act(effect)
    return 0


@pytest.mark.parametrize(
    "frame",
    [
        Bye("done"),
        Manifest(DEFAULT, (), last=True),
        Wanted(DEFAULT, b"", last=True),
        Data(DEFAULT, b"", last=True),
        replace(HELLO, version=0),
    ],
    ids=lambda frame: type(frame).__name__,
)
def test_nothing_happens_in_a_store_before_a_hello(frame: Frame) -> None:
    machine = swap(HELLO, bytes(32), opens=False)
    assert isinstance(machine.send(None), ask.Receive)
    acts: list[Any] = []
    with pytest.raises((Faulty, Ended)):
        acts += take(machine, [frame])
    assert all(isinstance(act, ask.Send | ask.Receive) for act in acts)


@pytest.mark.parametrize(
    "frame",
    [
        HELLO,
        Deletions(DEFAULT, (), last=True),
        Manifest(Place("elsewhere", MEMORIES), (), last=False),
        Manifest(DEFAULT, (Items(DEFAULT and (0, 0), bytes(ITEM.size - 1)),), last=False),  # type: ignore[arg-type]
    ],
    ids=["hello", "deletions", "another place", "a spoilt record"],
)
def test_a_frame_out_of_its_order_ends_the_session(frame: Frame) -> None:
    machine = swap(HELLO, bytes(32), opens=False)
    machine.send(None)
    with pytest.raises(Faulty):
        take(machine, [HELLO, frame, Manifest(DEFAULT, (), last=True)])


def test_a_key_that_was_not_listed_is_the_peers_fault_and_nothing_goes(two: tuple[Device, Device]) -> None:
    one, other = two
    key = other.remember("tea", DEFAULT)
    side = other.session(one, bytes(32), opens=False)
    assert side.act(ask.Asked(DEFAULT, [Deletion(key, 2**50)])) == 1
    assert side.act(ask.Settle(DEFAULT, None, named=True)) == ask.Settled(0, ())
    assert texts(other) == {"tea"}


def test_a_text_that_does_not_hash_to_its_key_is_not_admitted(two: tuple[Device, Device]) -> None:
    one, other = two
    side = other.session(one, bytes(32), opens=False)
    assert side.act(ask.Admit(DEFAULT, [Body(bytes(32), bytes(16), bytes(16), 1, 1, "typed", "tea")])) == 0
    assert texts(other) == set()


def test_terms_are_seen_alike_from_both_sides() -> None:
    mine = replace(HELLO, sends=False, workspaces=("b", "a", "x"))
    theirs = replace(HELLO, receives=False, workspaces=("a", "b", "y"))
    here, there = agreed(mine, theirs), agreed(theirs, mine)
    assert here.places == there.places == (Place("a", MEMORIES), Place("b", MEMORIES))
    assert (here.gives, here.takes) == (False, True)
    assert (there.gives, there.takes) == (True, False)
    assert (here.names, there.refuses) == (False, "direction")


def test_the_machine_says_what_was_deleted_by_which_kind(two: tuple[Device, Device]) -> None:
    one, other = two
    key = one.remember("tea", DEFAULT)
    sync(one, other)
    later(one, other)
    one.delete(DEFAULT, key, Deleting.FILE_GONE)
    sync(one, other)
    assert texts(one) == texts(other) == {"tea"}  # a file gone from disk comes back, on purpose
    other.delete(DEFAULT, key, Deleting.REPLACED)  # a chunk that the other device recorded
    sync(one, other)
    assert texts(one) == texts(other) == {"tea"}
    one.delete(DEFAULT, key, Deleting.REPLACED)
    sync(one, other)
    assert texts(one) == texts(other) == set()

"""Reconciliation finds exactly what differs, and costs by the difference (PRODUCT.md 5)."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.manifest import (
    EVERYTHING,
    ITEM,
    KEPT,
    SHORT,
    Faulty,
    Items,
    Names,
    Range,
    Record,
    Sum,
    Sums,
    added,
    digest,
    prefix,
    summed,
)
from relay.reconcile import TURNS, Reconciliation

KEY = bytes(range(32))


class Held:
    """A set of items in memory, as a store tells of it."""

    def __init__(self, items: Iterable[bytes]) -> None:
        self.all = sorted(items)
        self.read = 0  # items that were read one by one

    def sums(self, of: Range, deeper: int) -> Sequence[Sum]:
        assert of.bits + deeper <= KEPT
        children: list[list[bytes]] = [[] for _ in range(1 << deeper)]
        for item in self._within(of):
            children[prefix(item, of.bits + deeper) & ((1 << deeper) - 1)].append(item)
        return [summed(items) for items in children]

    def items(self, of: Range) -> Sequence[bytes]:
        found = self._within(of)
        self.read += len(found)
        return found

    def _within(self, of: Range) -> Sequence[bytes]:
        low = (of.value << (64 - of.bits)).to_bytes(9, "big")[1:]
        high = (of.value + 1) << (64 - of.bits)
        end = len(self.all) if high >= 1 << 64 else bisect_left(self.all, high.to_bytes(8, "big"))
        return self.all[bisect_left(self.all, low) : end]


def item(chance: random.Random, key: bytes | None = None) -> bytes:
    return ITEM.pack(
        key or chance.randbytes(32), chance.randbytes(16), chance.randrange(2**50), chance.randrange(2**50)
    )


def size(record: Record) -> int:
    """About what a record weighs on the wire."""
    match record:
        case Sums():
            return 12 + len(record.prints)
        case Names():
            return 12 + len(record.names)
        case Items():
            return 12 + len(record.items) + len(record.wanted)


class Talk:
    """Two sides that reconcile; what each was told, what it cost, and how many turns it took."""

    def __init__(self, ours: Iterable[bytes], theirs: Iterable[bytes]) -> None:
        self.sets = (Held(ours), Held(theirs))
        self.heard: tuple[list[bytes], list[bytes]] = ([], [])
        self.told: tuple[list[bytes], list[bytes]] = ([], [])
        self.sides = [
            Reconciliation(self.sets[n], KEY, self.heard[n].extend, self.told[n].extend) for n in (0, 1)
        ]
        self.bytes = self.turns = 0
        said = list(self.sides[0].begin())
        while said:
            self.bytes += sum(map(size, said))
            listener = self.sides[(self.turns + 1) % 2]
            self.turns += 1
            listener.take(said)
            said = list(listener.answer())

    def assert_exact(self) -> None:
        """Each heard all that only the other has, and nothing that the other does not have."""
        ours, theirs = (set(held.all) for held in self.sets)
        assert theirs - ours <= set(self.heard[0]) <= theirs
        assert ours - theirs <= set(self.heard[1]) <= ours
        assert set(self.told[0]) == set(self.heard[1])
        assert set(self.told[1]) == set(self.heard[0])


@given(
    st.integers(0, 2**32), st.integers(0, 300), st.integers(0, 300), st.integers(0, 300), st.integers(0, 20)
)
def test_each_side_hears_what_only_the_other_has(
    seed: int, both: int, one: int, other: int, near: int
) -> None:
    chance = random.Random(seed)
    shared = [item(chance) for _ in range(both)]
    ours = [item(chance) for _ in range(one)]
    # The same memory at other times, which is another item; and keys that agree in many bits.
    theirs = [item(chance, key=each[:32]) for each in ours[:near]]
    theirs += [item(chance, key=each[:7] + chance.randbytes(25)) for each in ours[:near]]
    theirs += [item(chance) for _ in range(other)]
    Talk(shared + ours, shared + theirs).assert_exact()


@pytest.mark.parametrize("count", [0, 1, 48, 49, 1_000, 100_000])
def test_equal_sets_cost_one_record_of_under_a_kilobyte(count: int) -> None:
    chance = random.Random(count)
    items = [item(chance) for _ in range(count)]
    talk = Talk(items, items)
    assert (talk.turns, talk.heard) == (1, ([], []))
    assert talk.bytes < 1_000
    assert max(held.read for held in talk.sets) == 0


def test_a_hundred_differences_of_a_hundred_thousand_take_six_turns_and_read_few_keys() -> None:
    chance = random.Random(1)
    shared = [item(chance) for _ in range(100_000)]
    talk = Talk(shared + [item(chance) for _ in range(50)], shared + [item(chance) for _ in range(50)])
    talk.assert_exact()
    assert talk.turns <= 6
    assert talk.bytes <= 128 * 1024
    assert max(held.read for held in talk.sets) < 100_000 / 5
    assert len(talk.heard[0]) == len(talk.heard[1]) == 50


@pytest.mark.parametrize(
    "counts", [(10, 10), (100, 100), (1_000, 1_000), (20_000, 20_000), (20_000, 40), (0, 5_000), (5_000, 0)]
)
def test_sets_with_nothing_in_common_cost_no_more_than_their_manifests_and_two_percent(
    counts: tuple[int, int],
) -> None:
    chance = random.Random(2)
    sets = [[item(chance) for _ in range(count)] for count in counts]
    talk = Talk(*sets)
    talk.assert_exact()
    assert talk.bytes <= 1.02 * ITEM.size * sum(counts) + 1_000


def test_sets_whose_small_ranges_nearly_all_differ_stay_within_the_bound_too() -> None:
    chance = random.Random(3)
    shared = [item(chance) for _ in range(10_000)]
    for differing in (100, 500, 1_000, 2_000, 5_000, 9_000):
        ours, theirs = shared[differing:], shared[differing:]
        ours = ours + [item(chance) for _ in range(differing)]
        theirs = theirs + [item(chance) for _ in range(differing)]
        talk = Talk(ours, theirs)
        talk.assert_exact()
        assert talk.bytes <= 1.02 * ITEM.size * 20_000


def test_a_sum_does_not_depend_on_the_order_and_tells_one_changed_time() -> None:
    chance = random.Random(4)
    items = [item(chance) for _ in range(100)]
    assert summed(items) == summed(reversed(items)) == added([summed(items[:30]), summed(items[30:])])
    key, logical_id, made, recorded = ITEM.unpack(items[0])
    assert digest(items[0]) != digest(ITEM.pack(key, logical_id, made, recorded + 1))


def test_fingerprints_and_names_are_the_sessions_own() -> None:
    chance = random.Random(5)
    items = Held(item(chance) for _ in range(100))

    def said(key: bytes) -> list[Record]:
        return list(Reconciliation(items, key, lambda _: None, lambda _: None).begin())

    assert said(KEY) == said(KEY) != said(bytes(32))


@pytest.mark.parametrize(
    "record",
    [
        Sums(Range(3, 8), 0, bytes(SHORT)),
        Sums(Range(65, 0), 0, bytes(SHORT)),
        Sums(Range(-1, 0), 0, bytes(SHORT)),
        Sums(EVERYTHING, 7, bytes(SHORT << 7)),
        Sums(EVERYTHING, -1, b""),
        Sums(Range(63, 0), 2, bytes(SHORT << 2)),
        Sums(EVERYTHING, 1, bytes(SHORT)),
        Names(EVERYTHING, bytes(SHORT + 1)),
        Items(EVERYTHING, bytes(ITEM.size - 1)),
        Items(EVERYTHING, b"", bytes(SHORT - 1)),
        Items(Range(1, 1), bytes(ITEM.size)),
    ],
    ids=repr,
)
def test_what_no_honest_side_says_ends_the_session(record: Record) -> None:
    heard: list[bytes] = []
    side = Reconciliation(Held([]), KEY, heard.extend, heard.extend)
    with pytest.raises(Faulty):
        side.take([record])
    assert heard == []


def test_who_never_ends_is_cut_off() -> None:
    side = Reconciliation(Held([]), KEY, lambda _: None, lambda _: None)
    for _ in range(TURNS):
        side.take([Sums(EVERYTHING, 0, b"unlikely")])
        assert list(side.answer())
    side.take([Sums(EVERYTHING, 0, b"unlikely")])
    with pytest.raises(Faulty):
        list(side.answer())


def test_asking_for_everything_by_name_is_answered_in_runs() -> None:
    chance = random.Random(6)
    held = Held(item(chance) for _ in range(5_000))
    side = Reconciliation(held, KEY, lambda _: None, lambda _: None)
    side.take([Names(EVERYTHING, b"nobody's")])
    said = list(side.answer())
    assert sorted(b"".join(one.items for one in said if isinstance(one, Items))) == sorted(b"".join(held.all))
    assert max(map(size, said)) < 50_000

"""What manifests cost on the wire: bytes both ways and turns, for two sets of a million memories that differ.

The bytes are those of the encoded frames, place and packing included. The sums of ranges lie ready, as a store keeps
them. The measure is a count, so that noise cannot move it; it needs no engine.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from benchmarks.figures import Figure
from benchmarks.ground import Ground
from relay.frames import Manifest, Place, encode, portions
from relay.manifest import ITEM, KEPT, Range, Sum, added, digest, prefix
from relay.reconcile import Reconciliation

NAME = "reconciling"
HELD = 1_000_000
PLACE = Place("default", "memories")


class Held:
    """A set of items with its sums of 16 bits kept."""

    def __init__(self, items: Sequence[bytes]) -> None:
        self._items = sorted(items)
        self._kept = [Sum(0, 0)] * (1 << KEPT)
        for item in self._items:
            at = prefix(item, KEPT)
            count, total = self._kept[at]
            self._kept[at] = Sum(count + 1, total + digest(item))

    def sums(self, of: Range, deeper: int) -> Sequence[Sum]:
        """As `relay.reconcile.Summary` says."""
        wide = 1 << (KEPT - of.bits - deeper)
        first = of.value << (KEPT - of.bits)
        return [added(self._kept[first + n * wide : first + (n + 1) * wide]) for n in range(1 << deeper)]

    def items(self, of: Range) -> Sequence[bytes]:
        """As `relay.reconcile.Summary` says."""
        low = (of.value << (64 - of.bits)).to_bytes(9, "big")[1:]
        high = (of.value + 1) << (64 - of.bits)
        end = len(self._items) if high >= 1 << 64 else bisect_left(self._items, high.to_bytes(8, "big"))
        return self._items[bisect_left(self._items, low) : end]


def run(_ground: Ground) -> Iterator[Figure]:
    """Equal sets, a hundred and ten thousand differences, and sets that share nothing."""
    chance = random.Random(1)
    shared = [_item(chance) for _ in range(HELD)]
    for differ, what, bound in (
        (0, "equal sets", 1.0),
        (100, "a hundred", 128.0),
        (10_000, "ten thousand", 4_096.0),
    ):
        half = differ // 2
        ours = Held(shared + [_item(chance) for _ in range(half)])
        theirs = Held(shared + [_item(chance) for _ in range(half)])
        size, turns, heard = _talk(ours, theirs)
        assert heard == differ
        said = what if not differ else f"{what} differences in {HELD:,}"
        yield Figure(NAME, f"{said}, KiB both ways", size / 1024, bound=bound, note=f"{turns} turns")
        if differ == 100:
            yield Figure(NAME, f"{said}, round trips", turns / 2, bound=3)
    few = HELD // 10
    size, turns, _ = _talk(
        Held([_item(chance) for _ in range(few)]), Held([_item(chance) for _ in range(few)])
    )
    manifests = 2 * few * ITEM.size
    yield Figure(
        NAME,
        f"two sets of {few:,} with nothing in common, against two full manifests",
        size / manifests,
        bound=1.02,
        note=f"{size:,} bytes against {manifests:,}",
    )


def _item(chance: random.Random) -> bytes:
    return ITEM.pack(
        chance.randbytes(32), chance.randbytes(16), chance.randrange(2**50), chance.randrange(2**50)
    )


def _talk(ours: Held, theirs: Held) -> tuple[int, int, int]:
    """Bytes both ways, turns that said something, and items that were heard in all."""
    heard: list[bytes] = []
    sides = [Reconciliation(held, bytes(32), heard.extend, lambda _: None) for held in (ours, theirs)]
    size = turns = 0
    said = [records for records, _ in portions(sides[0].begin())]
    while any(said):
        turns += 1
        frames = [Manifest(PLACE, records, last=False) for records in said if records]
        size += sum(len(encode(frame)) for frame in (*frames, Manifest(PLACE, (), last=True)))
        listener = sides[turns % 2]
        for records in said:
            listener.take(records)
        said = [records for records, _ in portions(listener.answer())]
    return size + len(encode(Manifest(PLACE, (), last=True))), turns, len(set(heard))

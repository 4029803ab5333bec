"""The summary of a place that a store keeps beside its keys, as reconciliation reads it.

For each first byte of a key, and for each first two, the count and the sum of the items stand in a row, where there is
any. A trigger notes which first two bytes a change touched; whoever looks makes these anew. Two equal sets are found
equal by 256 rows, and a difference costs the rows of its first byte.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import delete, select

from models.memorystore.columns import micros
from models.memorystore.store import Place, Store
from models.memorystore.tables import MEMORIES, STALE, SUMS
from relay.manifest import ITEM, Range, Sum, added, digest

BYTE = 8  # bits
FEW = 32  # stale ranges of a first byte, above which it is read whole
NOTHING = Sum(0, 0)
Listed = tuple[bytes, bytes, int, int]


class StoredSums:
    """`relay.reconcile.Summary` over a store. What was read stays read: a session looks at one moment of the set."""

    def __init__(self, store: Store, place: Place) -> None:
        self._store = store
        self._place = place
        self._coarse: list[Sum] = []
        self._fine: dict[int, list[Sum]] = {}

    def sums(self, of: Range, deeper: int) -> Sequence[Sum]:
        bits, first = of.bits + deeper, of.value << deeper
        return [self._sum(Range(bits, value)) for value in range(first, first + (1 << deeper))]

    def items(self, of: Range) -> Sequence[bytes]:
        low, high = _bounds(of)
        with self._store.reading():
            return [ITEM.pack(*one) for one in self._listed(low, high)]

    def _sum(self, of: Range) -> Sum:
        if of.bits <= BYTE:
            wide = BYTE - of.bits
            return added(self._bytes()[of.value << wide : (of.value + 1) << wide])
        wide = 2 * BYTE - of.bits
        pairs = self._pairs(of.value >> (of.bits - BYTE))
        first = (of.value << wide) & 0xFF
        return added(pairs[first : first + (1 << wide)])

    def _bytes(self) -> list[Sum]:
        if not self._coarse:
            self._renew()
            known = self._read(SUMS.c.prefix.in_([bytes([one]) for one in range(256)]))
            self._coarse = [known.get(bytes([value]), NOTHING) for value in range(256)]
        return self._coarse

    def _pairs(self, value: int) -> list[Sum]:
        if value not in self._fine:
            self._bytes()
            known = self._read(_second(value))
            self._fine[value] = [known.get(bytes([value, low]), NOTHING) for low in range(256)]
        return self._fine[value]

    def _read(self, which: Any) -> dict[bytes, Sum]:
        rows = select(SUMS.c.prefix, SUMS.c["items"], SUMS.c.total)
        with self._store.reading():
            found = self._store.db.execute(rows.where(self._store.mine(SUMS, self._place), which))
            return {prefix: Sum(items, int.from_bytes(total, "big")) for prefix, items, total in found}

    def _renew(self) -> None:
        """Makes anew what changes have left stale, one first byte at a time."""
        stale: dict[int, list[bytes]] = defaultdict(list)
        rows = select(STALE.c.prefix).where(self._store.mine(STALE, self._place)).order_by(STALE.c.prefix)
        with self._store.reading():
            for (prefix,) in self._store.db.execute(rows):
                stale[prefix[0]].append(prefix)
        for value, prefixes in stale.items():
            with self._store.phase("summed"):
                self._make(value, prefixes)

    def _make(self, value: int, prefixes: Sequence[bytes]) -> None:
        sums: dict[bytes, list[int]] = {prefix: [0, 0] for prefix in prefixes}
        ranges = [Range(2 * BYTE, int.from_bytes(prefix, "big")) for prefix in prefixes]
        for of in ranges if len(ranges) < FEW else [Range(BYTE, value)]:
            for one in self._listed(*_bounds(of)):
                if (held := sums.get(one[0][:2])) is not None:
                    held[0] += 1
                    held[1] += digest(ITEM.pack(*one))
        self._write({prefix: added([Sum(*one)]) for prefix, one in sums.items()})
        here = self._store.mine(SUMS, self._place)
        rows = select(SUMS.c["items"], SUMS.c.total).where(here, _second(value))
        held_now = [Sum(items, int.from_bytes(total, "big")) for items, total in self._store.db.execute(rows)]
        self._write({bytes([value]): added(held_now)})
        done = STALE.c.prefix.in_(prefixes)
        self._store.db.execute(delete(STALE).where(self._store.mine(STALE, self._place), done))

    def _write(self, sums: dict[bytes, Sum]) -> None:
        here = {
            "principal_id": self._store.principal,
            "workspace": self._place.workspace,
            "dataset": self._place.dataset,
        }
        rows = [
            {**here, "prefix": prefix, "items": one.items, "total": one.total.to_bytes(32, "big")}
            for prefix, one in sums.items()
            if one.items
        ]
        none = [prefix for prefix, one in sums.items() if not one.items]
        mine = self._store.mine(SUMS, self._place)
        if none:
            self._store.db.execute(delete(SUMS).where(mine, SUMS.c.prefix.in_(none)))
        if rows:
            new = self._store.insert(SUMS)
            both = {"items": new.excluded["items"], "total": new.excluded.total}
            same = ["principal_id", "workspace", "dataset", "prefix"]
            self._store.db.execute(new.on_conflict_do_update(same, set_=both), rows)

    def _listed(self, low: bytes, high: bytes | None) -> Iterator[Listed]:
        rows = select(
            MEMORIES.c.key, MEMORIES.c.logical_id, MEMORIES.c.made_at, MEMORIES.c.recorded_at
        ).where(self._store.mine(MEMORIES, self._place), MEMORIES.c.key >= low)
        if high is not None:
            rows = rows.where(MEMORIES.c.key < high)
        for row in self._store.db.execute(rows.order_by(MEMORIES.c.key).execution_options(yield_per=1000)):
            yield row[0], row[1], micros(row[2]), micros(row[3])


def _second(value: int) -> Any:
    """The condition that a prefix has two bytes, of which the first is `value`."""
    return (SUMS.c.prefix > bytes([value])) & (SUMS.c.prefix <= bytes([value, 255]))


def _bounds(of: Range) -> tuple[bytes, bytes | None]:
    """The first key of a range, and the first key after it; None where there is none."""
    size = (of.bits + 7) // 8
    wide = 8 * size - of.bits
    low = (of.value << wide).to_bytes(size, "big") if size else b""
    after = (of.value + 1) << wide
    return low, None if after >= 1 << (8 * size) else after.to_bytes(size, "big")

"""The summary of a place that a store keeps beside its keys, as reconciliation reads it.

For the first two, three and four hex digits of a key, the count and the sum of the items stand in a row, where there
is any. A trigger notes which four digits a change touched; whoever looks makes these anew. Two equal sets are found
equal by 256 rows; what differs is followed down, row by row.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import delete, func, select

from models.memorystore.columns import bytes_of, micros_of
from models.memorystore.store import Place, Store
from models.memorystore.tables import MEMORIES, STALE, SUMS
from relay.manifest import ITEM, Range, Sum, added, digest

DIGIT = 4  # bits
LEVELS = (2, 3, 4)  # digits
FEW = 4  # stale ranges of the same first two digits that are read one by one
AT_ONCE = 32  # of these two digits that are made anew in one transaction
NOTHING = Sum(0, 0)
Listed = tuple[bytes, bytes, int, int]


class StoredSums:
    """`relay.reconcile.Summary` over a store. What was read stays read: a session looks at one moment of the set."""

    def __init__(self, store: Store, place: Place) -> None:
        self._store = store
        self._place = place
        self._fresh = False
        self._known: dict[
            str, Mapping[str, Sum]
        ] = {}  # by what the prefixes begin with, and their number of digits

    def sums(self, of: Range, deeper: int) -> Sequence[Sum]:
        """The sums of the 2^`deeper` children of a range."""
        bits, first = of.bits + deeper, of.value << deeper
        return [self._sum(Range(bits, value)) for value in range(first, first + (1 << deeper))]

    def items(self, of: Range) -> Sequence[bytes]:
        """The items of a range in the order of their keys."""
        with self._store.reading():
            return [ITEM.pack(*one) for one in self._listed(*_bounds(of))]

    def _sum(self, of: Range) -> Sum:
        if not self._fresh:
            self._renew()
            self._fresh = True
        digits = next(level for level in LEVELS if DIGIT * level >= of.bits)
        wide = DIGIT * digits - of.bits
        first = of.value << wide
        return added(self._row(f"{value:0{digits}X}") for value in range(first, first + (1 << wide)))

    def _row(self, prefix: str) -> Sum:
        # The first two levels are small enough to be read whole; of the last, what begins with the same three digits.
        begins = prefix[:3] if len(prefix) == LEVELS[-1] else ""
        name = f"{begins}:{len(prefix)}"
        if name not in self._known:
            with self._store.reading():
                self._known[name] = self._under(begins, len(prefix))
        return self._known[name].get(prefix, NOTHING)

    def _under(self, begins: str, digits: int) -> dict[str, Sum]:
        rows = select(SUMS.c.prefix, SUMS.c["items"], SUMS.c.total).where(
            self._store.mine(SUMS, self._place),
            SUMS.c.prefix >= begins,
            SUMS.c.prefix < f"{begins}G",
            func.length(SUMS.c.prefix) == digits,
        )
        found = self._store.db.execute(rows)
        return {prefix: Sum(items, int.from_bytes(total, "big")) for prefix, items, total in found}

    def _renew(self) -> None:
        """Makes anew what changes have left stale, those that begin alike at a time."""
        stale: dict[str, list[str]] = defaultdict(list)
        rows = select(STALE.c.prefix).where(self._store.mine(STALE, self._place)).order_by(STALE.c.prefix)
        with self._store.reading() as db:
            for (prefix,) in db.execute(rows):
                stale[prefix[: LEVELS[0]]].append(prefix)
        some = list(stale.items())
        for at in range(0, len(some), AT_ONCE):
            with self._store.phase("summed"):
                for begins, prefixes in some[at : at + AT_ONCE]:
                    self._make(begins, prefixes)

    def _make(self, begins: str, prefixes: Sequence[str]) -> None:
        sums: dict[bytes, list[int]] = {bytes.fromhex(prefix): [0, 0] for prefix in prefixes}
        few = len(prefixes) <= FEW
        for one in prefixes if few else [begins]:
            bounds = _bounds(Range(DIGIT * len(one), int(one, 16)))
            for item in self._listed(*bounds, among=() if few else list(sums)):
                held = sums[item[0][:2]]
                held[0] += 1
                held[1] += digest(ITEM.pack(*item))
        self._write({prefix.hex().upper(): added([Sum(*held)]) for prefix, held in sums.items()})
        for level in LEVELS[-2::-1]:
            above: dict[str, list[Sum]] = {prefix[:level]: [] for prefix in prefixes}
            for prefix, each in self._under(begins, level + 1).items():
                if prefix[:level] in above:
                    above[prefix[:level]].append(each)
            self._write({prefix: added(every) for prefix, every in above.items()})
        done = STALE.c.prefix.in_(prefixes)
        self._store.db.execute(delete(STALE).where(self._store.mine(STALE, self._place), done))

    def _write(self, sums: Mapping[str, Sum]) -> None:
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
        if none:
            mine = self._store.mine(SUMS, self._place)
            self._store.db.execute(delete(SUMS).where(mine, SUMS.c.prefix.in_(none)))
        if rows:
            new = self._store.insert(SUMS)
            both = {"items": new.excluded["items"], "total": new.excluded.total}
            same = ["principal_id", "workspace", "dataset", "prefix"]
            self._store.db.execute(new.on_conflict_do_update(same, set_=both), rows)

    def _listed(self, low: bytes, high: bytes | None, among: Sequence[bytes] = ()) -> Iterator[Listed]:
        # Times as the numbers that they are on the wire, and ids as their bytes: a million rows pass here.
        facts = MEMORIES.c
        rows: Any = select(
            facts.key, bytes_of(facts.logical_id), micros_of(facts.made_at), micros_of(facts.recorded_at)
        ).where(self._store.mine(MEMORIES, self._place), facts.key >= low)
        if high is not None:
            rows = rows.where(facts.key < high)
        if among:
            rows = rows.where(func.substr(facts.key, 1, 2).in_(among))
        rows = rows.order_by(facts.key).execution_options(yield_per=1000)
        yield from (tuple(row) for row in self._store.db.execute(rows))


def _bounds(of: Range) -> tuple[bytes, bytes | None]:
    """The first key of a range, and the first key after it; None where there is none."""
    size = (of.bits + 7) // 8
    wide = 8 * size - of.bits
    low = (of.value << wide).to_bytes(size, "big") if size else b""
    after = (of.value + 1) << wide
    return low, None if after >= 1 << (8 * size) else after.to_bytes(size, "big")

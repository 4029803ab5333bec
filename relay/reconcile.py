"""Which items of two sets differ, found by comparing sums of ranges of keys and never by listing equal parts. PURE.

Source: PRODUCT.md 5, "manifests cost by difference"; 4.4, First source. The scheme is range-based set
reconciliation (A. Meyer, 2023) over sums that a store keeps beside its keys.

| record | says | is answered by |
|---|---|---|
| Sums | a fingerprint for each child of a range | where a child differs: Sums deeper down, Names, or Items and `rest` |
| Names | short names of all my items in a small range | Items that you lack, and the names of those that I lack |
| Items | items in full, which lists their keys | the items it asks for by name; all of the range when it says `rest` |

The two sides take turns; a turn without a record ends it. Fingerprints and names are keyed by the session, so that
nobody can prepare two sets that look equal. Where nearly every small range differs, names would only be added to
what is sent anyway, so ranges go whole: never more than two full manifests and 2 %.

A store may change meanwhile: what then looks different is listed once too often, or found at the next sync.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import ceil, log2
from struct import Struct
from typing import Protocol

from relay.manifest import (
    EVERYTHING,
    ITEM,
    KEPT,
    SHORT,
    STEP,
    Faulty,
    Items,
    Names,
    Range,
    Record,
    Sum,
    Sums,
    check,
    children,
    cut,
    prefix,
    summed,
)

SMALL = 48  # items up to which a range is settled by names
AIMED = 16  # items that a split aims at
WHOLE = 0.9  # of the small ranges differ: then they go whole
RUN = 512  # items in one record
TURNS = 24  # that a session takes at most: six are usual
_SIGNED = Struct(">BQQ32s")  # bits, value, count, total: what a fingerprint signs


class Summary(Protocol):
    """What a store tells about its set. Both are reads."""

    def sums(self, of: Range, deeper: int) -> Sequence[Sum]:
        """The sums of the 2^`deeper` children of a range, in order; `of.bits + deeper` is at most KEPT."""

    def items(self, of: Range) -> Sequence[bytes]:
        """The items of a range in the order of their keys, ITEM.size bytes each; ranges asked for are small."""


class Reconciliation:
    """One side's part. `listed` is told the items in full that the other side sends, as they come.

    `begin` is the first turn of the side that opens; then each side `take`s the other's records, in as many portions
    as it likes, and `answer`s once the turn is over.
    """

    def __init__(
        self,
        summary: Summary,
        session_key: bytes,
        listed: Callable[[Sequence[bytes]], None],
        told: Callable[[Sequence[bytes]], None],
    ) -> None:
        """`told` is called with the items that we list to the other side: the keys that it may name."""
        self._summary = summary
        self._key = session_key
        self._listed = listed
        self._told = told
        self._sums: list[Sums] = []
        self._asks: list[Names | Items] = []
        self._turns = 0

    def begin(self) -> Iterator[Record]:
        """The first turn: one record, under a kilobyte, which is all that equal sets cost."""
        (whole,) = self._summary.sums(EVERYTHING, 0)
        yield self._split(EVERYTHING, whole.items) if whole.items > SMALL else self._as_one(EVERYTHING, whole)

    def take(self, records: Iterable[Record]) -> None:
        """Takes some of the other side's records. Raises Faulty."""
        for record in records:
            check(record)
            if isinstance(record, Sums):
                self._sums.append(record)
                continue
            if isinstance(record, Items):
                if record.items:
                    self._listed(cut(record.items, ITEM.size))
                if not (record.wanted or record.rest):
                    continue
                record = Items(record.of, b"", record.wanted, record.rest)
            self._asks.append(record)

    def answer(self) -> Iterator[Record]:
        """Our turn, once theirs is over. It yields nothing when there is nothing left to ask or to tell.

        Raises Faulty when the two have taken more turns than honest sides need.
        """
        self._turns += 1
        if self._turns > TURNS:
            raise Faulty("the manifests come to no end")
        sums, asks = self._sums, self._asks
        self._sums, self._asks = [], []
        yield from self._deeper(sums)
        for ask in asks:
            if isinstance(ask, Names):
                yield from self._compared(ask)
            elif ask.rest:
                yield from self._everything(ask.of)
            else:
                yield from self._wanted(ask)

    def _deeper(self, told: Sequence[Sums]) -> Iterator[Record]:
        small = 0
        differing: list[tuple[Range, int]] = []
        for one in told:
            for child, mine, theirs in zip(
                children(one.of, one.deeper),
                self._sums_of(one.of, one.deeper),
                cut(one.prints, SHORT),
                strict=True,
            ):
                same = self._print(child, mine) == theirs
                small += mine.items <= SMALL
                if same:
                    continue
                if mine.items > SMALL:
                    yield self._split(child, mine.items)
                else:
                    differing.append((child, mine.items))
        if len(differing) < WHOLE * small:
            for child, _ in differing:
                yield Names(child, b"".join(map(self._name, self._summary.items(child))))
        else:
            for child in _merged(differing):
                yield self._tell(child, self._summary.items(child), rest=True)

    def _compared(self, told: Names) -> Iterator[Record]:
        left = set(cut(told.names, SHORT))
        if not left:
            yield from self._everything(told.of)
            return
        for place, items in self._runs(told.of):
            named = {self._name(item): item for item in items}
            lacking = [item for name, item in named.items() if name not in left]
            left -= named.keys()
            if place == told.of:  # it came in one run, as such ranges do
                if lacking or left:
                    yield self._tell(place, lacking, b"".join(sorted(left)))
                return
            if lacking:
                yield self._tell(place, lacking)
        if left:
            yield Items(told.of, b"", b"".join(sorted(left)))

    def _wanted(self, ask: Items) -> Iterator[Record]:
        names = set(cut(ask.wanted, SHORT))
        for place, items in self._runs(ask.of):
            asked = [item for item in items if self._name(item) in names]
            if asked:
                yield self._tell(place, asked)

    def _everything(self, of: Range) -> Iterator[Record]:
        for place, items in self._runs(of):
            if items:
                yield self._tell(place, items)

    def _runs(self, of: Range) -> Iterator[tuple[Range, Sequence[bytes]]]:
        """The items of a range in runs of about RUN, each with the range that it is all or a part of."""
        if of.bits < KEPT:
            (whole,) = self._summary.sums(of, 0)
            if whole.items > RUN:
                for child in children(of, min(STEP, KEPT - of.bits)):
                    yield from self._runs(child)
                return
        items = self._summary.items(of)
        if len(items) <= RUN:
            yield of, items
            return
        for child in children(of, 1):  # beyond the sums that are kept
            yield child, [item for item in items if prefix(item, child.bits) == child.value]

    def _tell(self, of: Range, items: Sequence[bytes], wanted: bytes = b"", *, rest: bool = False) -> Items:
        if items:
            self._told(items)
        return Items(of, b"".join(items), wanted, rest)

    def _split(self, of: Range, count: int) -> Sums:
        deeper = min(STEP, max(1, ceil(log2(count / AIMED))))
        if of.bits < KEPT:
            deeper = min(deeper, KEPT - of.bits)
        sums = zip(children(of, deeper), self._sums_of(of, deeper), strict=True)
        return Sums(of, deeper, b"".join(self._print(child, each) for child, each in sums))

    def _as_one(self, of: Range, whole: Sum) -> Sums:
        return Sums(of, 0, self._print(of, whole))

    def _sums_of(self, of: Range, deeper: int) -> Sequence[Sum]:
        if of.bits + deeper <= KEPT:
            return self._summary.sums(of, deeper)
        parts: list[list[bytes]] = [[] for _ in range(1 << deeper)]
        for item in self._summary.items(of):
            parts[prefix(item, of.bits + deeper) & ((1 << deeper) - 1)].append(item)
        return [summed(items) for items in parts]

    def _print(self, of: Range, whole: Sum) -> bytes:
        signed = _SIGNED.pack(of.bits, of.value, whole.items, whole.total.to_bytes(32, "big"))
        return hmac.digest(self._key, signed, "sha256")[:SHORT]

    def _name(self, item: bytes) -> bytes:
        return hmac.digest(self._key, item, "sha256")[:SHORT]


def _merged(ranges: Sequence[tuple[Range, int]]) -> Iterator[Range]:
    """The same ranges, each with how many items it has: halves of one are put together while they fit one record."""
    waiting: dict[Range, int] = {}
    for of, count in ranges:
        while of.bits:
            sibling = Range(of.bits, of.value ^ 1)
            if sibling not in waiting or waiting[sibling] + count > RUN:
                break
            count += waiting.pop(sibling)
            of = Range(of.bits - 1, of.value >> 1)
        waiting[of] = count
    yield from waiting

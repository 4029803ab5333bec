"""What a manifest says: items, ranges of them, and the records that two sides exchange about these. PURE.

An item is what a manifest says of one memory, 64 bytes: key (32), logical ID (16), time of first making and
`recorded_at` (8 each, microseconds since 1970). A range is the items whose keys begin with the same bits.
`relay/reconcile.py` says which record answers which.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from struct import Struct
from typing import NamedTuple

ITEM = Struct(">32s16sqq")  # key, logical ID, made_at, recorded_at
SHORT = 8  # bytes of a fingerprint and of a short name
STEP = 6  # bits by which a range is split at most
KEPT = 16  # bits of prefix down to which a store keeps sums
_MODULUS = 1 << 256


class Sum(NamedTuple):
    """Of a range: how many items it has, and the sum of their digests modulo 2^256."""

    items: int
    total: int


class Range(NamedTuple):
    """All items whose keys begin with the `bits` bits of `value`; (0, 0) is the whole set."""

    bits: int
    value: int


EVERYTHING = Range(0, 0)


@dataclass(frozen=True, slots=True)
class Sums:
    """Fingerprints of the 2^`deeper` children of a range, in order, SHORT bytes each."""

    of: Range
    deeper: int
    prints: bytes


@dataclass(frozen=True, slots=True)
class Names:
    """Short names of all items of a range, SHORT bytes each."""

    of: Range
    names: bytes


@dataclass(frozen=True, slots=True)
class Items:
    """Items in full, ITEM.size bytes each; the short names of those wanted back, or `rest`: all of the range."""

    of: Range
    items: bytes
    wanted: bytes = b""
    rest: bool = False


Record = Sums | Names | Items


class Faulty(Exception):
    """The peer said what no honest peer says. The session ends; nothing was changed."""


def digest(item: bytes) -> int:
    """What one item adds to the sum of its ranges."""
    return int.from_bytes(sha256(item).digest(), "big")


def summed(items: Iterable[bytes]) -> Sum:
    """The sum of some items."""
    digests = [digest(item) for item in items]
    return Sum(len(digests), sum(digests) % _MODULUS)


def added(sums: Iterable[Sum]) -> Sum:
    """The sum of ranges that share no item."""
    count = total = 0
    for each in sums:
        count += each.items
        total += each.total
    return Sum(count, total % _MODULUS)


def prefix(key: bytes, bits: int) -> int:
    """The first `bits` bits of a key, as a number."""
    return int.from_bytes(key[:8], "big") >> (64 - bits)


def children(of: Range, deeper: int) -> Iterator[Range]:
    """The 2^`deeper` parts of a range, in order."""
    first = of.value << deeper
    return (Range(of.bits + deeper, value) for value in range(first, first + (1 << deeper)))


def cut(packed: bytes, size: int) -> Sequence[bytes]:
    """Packed values of one size, one by one."""
    return [packed[at : at + size] for at in range(0, len(packed), size)]


def check(record: Record) -> None:
    """Raises Faulty for what no honest side says."""
    bits, value = record.of
    if not 0 <= bits <= 64 or not 0 <= value < 1 << bits:
        raise Faulty("a range that cannot be")
    if isinstance(record, Sums):
        if not 0 <= record.deeper <= STEP or bits + record.deeper > 64:
            raise Faulty("a range is split too far")
        if len(record.prints) != SHORT << record.deeper:
            raise Faulty("fingerprints that do not fit their range")
    elif isinstance(record, Names):
        if len(record.names) % SHORT:
            raise Faulty("a short name that is cut off")
    else:
        if len(record.items) % ITEM.size or len(record.wanted) % SHORT:
            raise Faulty("an item that is cut off")
        if any(prefix(item, bits) != value for item in cut(record.items, ITEM.size)):
            raise Faulty("an item outside its range")

"""The wire: what two paired devices say to each other, as bytes and back. PURE.

A frame is one byte of kind and a msgpack array of a fixed shape; lists inside are packed blobs, so that a parser
never holds much more than the frame. What does not fit its shape to the last byte is refused as a whole: `decode`
gives a value or raises BadFrame, and nothing else.

| kind | frame | says |
|---|---|---|
| 1 | Hello | version, capabilities, clock, directions, workspaces |
| 2 | Manifest | records of a reconciliation (`relay/reconcile.py`); `last` ends a turn |
| 3 | Marks | of logical IDs that the other listed: where they went, and when |
| 4 | Deletions | of keys that the other listed: those deleted here and not held again, with their times |
| 5 | Wanted | a bit for each item that the other listed, in its order: 1 where it shall be sent |
| 6 | Data | a part of a stream of memories |
| 7 | Report | what this side took, removed and refused, dataset by dataset |
| 8 | Bye | why this side ends the session before its report |
| 32 to 47 | (kept free) | a mailbox for devices that are never awake together |

Times are microseconds since 1970, in UTC, from 0 to the end of the year 9999. Source: PRODUCT.md 5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from struct import Struct
from typing import Any, NamedTuple

from relay.fields import BLOB, FAULTS, LATEST, Fields, pack
from relay.manifest import SHORT, Items, Names, Range, Record, Sums

VERSION = 1
FRAME_MAX = 65_000  # bytes: what fits one encrypted message
RECORDS = 900  # in one frame
COUNT_MAX = 2**40  # of memories that a report tells of

_PAIR = Struct(">32sQ")  # key, time


class BadFrame(Exception):
    """A frame that is none of ours. `code` is `too_large`, `unknown_kind` or `malformed`."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class Place(NamedTuple):
    """A workspace and a dataset: where a key names a memory."""

    workspace: str
    dataset: str


@dataclass(frozen=True, slots=True)
class Hello:
    """What a side is and wants; `sends` and `receives` are its own copy of the pairing. `clock` is its time."""

    version: int
    capabilities: tuple[str, ...]
    clock: int
    device: bytes
    sends: bool
    receives: bool
    workspaces: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Manifest:
    place: Place
    records: tuple[Record, ...]
    last: bool


class Marked(NamedTuple):
    """The mark of a logical ID (`models/marks.py`); a time of 0 is a half that was never set."""

    logical_id: bytes
    redacted_at: int
    placed_at: int
    workspace: str | None


@dataclass(frozen=True, slots=True)
class Marks:
    place: Place
    marks: tuple[Marked, ...]
    last: bool


class Deletion(NamedTuple):
    """A key and the time of its deletion."""

    key: bytes
    at: int


@dataclass(frozen=True, slots=True)
class Deletions:
    place: Place
    deletions: tuple[Deletion, ...]
    last: bool


@dataclass(frozen=True, slots=True)
class Wanted:
    place: Place
    bits: bytes
    last: bool


@dataclass(frozen=True, slots=True)
class Data:
    place: Place
    part: bytes
    last: bool


class Refused(NamedTuple):
    """How many deletions were refused, and why: too_many, clock, direction, future."""

    keys: int
    reason: str


class Told(NamedTuple):
    """What a report says of one place."""

    place: Place
    received: int
    deleted: int
    refused: tuple[Refused, ...]


@dataclass(frozen=True, slots=True)
class Report:
    told: tuple[Told, ...]


@dataclass(frozen=True, slots=True)
class Bye:
    code: str


Frame = Hello | Manifest | Marks | Deletions | Wanted | Data | Report | Bye


def encode(frame: Frame) -> bytes:
    """The bytes of a frame. Whoever makes frames keeps them within FRAME_MAX: see `portions` and `relay/stream.py`."""
    kind, fields = _WRITERS[type(frame)](frame)
    raw = bytes([kind]) + pack(fields)
    if len(raw) > FRAME_MAX:
        raise ValueError("a frame of ours is too large")
    return raw


def decode(raw: bytes) -> Frame:
    """The frame that some bytes are. Raises BadFrame."""
    if len(raw) > FRAME_MAX:
        raise BadFrame("too_large")
    if not raw or raw[0] not in _READERS:
        raise BadFrame("unknown_kind")
    try:
        return _READERS[raw[0]](Fields(memoryview(raw)[1:]))
    except FAULTS:
        raise BadFrame("malformed") from None


def portions(records: Iterable[Record]) -> Iterator[tuple[tuple[Record, ...], bool]]:
    """Records in portions that fit a frame each, with whether it is the last of them; at least one, maybe empty."""
    portion: list[Record] = []
    used = 0
    for record in records:
        weight = 24 + sum(len(blob) for blob in _blobs(record))
        if used + weight > BLOB or len(portion) == RECORDS:
            yield tuple(portion), False
            portion, used = [], 0
        portion.append(record)
        used += weight
    yield tuple(portion), True


def _blobs(record: Record) -> tuple[bytes, ...]:
    match record:
        case Sums():
            return (record.prints,)
        case Names():
            return (record.names,)
        case Items():
            return (record.items, record.wanted)


def _records_out(records: Iterable[Record]) -> list[tuple[Any, ...]]:
    kinds = {Sums: 1, Names: 2, Items: 3}
    return [(kinds[type(one)], *one.of, _extra(one), *_blobs(one)) for one in records]


def _extra(record: Record) -> int:
    return record.deeper if isinstance(record, Sums) else int(getattr(record, "rest", False))


def _record(fields: Fields) -> Record:
    kind, of, extra = fields.number(3), Range(fields.number(64), fields.number(2**64 - 1)), fields.number(64)
    record: Record
    if kind == 1:
        record = Sums(of, extra, fields.blob(each=SHORT))
    elif kind == 2 and not extra:
        record = Names(of, fields.blob(each=SHORT))
    elif kind == 3 and extra < 2:
        record = Items(of, fields.blob(), fields.blob(each=SHORT), rest=bool(extra))
    else:
        raise ValueError("no record of ours")
    return record


def _hello(fields: Fields) -> Hello:
    return Hello(
        fields.number(65_535), fields.names(), fields.time(), fields.exactly(16), fields.truth(), fields.truth(),
        fields.names(),
    )  # fmt: skip


def _place(fields: Fields) -> Place:
    return Place(fields.words(), fields.words())


def _mark(fields: Fields) -> Marked:
    return Marked(fields.exactly(16), fields.time(), fields.time(), fields.words(empty=True) or None)


def _deletions(fields: Fields) -> Deletions:
    place, packed, last = _place(fields), fields.blob(each=_PAIR.size), fields.truth()
    pairs = tuple(Deletion(*pair) for pair in _PAIR.iter_unpack(packed))
    if any(pair.at > LATEST for pair in pairs):
        raise ValueError("a time out of its bounds")
    return Deletions(place, pairs, last)


def _told(fields: Fields) -> Told:
    return Told(_place(fields), fields.number(COUNT_MAX), fields.number(COUNT_MAX), fields.each(_refused))


def _refused(fields: Fields) -> Refused:
    return Refused(fields.number(COUNT_MAX), fields.words(40))


def _whole(read: Callable[[Fields], Frame]) -> Callable[[Fields], Frame]:
    def all_of_it(fields: Fields) -> Frame:
        frame = read(fields)
        fields.end()
        return frame

    return all_of_it


_READERS: dict[int, Callable[[Fields], Frame]] = {
    1: _whole(_hello),
    2: _whole(lambda f: Manifest(_place(f), f.each(_record), f.truth())),
    3: _whole(lambda f: Marks(_place(f), f.each(_mark), f.truth())),
    4: _whole(_deletions),
    5: _whole(lambda f: Wanted(_place(f), f.blob(), f.truth())),
    6: _whole(lambda f: Data(_place(f), f.blob(), f.truth())),
    7: _whole(lambda f: Report(f.each(_told))),
    8: _whole(lambda f: Bye(f.words(40))),
}

_WRITERS: dict[type, Callable[[Any], tuple[int, tuple[Any, ...]]]] = {
    Hello: lambda f: (1, (f.version, f.capabilities, f.clock, f.device, f.sends, f.receives, f.workspaces)),
    Manifest: lambda f: (2, (*f.place, _records_out(f.records), f.last)),
    Marks: lambda f: (3, (*f.place, [(*m[:3], m.workspace or "") for m in f.marks], f.last)),
    Deletions: lambda f: (4, (*f.place, b"".join(_PAIR.pack(*pair) for pair in f.deletions), f.last)),
    Wanted: lambda f: (5, (*f.place, f.bits, f.last)),
    Data: lambda f: (6, (*f.place, f.part, f.last)),
    Report: lambda f: (7, ([(*t.place, t.received, t.deleted, t.refused) for t in f.told],)),
    Bye: lambda f: (8, (f.code,)),
}

"""The wire: what goes out comes back, and whatever else comes in is refused (PRODUCT.md 5, 9)."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import msgpack
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from relay.fields import BLOB, LATEST, LIST_MAX, NAME_BYTES
from relay.frames import (
    FRAME_MAX,
    RECORDS,
    BadFrame,
    Bye,
    Data,
    Deletion,
    Deletions,
    Frame,
    Hello,
    Manifest,
    Marked,
    Marks,
    Place,
    Refused,
    Report,
    Told,
    Wanted,
    decode,
    encode,
    portions,
)
from relay.manifest import ITEM, SHORT, Items, Names, Range, Record, Sums

names = st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=NAME_BYTES // 4
)
times = st.integers(0, LATEST)
places = st.builds(Place, names, names)
ids = st.binary(min_size=16, max_size=16)
ranges = st.builds(Range, st.integers(0, 64), st.integers(0, 2**64 - 1))
counts = st.integers(0, 2**40)


def blobs(each: int, most: int = 20) -> st.SearchStrategy[bytes]:
    return st.integers(0, most).flatmap(lambda n: st.binary(min_size=each * n, max_size=each * n))


records = st.one_of(
    st.builds(Sums, ranges, st.integers(0, 6), blobs(SHORT)),
    st.builds(Names, ranges, blobs(SHORT)),
    st.builds(Items, ranges, blobs(ITEM.size), blobs(SHORT), st.booleans()),
)
frames = st.one_of(
    st.builds(
        Hello, st.integers(0, 65_535), st.lists(names, max_size=5).map(tuple), times, ids, st.booleans(),
        st.booleans(), st.lists(names, max_size=5).map(tuple),
    ),
    st.builds(Manifest, places, st.lists(records, max_size=8).map(tuple), st.booleans()),
    st.builds(
        Marks, places, st.lists(st.builds(Marked, ids, times, times, st.none() | names), max_size=8).map(tuple),
        st.booleans(),
    ),
    st.builds(
        Deletions, places,
        st.lists(st.builds(Deletion, st.binary(min_size=32, max_size=32), times), max_size=8).map(tuple), st.booleans(),
    ),
    st.builds(Wanted, places, st.binary(max_size=50), st.booleans()),
    st.builds(Data, places, st.binary(max_size=50), st.booleans()),
    st.builds(
        Report,
        st.lists(
            st.builds(
                Told, places, counts, counts,
                st.lists(st.builds(Refused, counts, st.sampled_from(["too_many", "clock"])), max_size=3).map(tuple),
            ),
            max_size=3,
        ).map(tuple),
    ),
    st.builds(Bye, st.sampled_from(["done", "malformed", "revoked"])),
)  # fmt: skip


@given(frames)
def test_a_frame_comes_back_as_it_went(frame: Frame) -> None:
    assert decode(encode(frame)) == frame


CODES = {code: code for code in ("too_large", "unknown_kind", "malformed")}


def outcome(raw: bytes) -> Frame | str:
    try:
        return decode(raw)
    except BadFrame as fault:
        return CODES[fault.code]


@given(st.binary(max_size=300))
@example(b"")
@example(bytes([1]))
@example(bytes([2]) + b"\x91" * 60_000)
@example(bytes([2]) + b"\xdf\xff\xff\xff\xff")
@example(bytes([4]) + b"\xc6\xff\xff\xff\xff")
@example(bytes([8]) + b"\xd9\x02\xc3\x28")
@example(bytes([8]) + b"\x91\xa0")
@example(bytes([8]) + b"\x91\xa1\x00")
@example(bytes([8]) + b"\x91\xa1a" + b"\0")
@example(bytes([32]) + b"\x91\xa1a")
@example(bytes(FRAME_MAX + 1))
def test_any_bytes_are_a_frame_or_refused_with_a_code(raw: bytes) -> None:
    outcome(raw)


@given(frames, st.data())
def test_a_frame_that_was_tampered_with_is_a_frame_or_refused(frame: Frame, data: st.DataObject) -> None:
    raw = bytearray(encode(frame))
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    outcome(bytes(raw))


@given(frames, st.data())
def test_a_frame_that_is_cut_or_goes_on_is_refused(frame: Frame, data: st.DataObject) -> None:
    raw = encode(frame)
    assert outcome(raw[: data.draw(st.integers(0, len(raw) - 1))]) in {"malformed", "unknown_kind"}
    assert outcome(raw + data.draw(st.binary(min_size=1, max_size=5))) == "malformed"


HELLO: list[Any] = [1, ["deletions"], 0, bytes(16), True, True, ["default"]]


@pytest.mark.parametrize(
    "change",
    [
        lambda f: f.__setitem__(0, -1), lambda f: f.__setitem__(0, 65_536), lambda f: f.__setitem__(0, 1.0),
        lambda f: f.__setitem__(0, True), lambda f: f.__setitem__(1, "deletions"),
        lambda f: f.__setitem__(1, [b"deletions"]), lambda f: f.__setitem__(2, 2**63),
        lambda f: f.__setitem__(2, LATEST + 1), lambda f: f.__setitem__(3, bytes(15)),
        lambda f: f.__setitem__(3, "x" * 16), lambda f: f.__setitem__(4, 1), lambda f: f.__setitem__(6, ["a\0b"]),
        lambda f: f.__setitem__(6, [""]), lambda f: f.__setitem__(6, ["x" * (NAME_BYTES + 1)]),
        lambda f: f.__setitem__(6, ["x"] * (LIST_MAX + 1)), lambda f: f.__setitem__(6, {"a": 1}),
        lambda f: f.pop(), lambda f: f.append(1),
    ],
)  # fmt: skip
def test_a_field_of_another_type_or_beyond_its_bounds_is_refused(change: Callable[[list[Any]], Any]) -> None:
    fields = [*HELLO]
    assert isinstance(decode(bytes([1]) + msgpack.packb(fields)), Hello)
    change(fields)
    assert outcome(bytes([1]) + msgpack.packb(fields)) == "malformed"


@pytest.mark.parametrize("size", [31, 33, 39, 41])
def test_a_key_that_is_not_thirty_two_bytes_is_refused(size: int) -> None:
    assert outcome(bytes([4]) + msgpack.packb(["default", "memories", bytes(size), True])) == "malformed"


def test_a_time_of_the_far_future_is_refused() -> None:
    pair = bytes(32) + (2**63).to_bytes(8, "big")
    assert outcome(bytes([4]) + msgpack.packb(["default", "memories", pair, True])) == "malformed"


def test_portions_of_records_fit_a_frame_each_and_none_is_lost() -> None:
    place = Place("w" * NAME_BYTES, "d" * NAME_BYTES)
    many: list[Record] = [Names(Range(16, number), b"") for number in range(3 * RECORDS)]
    many += [Names(Range(16, number), bytes(SHORT * 48)) for number in range(1_000)]
    many += [Items(Range(16, 1), bytes(ITEM.size * 512))] * 5
    out: list[Record] = []
    cut = list(portions(many))
    for portion, last in cut:
        frame = decode(encode(Manifest(place, portion, last)))
        assert isinstance(frame, Manifest)
        out += frame.records
    assert out == many
    assert [last for _, last in cut] == [False] * (len(cut) - 1) + [True]
    assert list(portions([])) == [((), True)]


UNPACKER = 48 * 1024  # bytes that msgpack's own state takes, whatever it reads


def test_reading_a_frame_holds_no_more_than_twice_the_frame() -> None:
    hostile = [
        bytes([kind]) + filler * ((FRAME_MAX - 1) // len(filler))
        for kind in range(1, 9)
        for filler in (
            b"\x90",
            b"\x91",
            b"\xc0",
            b"\x9f",
            b"\xdc\xff\xff",
            b"\xdd\xff\xff\xff\xff",
            b"\xc4\x00",
        )
    ]
    hostile += [bytes([2]) + b"\xdc\x03\xe8" + b"\xdc\x03\xe8" + b"\x90" * (FRAME_MAX - 7)]
    hostile += [encode(Data(Place("a", "b"), bytes(BLOB), last=True))]
    for raw in hostile:
        tracemalloc.start()
        outcome(raw)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak <= 2 * FRAME_MAX + UNPACKER, raw[:8]


def test_a_frame_of_ours_that_would_not_fit_is_our_own_fault() -> None:
    with pytest.raises(ValueError, match="too large"):
        encode(Data(Place("a", "b"), bytes(FRAME_MAX), last=True))

"""Memories as one stream of bytes, cut anywhere (PRODUCT.md 5; FAULTS.md D64)."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.fields import BLOB
from relay.frames import BadFrame
from relay.stream import TEXT_MAX, Body, Stream, streamed

texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)
bodies = st.lists(
    st.builds(
        Body,
        st.binary(min_size=32, max_size=32),
        st.binary(min_size=16, max_size=16),
        st.binary(min_size=16, max_size=16),
        st.integers(0, 2**50),
        st.integers(0, 2**50),
        texts,
        texts,
    ),
    max_size=20,
)


def body(text: str) -> Body:
    return Body(bytes(32), bytes(16), bytes(16), 1, 2, "typed", text)


@given(bodies, st.lists(st.integers(0, 4_000), max_size=20))
def test_what_was_sent_comes_out_wherever_the_stream_is_cut(sent: list[Body], cuts: list[int]) -> None:
    whole = b"".join(streamed(sent))
    edges = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    stream = Stream()
    out: list[Body] = []
    for start, end in pairwise(edges):
        out += stream.take(whole[start:end], last=False)
    assert out + stream.take(b"", last=True) == sent


@pytest.mark.parametrize("size", [1, BLOB - 100, BLOB, 64_999, 65_000, 65_001, 65_519, 65_520, 300_000])
def test_texts_of_any_length_are_cut_into_parts_that_fit_a_frame(size: int) -> None:
    parts = list(streamed([body("x" * size), body("y")]))
    assert max(map(len, parts)) <= BLOB
    stream = Stream()
    out = [each for part in parts for each in stream.take(part, last=False)]
    assert [len(each.text) for each in out] == [size, 1]


def test_an_empty_stream_has_one_empty_part() -> None:
    assert list(streamed([])) == [b""]
    assert Stream().take(b"", last=True) == []


@given(st.binary(max_size=200))
def test_any_bytes_are_memories_or_refused(raw: bytes) -> None:
    with suppress(BadFrame):
        Stream().take(raw, last=True)


def test_a_stream_that_ends_within_a_memory_is_refused() -> None:
    whole = b"".join(streamed([body("text")]))
    with pytest.raises(BadFrame):
        Stream().take(whole[:-1], last=True)


def test_a_memory_that_says_it_is_larger_than_any_is_refused_before_it_comes() -> None:
    with pytest.raises(BadFrame) as fault:
        Stream().take((TEXT_MAX + BLOB + 1).to_bytes(4, "big"), last=False)
    assert fault.value.code == "too_large"


@pytest.mark.parametrize(
    ("at", "value"),
    [
        (0, bytes(31)), (0, bytes(33)), (1, bytes(15)), (2, "x" * 16), (3, -1), (4, 2**63), (5, ""), (6, ""),
        (6, "a\0b"), (6, b"x"),
    ],
)  # fmt: skip
def test_a_field_that_does_not_fit_is_refused(at: int, value: object) -> None:
    fields: list[object] = [*body("text")]
    fields[at] = value
    packed = msgpack.packb(fields)
    with pytest.raises(BadFrame):
        Stream().take(len(packed).to_bytes(4, "big") + packed, last=True)

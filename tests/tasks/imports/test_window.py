"""window: where a value ends, whatever the pieces in which it comes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.imports.window import Damaged, Scanner, Window
from tests.tasks.imports.exports import stream

JSON = st.recursive(
    st.none() | st.integers() | st.text(st.sampled_from('ab"\\{}[],: \n😀')),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text('a"\\{'), inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(JSON, max_size=3) | st.dictionaries(st.text(), JSON, max_size=3), st.integers(1, 9))
def test_the_end_of_a_value_is_found_in_pieces_of_any_size(value: object, size: int) -> None:
    raw = json.dumps(value).encode()
    window = Window(stream(raw + b', {"next": 1}', size))
    scanner = Scanner()
    assert scanner.run(window) == "complete"
    assert bytes(window.data[: scanner.position]) == raw


@given(JSON.map(lambda value: [value]), st.integers(1, 9))
def test_a_value_that_is_passed_over_leaves_the_window_behind_it(value: object, size: int) -> None:
    raw = json.dumps(value).encode()
    window = Window(stream(raw + b"rest", size))
    assert window.more()
    assert Scanner().skip(window)
    assert window.passed == len(raw)
    while window.more():
        pass
    assert window.data == b"rest"


@pytest.mark.parametrize("cut", [b"[", b'{"a', b'{"a\\', b'["a", {', b'"abc', b"[[[]]"])
def test_a_value_that_never_ends_is_cut(cut: bytes) -> None:
    for size in (1, 100):
        assert Scanner().run(Window(stream(cut, size))) == "cut"
        window = Window(stream(cut, size))
        assert not Scanner().skip(window)
        assert window.passed == len(cut)


def test_a_value_over_the_limit_is_large_and_reads_no_further() -> None:
    window = Window(stream(b"[" + b" " * 1000, 10))
    assert Scanner().run(window, limit=50) == "large"
    assert len(window.data) <= 70


def test_levels_are_counted() -> None:
    scanner = Scanner()
    scanner.run(Window(stream(b'[{"a": [1, "[[[["]}, {}]')))
    assert scanner.deepest == 3


def test_a_damaged_stream_ends_with_its_reason() -> None:
    def read(size: int) -> bytes:
        raise Damaged("the archive is damaged here")

    window = Window(read)
    assert window.byte() is None
    assert window.fault == "the archive is damaged here"
    assert not window.more()

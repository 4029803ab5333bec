"""decoding: strings that can be stored, and how many characters that took."""

import json

import pytest

from tasks.imports.decoding import Undecodable, decode, decode_inner


def test_plain_json_comes_as_it_is() -> None:
    value = {"a": [1, 2.5, None, True, "ü😀"], "b": {}}
    for ascii_only in (True, False):
        decoded = decode(json.dumps(value, ensure_ascii=ascii_only).encode())
        assert (decoded.value, decoded.replaced) == (value, 0)


def test_nul_and_lone_surrogates_are_replaced_and_counted_in_keys_too() -> None:
    decoded = decode(rb'{"a\u0000b": ["\ud83d", "\ude00x", "\ud83d\ude00"], "c": "\u0000\u0000"}')
    assert decoded.value == {"a�b": ["�", "�x", "😀"], "c": "��"}
    assert decoded.replaced == 5


def test_bytes_that_are_no_utf8_are_replaced_and_counted() -> None:
    decoded = decode(b'{"a": "caf\xe9 \xef\xbf\xbd", "b": "\x00"}')
    assert decoded.value == {"a": "caf� �", "b": "�"}
    assert decoded.replaced == 2


def test_raw_line_breaks_within_strings_are_let_through() -> None:
    assert decode(b'["a\nb\tc"]').value == ["a\nb\tc"]


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        b"{",
        b'{"a": }',
        b'["x",]',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"[" + b"9" * 5000 + b"]",
        b"\xff\xfe",
    ],
)
def test_what_is_no_json_says_so_without_its_text(broken: bytes) -> None:
    with pytest.raises(Undecodable, match=r"valid JSON|nested deeper|too long"):
        decode(broken)


def test_json_within_a_string_is_unwrapped_when_it_is_an_object_or_a_list() -> None:
    inner = decode_inner('{"city": "Par\\u0000is"}')
    assert inner is not None
    assert (inner.value, inner.replaced) == ({"city": "Par�is"}, 1)
    assert [decode_inner(other) for other in ("print(1)", "{broken", "[" * 300 + "]" * 300, '"text"')] == [
        None
    ] * 4

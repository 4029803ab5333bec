"""items: what is broken in a stream costs only itself (FAULTS S77)."""

import itertools
import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.imports import items as module
from tasks.imports.items import CUT, DEEP, Item, Items
from tasks.imports.parsed import Broken
from tasks.imports.window import Damaged, Window
from tests.tasks.imports.exports import dumped, stream


def fits(value: Any) -> bool:
    return isinstance(value, dict) and "mapping" in value


def split(raw: bytes, size: int = 1 << 20) -> list[Item | Broken]:
    return list(Items(Window(stream(raw, size)), itertools.count(1), fits))


def conversation(number: int, **fields: Any) -> dict[str, Any]:
    return {"title": f"t{number}", "mapping": {"a": {"title": "nested", "text": 'br{ck"t]'}}, **fields}


def shown(found: list[Item | Broken]) -> list[Any]:
    """A whole item as its title, a broken one as None."""
    return [
        each.value.get("title") if isinstance(each, Item) and fits(each.value) else None for each in found
    ]


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_a_list_gives_its_items_in_pieces_of_any_size(size: int, indent: int | None) -> None:
    raw = json.dumps([conversation(n) for n in range(5)], indent=indent).encode()
    found = split(b"\xef\xbb\xbf \n" + raw + b"\n", size)
    assert [(each.number, each.value) for each in found if isinstance(each, Item)] == [
        (n + 1, conversation(n)) for n in range(5)
    ]


@pytest.mark.parametrize("size", [1, 1 << 20])
def test_one_object_objects_in_a_row_and_objects_a_line_are_told_apart(size: int) -> None:
    pretty = json.dumps(conversation(1), indent=2).encode()
    small = json.dumps(conversation(1)).encode()
    assert shown(split(pretty, size)) == shown(split(small, size)) == ["t1"]
    assert shown(split(pretty + b"\n" + pretty, size)) == ["t1", "t1"]
    assert shown(split(small + small, size)) == ["t1", "t1"]
    lines = b"\n".join(json.dumps(conversation(n)).encode() for n in range(4))
    assert (
        shown(split(lines, size))
        == shown(split(lines.replace(b"\n", b",\r\n\n"), size))
        == ["t0", "t1", "t2", "t3"]
    )


@pytest.mark.parametrize("break_at", [0, 3, 7])
def test_a_broken_line_costs_only_itself(break_at: int) -> None:
    lines = [json.dumps(conversation(n, id=f"c{n}")).encode() for n in range(8)]
    lines[break_at] = lines[break_at][:-3] if break_at else lines[0].replace(b": {", b": [", 1)
    found = split(b"\n".join(lines) + b"\n")
    assert shown(found) == [None if n == break_at else f"t{n}" for n in range(8)]


BREAKS = {
    "a comma too many inside": lambda raw: raw[:-1] + b",}",
    "a word that is none": lambda raw: raw.replace(b'"nested"', b"nested"),
    "a closing brace too few": lambda raw: raw[:-1],
    "two closing braces too few": lambda raw: raw[:-2],
    "an opening bracket too many": lambda raw: raw.replace(b'"mapping": {', b'"mapping": [{'),
    "a closing bracket too many": lambda raw: raw[:-1] + b"]}",
    "a quotation mark too few": lambda raw: raw.replace(b'nested"', b"nested"),
    "a quotation mark too many": lambda raw: raw.replace(b'nested"', b'nes"ted"'),
    "the first quotation mark gone": lambda raw: raw.replace(b'{"title', b"{title", 1),
    "only a word": lambda raw: b"oops",
    "nothing but null": lambda raw: b"null",
}


@pytest.mark.parametrize("kind", list(BREAKS))
@pytest.mark.parametrize("place", [1, 50, 99])
def test_one_broken_conversation_in_a_hundred_leaves_ninety_nine(kind: str, place: int) -> None:
    raws = [json.dumps(conversation(n)).encode() for n in range(100)]
    raws[place] = BREAKS[kind](raws[place])
    found = split(b"[" + b", ".join(raws) + b"]")
    whole = [title for title in shown(found) if title]
    assert whole == [f"t{n}" for n in range(100) if n != place]
    assert len(found) == 100


def test_a_first_conversation_that_is_broken_costs_only_itself() -> None:
    raws = [json.dumps(conversation(n)).encode() for n in range(5)]
    assert shown(split(b"[" + b",".join([raws[0][:-1], *raws[1:]]) + b"]")) == [None, "t1", "t2", "t3", "t4"]


def test_fields_that_a_brace_too_many_cut_off_are_no_conversations() -> None:
    torn = b'{"title": "t1"}, "mapping": {"a": {}}, "id": "x", "n": 5}'
    for raws in ([conversation(0), torn, conversation(2)], [conversation(0), torn]):
        raw = b",".join(each if isinstance(each, bytes) else json.dumps(each).encode() for each in raws)
        assert shown(split(b"[" + raw + b"]")) == ["t0", None, "t2"][: len(raws)]


def test_a_trailing_comma_is_no_conversation() -> None:
    assert shown(split(dumped(conversation(1))[:-1] + b", ]")) == ["t1"]
    assert split(b"[]") == split(b"[ , ]") == []


def test_a_broken_conversation_is_named_by_what_its_head_shows() -> None:
    found = split(b'[{"title": "Pasta", "id": "c1", "mapping": {,}}, {"x": }]')
    assert [each.conversation for each in found if isinstance(each, Broken)] == [
        "Pasta (c1)",
        "conversation 2",
    ]
    assert all("valid JSON" in each.reason for each in found if isinstance(each, Broken))


def test_a_file_that_is_cut_keeps_what_came_before() -> None:
    raw = dumped(*(conversation(n) for n in range(3)))
    inside = split(raw[:-20])
    assert shown(inside) == ["t0", "t1", None]
    assert inside[2] == Broken("t2", CUT)
    between = split(raw[:-1])
    assert shown(between) == ["t0", "t1", "t2", None]
    assert between[3] == Broken("the end of the file", "the file ends before its list does")
    assert split(json.dumps(conversation(1)).encode() + b'\n{"title": "t2", "map')[1] == Broken("t2", CUT)


def test_a_stream_that_is_damaged_keeps_what_came_before() -> None:
    raw = dumped(*(conversation(n) for n in range(3)))
    pieces = iter((raw[:-20],))

    def read(size: int) -> bytes:
        for piece in pieces:
            return piece
        raise Damaged("the archive is damaged here")

    found = list(Items(Window(read), itertools.count(1), fits))
    assert shown(found) == ["t0", "t1", None, None]
    assert found[3] == Broken("the rest of the file", "the archive is damaged here")


def test_levels_over_the_bound_are_reported() -> None:
    deep = b'{"title": "deep", "mapping": ' + b"[" * 10_000 + b"]" * 10_000 + b"}"
    for raw in (b"[" + deep + b"]", deep, deep + b"\n" + deep):
        found = split(raw)
        assert {each.reason for each in found if isinstance(each, Broken)} == {DEEP}
        assert shown(found) == [None] * len(found)


def test_a_conversation_over_the_bound_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ITEM", 2000)
    monkeypatch.setattr(module.Scanner.run, "__defaults__", (2000,))
    big = json.dumps(conversation(1, pad="x" * 100_000)).encode()
    small = json.dumps(conversation(2)).encode()
    for size in (100, 1 << 20):
        for raw in (b"[" + big + b"," + small + b"]", small + b"\n" + big + b"\n" + small):
            found = split(raw, size)
            if size == 100 or b"\n" in raw:
                assert [each.reason for each in found if isinstance(each, Broken)] == [module.LARGE]
            assert shown(found)[-1] == "t2"


def test_looking_for_the_next_conversation_has_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_RECOVERY", 1_000_000)
    began = time.perf_counter()
    assert shown(split(b"[" + b'{"title":"' * 200_000)) == [None]
    assert shown(split(b"[" + b'{"title":' * 200_000)) == [None]
    small = json.dumps(conversation(1)).encode()
    swallowing = split(b"[" + (b'{"x":[' + small + b",") * 20_000)
    assert 2 < len(swallowing) < 2000
    assert time.perf_counter() - began < 20


@given(st.binary(max_size=200) | st.text('[]{}",:\\ \n1a').map(str.encode), st.integers(1, 64))
def test_any_bytes_give_items_and_broken_ones_and_end(raw: bytes, size: int) -> None:
    for found in split(raw, size):
        assert isinstance(found, Item | Broken)


@given(st.integers(0, 2000), st.sampled_from(['"', "{", "}", "[", "]", ",", "\\", "x", ""]))
def test_any_character_changed_costs_at_most_its_own_conversation(place: int, other: str) -> None:
    raws = [json.dumps(conversation(n)).encode() for n in range(9)]
    victim = raws[4]
    at = place % len(victim)
    raws[4] = victim[:at] + other.encode() + victim[at + 1 :]
    whole = [title for title in shown(split(b"[" + b", ".join(raws) + b"]")) if title]
    assert [title for title in whole if title in {f"t{n}" for n in range(9) if n != 4}] == [
        f"t{n}" for n in range(9) if n != 4
    ]

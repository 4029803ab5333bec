"""Pairing codes: made of chance, read as people type, and blind to the relay (PRODUCT.md 5, Pairing; FAULTS.md D63)."""

from __future__ import annotations

import math
import re
from itertools import combinations

import jellyfish
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.errors import Invalid
from relay.codes import (
    CHANCE_BYTES,
    DEVICE,
    HOME,
    SECRET_WORDS,
    Code,
    check_words,
    free_nameplate,
    made,
    read,
    room,
)
from relay.codewords import NUMBERS, WORDS

codes = st.builds(made, st.integers(10, 10**9 - 1), st.binary(min_size=CHANCE_BYTES, max_size=32))

# -- the words -----------------------------------------------------------------------------------------------


def test_three_words_are_thirty_one_bits_and_two_check_words_are_twenty() -> None:
    assert SECRET_WORDS * math.log2(len(WORDS)) >= 31
    assert 2 * math.log2(len(WORDS)) >= 20
    assert len(NUMBERS) == len(WORDS)


def test_each_word_is_short_plain_and_begins_like_no_other() -> None:
    assert all(re.fullmatch("[a-z]{4,8}", word) for word in WORDS)
    assert len({word[:4] for word in WORDS}) == len(WORDS)
    assert list(WORDS) == sorted(WORDS)


def test_no_two_words_sound_alike() -> None:
    assert len({jellyfish.metaphone(word) for word in WORDS}) == len(WORDS)


def test_no_slip_of_a_finger_makes_one_word_another() -> None:
    """One letter wrong, left out, put in, or two swapped."""
    close = [
        (one, other)
        for one, other in combinations(WORDS, 2)
        if abs(len(one) - len(other)) < 2 and jellyfish.damerau_levenshtein_distance(one, other) < 2
    ]
    assert close == []


# -- made and read -------------------------------------------------------------------------------------------


def test_a_code_is_a_number_and_three_words() -> None:
    assert made(47, bytes(16)).text == "-".join(["47", *[WORDS[0]] * 3])
    assert re.fullmatch(r"47(-[a-z]{4,8}){3}", made(47, bytes(range(16))).text)


def test_each_word_of_a_code_is_as_likely_as_any_other() -> None:
    seen = {made(10, number.to_bytes(16, "big")).words[0] for number in range(len(WORDS))}
    assert seen == set(WORDS)
    places = [made(10, (len(WORDS) ** place).to_bytes(16, "big")).words for place in range(SECRET_WORDS)]
    assert [words.index(WORDS[1]) for words in places] == [0, 1, 2]


def test_too_little_chance_makes_no_code() -> None:
    with pytest.raises(ValueError, match="too little chance"):
        made(10, bytes(CHANCE_BYTES - 1))


@given(codes)
def test_what_is_shown_is_what_is_read(code: Code) -> None:
    assert read(code.text) == code


@given(
    codes,
    st.lists(
        st.sampled_from([" ", "-", "  ", "\t", "\n", "–", "_", ".", " - ", "\u00a0"]), min_size=5, max_size=5
    ),
)
def test_case_blanks_and_dashes_are_forgiven(code: Code, between: list[str]) -> None:
    parts = [str(code.nameplate), *(word.upper() for word in code.words)]
    typed = between[4] + "".join(part + gap for part, gap in zip(parts, between, strict=False))
    assert read(typed) == code
    assert read(typed.title()) == code


def test_digits_and_letters_of_a_wide_keyboard_are_read() -> None:
    code = made(47, bytes(16))
    wide = "".join(chr(ord(c) + 0xFEE0) if c != "-" else "－" for c in code.text)
    assert read(wide) == code


def test_an_unknown_word_is_named_with_the_one_that_was_meant() -> None:
    with pytest.raises(Invalid) as refused:
        read("47-zodiac-accorn-yacht")
    assert "'accorn'" in refused.value.detail
    assert "'acorn'" in refused.value.detail
    assert refused.value.details["field"] == "code"
    assert "zodiac" not in refused.value.detail


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("", "three words"), ("   ", "three words"), ("47", "three words"), ("47-acorn-acorn", "three words"),
        ("47-acorn-acorn-acorn-acorn", "three words"), ("acorn-acorn-acorn-acorn", "'acorn' is none"),
        ("7-acorn-acorn-acorn", "'7' is none"), ("047-acorn-acorn-acorn", "'047' is none"),
        ("1234567890-acorn-acorn-acorn", "is none"), ("47-acorn-acorn-\0", "three words"),
        ("47-acorn-acorn-" + "x" * 300, "three words"), ("٤٧-acorn-acorn-acorn", "is none"),
        ("47-acorn-acorn-\ud800", "three words"),
    ],
)  # fmt: skip
def test_anything_else_is_refused_with_a_reason(typed: str, says: str) -> None:
    with pytest.raises(Invalid) as refused:
        read(typed)
    assert says in refused.value.detail


@given(st.text(max_size=60))
def test_whatever_is_typed_is_a_code_or_refused(typed: str) -> None:
    with pytest.raises(Invalid):
        read(typed)


# -- nameplates ----------------------------------------------------------------------------------------------


def test_nameplates_have_two_digits_until_a_tenth_is_taken() -> None:
    assert free_nameplate([], bytes(16)) == 10
    assert free_nameplate(range(10, 19), (80).to_bytes(16, "big")) == 99
    assert free_nameplate(range(10, 20), bytes(16)) == 100
    assert free_nameplate(range(10, 1000), bytes(16)) == 1000


@given(st.sets(st.integers(10, 99), max_size=9), st.binary(min_size=16, max_size=16))
def test_a_nameplate_is_free_and_any_of_the_free_ones(taken: set[int], chance: bytes) -> None:
    assert free_nameplate(taken, chance) in set(range(10, 100)) - taken
    drawn = {free_nameplate(taken, number.to_bytes(16, "big")) for number in range(90)}
    assert drawn == set(range(10, 100)) - taken


# -- what others see -----------------------------------------------------------------------------------------


def test_a_room_tells_kinds_servers_and_nameplates_apart_and_knows_no_word() -> None:
    rooms = {
        room(kind, host, number) for kind in (HOME, DEVICE) for host in ("a", "b") for number in (10, 11)
    }
    assert len(rooms) == 8
    assert all(len(one) == 32 for one in rooms)


def test_check_words_are_two_words_of_the_hash() -> None:
    shown = check_words(bytes(32)).split()
    assert len(shown) == 2
    assert set(shown) <= set(WORDS)
    assert len({check_words(bytes([number]) * 32) for number in range(200)}) == 200

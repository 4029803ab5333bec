"""Cursors: what was written is read by whom it was given to; nothing else ever is (FAULTS.md S53, S58)."""

from __future__ import annotations

import string
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.cursor import Position, read, signing_key, write
from models.errors import InvalidCursor
from models.ids import new_id

KEY = signing_key("a secret of at least thirty-two characters")
ALICE, BOB = new_id(), new_id()
HERE = Position(datetime(2026, 11, 30, 12, 0, 0, 123457, tzinfo=UTC), new_id())
CURSOR = write(HERE, ALICE, KEY)
ALPHABET = string.ascii_letters + string.digits + "-_+/=. \n\0é"


@given(st.datetimes(datetime(1970, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC)), st.uuids())
def test_a_position_comes_back_to_the_microsecond(at: datetime, identity: object) -> None:
    position = Position(at, str(identity))
    assert read(write(position, ALICE, KEY), ALICE, KEY) == position


def test_neighbouring_microseconds_are_different_cursors() -> None:
    next_one = Position(HERE.updated_at + timedelta(microseconds=1), HERE.id)
    assert write(next_one, ALICE, KEY) != CURSOR


def test_a_cursor_says_nothing_readable_and_fits_a_url() -> None:
    assert set(CURSOR) <= set(string.ascii_letters + string.digits + "-_")
    assert HERE.id not in CURSOR


def test_another_principals_and_another_installations_cursor_is_refused() -> None:
    for principal, key in ((BOB, KEY), ("", KEY), (ALICE, signing_key("another secret of 32 characters!!!"))):
        with pytest.raises(InvalidCursor):
            read(CURSOR, principal, key)


def test_every_change_of_a_single_character_is_refused() -> None:
    for place in range(len(CURSOR)):
        for other in ALPHABET:
            changed = CURSOR[:place] + other + CURSOR[place + 1 :]
            if changed != CURSOR:
                with pytest.raises(InvalidCursor):
                    read(changed, ALICE, KEY)


def test_every_cut_and_every_addition_is_refused() -> None:
    cut = [CURSOR[:length] for length in range(len(CURSOR))] + [
        CURSOR[start:] for start in range(1, len(CURSOR))
    ]
    added = [place + CURSOR for place in ALPHABET] + [CURSOR + place for place in ALPHABET] + [CURSOR * 2]
    for changed in (*cut, *added):
        with pytest.raises(InvalidCursor):
            read(changed, ALICE, KEY)


@pytest.mark.parametrize(
    "text",
    ["", " ", "null", "1", "x" * 10_000, "é" * 55, "\ud800", "\0", "=" * 55, "-" * 55, "A" * 55, "A" * 56],
)
def test_what_was_never_a_cursor_is_refused(text: str) -> None:
    with pytest.raises(InvalidCursor):
        read(text, ALICE, KEY)


@given(st.text(max_size=80) | st.binary(min_size=41, max_size=42).map(lambda raw: raw.hex()))
def test_no_other_text_is_ever_taken_for_one(text: str) -> None:
    with pytest.raises(InvalidCursor):
        read(text, ALICE, KEY)

"""The rules that need no database: titles first, then leases, activity, back-off and the comparison of times."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Literal
from unicodedata import normalize

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from models import rules
from models.rules import TICK, title_of

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
FAMILY = "👨‍👩‍👧‍👦"  # seven code points, one cluster
FLAG = "🇨🇭"
HIDING = set("\u200b\u2060\ufeff\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
moments = st.datetimes(datetime(1950, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))
clusters = st.sampled_from([FAMILY, FLAG, "e\u0301", "क्षि", "😀", "a", " ", "\u202e", "\u200b", "\n", "가"])
texts = st.one_of(st.text(max_size=200), st.lists(clusters, max_size=90).map("".join))


def boundaries(text: str) -> set[int]:
    """Where a grapheme cluster of `text` ends."""
    return {match.end() for match in regex.finditer(r"\X", text)}


# -- titles (ADR-0050 decision 1; FAULTS.md S71 to S75) ------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "title"),
    [
        ("Hello there", "Hello there"),
        ("  Hello\t\tthere \r\n friend\u00a0\u2003! ", "Hello there friend !"),
        ("e\u0301te\u0301", "\u00e9t\u00e9"),
        ("x" * 64, "x" * 64),
        ("x" * 65, "x" * 64),
        ("word " * 20, ("word " * 20)[:64].rstrip()),
    ],
)
def test_a_title_is_the_normalized_prefix_of_the_text(content: str, title: str) -> None:
    assert title_of(content) == title


@pytest.mark.parametrize(
    ("content", "title"),
    [
        ("a" * 63 + "😀", "a" * 63 + "😀"),
        ("a" * 64 + "😀", "a" * 64),
        ("😀" * 70, "😀" * 64),
        (FAMILY * 12, FAMILY * 9),
        ("a" * 60 + FAMILY, "a" * 60),
        (FLAG * 40, FLAG * 32),
        ("a" + FLAG * 40, "a" + FLAG * 31),
        ("q\u0301" * 100, "q\u0301" * 32),
        ("a" + "q\u0301" * 100, "a" + "q\u0301" * 31),
        ("a" * 62 + "क्षि", "a" * 62),
        ("a" * 63 + "\r\nb", "a" * 63),
        ("a" * 62 + "👍🏽", "a" * 62 + "👍🏽"),
        ("a" * 63 + "👍🏽", "a" * 63),
    ],
)
def test_a_title_is_never_cut_inside_a_character_that_a_reader_sees(content: str, title: str) -> None:
    assert title_of(content) == title


@pytest.mark.parametrize(
    ("content", "title"),
    [
        ([{"type": "image", "data": "data:image/png;base64,AAAA"}, {"type": "text", "text": "look"}], "look"),
        ([{"type": "image", "data": "data:image/png;base64,AAAA"}], ""),
        ([{"type": "text", "text": " \n"}, {"type": "text", "text": "second"}], "second"),
        ([{"type": "text", "text": "\u202e\u200b"}, {"type": "text", "text": "seen"}], "seen"),
        ([{"type": "file", "name": "a.pdf", "text": "not a text block"}], ""),
        (
            [{"type": "text"}, {"type": "text", "text": 7}, "loose", None, {"type": "text", "text": "ok"}],
            "ok",
        ),
        ([], ""),
        (None, ""),
        (42, ""),
        ({"type": "text", "text": "no list"}, ""),
    ],
)
def test_a_title_comes_from_the_first_text_block_that_is_not_empty(content: object, title: str) -> None:
    assert title_of(content) == title


@pytest.mark.parametrize(
    ("content", "title"),
    [
        ("\u202egnp.exe", "gnp.exe"),
        ("a\u2066b\u2067c\u2068d\u2069e\u061cf\u200eg\u200fh", "abcdefgh"),
        ("nul\0 esc\x1b[31m del\x7f c1\x85next", "nul esc[31m del c1 next"),
        ("zero\u200bwidth\ufeff \u2060word", "zerowidth word"),
        ("a \u202e b", "a b"),
        ('<script>alert("1\' & 2")</script>', '<script>alert("1\' & 2")</script>'),
        ("lone \ud83d surrogate", "lone surrogate"),
        (" \t\r\n\u00a0\u2028\u3000", ""),
        ("\u202e\u2066\u200b", ""),
        ("می\u200cخواهم", "می\u200cخواهم"),
    ],
)
def test_a_title_neither_hides_nor_reorders_anything(content: str, title: str) -> None:
    assert title_of(content) == title


def test_a_first_cluster_longer_than_a_title_gives_none_of_it() -> None:
    assert title_of("a" + "\u0301" * 100) == ""


@given(texts)
def test_every_title_keeps_every_promise(text: str) -> None:
    title = title_of(text)
    assert len(title) <= 64
    assert title == unicodedata.normalize("NFC", title)
    assert not any(unicodedata.category(c) in {"Cc", "Cs"} for c in title)
    assert not set(title) & set(
        "\u200b\u2060\ufeff\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    )
    assert title == " ".join(title.split())
    assert title_of(title) == title
    whole = rules._normalized(text)
    assert whole.startswith(title)
    assert not title or len(title) in boundaries(whole) or whole[len(title)] == " "


# -- leases, activity ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "given_"), [(60, 60), (5, 5), (4, 5), (0, 5), (-1, 5), (300, 300), (301, 300)]
)
def test_a_lease_is_held_between_five_seconds_and_five_minutes(asked: int, given_: int) -> None:
    assert rules.lease_end(NOW, asked) == NOW + timedelta(seconds=given_)


def test_a_lease_is_over_at_its_end_and_not_a_tick_before() -> None:
    assert rules.lease_over(NOW, NOW)
    assert rules.lease_over(NOW + TICK, NOW)
    assert not rules.lease_over(NOW - TICK, NOW)


@given(moments, moments, moments)
def test_activity_never_goes_backwards_nor_past_now_nor_before_1970(
    held: datetime, at: datetime, now: datetime
) -> None:
    now = max(now, rules.EARLIEST)
    moved = rules.activity(held, at, now)
    assert moved >= held
    assert moved in (held, rules.clamped(at, now))
    assert rules.EARLIEST <= rules.clamped(at, now) <= now


# -- back-off ------------------------------------------------------------------------------------------------


@given(st.integers(1, 10**6), st.floats(0, 1, exclude_max=True))
def test_a_wait_is_never_nothing_and_never_over_an_hour(attempts: int, chance: float) -> None:
    assert timedelta(seconds=2.5) <= rules.backoff(attempts, chance) <= timedelta(hours=1)


def test_waits_double_from_five_seconds_up_to_the_cap() -> None:
    waits = [rules.backoff(attempts, 0.5).total_seconds() for attempts in range(1, 30)]
    assert waits[:4] == [5, 10, 20, 40]
    assert all(shorter <= longer for shorter, longer in pairwise(waits))
    assert waits[-1] == waits[-2] == 2400


@pytest.mark.parametrize("attempts", [1, 5, 12, 1000])
def test_waits_are_spread_from_half_to_one_and_a_half_at_the_cap_too(attempts: int) -> None:
    middle = rules.backoff(attempts, 0.5)
    assert rules.backoff(attempts, 0.0) == middle * 0.5
    assert rules.backoff(attempts, 0.999999) == pytest.approx(middle * 1.5, rel=1e-5)


# -- deletions and copies (ADR 0176; PRODUCT.md 4.4, Time) ---------------------------------------------------


@given(moments, moments)
def test_a_new_deletion_dominates_the_newest_copy_whatever_the_clock_says(
    now: datetime, copy: datetime
) -> None:
    at = rules.deletion_time(now, copy)
    assert at >= now
    assert at > copy
    assert rules.dominates(at, copy)
    assert at in (now, copy + TICK)


def test_a_deletion_without_a_copy_is_stamped_now() -> None:
    assert rules.deletion_time(NOW, None) == NOW


@given(moments, st.none() | moments, st.none() | moments)
def test_a_copy_made_again_is_past_the_deletion_and_never_older_than_the_held_one(
    now: datetime, deletion: datetime | None, held: datetime | None
) -> None:
    at = rules.copy_time(now, deletion, held)
    assert at >= now
    assert deletion is None or not rules.dominates(deletion, at)
    assert held is None or at >= held
    assert at in (now, held, deletion + TICK if deletion is not None else None)


def test_at_equal_times_the_deletion_wins() -> None:
    assert rules.dominates(NOW, NOW)
    assert rules.dominates(NOW + TICK, NOW)
    assert not rules.dominates(NOW, NOW + TICK)


@pytest.mark.parametrize(
    "text",
    [
        "a" + "\u0301\u0316" * 500_000,
        "\u0301\u0316" * 500_000,
        "\u200b" * 1_000_000,
        " \n" * 500_000,
        "a " * 500_000,
    ],
    ids=["marks on a letter", "marks alone", "nothing to be seen", "blanks", "letters"],
)
def test_no_more_of_a_long_text_is_normalized_than_a_title_needs(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """Normalizing 600 kB of combining marks took half a minute, and the process with it."""
    normalized: list[str] = []

    def spy(form: Literal["NFC"], given: str) -> str:
        normalized.append(given)
        return normalize(form, given)

    monkeypatch.setattr(rules.unicodedata, "normalize", spy)
    assert len(title_of(text)) <= rules.TITLE_LENGTH
    (given,) = normalized
    assert sum(unicodedata.combining(character) > 0 for character in given) <= 1_024


def test_what_is_not_seen_does_not_use_a_title_up() -> None:
    assert title_of("\u200b" * 5_000 + " \0" * 5_000 + "Hello" + "\t" * 5_000 + "there") == "Hello there"
    assert title_of(" ".join("word" for _ in range(5_000))) == " ".join(["word"] * 13)[:64]


@pytest.mark.parametrize(
    ("going", "size", "spent", "allowed"),
    [
        (200, 200, 0, True),  # up to 200 always
        (201, 300, 0, False),
        (500, 1_000, 0, True),  # FAULTS.md D27: exactly half goes, one more does not
        (501, 1_000, 0, False),
        (501, 1_001, 0, False),
        (0, 0, 0, True),
        (250, 500, 250, False),  # half of what was left, after half went today
        (125, 500, 250, True),
        (126, 500, 250, False),
        (1, 1_000, 1_000, False),  # half of it went today already
    ],
)
def test_one_sync_and_one_day_delete_at_most_half(going: int, size: int, spent: int, allowed: bool) -> None:
    assert rules.within_cap(going, size, spent) is allowed


@given(st.integers(1, 2_000), st.lists(st.integers(0, 2_000), max_size=12))
def test_whatever_is_asked_in_a_day_at_most_half_or_two_hundred_go(size: int, asked: list[int]) -> None:
    spent = 0
    for going in asked:
        if going <= size - spent and rules.within_cap(going, size - spent, spent):
            spent += going
    assert spent <= max(200, size // 2)


def test_a_deletion_is_too_far_ahead_only_past_the_clock_and_past_the_copy() -> None:
    minute, second = timedelta(minutes=1), timedelta(seconds=1)
    ahead = NOW + 5 * minute + TICK
    assert rules.too_far_ahead(ahead, NOW, NOW)
    assert not rules.too_far_ahead(NOW + 5 * minute, NOW, NOW)  # not past the clock's leeway
    assert not rules.too_far_ahead(ahead, NOW, ahead - second)  # our own copy is as far ahead
    assert rules.too_far_ahead(ahead, NOW, ahead - second - TICK)


@pytest.mark.parametrize(
    ("gap", "shown", "waits"),
    [
        (59, False, False),
        (60, False, False),
        (61, True, False),
        (600, True, False),
        (601, True, True),
    ],
)
def test_clocks_apart_are_shown_and_far_apart_deletions_wait(gap: int, shown: bool, waits: bool) -> None:
    """FAULTS.md D42."""
    for sign in (1, -1):
        apart = timedelta(seconds=sign * gap)
        assert (rules.gap_is_shown(apart), rules.deletions_wait(apart)) == (shown, waits)


@pytest.mark.parametrize(
    ("days", "synced_past", "expires"),
    [(179, True, False), (180, True, True), (181, False, False), (399, False, False), (400, False, True)],
)
def test_a_record_is_kept_half_a_year_and_until_all_have_synced_past_it(
    days: int, synced_past: bool, expires: bool
) -> None:
    """FAULTS.md D11, D24."""
    assert rules.record_expires(NOW, NOW + timedelta(days=days), synced_past) is expires

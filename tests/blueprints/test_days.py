"""The reader's calendar."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from flask import Flask

from blueprints import days
from models.listing import Entry

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def entry(at: datetime) -> Entry:
    return Entry("01900000-0000-7000-8000-000000000000", "", at, at, None, None)


def labels(*moments: datetime, now: datetime = NOON, zone: str = "UTC") -> list[tuple[str, int]]:
    ordered = sorted(moments, reverse=True)
    found = days.grouped([entry(at) for at in ordered], now, ZoneInfo(zone))
    return [(group.label, len(group.entries)) for group in found]


def test_each_group_begins_at_a_midnight() -> None:
    midnight = datetime(2026, 11, 30, tzinfo=UTC)
    edges = [midnight - timedelta(days=days) for days in (0, 1, 7, 30)]
    assert labels(*edges) == [("Today", 1), ("Yesterday", 1), ("Previous 7 days", 1), ("Previous 30 days", 1)]
    just_before = [edge - timedelta(microseconds=1) for edge in edges]
    assert labels(*just_before) == [
        ("Yesterday", 1),
        ("Previous 7 days", 1),
        ("Previous 30 days", 1),
        ("October 2026", 1),
    ]


def test_months_follow_one_another_and_empty_ones_are_left_out() -> None:
    moments = [
        datetime(2026, 10, 2, tzinfo=UTC),
        datetime(2026, 8, 31, 23, tzinfo=UTC),
        datetime(1970, 1, 1, tzinfo=UTC),
    ]
    assert labels(*moments) == [("October 2026", 1), ("August 2026", 1), ("January 1970", 1)]


def test_a_moment_in_the_future_is_today() -> None:
    assert labels(NOON + timedelta(days=3)) == [("Today", 1)]


def test_the_zone_decides_the_day() -> None:
    late = datetime(2026, 11, 29, 23, 30, tzinfo=UTC)
    assert labels(late) == [("Yesterday", 1)]
    assert labels(late, zone="Europe/Oslo") == [("Today", 1)]
    assert days.stamp(late, ZoneInfo("Europe/Oslo")) == "2026-11-30 Europe/Oslo"


def test_a_day_that_is_an_hour_short_begins_at_its_own_midnight() -> None:
    now = datetime(2026, 3, 30, 9, 0, tzinfo=UTC)  # the clocks went forward on the 29th
    first = datetime(2026, 3, 28, 23, 0, tzinfo=UTC)
    assert labels(first, now=now, zone="Europe/Oslo") == [("Yesterday", 1)]
    assert labels(first - timedelta(seconds=1), now=now, zone="Europe/Oslo") == [("Previous 7 days", 1)]


def test_no_entries_make_no_groups() -> None:
    assert labels() == []


@pytest.mark.parametrize(
    ("cookie", "known"),
    [
        ("Europe/Oslo", "Europe/Oslo"),
        ("", "UTC"),
        ("../../etc/passwd", "UTC"),
        ("Europe", "UTC"),
        ("/etc/localtime", "UTC"),
        ("Nowhere/Land", "UTC"),
        ("x" * 5000, "UTC"),
        ("\x00", "UTC"),
    ],
)
def test_a_cookie_that_names_no_zone_is_utc(cookie: str, known: str) -> None:
    with Flask(__name__).test_request_context(environ_base={"HTTP_COOKIE": f"tz={cookie}"}):
        assert str(days.zone()) == known


def test_a_moment_is_written_in_words() -> None:
    assert days.dated(NOON, ZoneInfo("Asia/Kathmandu")) == "30 November 2026"
    assert days.written(NOON, ZoneInfo("Asia/Kathmandu")) == "30 November 2026 at 17:45"

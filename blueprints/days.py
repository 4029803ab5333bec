"""The reader's calendar: which zone, which day, which group of the history, and how a moment is written.

The zone is what the browser says in the cookie `tz`; anything that is no zone of the IANA database is read as UTC.
Everything but `zone` is a function of its arguments.

| group | last activity, in the reader's zone |
|---|---|
| Today | on the reader's day, or later (a clock that is behind) |
| Yesterday | on the day before |
| Previous 7 days | 2 to 7 days before |
| Previous 30 days | 8 to 30 days before |
| October 2026 | older: its month |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from flask import request

from models.listing import Entry

COOKIE = "tz"
MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
# Key, heading, and how many days before today the group reaches.
RECENT = (
    ("today", "Today", 0),
    ("yesterday", "Yesterday", 1),
    ("week", "Previous 7 days", 7),
    ("weeks", "Previous 30 days", 30),
)


@dataclass(frozen=True, slots=True)
class Group:
    """A heading of the history and what stands under it; `key` is its stable name in the page."""

    key: str
    label: str
    entries: list[Entry]


def zone() -> tzinfo:
    """The zone of who asks, as their browser told it; UTC until it has."""
    return zone_named(request.cookies.get(COOKIE))


def zone_named(name: str | None) -> tzinfo:
    """The zone of that name; UTC when it is none, or there is none."""
    return _zone(name) if name else UTC


def stamp(now: datetime, reader: tzinfo) -> str:
    """Names what a rendered list's groups depend on: the reader's day and zone, such as "2026-11-30 Europe/Oslo"."""
    return f"{now.astimezone(reader).date()} {reader}"


def grouped(entries: Iterable[Entry], now: datetime, reader: tzinfo) -> list[Group]:
    """The entries, newest first as the index gives them, under their headings. One pass, no copy of an entry."""
    today = now.astimezone(reader).date()
    floors = _floors(today, reader)
    key, label, floor = next(floors)
    groups: list[Group] = []
    for entry in entries:
        at = entry.updated_at
        while at < floor:
            key, label, floor = next(floors)
        if not groups or groups[-1].key != key:
            groups.append(Group(key, label, []))
        groups[-1].entries.append(entry)
    return groups


def written(at: datetime, reader: tzinfo) -> str:
    """A moment in words: "30 November 2026 at 18:05"."""
    local = at.astimezone(reader)
    return f"{local.day} {MONTHS[local.month - 1]} {local.year} at {local:%H:%M}"


def dated(at: datetime, reader: tzinfo) -> str:
    """A moment's day in words: "30 November 2026"."""
    there = at.astimezone(reader)
    return f"{there.day} {MONTHS[there.month - 1]} {there.year}"


def _floors(today: date, reader: tzinfo) -> Iterator[tuple[str, str, datetime]]:
    """Each group with the moment at which it begins, newest group first, without end."""
    for key, label, days in RECENT:
        yield key, label, _begins(today - timedelta(days=days), reader)
    month = (today - timedelta(days=30)).replace(day=1)
    while month.year > 1:
        yield f"{month:%Y-%m}", f"{MONTHS[month.month - 1]} {month.year}", _begins(month, reader)
        month = (month - timedelta(days=1)).replace(day=1)


def _begins(day: date, reader: tzinfo) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=reader).astimezone(UTC)


@lru_cache(maxsize=1)
def _names() -> frozenset[str]:
    return frozenset(available_timezones())


@lru_cache(maxsize=1024)
def _zone(name: str) -> tzinfo:
    # Only names of the list reach ZoneInfo, which reads files by the name it is given.
    return ZoneInfo(name) if name in _names() else UTC

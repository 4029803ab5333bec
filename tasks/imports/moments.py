"""Times as exports write them: seconds, milliseconds, microseconds, nanoseconds, as numbers or text, or ISO 8601.

A number's unit is read off its size: a count of seconds has at most 11 digits until the year 5138. What cannot be
a time (NaN, infinite, negative, beyond the year 9999, any other type) is None, never an error.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
UNITS = ((1e11, 1), (1e14, 1_000), (1e17, 1_000_000), (1e20, 1_000_000_000))
"""Below this number, so many of it make a second."""


def moment(*values: object) -> datetime | None:
    """The first value that can be read as a time, in UTC."""
    for value in values:
        found = _one(value)
        if found is not None:
            return found
    return None


def _one(value: object) -> datetime | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return _counted(value)
    if isinstance(value, str) and 0 < len(value) <= 64:
        return _written(value.strip())
    return None


def _counted(number: int | float) -> datetime | None:
    if isinstance(number, float) and not math.isfinite(number):
        return None
    per_second = next((each for bound, each in UNITS if 0 <= number < bound), None)
    if per_second is None:
        return None
    if isinstance(number, int):
        return EPOCH + timedelta(microseconds=number * 1_000_000 // per_second)
    return EPOCH + timedelta(seconds=number / per_second)


def _written(stamp: str) -> datetime | None:
    try:
        return _counted(float(stamp))
    except ValueError:
        pass
    try:
        found = datetime.fromisoformat(stamp)
        # A time without a zone is taken as UTC: the reader's own zone would make one export two histories.
        found = found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return found if found >= EPOCH else None

"""moments: times as exports write them."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.imports.moments import moment

SUMMER = datetime(2025, 8, 24, 1, 46, 40, 123456, tzinfo=UTC)


@pytest.mark.parametrize(
    "written",
    [
        1756000000.123456,
        "1756000000.123456",
        1756000000123.456,
        1756000000123456,
        1756000000123456000,
        "2025-08-24T01:46:40.123456Z",
        "2025-08-24T01:46:40.123456",
        "2025-08-24T03:46:40.123456+02:00",
        "2025-08-24T01:46:40.1234567Z",
    ],
)
def test_seconds_to_nanoseconds_and_iso_times_are_one_moment(written: object) -> None:
    assert moment(written) == SUMMER


@pytest.mark.parametrize(
    "absurd",
    [
        None, True, "", "soon", [], {}, float("nan"), float("inf"), "nan", "inf", "-1", -1, -0.5, 1e300, 10**400,
        "1e999", "1969-12-31T23:59:59Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "9" * 5000,
    ],
)  # fmt: skip
def test_what_cannot_be_a_time_is_none(absurd: object) -> None:
    assert moment(absurd) is None


def test_the_first_readable_value_counts() -> None:
    assert moment(None, "soon", 1756000000.123456, 5) == SUMMER


@given(st.one_of(st.floats(), st.integers(), st.text(), st.none(), st.booleans()))
def test_any_value_is_a_moment_in_utc_or_none(value: object) -> None:
    found = moment(value)
    assert found is None or (found.tzinfo is UTC and found.year >= 1970)

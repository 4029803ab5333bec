"""Marks carry redactions, moves and what was forgotten after them (PRODUCT.md 4.2)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.marks import Mark, Verdict, joined, verdict
from models.rules import EARLIEST, TICK

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
times = st.integers(0, 4).map(lambda n: EARLIEST if n == 0 else NOW + timedelta(hours=n))
marks = st.builds(Mark, times, times, st.sampled_from([None, "default", "work"]))


@pytest.mark.parametrize(
    ("mark", "recorded_at", "expected"),
    [
        (Mark(), NOW, Verdict.STAYS),
        (Mark(redacted_at=NOW), NOW - TICK, Verdict.REDACTED),
        (Mark(redacted_at=NOW), NOW, Verdict.STAYS),  # the redacted version itself
        (Mark(placed_at=NOW, workspace="work"), NOW, Verdict.ELSEWHERE),
        (Mark(placed_at=NOW, workspace="default"), NOW - HOUR, Verdict.STAYS),
        (Mark(placed_at=NOW, workspace="work"), NOW + TICK, Verdict.STAYS),  # made again after the move
        (Mark(placed_at=NOW), NOW, Verdict.GONE),
        (Mark(placed_at=NOW), NOW + TICK, Verdict.STAYS),  # made again after it was forgotten
        # A move that did not know of the redaction does not save the old words.
        (Mark(redacted_at=NOW, placed_at=NOW + HOUR, workspace="work"), NOW - HOUR, Verdict.REDACTED),
        (Mark(redacted_at=NOW, placed_at=NOW + HOUR, workspace="work"), NOW, Verdict.ELSEWHERE),
    ],
)
def test_what_a_mark_does_to_a_copy(mark: Mark, recorded_at: datetime, expected: Verdict) -> None:
    assert verdict(mark, "default", recorded_at) is expected


@given(marks, marks, marks)
def test_stores_come_to_know_the_same_in_whatever_order_they_meet(one: Mark, two: Mark, three: Mark) -> None:
    assert joined(one, two) == joined(two, one)
    assert joined(joined(one, two), three) == joined(one, joined(two, three))
    assert joined(one, one) == one


def test_at_equal_times_gone_goes_before_a_place() -> None:
    assert joined(Mark(EARLIEST, NOW, "work"), Mark(EARLIEST, NOW, None)).workspace is None

"""Two devices that hold one memory come to hold the same facts of it (PRODUCT.md 4.4, First source)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from models.copies import Copy, merged

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
moments = st.integers(0, 5).map(lambda n: NOW + timedelta(microseconds=n))
copies = st.builds(Copy, moments, st.sampled_from([b"a" * 16, b"b" * 16]), st.sampled_from([b"1" * 16, b"2" * 16]),
                   st.sampled_from(["typed", "conversation"]), moments)  # fmt: skip


def test_a_memory_typed_before_a_session_formed_it_stays_typed_and_takes_the_later_time() -> None:
    typed = Copy(NOW, b"p" * 16, b"1" * 16, "typed", NOW)
    formed = Copy(NOW + timedelta(hours=1), b"h" * 16, b"2" * 16, "conversation", NOW + timedelta(hours=2))
    assert merged(typed, formed) == merged(formed, typed) == typed._replace(recorded_at=formed.recorded_at)


@given(copies, copies, copies)
def test_the_order_of_syncs_does_not_matter_and_twice_is_once(one: Copy, two: Copy, three: Copy) -> None:
    assert merged(one, two) == merged(two, one)
    assert merged(merged(one, two), three) == merged(one, merged(two, three))
    assert merged(one, one) == one
    assert merged(one, two).recorded_at == max(one.recorded_at, two.recorded_at)

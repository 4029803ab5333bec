"""UUIDv7: one kind of id, sorted by time, and what counts as one."""

from __future__ import annotations

import threading
import time
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.ids import is_id, new_id, uuid7


@given(st.integers(0, 2**48 - 1), st.binary(min_size=10, max_size=32))
def test_an_id_is_a_uuid_of_version_seven_that_holds_its_time(milliseconds: int, entropy: bytes) -> None:
    made = uuid7(milliseconds, entropy)
    parsed = UUID(made)
    assert (parsed.version, parsed.variant) == (7, "specified in RFC 4122")
    assert parsed.int >> 80 == milliseconds
    assert made == uuid7(milliseconds, entropy)
    assert is_id(made)


def test_seventy_four_bits_of_the_entropy_are_in_the_id() -> None:
    base = uuid7(0, bytes(10))
    one_bit = {uuid7(0, (1 << (79 - bit)).to_bytes(10, "big")) for bit in range(74)}
    assert len(one_bit | {base}) == 75
    assert uuid7(0, (1).to_bytes(10, "big")) == base  # the 80th bit is spare


@pytest.mark.parametrize(("milliseconds", "entropy"), [(-1, bytes(10)), (2**48, bytes(10)), (0, bytes(9))])
def test_a_time_or_entropy_that_does_not_fit_is_refused(milliseconds: int, entropy: bytes) -> None:
    with pytest.raises(ValueError, match="48 bits"):
        uuid7(milliseconds, entropy)


def test_fresh_ids_differ_and_hold_the_present() -> None:
    before = time.time_ns() // 1_000_000
    made = [new_id() for _ in range(10_000)]
    after = time.time_ns() // 1_000_000
    assert len(set(made)) == len(made)
    assert all(before <= UUID(one).int >> 80 <= after for one in made)


def test_ids_of_one_process_sort_as_they_were_made_also_between_threads() -> None:
    made: list[str] = []
    giving = threading.Lock()

    def make() -> None:
        for _ in range(2_000):
            with giving:
                made.append(new_id())

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(made) == 8_000
    assert made == sorted(made)


def test_a_clock_that_is_set_back_makes_no_id_below_an_earlier_one(monkeypatch: pytest.MonkeyPatch) -> None:
    first = new_id()
    monkeypatch.setattr("models.ids.time.time_ns", lambda: 0)
    assert [first, *sorted(later := [new_id() for _ in range(10)])] == [first, *later]
    assert later[0] > first
    assert len({one[24:] for one in later}) == 10  # the chance in each is its own


FIXED = "01a22ea9-f7b8-71a9-9b42-31c7b995d72c"  # the two processes of a run must agree on the names of tests


@pytest.mark.parametrize(
    "text",
    [
        "", "null", " ", "x" * 36, "-" * 36, FIXED.upper(), FIXED.replace("-", ""), f"{{{FIXED}}}",
        f"urn:uuid:{FIXED}", FIXED + " ", " " + FIXED[1:], FIXED[:-1], FIXED[:-1] + "g",
        FIXED[:-1] + "१", FIXED[:-1] + "\0", None, 7, b"x" * 36, UUID(FIXED), [FIXED],
    ],
)  # fmt: skip
def test_only_the_canonical_text_is_an_id(text: object) -> None:
    assert not is_id(text)

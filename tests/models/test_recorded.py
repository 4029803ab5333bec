"""What is recorded: the table of ADR 0176, line by line (PRODUCT.md 4.2)."""

from __future__ import annotations

import pytest

from models.recorded import RECORDED, Deleting, is_recorded

TABLE = {  # the decision's lines: recorded when this device recorded the memory, and when another did
    Deleting.FORGET: (True, True),
    Deleting.RECORDING: (True, True),
    Deleting.PURGE: (True, True),
    Deleting.CONVERSATION: (True, True),
    Deleting.REPLACED: (True, False),
    Deleting.EMPTIED: (True, False),
    Deleting.PROFILE: (True, False),
    Deleting.FILE_GONE: (False, False),
    Deleting.SCRUB: (False, False),
    Deleting.REDACTION: (False, False),
    Deleting.MOVE: (False, False),
    Deleting.WIPE: (False, False),
    Deleting.WORKSPACE: (False, False),
    Deleting.MIGRATION: (False, False),
}


@pytest.mark.parametrize("why", Deleting)
def test_each_kind_of_deletion_records_what_the_decision_says(why: Deleting) -> None:
    assert (is_recorded(why, own=True), is_recorded(why, own=False)) == TABLE[why]


def test_every_kind_has_its_line_and_an_unknown_one_is_no_default() -> None:
    assert set(RECORDED) == set(Deleting)
    with pytest.raises(KeyError):
        is_recorded("forget", own=True)  # type: ignore[arg-type]

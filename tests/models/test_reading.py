"""Reads of events: in order, bounded by number and by bytes, and nobody else's."""

from __future__ import annotations

import pytest
from sqlalchemy.orm import Session

from models import reading
from models.append import Draft
from models.errors import NotFound
from models.ids import new_id
from tests.cast import Player


def test_a_page_ends_at_its_limit_and_says_whether_there_is_more(alice: Player, db: Session) -> None:
    session_id = alice.converse("a", "b", "c", "d", "e")
    for after, limit, seqs, more in (
        (0, 2, [1, 2], True),
        (2, 3, [3, 4, 5], False),
        (0, 9, [1, 2, 3, 4, 5], False),
        (5, 9, [], False),
    ):
        page = reading.events(db, alice.owner, session_id, after, limit)
        assert ([one.seq for one in page.events], page.more) == (seqs, more)


def test_a_page_ends_after_the_event_that_fills_it_and_is_never_empty(alice: Player, db: Session) -> None:
    session_id = alice.converse()
    alice.say(session_id, *(Draft("note", {"text": "x" * 1000}) for _ in range(5)))
    walked: list[int] = []
    for _ in range(5):
        page = reading.above(db, session_id, walked[-1] if walked else 0, 100, most_bytes=1500)
        walked += [one.seq for one in page.events]
        if not page.more:
            break
        assert len(page.events) == 2
    assert walked == [1, 2, 3, 4, 5]
    assert len(reading.above(db, session_id, 0, 100, most_bytes=1).events) == 1


def test_foreign_missing_and_malformed_are_not_there(alice: Player, bob: Player, db: Session) -> None:
    session_id = alice.converse("Hello")
    run_id = alice.start_run(session_id)
    for wanted in (session_id, new_id(), "x", ""):
        with pytest.raises(NotFound):
            reading.events(db, bob.owner, wanted, 0, 1)
    for wanted in (run_id, new_id(), "x", ""):
        with pytest.raises(NotFound):
            reading.run(db, bob.owner, wanted)
    assert reading.run(db, alice.owner, run_id).id == run_id

"""What a conversation's page reads: pages either way without a gap or a double, and the stamp that tells a change."""

from __future__ import annotations

import pytest
from sqlalchemy.orm import Session

from models import transcript
from models.append import Draft, lock_conversation
from models.runs import request_cancel
from tasks.resources import Resources
from tests.cast import Player
from tests.models.graph import fill


def noted(player: Player, count: int, text: str = "x") -> str:
    """A conversation of so many events."""
    talk = player.converse()
    for start in range(0, count, 1000):
        player.say(talk, *(Draft("note", {"text": text}) for _ in range(min(1000, count - start))))
    return talk


def test_pages_upward_hold_each_event_once(db: Session, alice: Player) -> None:
    talk = noted(alice, 250)
    found = transcript.newest(db, talk)
    seen = [event.seq for event in found.events]
    assert found.after is None
    while found.before is not None:
        found = transcript.below(db, talk, found.before)
        seen = [*(event.seq for event in found.events), *seen]
    assert seen == list(range(1, 251))


def test_pages_downward_hold_each_event_once(db: Session, alice: Player) -> None:
    talk = noted(alice, 250)
    found = transcript.above(db, talk, 0)
    assert found.before is None
    seen = [event.seq for event in found.events]
    while found.after is not None:
        found = transcript.above(db, talk, found.after)
        seen += [event.seq for event in found.events]
    assert seen == list(range(1, 251))


@pytest.mark.parametrize("at", [1, 2, 49, 50, 125, 201, 249, 250])
def test_the_page_around_an_event_holds_it_and_goes_on_both_ways(db: Session, alice: Player, at: int) -> None:
    talk = noted(alice, 250)
    found = transcript.around(db, talk, at)
    here = [event.seq for event in found.events]
    assert at in here
    assert len(here) <= transcript.PAGE
    assert here == list(range(here[0], here[-1] + 1))
    assert found.before == (here[0] if here[0] > 1 else None)
    assert found.after == (here[-1] if here[-1] < 250 else None)


def test_an_event_beyond_the_end_is_answered_with_the_end(db: Session, alice: Player) -> None:
    talk = noted(alice, 80)
    found = transcript.around(db, talk, 5000)
    assert found.events[-1].seq == 80
    assert found.after is None
    assert transcript.above(db, talk, 80).events == []


def test_a_page_is_bounded_by_its_bytes_and_never_empty(db: Session, alice: Player) -> None:
    talk = noted(alice, 5, "y" * 1_500_000)
    found = transcript.newest(db, talk)
    assert [event.seq for event in found.events] == [4, 5]
    assert found.before == 4
    up = transcript.above(db, talk, 0)
    assert [event.seq for event in up.events] == [1, 2]
    assert up.after == 2


def test_book_keeping_takes_no_place(db: Session, alice: Player) -> None:
    talk = alice.converse("one")
    for _ in range(3):
        alice.say(talk, *(Draft("checkpoint", {"state": 1}) for _ in range(100)))
    alice.say(talk, Draft("assistant_message", {"content": "two"}))
    assert [event.seq for event in transcript.newest(db, talk).events] == [1, 302]


def test_the_stamp_changes_with_events_runs_and_the_wish_to_stop(db: Session, alice: Player) -> None:
    def stamp() -> str:
        db.rollback()
        return str(transcript.stamps(db, [talk])[talk])

    talk = alice.converse("one")
    stamps = [stamp()]
    run_id = alice.start_run(talk)
    stamps.append(stamp())
    alice.say(talk, Draft("note", {}), run_id=run_id)
    stamps.append(stamp())
    with Session(alice.engine) as other, other.begin():
        request_cancel(other, lock_conversation(other, alice.owner, talk))
    stamps.append(stamp())
    alice.say(talk, Draft("run_ended", {"status": "cancelled"}), run_id=run_id)
    stamps.append(stamp())
    assert len(set(stamps)) == 5
    assert stamp() == stamps[-1]
    assert transcript.stamps(db, [alice.id]) == {}


def test_what_lies_beside_is_the_conversations_own(db: Session, resources: Resources, alice: Player) -> None:
    mine, other = fill(resources, alice, "mine"), fill(resources, alice, "other")
    assert {row.text for row in transcript.memories(db, alice.owner, mine.session_id)} == {
        "fact 1 mine", "fact 2 mine", "both mine", "alone mine",
    }  # fmt: skip
    (asked,) = transcript.pending(db, mine.session_id)
    assert asked.summary == "May I? mine"
    assert transcript.approvals(db, other.session_id, [asked.id]) == {}
    half = transcript.invocations(db, mine.session_id, ["c-mine", "c-other"])
    assert set(half) == {"c-mine"}
    assert half["c-mine"].called
    assert "mine" in (half["c-mine"].output or "")

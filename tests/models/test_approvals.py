"""Approvals: listed, and decided once, under the conversation's lock (PRODUCT.md 3.1)."""

from __future__ import annotations

import pytest
from sqlalchemy.orm import Session

from models.append import Draft
from models.approvals import decide, page
from models.errors import InvalidState, NotFound
from models.ids import new_id
from models.purge import delete_conversation
from tasks.resources import Resources
from tests.cast import Cast, Player
from tests.models.graph import dump, rows
from tests.models.racing import at_once


def ask(player: Player, session_id: str, *summaries: str) -> list[str]:
    """Asks for approvals; returns their ids."""
    return player.say(session_id, *(Draft("approval_requested", {"summary": said}) for said in summaries))


def decided(resources: Resources, player: Player, approval_id: str, decision: str) -> str | None:
    with Session(resources.engine) as db, db.begin():
        return decide(db, player.owner, approval_id, decision).decision


def test_a_decision_is_written_and_told_as_an_event_in_the_same_transaction(
    resources: Resources, alice: Player
) -> None:
    session_id = alice.converse("go")
    (approval_id,) = ask(alice, session_id, "Delete the file?")
    assert decided(resources, alice, approval_id, "approve") == "approve"
    told = rows(resources, "SELECT seq, type, payload FROM events ORDER BY seq DESC LIMIT 1")
    assert told == [(3, "approval_decided", {"approval_id": approval_id, "decision": "approve"})]
    ((decision, in_time),) = rows(resources, "SELECT decision, decided_at >= created_at FROM approvals")
    assert (decision, in_time) == ("approve", True)


def test_the_same_decision_again_changes_nothing_and_another_is_refused(
    resources: Resources, alice: Player
) -> None:
    (approval_id,) = ask(alice, alice.converse("go"), "Delete the file?")
    decided(resources, alice, approval_id, "deny")
    unchanged = dump(resources)
    assert decided(resources, alice, approval_id, "deny") == "deny"
    with pytest.raises(InvalidState) as refusal:
        decided(resources, alice, approval_id, "approve")
    assert refusal.value.details == {"reason": "already_decided", "decision": "deny"}
    assert dump(resources) == unchanged


def test_of_ten_opposite_decisions_at_once_one_counts(resources: Resources, alice: Player) -> None:
    session_id = alice.converse("go")
    for approval_id in ask(alice, session_id, *(f"Step {number}?" for number in range(5))):
        choices = ["approve", "deny"] * 5
        outcomes = at_once(
            [lambda d=each: decided(resources, alice, approval_id, d) for each in choices]  # type: ignore[misc]  # noqa: B023
        )
        ((winner,),) = rows(resources, f"SELECT decision FROM approvals WHERE id = '{approval_id}'")
        for choice, outcome in zip(choices, outcomes, strict=True):
            if choice == winner:
                assert outcome == winner
            else:
                assert isinstance(outcome, InvalidState)
    assert rows(resources, "SELECT count(*) FROM events WHERE type = 'approval_decided'") == [(5,)]


@pytest.mark.parametrize("why", ["foreign", "of the same tenant", "never was", "malformed", "deleted"])
def test_who_cannot_see_an_approval_cannot_decide_it_and_nothing_tells_them_why(
    resources: Resources, cast: Cast, why: str
) -> None:
    session_id = cast.alice.converse("go")
    (approval_id,) = ask(cast.alice, session_id, "Delete the file?")
    player = {"foreign": cast.mallory, "of the same tenant": cast.bob}.get(why, cast.alice)
    if why == "deleted":
        with Session(resources.engine) as db, db.begin():
            delete_conversation(db, cast.alice.owner, session_id)
    wanted = {"never was": new_id(), "malformed": "no id"}.get(why, approval_id)
    unchanged = dump(resources)
    with pytest.raises(NotFound) as refusal:
        decided(resources, player, wanted, "approve")
    assert refusal.value.detail == "There is no such approval. Its conversation may have been deleted."
    assert dump(resources) == unchanged


def test_pages_are_newest_first_of_one_state_and_ones_own(
    resources: Resources, cast: Cast, db: Session
) -> None:
    ids = ask(cast.alice, cast.alice.converse("go"), "One?", "Two?", "Three?")
    ask(cast.bob, cast.bob.converse("go"), "Theirs?")
    decided(resources, cast.alice, ids[1], "approve")

    def listed(**asked: str) -> list[str]:
        return [one.id for one in page(db, cast.alice.owner, 2, **asked)]

    assert listed() == [ids[2], ids[1]]
    assert listed(below=ids[1]) == [ids[0]]
    assert listed(state="pending") == [ids[2], ids[0]]
    assert listed(state="decided") == [ids[1]]

"""A run's life: start, refuse, expire; a dead worker locks nobody out (FAULTS.md S37, S40)."""

from __future__ import annotations

import threading

import pytest
from sqlalchemy import update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from models import runs
from models.append import Draft, lock_conversation
from models.base import database_time
from models.errors import InvalidState
from models.history import Run
from models.ids import new_id
from tasks.resources import Resources
from tests.cast import Cast, Player
from tests.models.graph import count, rows


def let_lapse(resources: Resources, run_id: str) -> None:
    """Makes a run's lease end in the past."""
    with resources.engine.begin() as connection:
        connection.execute(update(Run).where(Run.id == run_id).values(lease_expires_at=Run.created_at))


def test_a_run_starts_with_its_lease_held_to_the_bounds(alice: Player, db: Session) -> None:
    for asked, given in ((60, 60), (1, 5), (9999, 300)):
        run = db.get_one(Run, alice.start_run(alice.converse("go"), lease_seconds=asked))
        assert (run.status, run.cancel_requested, run.ended_at) == ("running", False, None)
        assert (run.lease_expires_at - run.created_at).total_seconds() == given


def test_while_a_run_is_active_no_other_starts_and_it_is_named(resources: Resources, alice: Player) -> None:
    session_id = alice.converse("go")
    run_id = alice.start_run(session_id)
    with pytest.raises(InvalidState) as refusal:
        alice.start_run(session_id)
    assert refusal.value.details == {"reason": "active_run_exists", "active_run_id": run_id}
    alice.start_run(alice.converse("another conversation"))
    assert count(resources, "runs") == 2


def test_of_eight_starts_at_once_one_wins(resources: Resources, alice: Player) -> None:
    session_id = alice.converse("go")
    refused: list[InvalidState] = []

    def start() -> None:
        try:
            alice.start_run(session_id)
        except InvalidState as refusal:
            refused.append(refusal)

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (run_id,) = rows(resources, "SELECT id FROM runs")[0]
    assert [refusal.details["active_run_id"] for refusal in refused] == [run_id] * 7


def test_the_database_itself_refuses_a_second_active_run(resources: Resources, alice: Player) -> None:
    session_id = alice.converse("go")
    alice.start_run(session_id)
    again = """
        INSERT INTO runs (id, session_id, principal_id, status, cancel_requested, lease_seconds, lease_expires_at,
            created_at) SELECT %s, session_id, principal_id, status, false, 60, lease_expires_at, now() FROM runs
    """
    with pytest.raises(IntegrityError, match="uq_runs_active"), resources.engine.begin() as connection:
        connection.exec_driver_sql(again, (new_id(),))


def test_a_start_ends_an_overdue_run_as_expired(resources: Resources, alice: Player, db: Session) -> None:
    session_id = alice.converse("go")
    first = alice.start_run(session_id)
    let_lapse(resources, first)
    second = alice.start_run(session_id)
    ended = db.get_one(Run, first)
    assert ended.status == "expired"
    assert ended.ended_at is not None
    assert rows(resources, "SELECT active_run_id, last_run_id FROM sessions") == [(second, first)]


def test_the_overdue_are_those_whose_lease_is_over_most_overdue_first(
    resources: Resources, cast: Cast, db: Session
) -> None:
    late = [player.converse("late") for player in (cast.alice, cast.bob, cast.mallory)]
    for player, session_id in zip((cast.alice, cast.bob, cast.mallory), late, strict=True):
        let_lapse(resources, player.start_run(session_id))
    cast.alice.start_run(cast.alice.converse("alive"))
    ended = cast.alice.converse("ended")
    run_id = cast.alice.start_run(ended)
    cast.alice.say(ended, Draft("run_ended", {"status": "succeeded"}), run_id=run_id)
    let_lapse(resources, run_id)
    found = runs.overdue(db, database_time(db))
    assert found == list(zip(late, (cast.alice.id, cast.bob.id, cast.mallory.id), strict=True))
    assert runs.overdue(db, database_time(db), limit=1) == found[:1]


def test_ending_a_run_twice_keeps_its_first_end(alice: Player, db: Session) -> None:
    session_id = alice.converse("go")
    run_id = alice.start_run(session_id)
    conversation = lock_conversation(db, alice.owner, session_id)
    runs.end(db, conversation, run_id, "succeeded", database_time(db))
    runs.end(db, conversation, run_id, "failed", database_time(db))
    db.commit()
    assert db.get_one(Run, run_id, populate_existing=True).status == "succeeded"

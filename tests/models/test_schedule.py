"""Turns of recurring work: one caller takes each, and only a commit makes it taken."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import update
from sqlalchemy.orm import Session

from models.schedule import HEARTBEAT, Recurring, beat, seconds_since_beat, take_turn
from tasks.resources import Resources
from tests.models.racing import at_once

MINUTE = timedelta(minutes=1)


def take(resources: Resources, name: str = "job", every: timedelta = MINUTE) -> bool:
    with Session(resources.engine) as db, db.begin():
        return take_turn(db, name, every)


def test_a_turn_is_taken_once_until_its_time_comes_again(resources: Resources) -> None:
    assert take(resources)
    assert not take(resources)
    assert take(resources, "another")
    with resources.engine.begin() as connection:
        connection.execute(update(Recurring).values(last_at=Recurring.last_at - MINUTE))
    assert take(resources)
    assert not take(resources)


def test_a_turn_that_was_not_committed_is_free_again(resources: Resources) -> None:
    with Session(resources.engine) as db:
        assert take_turn(db, "job", MINUTE)
        db.rollback()
    assert take(resources)


def test_of_many_schedulers_at_once_one_takes_the_turn(resources: Resources) -> None:
    for number in range(10):
        assert sorted(at_once([lambda n=number: take(resources, f"job {n}")] * 6)) == [False] * 5 + [True]  # type: ignore[misc]


def test_a_heartbeat_says_how_long_ago_a_scheduler_was_seen(resources: Resources, db: Session) -> None:
    assert seconds_since_beat(db) is None
    for _ in range(2):
        beat(db)
    seen = seconds_since_beat(db)
    assert seen is not None
    assert 0 <= seen < 5
    db.execute(
        update(Recurring).where(Recurring.name == HEARTBEAT).values(last_at=Recurring.last_at - MINUTE)
    )
    later = seconds_since_beat(db)
    assert later is not None
    assert 60 <= later < 70

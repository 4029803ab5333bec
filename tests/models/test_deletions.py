"""Deletions seen together: what many would take, and how far those that were done have come."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import text
from sqlalchemy.orm import Session

from models import deletions
from models.cursor import Position
from models.deletions import Left, left_since, reach
from models.ids import new_id
from models.purge import delete_conversation
from tasks.resources import Resources
from tests.cast import Cast, Player
from tests.models.graph import attach, fill


def delete(resources: Resources, player: Player, session_id: str) -> None:
    with Session(resources.engine) as db, db.begin():
        delete_conversation(db, player.owner, session_id)


def test_the_reach_of_many_is_the_sum_of_theirs(resources: Resources, cast: Cast) -> None:
    one, two = fill(resources, cast.alice, "one"), fill(resources, cast.alice, "two")
    theirs = fill(resources, cast.bob, "three")
    busy = cast.alice.converse("Busy")
    cast.alice.start_run(busy)
    with Session(resources.engine) as db:
        ids = [one.session_id, two.session_id, theirs.session_id, busy, new_id(), "nonsense"]
        told = reach(db, cast.alice.owner, ids)
        assert reach(db, cast.alice.owner, []).ids == []
    assert told.ids == [two.session_id, one.session_id]
    assert told.titles == ["Hello two", "Hello one"]
    assert told.busy == ["Busy"]
    assert (told.messages, told.files, told.memories) == (4, 6, 8)
    assert told.bytes == 2 * (3 * 3 + 1 + 100_000)


def test_a_run_past_its_lease_keeps_nothing(resources: Resources, alice: Player) -> None:
    session_id = alice.converse("Dead")
    alice.start_run(session_id)
    with resources.engine.begin() as connection:
        connection.execute(text("UPDATE runs SET lease_expires_at = now()"))
    with Session(resources.engine) as db:
        told = reach(db, alice.owner, [session_id])
    assert (told.ids, told.busy) == ([session_id], [])


def test_each_deletion_says_what_is_left_of_its_files_newest_first(resources: Resources, cast: Cast) -> None:
    first, second, third = (cast.alice.converse(name) for name in ("a", "b", "c"))
    theirs = cast.bob.converse("theirs")
    for player, session_id in ((cast.alice, second), (cast.alice, third), (cast.bob, theirs)):
        attach(resources, player, session_id, b"x", b"y")
    for session_id in (first, second, third):
        delete(resources, cast.alice, session_id)
    delete(resources, cast.bob, theirs)
    with resources.engine.begin() as connection:
        connection.execute(
            text("UPDATE outbox SET error = 'credentials' WHERE session_id = :s"), {"s": third}
        )
    with Session(resources.engine) as db:
        shown = deletions.page(db, cast.alice.owner)
        assert [(one.session_id, one.owed, one.blocked) for one in shown.held] == [
            (third, 2, 2), (second, 2, 0), (first, 0, 0),
        ]  # fmt: skip
        assert not shown.more
        oldest, middle = shown.held[-1].deleted_at, shown.held[1].deleted_at
        assert left_since(db, cast.alice.owner, oldest) == Left(4, 2)
        assert left_since(db, cast.alice.owner, middle) == Left(4, 2)
        assert left_since(db, cast.alice.owner, middle + timedelta(microseconds=1)) == Left(2, 2)
        assert left_since(db, cast.mallory.owner, oldest) == Left(0, 0)


def test_pages_of_deletions_follow_one_another(resources: Resources, alice: Player) -> None:
    made = [alice.converse(str(number)) for number in range(7)]
    for session_id in made:
        delete(resources, alice, session_id)
    with resources.engine.begin() as connection:  # as if several had gone at the same moment
        connection.execute(text("UPDATE tombstones SET deleted_at = date_trunc('hour', deleted_at)"))
    seen, after = [], None
    with Session(resources.engine) as db:
        while True:
            shown = deletions.page(db, alice.owner, after, limit=3)
            seen += [one.session_id for one in shown.held]
            if not shown.more:
                break
            after = Position(shown.held[-1].deleted_at, shown.held[-1].session_id)
    assert seen == sorted(made, reverse=True)

"""The rows that owe bytes: claimed once, settled by what the store said, kept until then (FAULTS.md S100 to S117)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import select, text, update
from sqlalchemy.orm import Session

from models import outbox
from models.base import database_time
from models.ids import new_id
from models.outbox import (
    Backlog,
    Owed,
    backlog,
    claim_after,
    claim_due,
    give_up,
    owed_of,
    settle,
    unexplained,
)
from models.purge import delete_conversation
from models.rules import RESERVATION, backoff
from tasks.resources import Resources
from tests.cast import Cast, Player
from tests.models.graph import attach, count, upload

GONE = new_id()


def owe(resources: Resources, amount: int, session_id: str = GONE, *, due_in: float = 0) -> list[str]:
    """Rows that are due in so many seconds, each a second later than the one before; their keys in that order."""
    with Session(resources.engine) as db, db.begin():
        now = database_time(db) + timedelta(seconds=due_in)
        keys = [new_id() for _ in range(amount)]
        for number, key in enumerate(keys):
            at = now - timedelta(seconds=amount - 1 - number)
            db.add(
                Owed(
                    key=key, session_id=session_id, next_attempt_at=at, created_at=now - timedelta(seconds=60)
                )
            )
    return keys


def test_the_due_are_claimed_most_overdue_first_and_no_more_than_asked_for(
    resources: Resources, db: Session
) -> None:
    keys = owe(resources, 5)
    owe(resources, 1, due_in=60)
    assert claim_due(db, limit=3) == keys[:3]
    db.rollback()
    assert claim_due(db) == keys


def test_one_conversations_rows_and_those_that_back_off_can_be_asked_for(
    resources: Resources, db: Session
) -> None:
    mine, other = new_id(), new_id()
    due, later = owe(resources, 2, mine), owe(resources, 1, mine, due_in=600)
    owe(resources, 2, other)
    assert claim_due(db, session_id=mine) == due
    assert set(claim_after(db, "")) > {*due, *later}


def test_a_walk_through_all_reaches_each_row_once_in_the_order_of_the_keys(
    resources: Resources, db: Session
) -> None:
    keys = sorted(owe(resources, 5) + owe(resources, 2, due_in=3600))
    assert claim_after(db, "", limit=4) == keys[:4]
    settle(db, keys[:4], dict.fromkeys(keys[:4], "unknown"), [0.0] * 4)
    assert claim_after(db, keys[3], limit=4) == keys[4:]
    assert claim_after(db, keys[6]) == []


def test_two_workers_never_claim_one_row_and_a_dead_one_gives_its_rows_back(resources: Resources) -> None:
    keys = owe(resources, 10)
    with Session(resources.engine) as one, Session(resources.engine) as other:
        first = claim_due(one, limit=6)
        second = claim_due(other)
        assert sorted(first + second) == sorted(keys)
        one.rollback()  # as a kill does
        settle(other, second, {}, [])
        other.commit()
        assert claim_due(one) == first


def test_what_is_gone_leaves_and_what_failed_backs_off_with_its_reason(
    resources: Resources, db: Session
) -> None:
    keys = owe(resources, 4)
    claimed = claim_due(db)
    assert settle(db, claimed, {keys[1]: "unavailable", keys[3]: "credentials"}, [0.0, 0.5]) == 2
    db.commit()
    left = {row.key: row for row in db.scalars(select(Owed))}
    assert set(left) == {keys[1], keys[3]}
    assert [(left[key].attempts, left[key].error) for key in (keys[1], keys[3])] == [
        (1, "unavailable"),
        (1, "credentials"),
    ]
    waits = [(left[key].next_attempt_at - database_time(db)).total_seconds() for key in (keys[1], keys[3])]
    assert 0 < waits[0] <= 2.5 < waits[1] <= 5.0


def test_there_is_no_attempt_limit(resources: Resources, db: Session) -> None:
    (key,) = owe(resources, 1)
    db.execute(update(Owed).values(attempts=100_000))
    settle(db, [key], {key: "unknown"}, [0.999])
    db.commit()
    row = db.scalars(select(Owed)).one()
    assert row.attempts == 100_001
    assert timedelta(minutes=59) < row.next_attempt_at - database_time(db) <= timedelta(hours=1)
    assert backoff(100_001, 0.999) <= timedelta(hours=1)


def test_a_row_that_always_fails_does_not_hold_the_others_up(resources: Resources, db: Session) -> None:
    """FAULTS.md S115."""
    keys = owe(resources, 1001)
    bad = keys[0]
    for _ in range(3):
        claimed = claim_due(db)
        settle(db, claimed, {bad: "unknown"} if bad in claimed else {}, [0.5] * (bad in claimed))
        db.commit()
    assert list(db.scalars(select(Owed.key))) == [bad]


def test_settling_twice_is_no_fault(resources: Resources, db: Session) -> None:
    keys = owe(resources, 2)
    assert settle(db, claim_due(db), {}, []) == 2
    db.commit()
    assert claim_due(db) == []
    assert settle(db, keys, {}, []) == 2
    db.commit()
    assert count(resources, "outbox") == 0


# -- uploads under way ---------------------------------------------------------------------------------------


def test_an_upload_under_way_is_left_alone_until_its_time_is_over(
    resources: Resources, alice: Player, db: Session
) -> None:
    uploaded = upload(resources, alice.converse(), b"bytes")
    row = db.scalars(select(Owed)).one()
    assert row.reserved
    assert RESERVATION - timedelta(minutes=1) < row.next_attempt_at - database_time(db) <= RESERVATION
    assert claim_due(db) == claim_after(db, "") == []
    assert backlog(db).owed == 0
    row.next_attempt_at = database_time(db)
    db.flush()
    assert claim_due(db) == claim_after(db, "") == [uploaded.key]
    assert backlog(db).owed == 1


def test_an_upload_that_failed_is_due_at_once(resources: Resources, alice: Player, db: Session) -> None:
    uploaded = upload(resources, alice.converse(), b"bytes")
    give_up(db, uploaded.key)
    assert claim_due(db) == [uploaded.key]
    give_up(db, new_id())  # of nothing: nothing


def test_keys_that_no_row_names_are_told_apart(resources: Resources, db: Session) -> None:
    keys, other = owe(resources, 2), new_id()
    assert unexplained(db, [*keys, other]) == {other}
    assert unexplained(db, []) == set()


# -- what an operator sees -----------------------------------------------------------------------------------


def test_the_backlog_counts_what_is_owed_what_is_blocked_and_how_long(
    resources: Resources, db: Session
) -> None:
    assert backlog(db) == Backlog(0, 0, 0.0, {}, None)
    keys = owe(resources, 6)
    failed = dict(
        zip(keys, ("unavailable", "unavailable", "credentials", "misconfigured", "unknown"), strict=False)
    )
    settle(db, [], failed, [0.5] * 5)
    db.execute(
        update(Owed).where(Owed.key == keys[5]).values(created_at=Owed.created_at - timedelta(hours=1))
    )
    db.commit()
    found = backlog(db)
    assert (found.owed, found.blocked) == (6, 2)
    assert found.errors == {"unavailable": 2, "credentials": 1, "misconfigured": 1, "unknown": 1}
    assert 3660 <= found.oldest_seconds < 3720
    assert found.next_attempt_at == db.get_one(Owed, keys[5]).next_attempt_at


def test_rows_of_a_purge_that_is_not_committed_are_neither_seen_nor_lost(
    resources: Resources, alice: Player, db: Session
) -> None:
    """FAULTS.md S111: a sweeper that looks too early loses nothing."""
    session_id = alice.converse()
    keys = attach(resources, alice, session_id, b"a", b"b")
    delete_conversation(db, alice.owner, session_id)
    with Session(resources.engine) as sweeper:
        for _ in range(3):
            assert claim_due(sweeper) == []
        db.commit()
        assert sorted(claim_due(sweeper)) == sorted(keys)


def test_the_objects_of_a_deleted_conversation_are_counted_until_the_last_is_gone(
    resources: Resources, cast: Cast, db: Session
) -> None:
    session_id = cast.alice.converse()
    attach(resources, cast.alice, session_id, b"a", b"b")
    owe(resources, 3)
    delete_conversation(db, cast.alice.owner, session_id)
    assert owed_of(db, session_id) == 2
    settle(db, claim_due(db, session_id=session_id, limit=1), {}, [])
    assert owed_of(db, session_id) == 1
    settle(db, claim_due(db, session_id=session_id), {}, [])
    assert owed_of(db, session_id) == 0


def test_the_due_are_found_by_an_index(resources: Resources) -> None:
    many = """
        INSERT INTO outbox (key, session_id, next_attempt_at, created_at)
        SELECT gen_random_uuid()::text, gen_random_uuid(), now() + n * interval '1 s', now()
        FROM generate_series(1, 5000) n
    """
    with resources.engine.begin() as connection:
        connection.execute(text(many))
        connection.execute(text("ANALYZE outbox"))
        due = "SELECT key FROM outbox WHERE next_attempt_at <= now() ORDER BY next_attempt_at LIMIT 1000 FOR UPDATE"
        plan = "\n".join(row[0] for row in connection.execute(text(f"EXPLAIN {due} SKIP LOCKED")))
    assert "ix_outbox_due" in plan
    assert "Sort" not in plan


@pytest.mark.parametrize("name", ["credentials", "misconfigured"])
def test_what_no_patience_mends_counts_as_blocked(name: str) -> None:
    assert name in outbox.BLOCKED

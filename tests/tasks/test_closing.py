"""Emptying a closed account: everything goes, whatever dies on the way, and what stays is named."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session

from models import closing, purge
from models.accounts import Principal
from models.append import Draft
from models.base import database_time
from models.memories import key_of
from tasks import closing as task
from tasks import deletion
from tasks.outbox import drain_due
from tasks.queues import open_queue, open_redis
from tasks.resources import Resources
from tests.cast import Cast, Player
from tests.models.graph import count, dump, fill, rows, stored, traces, typed_in
from tests.models.racing import at_once
from tests.s3_server import free_port

# What may name a principal once its account is empty: what outlives it, and its own row without an address.
STAYS = {"tombstones", "deletion_records", "principals"}


@pytest.fixture(autouse=True)
def here(resources: Resources, monkeypatch: pytest.MonkeyPatch) -> None:
    """The jobs work on this test's resources."""
    monkeypatch.setattr(task, "in_this_process", lambda: resources)


def age(resources: Resources, player: Player) -> None:
    """Lets the time pass in which a request may still write, and any lease run out."""
    with Session(resources.engine) as db, db.begin():
        then = database_time(db) - closing.SETTLING - timedelta(minutes=1)
        mine = update(Principal).where(Principal.id == player.id)
        db.execute(mine.values(closed_at=then, emptying_until=None))


def emptied(resources: Resources, player: Player) -> bool:
    found = rows(resources, "SELECT emptied_at IS NOT NULL FROM principals WHERE id = :p", p=player.id)
    return bool(found[0][0])


def others(resources: Resources, *left_out: str) -> dict[str, list[str]]:
    """Every row that names none of these."""
    return {
        name: [line for line in lines if not any(one in line for one in left_out)]
        for name, lines in dump(resources).items()
    }


def test_nothing_of_an_account_is_left_but_what_outlives_it_and_its_neighbours_are_untouched(
    resources: Resources, cast: Cast
) -> None:
    """FAULTS.md D71, S11."""
    for twin in (cast.bob, cast.mallory):
        fill(resources, twin, "twin")
        typed_in(resources, twin, "typed twin")
        twin.token()
    before, kept = dump(resources), stored(resources)
    talks = [fill(resources, cast.alice, f"victim {n}").session_id for n in range(3)]
    typed_in(resources, cast.alice, "victim by hand")
    cast.alice.token()
    task.close_account(resources, cast.alice.owner)
    assert resources.queue.count == 1
    assert not emptied(resources, cast.alice)
    assert task.empty_account(resources, cast.alice.id)
    drain_due(resources)
    assert stored(resources) == kept
    age(resources, cast.alice)
    task.empty(cast.alice.id)
    assert emptied(resources, cast.alice)
    assert traces(resources, cast.alice.id) == STAYS
    assert traces(resources, "victim") == set()
    assert traces(resources, cast.alice.email) == set()
    stones = rows(resources, "SELECT session_id FROM tombstones WHERE principal_id = :p", p=cast.alice.id)
    assert sorted(stones) == sorted((one,) for one in talks)
    after = dump(resources)
    for name, lines in before.items():
        if name not in ("principals", "schedule"):
            assert set(lines) - set(after[name]) <= {line for line in lines if cast.alice.id in line}, (
                f"{name} lost rows of a twin"
            )


def test_a_memory_that_no_conversation_formed_leaves_its_record(resources: Resources, alice: Player) -> None:
    """PRODUCT.md 4.2: so that a paired device can still be told."""
    typed_in(resources, alice, "typed by hand")
    task.close_account(resources, alice.owner)
    task.empty_account(resources, alice.id)
    recorded = rows(resources, "SELECT key FROM deletion_records WHERE principal_id = :p", p=alice.id)
    assert recorded == [(key_of("typed by hand"),)]


def test_many_memories_go_in_batches(
    resources: Resources, alice: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(7):
        typed_in(resources, alice, f"fact {number}")
    seen: list[int] = []

    def three(db: Session, owner: object) -> int:
        done = forget(db, owner, 3)  # type: ignore[arg-type]
        seen.append(done)
        return done

    forget = closing.forget_some
    monkeypatch.setattr(closing, "forget_some", three)
    task.close_account(resources, alice.owner)
    assert task.empty_account(resources, alice.id)
    assert seen == [3, 3, 1, 0]
    assert count(resources, "memories") == 0


def test_active_runs_hold_nothing_up_and_their_workers_are_told_the_conversation_is_gone(
    resources: Resources, alice: Player
) -> None:
    talks = [alice.converse("busy") for _ in range(3)]
    for talk in talks:
        alice.start_run(talk, lease_seconds=300)
    task.close_account(resources, alice.owner)
    assert task.empty_account(resources, alice.id)
    assert count(resources, "sessions") == count(resources, "runs") == 0
    with pytest.raises(Exception, match="may have been deleted"):
        alice.say(talks[0], Draft("assistant_message", {"content": "late"}))


@pytest.mark.parametrize("dies_at", range(1, 4))
def test_a_worker_that_dies_loses_nothing_and_the_sweep_goes_on(
    resources: Resources, alice: Player, monkeypatch: pytest.MonkeyPatch, dies_at: int
) -> None:
    for number in range(3):
        fill(resources, alice, f"m{number}")
    task.close_account(resources, alice.owner)
    resources.redis.flushall()  # and Redis loses everything as well
    calls = 0

    class Killed(BaseException):
        pass

    def dying(*given: object, **more: object) -> object:
        nonlocal calls
        calls += 1
        if calls == dies_at:
            raise Killed
        return deletion.delete_now(*given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(task, "delete_now", dying)
    with pytest.raises(Killed):
        task.empty_account(resources, alice.id)
    assert count(resources, "sessions") == 3 - dies_at + 1
    task.sweep()
    assert resources.queue.count == int(dies_at > 1)  # its lease runs a minute; what woke the drain is there
    age(resources, alice)
    resources.redis.flushall()
    task.sweep()
    assert resources.queue.count == 1
    task.empty(alice.id)
    assert emptied(resources, alice)
    task.sweep()
    drain_due(resources)
    assert stored(resources) == []


def test_one_conversation_that_cannot_go_keeps_no_other_from_going(
    resources: Resources, alice: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FAULTS.md S115."""
    talks = sorted(alice.converse(f"talk {n}") for n in range(4))
    typed_in(resources, alice, "stays until all is well")
    task.close_account(resources, alice.owner)

    def ailing(held: Resources, owner: object, session_id: str, **more: object) -> object:
        if session_id == talks[0]:
            raise RuntimeError("something nobody foresaw")
        return deletion.delete_now(held, owner, session_id, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(task, "delete_now", ailing)
    assert not task.empty_account(resources, alice.id)
    assert rows(resources, "SELECT id FROM sessions") == [(talks[0],)]
    with Session(resources.engine) as db:
        assert closing.due(db) == [alice.id]  # the sweep comes back
    monkeypatch.undo()
    assert task.empty_account(resources, alice.id)
    assert count(resources, "sessions") == count(resources, "memories") == 0


def test_a_long_work_hands_over_to_a_fresh_job(resources: Resources, alice: Player) -> None:
    for _ in range(3):
        alice.converse("x")
    task.close_account(resources, alice.owner)
    resources.redis.flushall()
    assert not task.empty_account(resources, alice.id, seconds=0)
    assert count(resources, "sessions") == 2
    assert [job.func_name for job in resources.queue.jobs] == [task.JOB]
    assert task.empty_account(resources, alice.id)


def test_many_jobs_at_once_do_no_harm(resources: Resources, alice: Player) -> None:
    for number in range(6):
        fill(resources, alice, f"m{number}")
    task.close_account(resources, alice.owner)
    outcomes = at_once([lambda: task.empty_account(resources, alice.id)] * 4)
    assert set(outcomes) <= {True, False}  # one after the other, two may find it empty
    assert True in outcomes
    assert count(resources, "sessions") == 0
    assert count(resources, "tombstones") == 6


def test_without_redis_an_account_is_closed_and_emptied_by_the_sweep(
    resources: Resources, alice: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    import dataclasses

    redis = open_redis(f"redis://127.0.0.1:{free_port()}")
    away = dataclasses.replace(resources, redis=redis, queue=open_queue(redis))
    alice.converse("x")
    task.close_account(away, alice.owner)
    task.sweep()
    assert [job.func_name for job in resources.queue.jobs] == [task.JOB]
    assert task.empty_account(resources, alice.id)


def test_a_late_writer_is_found_before_the_account_counts_as_empty(
    resources: Resources, alice: Player
) -> None:
    task.close_account(resources, alice.owner)
    assert task.empty_account(resources, alice.id)
    assert not emptied(resources, alice)
    late = alice.converse("from a request that was let in before")
    with Session(resources.engine) as db:
        assert closing.due(db) == [alice.id]
    age(resources, alice)
    task.empty(alice.id)
    assert emptied(resources, alice)
    with Session(resources.engine) as db:
        assert purge.tombstone(db, alice.owner, late) is not None


def test_the_end_is_the_same_as_that_of_one_deletion_after_the_other(
    resources: Resources, cast: Cast
) -> None:
    """FAULTS.md S11: whatever path removes a conversation, the same is left."""

    def left(player: Player, remove: Callable[[str], object]) -> set[str]:
        talk = fill(resources, player, "m").session_id
        remove(talk)
        drain_due(resources)
        return traces(resources, talk)

    def by_closing(_: str) -> None:
        task.close_account(resources, cast.alice.owner)
        task.empty_account(resources, cast.alice.id)

    one = left(cast.bob, lambda talk: deletion.delete_now(resources, cast.bob.owner, talk))
    assert left(cast.alice, by_closing) == one == {"tombstones"}

"""The schedule: each turn is handed out once, and none is lost to a Redis that was away (FAULTS.md S102, S103)."""

from __future__ import annotations

import dataclasses
import threading

import pytest
from redis.exceptions import RedisError
from sqlalchemy import update
from sqlalchemy.orm import Session

from models.schedule import HEARTBEAT, Recurring, seconds_since_beat
from tasks import schedule
from tasks.queues import open_queue, open_redis
from tasks.resources import Resources
from tests.models.graph import rows
from tests.models.racing import all_well, at_once, wait_for
from tests.s3_server import free_port

NAMES = [name for name, _ in schedule.ENTRIES]


def pass_time(resources: Resources) -> None:
    """As if the longest period had passed for every entry."""
    longest = max(every for _, every in schedule.ENTRIES)
    with resources.engine.begin() as connection:
        connection.execute(update(Recurring).values(last_at=Recurring.last_at - longest))


def deaf(resources: Resources) -> Resources:
    """The same resources, with nobody where Redis should be."""
    away = open_redis(f"redis://127.0.0.1:{free_port()}")
    return dataclasses.replace(resources, redis=away, queue=open_queue(away))


def handed(resources: Resources) -> list[str]:
    return [job.func_name for job in resources.queue.get_jobs()]


def test_a_tick_hands_out_what_is_due_and_beats(resources: Resources, db: Session) -> None:
    assert schedule.tick(resources) == NAMES
    assert handed(resources) == NAMES
    assert schedule.tick(resources) == []
    assert seconds_since_beat(db) is not None
    pass_time(resources)
    assert schedule.tick(resources) == NAMES


def test_two_schedulers_hand_out_each_turn_once(resources: Resources) -> None:
    for number in range(1, 6):
        outcomes = at_once([lambda: schedule.tick(resources)] * 2)
        all_well(outcomes)
        assert sorted(outcomes[0] + outcomes[1]) == sorted(NAMES)
        assert len(handed(resources)) == number * len(NAMES)
        pass_time(resources)


def test_a_turn_that_redis_refused_is_handed_out_by_the_next_tick(resources: Resources) -> None:
    with pytest.raises(RedisError):
        schedule.tick(deaf(resources))
    assert {row[0] for row in rows(resources, "SELECT name FROM schedule")} == {HEARTBEAT}
    assert schedule.tick(resources) == NAMES


def test_every_entry_is_a_job_that_can_be_called(resources: Resources) -> None:
    from importlib import import_module

    for name in NAMES:
        module, _, function = name.rpartition(".")
        assert callable(getattr(import_module(module), function))


def test_a_job_that_failed_or_waits_does_not_stop_the_next_one(resources: Resources) -> None:
    """FAULTS.md S103: no fixed ids, so nothing is taken for the same job."""
    schedule.tick(resources)
    ids = set(resources.queue.job_ids)
    pass_time(resources)
    schedule.tick(resources)
    assert len(set(resources.queue.job_ids) | ids) == 2 * len(NAMES)


def test_the_loop_outlives_a_server_that_is_away_and_ends_when_told(
    resources: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule, "TICK_SECONDS", 0.02)
    ticks: list[type[Exception] | None] = []
    real = schedule.tick
    away = deaf(resources)

    def tick(held: Resources) -> list[str]:
        try:
            answer = real(away if len(ticks) < 2 else held)
        except RedisError as fault:
            ticks.append(type(fault))
            raise
        ticks.append(None)
        return answer

    monkeypatch.setattr(schedule, "tick", tick)
    stop = threading.Event()
    loop = threading.Thread(target=schedule.run, args=(resources, stop))
    loop.start()
    wait_for(lambda: len(ticks) >= 4)
    stop.set()
    loop.join(10)
    assert not loop.is_alive()
    assert ticks[0] is not None
    assert ticks[2:4] == [None, None]
    assert handed(resources) == NAMES

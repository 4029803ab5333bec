"""Draining the outbox against real stores, well and ill (FAULTS.md S100 to S117)."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

import pytest
from sqlalchemy import select, text, update
from sqlalchemy.orm import Session

from models.base import database_time
from models.bytestore import ByteStore, open_store
from models.bytestore.contract import Fault
from models.bytestore.memory import MemoryStore
from models.ids import new_id
from models.outbox import Owed, backlog
from models.rules import BATCH
from tasks import outbox
from tasks.outbox import Drained, drain_all, drain_batch, drain_due, drain_later, drain_soon
from tasks.resources import Resources
from tests.models.graph import count
from tests.models.racing import all_well, at_once, wait_for
from tests.s3_server import S3Server, free_port, shared


class Recording(MemoryStore):
    """A store in memory that says what it was asked to delete, and can be made to wait."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.free = threading.Event()
        self.free.set()
        self.entered = threading.Event()
        self._noting = threading.Lock()

    def delete(self, keys: Sequence[str]) -> dict[str, Fault]:
        self.entered.set()
        self.free.wait(30)
        with self._noting:
            self.asked += keys
        return super().delete(keys)


@pytest.fixture
def store() -> Recording:
    return Recording()


@pytest.fixture
def held(resources: Resources, store: Recording) -> Iterator[Resources]:
    """Resources around a store in memory; a store that was made to wait is freed at the end."""
    yield dataclasses.replace(resources, store=store)
    store.free.set()


def owe(
    resources: Resources, amount: int, session_id: str | None = None, data: bytes | None = b"x"
) -> list[str]:
    """So many due rows with their bytes (without, when `data` is None); their keys."""
    keys = [new_id() for _ in range(amount)]
    with Session(resources.engine) as db, db.begin():
        now = database_time(db)
        for key in keys:
            db.add(Owed(key=key, session_id=session_id or new_id(), next_attempt_at=now, created_at=now))
    for key in keys if data is not None else ():
        resources.store.put(key, [data])
    return keys


def owed(resources: Resources) -> dict[str, Owed]:
    with Session(resources.engine) as db:
        return {row.key: row for row in db.scalars(select(Owed))}


def make_due(resources: Resources) -> None:
    """As if the wait of every row were over."""
    with resources.engine.begin() as connection:
        connection.execute(update(Owed).values(next_attempt_at=Owed.created_at))


def test_what_is_due_goes_in_batches_of_a_thousand(held: Resources, store: Recording) -> None:
    keys = owe(held, 2500)
    batches = []
    while (batch := drain_batch(held)) is not None:
        batches.append(batch)
    assert batches == [Drained(BATCH), Drained(BATCH), Drained(500)]
    assert sorted(store.asked) == sorted(keys)
    assert list(store.keys()) == []
    assert count(held, "outbox") == 0


def test_an_object_that_is_gone_already_counts_as_deleted(held: Resources) -> None:
    owe(held, 3, data=None)
    assert drain_due(held) == Drained(3)
    assert drain_due(held) == Drained()


TEN_THOUSAND = """
    INSERT INTO outbox (key, session_id, next_attempt_at, created_at)
    SELECT gen_random_uuid()::text, gen_random_uuid(), now() - (n % 7) * interval '1 s', now()
    FROM generate_series(1, 10000) n
"""


def test_eight_sweepers_reach_each_key_once_and_lose_none(held: Resources, store: Recording) -> None:
    """FAULTS.md S100, S112, S117."""
    with held.engine.begin() as connection:
        connection.execute(text(TEN_THOUSAND))
    outcomes = at_once([lambda: drain_due(held)] * 8)
    all_well(outcomes)
    assert sum(outcome.gone for outcome in outcomes) == 10_000
    assert len(store.asked) == len(set(store.asked)) == 10_000
    assert count(held, "outbox") == 0


def test_a_drain_that_dies_at_any_point_loses_no_row(
    held: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FAULTS.md S106: the rows leave with the commit that follows the store's word, and not before."""
    keys = owe(held, 3)

    class Died(BaseException):
        pass

    def die(*_: object) -> int:
        raise Died

    for target, name in ((held.store, "delete"), (outbox.outbox, "settle")):
        with monkeypatch.context() as patched:
            patched.setattr(target, name, die)
            with pytest.raises(Died):
                drain_batch(held)
        assert set(owed(held)) == set(keys)
        assert {row.attempts for row in owed(held).values()} == {0}
    assert drain_due(held) == Drained(3)


def test_a_drain_that_runs_beside_another_takes_other_rows(held: Resources, store: Recording) -> None:
    owe(held, 4)
    store.free.clear()
    first = threading.Thread(target=drain_batch, args=(held,))
    first.start()
    assert store.entered.wait(10)
    assert drain_batch(held) is None  # all are held by the first, and nobody waits for them
    late = owe(held, 2)
    store.entered.clear()
    second = threading.Thread(target=drain_batch, args=(held,))
    second.start()
    assert store.entered.wait(10)
    store.free.set()
    first.join(10)
    second.join(10)
    assert sorted(store.asked[-2:]) == sorted(late) or sorted(store.asked[:2]) == sorted(late)
    assert count(held, "outbox") == 0


# -- stores that are ill (FAULTS.md S8, S114) ----------------------------------------------------------------


class Ill(MemoryStore):
    """A store that answers each key with the word it is told."""

    def __init__(self, word: Fault | None, only: Iterable[str] | None = None) -> None:
        super().__init__()
        self.word, self.only = word, only

    def delete(self, keys: Sequence[str]) -> dict[str, Fault]:
        failed = [key for key in keys if self.word and (self.only is None or key in self.only)]
        super().delete([key for key in keys if key not in failed])
        return {key: self.word for key in failed if self.word}


@pytest.mark.parametrize("word", ["unavailable", "credentials", "misconfigured", "unknown"])
def test_each_way_to_fail_keeps_the_row_says_why_and_backs_off(resources: Resources, word: Fault) -> None:
    held = dataclasses.replace(resources, store=Ill(word))
    keys = owe(held, 3)
    assert drain_due(held) == Drained(0, 3)
    assert drain_due(held) == Drained()  # nothing is due while it backs off
    found = owed(held)
    assert {(row.attempts, row.error) for row in found.values()} == {(1, word)}
    with Session(held.engine) as db:
        assert backlog(db).blocked == (3 if word in ("credentials", "misconfigured") else 0)
    well = dataclasses.replace(resources, store=Ill(None))
    make_due(held)
    assert drain_due(well) == Drained(3)
    assert set(found) == set(keys)


def test_waits_of_one_batch_are_spread(resources: Resources) -> None:
    held = dataclasses.replace(resources, store=Ill("unavailable"))
    owe(held, 200)
    drain_due(held)
    times = sorted(row.next_attempt_at for row in owed(held).values())
    assert times[-1] - times[0] > timedelta(seconds=3)
    assert len(set(times)) > 150


def test_of_a_batch_only_what_failed_stays(resources: Resources) -> None:
    store = Ill("unavailable", only=())
    held = dataclasses.replace(resources, store=store)
    keys = owe(held, 1000)
    store.only = set(keys[::2])
    assert drain_due(held) == Drained(500, 500)
    assert set(owed(held)) == set(keys[::2])
    assert {key for key, _ in list(store.keys())} == set(keys[::2])


def test_an_operator_tries_everything_once_also_what_backs_off(resources: Resources) -> None:
    store = Ill("credentials")
    held = dataclasses.replace(resources, store=store)
    keys = owe(held, 2300)
    assert drain_all(held) == Drained(0, 2300)
    assert {row.attempts for row in owed(held).values()} == {1}
    store.only = keys[:5]
    assert drain_all(held) == Drained(2295, 5)
    store.word = None
    assert drain_all(held) == Drained(5)


def test_one_row_that_always_fails_does_not_keep_a_thousand_waiting(resources: Resources) -> None:
    """FAULTS.md S115."""
    store = Ill("unknown")
    held = dataclasses.replace(resources, store=store)
    (bad,) = owe(held, 1)
    store.only = {bad}
    owe(held, 1000)
    assert drain_due(held) == Drained(1000, 1)
    assert set(owed(held)) == {bad}


# -- beside a request ----------------------------------------------------------------------------------------


def test_one_conversations_bytes_go_at_once_and_no_others(held: Resources, store: Recording) -> None:
    mine = new_id()
    keys, other = owe(held, 3, mine), owe(held, 2)
    assert drain_soon(held, mine, 10)
    assert sorted(store.asked) == sorted(keys)
    assert set(owed(held)) == set(other)


def test_a_store_that_hangs_costs_the_budget_and_finishes_later(held: Resources, store: Recording) -> None:
    mine = new_id()
    owe(held, 2, mine)
    store.free.clear()
    started = datetime.now()
    assert not drain_soon(held, mine, 0.2)
    assert datetime.now() - started < timedelta(seconds=5)
    assert count(held, "outbox") == 2
    store.free.set()
    wait_for(lambda: count(held, "outbox") == 0)


def test_stores_that_hang_never_hold_more_than_a_few_threads(held: Resources, store: Recording) -> None:
    store.free.clear()
    ids = [new_id() for _ in range(outbox.INLINE_THREADS + 3)]
    for one in ids:
        owe(held, 1, one)
    assert not any(drain_soon(held, one, 0.01) for one in ids)
    working = [thread for thread in threading.enumerate() if thread.name == "inline-drain"]
    assert len(working) == outbox.INLINE_THREADS
    store.free.set()
    wait_for(lambda: count(held, "outbox") == 3)
    wait_for(lambda: drain_soon(held, ids[-1], 5))
    assert drain_due(held).gone == 2


def test_a_failing_store_or_a_fault_in_it_is_said_and_the_rows_stay(resources: Resources) -> None:
    class Broken(MemoryStore):
        def delete(self, keys: Sequence[str]) -> dict[str, Fault]:
            raise RuntimeError("nobody foresaw this")

    mine = new_id()
    for number, store in enumerate((Ill("unavailable"), Broken())):
        held = dataclasses.replace(resources, store=store)
        make_due(resources)
        owe(held, 1, mine)
        assert not drain_soon(held, mine, 10)
        assert count(held, "outbox") == number + 1


# -- a real S3 API behind a proxy that spoils its answers ----------------------------------------------------


@pytest.fixture
def s3() -> S3Server:
    return shared()


@pytest.fixture
def bucket(s3: S3Server) -> str:
    return s3.bucket()


@pytest.fixture
def on_s3(resources: Resources, s3: S3Server, bucket: str) -> Resources:
    """The same resources with their bytes in a bucket, reached through the proxy."""
    store: ByteStore = open_store(s3.url(bucket), s3.aws)
    return dataclasses.replace(resources, store=store)


@pytest.mark.s3
@pytest.mark.parametrize(
    ("answer", "error", "blocked"),
    [("unavailable", "unavailable", 0), ("denied", "credentials", 3), ("cut", "unavailable", 0)],
)
def test_what_s3_answers_decides_between_patience_and_an_operator(
    on_s3: Resources, s3: S3Server, bucket: str, answer: str, error: str, blocked: int
) -> None:
    keys = owe(on_s3, 3)
    with s3.answering(answer):  # type: ignore[arg-type]
        assert drain_due(on_s3) == Drained(0, 3)
    assert {(row.attempts, row.error) for row in owed(on_s3).values()} == {(1, error)}
    with Session(on_s3.engine) as db:
        assert backlog(db).blocked == blocked
    assert len(s3.everything(bucket)) == 3
    make_due(on_s3)
    assert drain_due(on_s3) == Drained(len(keys))
    assert s3.everything(bucket) == []


@pytest.mark.s3
def test_errors_inside_a_good_answer_keep_just_those_keys(
    on_s3: Resources, s3: S3Server, bucket: str
) -> None:
    keys = owe(on_s3, 40)
    with s3.answering("half"):
        done = drain_due(on_s3)
    left = owed(on_s3)
    assert (done.gone, done.failed) == (40 - len(left), len(left))
    assert left
    assert {name.rpartition("/")[2] for name in s3.half_failed} == set(left)
    assert set(left) < set(keys)
    make_due(on_s3)
    drain_due(on_s3)
    assert s3.everything(bucket) == []


@pytest.mark.s3
def test_a_missing_bucket_is_blocked_and_no_other_store_is_ever_asked(
    resources: Resources, s3: S3Server
) -> None:
    held = dataclasses.replace(resources, store=open_store(s3.url("no-such-bucket"), s3.aws))
    owe(held, 1, data=None)
    assert drain_due(held) == Drained(0, 1)
    assert [row.error for row in owed(held).values()] == ["misconfigured"]


@pytest.mark.s3
def test_a_versioned_bucket_keeps_no_version(resources: Resources, s3: S3Server) -> None:
    """FAULTS.md S7."""
    bucket = s3.bucket(versioning="Enabled")
    held = dataclasses.replace(resources, store=open_store(s3.url(bucket), s3.aws))
    (key,) = owe(held, 1)
    held.store.put(key, [b"again"])
    assert len(s3.everything(bucket)) == 2
    assert drain_due(held) == Drained(1)
    assert s3.everything(bucket) == []


# -- the queue -----------------------------------------------------------------------------------------------


def test_waking_a_worker_names_no_object(held: Resources) -> None:
    """FAULTS.md S107: a job's arguments are ids at most; this one has none."""
    owe(held, 2)
    assert drain_later(held)
    (job,) = held.queue.get_jobs()
    assert (job.func_name, job.args, job.kwargs) == ("tasks.outbox.drain", [], {})


def test_without_redis_nothing_is_lost_but_the_waking(held: Resources) -> None:
    from tasks.queues import open_queue, open_redis

    away = open_redis(f"redis://127.0.0.1:{free_port()}")
    deaf = dataclasses.replace(held, redis=away, queue=open_queue(away))
    owe(deaf, 1)
    assert not drain_later(deaf)
    assert drain_due(deaf) == Drained(1)

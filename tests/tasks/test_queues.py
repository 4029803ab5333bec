"""The queue wakes workers and holds nothing: ids alone, as JSON, for a day at most (FAULTS.md S103, S107)."""

from __future__ import annotations

import zlib

import orjson
import pytest
from redis.exceptions import RedisError
from rq import SimpleWorker
from rq.serializers import JSONSerializer

from models.ids import new_id
from tasks import queues
from tasks.resources import Resources
from tests.s3_server import free_port

MISSING = "tasks.nothing.at_all"


def work(resources: Resources) -> None:
    """Does everything that waits, in this process."""
    worker = SimpleWorker([resources.queue], connection=resources.redis, serializer=JSONSerializer)
    worker.work(burst=True, logging_level="CRITICAL")


def test_a_job_is_json_with_its_name_and_ids(resources: Resources) -> None:
    some = new_id()
    assert queues.later(resources.queue, "tasks.outbox.drain", some)
    (job,) = resources.queue.get_jobs()
    assert (job.func_name, list(job.args)) == ("tasks.outbox.drain", [some])
    raw = resources.redis.hget(f"rq:job:{job.id}", "data")
    assert isinstance(raw, bytes)
    assert orjson.loads(zlib.decompress(raw))[0] == "tasks.outbox.drain"


def test_a_job_that_fails_does_not_block_the_next_and_is_kept_a_day_at_most(resources: Resources) -> None:
    for number in (1, 2):
        queues.later(resources.queue, MISSING)
        work(resources)
        assert resources.queue.failed_job_registry.count == number
    for job_id in resources.queue.failed_job_registry.get_job_ids():
        assert 0 < resources.redis.ttl(f"rq:job:{job_id}") <= 24 * 3600


def test_a_job_that_is_done_leaves_nothing(resources: Resources) -> None:
    queues.later(
        resources.queue,
        "time.sleep",
    )
    resources.queue.empty()
    resources.queue.enqueue("os.getpid", result_ttl=0)
    queues.enqueue(resources.queue, "os.getpid")
    work(resources)
    assert list(resources.redis.scan_iter("rq:job:*")) == []
    assert resources.queue.failed_job_registry.count == 0


def test_without_redis_later_says_so_and_enqueue_raises() -> None:
    away = queues.open_queue(queues.open_redis(f"redis://127.0.0.1:{free_port()}"))
    assert not queues.later(away, "tasks.outbox.drain")
    with pytest.raises(RedisError):
        queues.enqueue(away, "tasks.outbox.drain")

"""The queue that wakes workers, and nothing more: what there is to do is in PostgreSQL.

JSON everywhere, since a pickled job is code for whoever reaches Redis; ids alone as arguments; no fixed job ids,
because a failed job's id stays taken; results are not kept and failures for a day (PARTS.md, RQ 3.0).
"""

from __future__ import annotations

from typing import Any

import structlog
from redis import Redis
from redis.exceptions import RedisError
from rq import Queue
from rq.serializers import JSONSerializer

NAME = "allgone"
IMPORTS = "allgone-imports"  # work of minutes and hours, kept apart so that a worker stays free for the rest
JOB_SECONDS = {NAME: 600, IMPORTS: 24 * 3600}
FAILURE_SECONDS = 24 * 3600

log = structlog.get_logger()


def open_redis(url: str) -> Redis:
    """A client that gives up on an unreachable server within seconds."""
    return Redis.from_url(url, socket_connect_timeout=2, health_check_interval=30)


def open_queue(redis: Redis, name: str = NAME) -> Queue:
    """A queue, with its serializer."""
    return Queue(name, connection=redis, serializer=JSONSerializer)


def later(queue: Queue, job: str, *ids: str) -> bool:
    """Hands `job` (a dotted name in tasks/) with ids as arguments to a worker; False when Redis is away.

    Nothing is lost then: the next sweep finds the same work in PostgreSQL.
    """
    try:
        enqueue(queue, job, *ids)
    except RedisError as fault:
        log.warning("queue_unreachable", job=job, error=type(fault).__name__)
        return False
    return True


def enqueue(queue: Queue, job: str, *ids: str) -> Any:
    """Like `later`, for a caller that must know: raises RedisError."""
    seconds = JOB_SECONDS[queue.name]
    return queue.enqueue(
        job, args=ids, job_timeout=seconds, result_ttl=0, failure_ttl=FAILURE_SECONDS, ttl=FAILURE_SECONDS
    )

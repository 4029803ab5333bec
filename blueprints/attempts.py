"""How many failed attempts an address has: counted in Redis for all processes, and in each process beside it.

A Redis that is away, or was killed and forgot, gives nobody more attempts than the processes themselves count.

Only failures are counted and only they are answered 429, so that nobody is locked out of a good token by a
neighbour behind the same address. The `limits` library keeps the windows.
"""

from __future__ import annotations

import time
from contextlib import suppress
from functools import cache

from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage, RedisStorage
from limits.strategies import FixedWindowRateLimiter
from redis import Redis
from redis.exceptions import RedisError

from models.errors import RateLimited
from tasks.resources import Resources

FAILURES = RateLimitItemPerMinute(30)  # from one address


def count_failure(resources: Resources, address: str | None) -> None:
    """Counts a failed attempt. Raises RateLimited when there were too many within a minute."""
    name = address or "unknown"
    limiter = _local()
    allowed = limiter.hit(FAILURES, "token", name)
    if allowed:
        with suppress(RedisError):
            limiter = _shared(resources.redis)
            allowed = limiter.hit(FAILURES, "token", name)
    if not allowed:
        raise RateLimited(
            "Too many failed attempts from this address. Wait a minute.", retry_after=_wait(limiter, name)
        )


def forget() -> None:
    """Forgets what this process counted by itself; the shared counts are Redis' own."""
    _local.cache_clear()


def _wait(limiter: FixedWindowRateLimiter, name: str) -> int:
    try:
        return max(1, int(limiter.get_window_stats(FAILURES, "token", name).reset_time - time.time()) + 1)
    except RedisError:
        return 60


@cache
def _local() -> FixedWindowRateLimiter:
    return FixedWindowRateLimiter(MemoryStorage())


@cache
def _shared(redis: Redis) -> FixedWindowRateLimiter:
    storage = RedisStorage("redis://", connection_pool=redis.connection_pool, key_prefix="allgone:attempts")
    return FixedWindowRateLimiter(storage)

"""How many attempts an address or an account has: counted in Redis for all processes, and in each process beside it.

A Redis that is away, or was killed and forgot, gives nobody more attempts than the processes themselves count.

| limit | of what | counted by |
|---|---|---|
| TOKENS | failures with a bearer token | address |
| PASSWORDS | tries with a password, good ones too | address |
| ACCOUNT | tries since the last good one | the account that is named, whether there is one or not |
| PROVIDER | ways begun and ended at the identity provider | address |

For a token, which nobody can guess, only failures are counted and only they are answered 429, so that nobody is
locked out by a neighbour behind the same address. A password can be guessed: a try is counted before it is looked
at, so that many at once gain nothing. The `limits` library keeps the windows.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from hashlib import sha256

from limits import RateLimitItem, RateLimitItemPerMinute
from limits.storage import MemoryStorage, RedisStorage
from limits.strategies import FixedWindowRateLimiter
from redis import Redis
from redis.exceptions import RedisError

from models.errors import RateLimited
from tasks.resources import Resources


@dataclass(frozen=True, slots=True)
class Limit:
    """So many in such a window, under a name of its own; `said` is what the one too many hears."""

    name: str
    window: RateLimitItem
    said: str


TOKENS = Limit(
    "token", RateLimitItemPerMinute(30), "Too many failed attempts from this address. Wait a minute."
)
PASSWORDS = Limit(
    "password", RateLimitItemPerMinute(30), "Too many attempts from this address. Wait a minute."
)
ACCOUNT = Limit(
    "account",
    RateLimitItemPerMinute(10, 15),
    "Too many attempts with passwords for this address. Wait a quarter of an hour, or sign in by a link.",
)
PROVIDER = Limit(
    "provider", RateLimitItemPerMinute(30), "Too many attempts from this address. Wait a minute."
)


def count_failure(resources: Resources, address: str | None) -> None:
    """Counts a failure with a token. Raises RateLimited when there were too many within a minute."""
    count(resources, TOKENS, address or "unknown")


def count(resources: Resources, limit: Limit, whose: str) -> None:
    """Counts one more of `whose`. Raises RateLimited, with the seconds to wait, when that is too many."""
    name = _short(whose)
    limiter = _local()
    allowed = limiter.hit(limit.window, limit.name, name)
    if allowed:
        with suppress(RedisError):
            limiter = _shared(resources.redis)
            allowed = limiter.hit(limit.window, limit.name, name)
    if not allowed:
        raise RateLimited(limit.said, retry_after=_wait(limiter, limit, name))


def forget() -> None:
    """Forgets what this process counted by itself; the shared counts are Redis' own."""
    _local.cache_clear()


def forgive(resources: Resources, limit: Limit, whose: str) -> None:
    """Forgets what was counted of `whose`, who has shown to be nobody who guesses."""
    name = _short(whose)
    _local().clear(limit.window, limit.name, name)
    try:
        _shared(resources.redis).clear(limit.window, limit.name, name)
    except RedisError:
        return


def _short(whose: str) -> str:
    # No address of a reader or a user stands in Redis as it is; and a long one costs no more than a short one.
    return sha256(whose.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _wait(limiter: FixedWindowRateLimiter, limit: Limit, name: str) -> int:
    try:
        left = limiter.get_window_stats(limit.window, limit.name, name).reset_time - time.time()
    except RedisError:
        return 60
    return max(1, int(left) + 1)


@cache
def _local() -> FixedWindowRateLimiter:
    return FixedWindowRateLimiter(MemoryStorage())


@cache
def _shared(redis: Redis) -> FixedWindowRateLimiter:
    storage = RedisStorage("redis://", connection_pool=redis.connection_pool, key_prefix="allgone:attempts")
    return FixedWindowRateLimiter(storage)

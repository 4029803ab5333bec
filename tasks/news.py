"""Telling every process that a conversation has news, so that live streams look at once.

A hint through Redis that may be lost: whoever streams asks PostgreSQL every second anyway. So it never fails its
caller, and a Redis that is away costs one time-out in five seconds.
"""

from __future__ import annotations

import time

from redis.exceptions import RedisError

from tasks.resources import Resources

CHANNEL = "allgone:news"
QUIET_SECONDS = 5.0

_quiet_until = 0.0


def tell(resources: Resources, session_id: str) -> None:
    """Names a conversation that was appended to, decided in, or deleted; call it after the commit."""
    global _quiet_until
    if time.monotonic() < _quiet_until:
        return
    try:
        resources.redis.publish(CHANNEL, session_id)
    except RedisError:
        _quiet_until = time.monotonic() + QUIET_SECONDS

"""What one process works with: the settings, the two engines, the byte store and the queues.

A process opens them once. A forked work-horse must not share its parent's sockets, so workers open theirs in the
child (`in_this_process`), and nothing is opened before a fork.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from redis import Redis
from rq import Queue
from sqlalchemy import Engine

from models.base import open_engine
from models.bytestore import ByteStore, open_store
from models.settings import Settings, load
from tasks.queues import IMPORTS, open_queue, open_redis

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Resources:
    """The open ends of one process."""

    settings: Settings
    engine: Engine
    reader: Engine
    store: ByteStore
    redis: Redis
    queue: Queue
    imports: Queue


def from_environment() -> Settings:
    """The settings of this process: its environment over `.env` beside app.py."""
    return load(os.environ, ROOT / ".env")


def assemble(settings: Settings, engine: Engine, reader: Engine) -> Resources:
    """Resources around engines that someone else opened and will dispose."""
    redis = open_redis(settings.redis_url)
    # Never made here: the bare mount point of an unmounted disk would pass for a new store (tasks/store.py).
    store = open_store(settings.object_store_url, settings.aws, make=False)
    return Resources(settings, engine, reader, store, redis, open_queue(redis), open_queue(redis, IMPORTS))


def open_resources(settings: Settings) -> Resources:
    """Resources for a process outside Flask: a job, a command, the scheduler, a test."""
    return assemble(
        settings, open_engine(settings.database_url), open_engine(settings.database_url, reader=True)
    )


def in_this_process() -> Resources:
    """The resources of this very process: opened at the first call, and afresh in a forked child."""
    return _opened(os.getpid())


@cache
def _opened(_process: int) -> Resources:
    return open_resources(from_environment())

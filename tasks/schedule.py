"""What runs when, on one page; `python -m tasks.schedule` is the scheduler process.

| job | every | why |
|---|---|---|
| tasks.outbox.drain | 60 s | finds bytes that are owed even if Redis lost everything |
| tasks.upkeep.expire_runs | each tick | a dead worker locks nobody out: the shortest lease is 5 s |
| tasks.imports.jobs.sweep | 5 s | an import whose worker was killed goes on, also if Redis lost everything |
| tasks.closing.sweep | 30 s | a closed account is emptied, also if a worker died or Redis lost everything |
| tasks.upkeep.expire_sign_ins | 1 h | links that are over, sign-ins that have been over for a month |
| tasks.upkeep.derive_titles | 1 h | titles of conversations older than the title's write path |
| tasks.upkeep.index_older | 60 s | conversations older than search; nothing to do costs one look |
| tasks.upkeep.let_go_of_files | 60 s | an export that was worked on during a deletion may hold what was deleted |
| tasks.upkeep.expire_keys | 1 h | an Idempotency-Key is kept 24 hours |

A turn is a row in PostgreSQL, taken in the transaction that also enqueues, so any number of schedulers may run
and a turn that Redis refused is not lost.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Sequence
from datetime import timedelta

import structlog
from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from models import schedule
from models.errors import Misconfigured
from tasks.logs import configure
from tasks.queues import enqueue
from tasks.resources import Resources, from_environment, open_resources

TICK_SECONDS = 2.0
ENTRIES: Sequence[tuple[str, timedelta]] = (
    ("tasks.outbox.drain", timedelta(seconds=60)),
    ("tasks.upkeep.expire_runs", timedelta(seconds=1)),
    ("tasks.imports.jobs.sweep", timedelta(seconds=5)),
    ("tasks.closing.sweep", timedelta(seconds=30)),
    ("tasks.upkeep.expire_sign_ins", timedelta(hours=1)),
    ("tasks.upkeep.derive_titles", timedelta(hours=1)),
    ("tasks.upkeep.index_older", timedelta(seconds=60)),
    ("tasks.upkeep.let_go_of_files", timedelta(seconds=60)),
    ("tasks.upkeep.expire_keys", timedelta(hours=1)),
)

log = structlog.get_logger()


def tick(resources: Resources) -> list[str]:
    """Notes the heartbeat and hands out what is due; returns the names handed out. Raises when a server is away."""
    with Session(resources.engine) as db, db.begin():
        schedule.beat(db)
    handed = []
    for name, every in ENTRIES:
        with Session(resources.engine) as db, db.begin():
            if schedule.take_turn(db, name, every):
                enqueue(resources.queue, name)
                handed.append(name)
    return handed


def run(resources: Resources, stop: threading.Event) -> None:
    """Ticks until `stop`; a server that is away is logged once and tried again at the next tick."""
    away = ""
    while not stop.is_set():
        try:
            tick(resources)
            away = ""
        except (RedisError, SQLAlchemyError) as fault:
            if away != (away := type(fault).__name__):
                log.warning("scheduler_waits", error=away)
        stop.wait(TICK_SECONDS)


def main() -> int:
    """The scheduler process; ends on SIGTERM or SIGINT."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        resources = open_resources(from_environment())
    except Misconfigured as fault:
        print(fault, file=sys.stderr)  # noqa: T201  a start that fails says so in one line
        return 1
    configure()
    run(resources, stop)
    return 0


if __name__ == "__main__":
    sys.exit(main())

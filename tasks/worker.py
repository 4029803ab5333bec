"""`python -m tasks.worker [QUEUE …]`: one RQ worker, of both queues unless some are named.

An import may take hours, and holds its worker for as long; so one worker at least should not take any.

It forks a work-horse for each job; nothing is opened before the fork, so no socket is shared (PARTS.md, RQ 3.0).
A killed worker's job is picked up by the sweep, whose truth is in PostgreSQL; its leavings are cleaned every 15 s.
"""

from __future__ import annotations

import sys

from rq import Worker
from rq.serializers import JSONSerializer

from models.errors import Misconfigured
from tasks.logs import configure
from tasks.queues import IMPORTS, NAME, open_queue, open_redis
from tasks.resources import from_environment


def main() -> int:
    """Works until SIGTERM, which lets a running job end first."""
    names = sys.argv[1:] or [NAME, IMPORTS]
    if not {*names} <= {NAME, IMPORTS}:
        print(f"A queue is {NAME} or {IMPORTS}, not {' '.join(names)}", file=sys.stderr)  # noqa: T201
        return 2
    try:
        settings = from_environment()
    except Misconfigured as fault:
        print(fault, file=sys.stderr)  # noqa: T201  a start that fails says so in one line
        return 1
    configure()
    redis = open_redis(settings.redis_url)
    worker = Worker(
        [open_queue(redis, name) for name in names],
        connection=redis,
        serializer=JSONSerializer,
        worker_ttl=30,
        maintenance_interval=15,
        log_job_description=False,
    )
    worker.work(logging_level="WARNING")
    return 0


if __name__ == "__main__":
    sys.exit(main())

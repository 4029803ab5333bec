"""Draining the outbox: claim, let the bytes go, settle; one transaction a batch of up to a thousand.

Killed anywhere, a batch is rolled back and its rows are found again; run twice, the second finds them gone.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import structlog
from sqlalchemy import text
from sqlalchemy.orm import Session

from models import outbox
from tasks.queues import later
from tasks.resources import Resources, in_this_process

JOB = "tasks.outbox.drain"
DRAIN_SECONDS = 300.0  # how long one job works before it hands over to a fresh one
INLINE_THREADS = 4  # deletions whose bytes are tried beside requests at the same time

log = structlog.get_logger()
_inline = threading.BoundedSemaphore(INLINE_THREADS)


@dataclass(frozen=True, slots=True)
class Drained:
    """What a drain did: objects confirmed gone, and tries that failed."""

    gone: int = 0
    failed: int = 0


def drain_batch(resources: Resources, *, session_id: str | None = None) -> Drained | None:
    """Claims one batch of what is due, lets its bytes go, settles it. None when nothing was due."""
    with _claiming(resources) as db:
        keys = outbox.claim_due(db, session_id=session_id)
        return _let_go(resources, db, keys) if keys else None


@contextmanager
def _claiming(resources: Resources) -> Iterator[Session]:
    with Session(resources.engine) as db, db.begin():
        # A slow store must not cost the claim: the connections' own bound is for forgotten transactions. And a
        # settlement that a crash takes back is only made again, so no batch waits for the disk, whose journal is
        # busy with what it has just unlinked.
        db.execute(
            text(
                "SELECT set_config('idle_in_transaction_session_timeout', '10min', true), "
                "set_config('synchronous_commit', 'off', true)"
            )
        )
        yield db


def _let_go(resources: Resources, db: Session, keys: Sequence[str]) -> Drained:
    failed = resources.store.delete(keys)
    chances = [random.random() for _ in failed]  # noqa: S311  spreads retries, guards nothing
    gone = outbox.settle(db, keys, failed, chances)
    if failed:
        log.warning("bytes_still_owed", count=len(failed), errors=sorted(set(failed.values())))
    return Drained(gone, len(failed))


def drain_due(resources: Resources, seconds: float = DRAIN_SECONDS) -> Drained:
    """Drains what is due, batch after batch, until nothing is or `seconds` have passed."""
    deadline = time.monotonic() + seconds
    gone = failed = 0
    while time.monotonic() < deadline:
        batch = drain_batch(resources)
        if batch is None:
            break
        gone, failed = gone + batch.gone, failed + batch.failed
    return Drained(gone, failed)


def drain_all(resources: Resources) -> Drained:
    """Tries everything owed once, also what backs off: for an operator who has mended the store."""
    gone, failed, last = 0, 0, ""
    while True:
        with _claiming(resources) as db:
            keys = outbox.claim_after(db, last)
            if not keys:
                return Drained(gone, failed)
            batch = _let_go(resources, db, keys)
        gone, failed, last = gone + batch.gone, failed + batch.failed, keys[-1]


def drain_soon(resources: Resources, session_id: str, seconds: float) -> bool:
    """Lets one conversation's bytes go now, for at most `seconds`; True when none was left owed.

    The work runs beside the caller, so that a store that hangs costs the budget and no more: it goes on or
    fails there, with its rows locked, and the sweep finds what it leaves.
    """
    done = threading.Event()
    if not _inline.acquire(blocking=False):
        return False

    def work() -> None:
        try:
            while (batch := drain_batch(resources, session_id=session_id)) and not batch.failed:
                pass
            if not batch:
                done.set()
        except Exception as fault:  # noqa: BLE001  the rows are safe in PostgreSQL, and a worker will meet the fault again
            log.warning("inline_drain_failed", error=type(fault).__name__)
        finally:
            _inline.release()
            finished.set()

    finished = threading.Event()
    threading.Thread(target=work, name="inline-drain", daemon=True).start()
    finished.wait(seconds)
    return done.is_set()


def drain_later(resources: Resources) -> bool:
    """Wakes a worker to drain what is due."""
    return later(resources.queue, JOB)


def drain() -> None:
    """The job: drains what is due."""
    drained = drain_due(in_this_process())
    if drained.gone or drained.failed:
        log.info("outbox_drained", gone=drained.gone, failed=drained.failed)

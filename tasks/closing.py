"""Closing an account: the transaction, then a job that goes on until nothing is left (models/closing.py).

What is to be emptied stands in PostgreSQL; the job holds a lease of a minute, renews it while it works, and hands
over to a fresh one before it is too old. So neither a killed worker nor an emptied queue leaves anything: the sweep
finds the account again. Conversations go one by one through Delete Everywhere; one that cannot go now keeps no other
from going.
"""

from __future__ import annotations

import time

import structlog
from sqlalchemy.orm import Session

from models import closing
from models.accounts import Owner
from models.errors import InvalidState, NotFound
from tasks.deletion import delete_now
from tasks.outbox import drain_later
from tasks.queues import later
from tasks.resources import Resources, in_this_process

JOB = "tasks.closing.empty"
WORK_SECONDS = 240.0  # before a job hands over to a fresh one
RENEW_SECONDS = 5.0  # between two renewals of the lease, and two calls for somebody to let the bytes go
FIRST = "00000000-0000-0000-0000-000000000000"

log = structlog.get_logger()


class _OutOfTime(Exception):
    """The job has worked for long enough."""


def close_account(resources: Resources, owner: Owner) -> None:
    """Closes an account. After this returns nobody gets in, and a worker removes what it holds.

    Raises InvalidState("last_operator"). A queue that is away costs nothing but the wait for the sweep.
    """
    with Session(resources.engine) as db, db.begin():
        closing.close(db, owner.principal_id)
    log.info("account_closed", principal_id=owner.principal_id)
    later(resources.queue, JOB, owner.principal_id)


def empty(principal_id: str) -> None:
    """The job: removes what a closed account holds, unless another job is at it."""
    empty_account(in_this_process(), principal_id)


def empty_account(resources: Resources, principal_id: str, seconds: float = WORK_SECONDS) -> bool:
    """Removes what a closed account holds, for about `seconds`; True when nothing of it was left to remove."""
    with Session(resources.engine) as db, db.begin():
        owner = closing.claim(db, principal_id)
    if owner is None:
        return False
    try:
        left = _Emptying(resources, owner, seconds).work()
    except _OutOfTime:
        _let_go(resources, owner)
        later(resources.queue, JOB, principal_id)
        return False
    _let_go(resources, owner)
    return not left


def sweep() -> None:
    """The job that finds accounts which were closed, are not empty, and that nobody is emptying."""
    resources = in_this_process()
    with Session(resources.engine) as db:
        waiting = closing.due(db)
    for principal_id in waiting:
        later(resources.queue, JOB, principal_id)


def _let_go(resources: Resources, owner: Owner) -> None:
    with Session(resources.engine) as db, db.begin():
        closing.let_go(db, owner)


class _Emptying:
    """One job's work on one account; it holds the lease."""

    def __init__(self, resources: Resources, owner: Owner, seconds: float) -> None:
        self._resources, self._owner = resources, owner
        self._until = time.monotonic() + seconds
        self._renewed_at = time.monotonic()
        self._owed = False

    def work(self) -> int:
        """Removes everything; returns how many conversations could not be removed now. Raises _OutOfTime."""
        try:
            left = self._conversations()
        finally:
            self._wake()
        if left:
            return left  # the sweep comes back to them
        while self._forget_some():
            self._breathe()
        with Session(self._resources.engine) as db, db.begin():
            closing.clear(db, self._owner)
            if closing.settle(db, self._owner):
                log.info("account_emptied", principal_id=self._owner.principal_id)
        return 0

    def _forget_some(self) -> int:
        with Session(self._resources.engine) as db, db.begin():
            return closing.forget_some(db, self._owner)

    def _conversations(self) -> int:
        left, last = 0, FIRST
        while True:
            with Session(self._resources.engine) as db:
                ids = closing.conversations(db, self._owner, last)
            if not ids:
                return left
            for session_id in ids:
                left += not self._delete(session_id)
                self._breathe()
            last = ids[-1]

    def _delete(self, session_id: str) -> bool:
        try:
            self._owed |= self._without_run(session_id)
        except Exception as fault:  # noqa: BLE001  whatever ails one keeps no other from going; the sweep comes back
            log.warning("conversation_left", session_id=session_id, error=type(fault).__name__)
            return False
        return True

    def _without_run(self, session_id: str) -> bool:
        """Deletes a conversation everywhere, ending its run; whether its bytes are owed."""
        try:
            return delete_now(self._resources, self._owner, session_id, budget=None).bytes_owed
        except InvalidState:
            with Session(self._resources.engine) as db, db.begin():
                closing.stop_run(db, self._owner, session_id)
            return delete_now(self._resources, self._owner, session_id, budget=None).bytes_owed
        except NotFound:
            return False  # somebody else deleted it just now

    def _breathe(self) -> None:
        now = time.monotonic()
        if now - self._renewed_at > RENEW_SECONDS:
            self._renewed_at = now
            with Session(self._resources.engine) as db, db.begin():
                closing.renew(db, self._owner)
            self._wake()
        if now > self._until:
            raise _OutOfTime

    def _wake(self) -> None:
        if self._owed:
            drain_later(self._resources)
            self._owed = False

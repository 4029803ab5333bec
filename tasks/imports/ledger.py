"""What a worker holds while it works on an import: the lease, the counts, and the wish of its owner to stop.

A conversation and its being counted are one transaction, which also names the lease. So a killed worker leaves counts
that say exactly how far it came, the next one passes over as many conversations of the file as are counted, and a
worker that was given up in the meantime can write nothing more. Failures are written as they happen, the rest of
what only counts twice a second.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar

import structlog
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from models import accounts, imports
from models.accounts import Owner
from models.ids import new_id
from tasks.imports.importer import Result
from tasks.imports.parsed import Parsed
from tasks.imports.writing import Halt, Witness
from tasks.outbox import drain_later
from tasks.resources import Resources

SAVE_SECONDS = 0.5
BEAT_SECONDS = imports.LEASE.total_seconds() / 3
ORIGINS = {
    "example": "example"
}  # what a conversation says of its origin, where that is not the export's format
T = TypeVar("T")

log = structlog.get_logger()


class Stopped(Halt):
    """Its owner wants it to stop."""


class Superseded(Halt):
    """Another worker has it now, or it is gone. Nothing more of ours is written."""


def take(resources: Resources, import_id: str) -> Ledger | None:
    """The ledger of an import that waits or whose worker was given up; None when there is nothing to take."""
    lease_id = new_id()
    with Session(resources.engine) as db, db.begin():
        row = imports.claim(db, import_id, lease_id)
        if row is None:
            return None
        owner = db.get_one(accounts.Principal, row.principal_id).owner
        return Ledger(resources, owner, row, lease_id)


class Ledger(Witness):
    """Of one import and one worker. In a `with`, it renews its lease from a thread of its own."""

    def __init__(self, resources: Resources, owner: Owner, row: imports.Import, lease_id: str) -> None:
        self.resources, self.owner = resources, owner
        self.import_id, self.lease_id = row.id, lease_id
        self.kind, self.state, self.upload, self.again = row.kind, row.state, row.upload, row.again
        self.file_name, self.attempts, self.stopping = row.file_name, row.attempts, row.cancel_requested
        self.total, self.removed = row.total, row.removed
        self.result = Result(
            imported=row.imported,
            already_there=row.already_there,
            skipped=row.skipped,
            failed=row.failed,
            replaced=row.replaced,
            files_left=row.files_left,
        )
        self._created = row.created
        self._imported = row.imported
        self._placed: str | None = None
        self._new = False
        self._told = 0  # of the failures in `result`, those that are written down
        self._saved_at = 0.0
        self._done = threading.Event()
        self._beating = threading.Thread(target=self._beat, name="import-lease", daemon=True)

    def __enter__(self) -> Self:
        self._beating.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._done.set()
        self._beating.join()

    # -- hearing of an import ---------------------------------------------------------------------------------

    def placed(self, session_id: str) -> None:
        self._placed, self._new = session_id, False

    def written(
        self, db: Session, session_id: str, parsed: Parsed, *, created: bool, files_left: int
    ) -> None:
        self._new = created
        counted = self._counts()
        counted["imported"] += 1
        counted["replaced"] += parsed.replaced
        counted["files_left"] += files_left
        if created:
            counted["created"] += 1
            imports.mark(db, session_id, self.import_id, ORIGINS.get(self.kind))
        self._save(db, {**counted, "attempts": 0})

    def looked_at(self, position: int, length: int, result: Result) -> None:
        """The importer's progress: one more was looked at. Raises Stopped, Superseded."""
        new = result.failures[self._told :]
        self._told = len(result.failures)
        failed = [imports.Failure(one["conversation"], one["reason"], self._placed) for one in new]
        self._created += self._new and result.imported > self._imported
        self._placed, self._new, self._imported = None, False, result.imported
        self._saved(self._counts(), failed)

    def fetching(self) -> None:
        """A piece of the file is here. Raises Stopped, Superseded."""
        self._saved({})

    def counted(self, position: int, length: int) -> None:
        """The progress of counting the file. Raises Stopped, Superseded."""
        self._saved({"position": position, "length": length})

    def begin(self, total: int, kind: str) -> None:
        """The file has `total` conversations, in a format of that name. Raises Superseded."""
        self.total = total
        self.write(lambda db: self._save(db, {"total": total, "format": kind or None}))

    # -- writing it down --------------------------------------------------------------------------------------

    def write(self, verb: Callable[[Session], T]) -> T:
        """One transaction of this worker's. Raises Superseded."""
        try:
            with Session(self.resources.engine) as db, db.begin():
                return verb(db)
        except imports.LeaseLost:
            raise Superseded from None

    def removing(self, db: Session) -> None:
        """Counts one removed conversation, in the transaction that removes it."""
        self._save(db, {"removed": self.removed + 1, "attempts": 0})

    def end(self, state: str, error: str | None = None, *, keep: bool = False) -> None:
        """It is over, with its last counts; `keep` keeps the file for an hour. Raises Superseded."""

        def write(db: Session) -> None:
            # A file of no known kind was never looked into: its one failure is still to be written.
            left = [
                imports.Failure(one["conversation"], one["reason"])
                for one in self.result.failures[self._told :]
            ]
            self._save(db, {**self._counts(), "total": self.total or self.result.total}, left)
            imports.end(db, self.import_id, self.lease_id, state, error, keep=keep)

        self.write(write)
        drain_later(self.resources)
        log.info("import_over", import_id=self.import_id, state=state, reason=error, **self._counts())

    def release(self, error: str) -> None:
        """Leaves it to be tried again in a moment. Raises Superseded."""
        self.write(lambda db: imports.release(db, self.import_id, self.lease_id, error))
        log.warning("import_waits", import_id=self.import_id, reason=error)

    def _counts(self) -> dict[str, int]:
        result = self.result
        return {
            "imported": result.imported,
            "created": self._created,
            "already_there": result.already_there,
            "skipped": result.skipped,
            "failed": result.failed,
            "replaced": result.replaced,
            "files_left": result.files_left,
        }

    def _saved(self, values: Mapping[str, Any], failed: list[imports.Failure] | None = None) -> None:
        if failed or time.monotonic() - self._saved_at >= SAVE_SECONDS:
            self.write(lambda db: self._save(db, values, failed))
        if self.stopping:
            raise Stopped

    def _save(
        self, db: Session, values: Mapping[str, Any], failed: list[imports.Failure] | None = None
    ) -> None:
        try:
            self.stopping = imports.save(db, self.import_id, self.lease_id, values, failed or [])
        except imports.LeaseLost:
            raise Superseded from None
        self._saved_at = time.monotonic()

    def _beat(self) -> None:
        while not self._done.wait(BEAT_SECONDS):
            try:
                with Session(self.resources.engine) as db, db.begin():
                    imports.beat(db, self.import_id, self.lease_id)
            except imports.LeaseLost:
                return  # the next write of the worker meets it, too
            except SQLAlchemyError as fault:
                log.warning("import_lease_not_renewed", error=type(fault).__name__)

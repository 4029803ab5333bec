"""The jobs of imports: one takes an import and does what its row says, one finds those that nobody works on.

Either may run twice at once and may be killed anywhere: the row says what is to be done, and whoever works holds its
lease (`ledger`). Nothing of an import is in Redis but its id, and a fault is logged by its kind alone.

| what happens | the import |
|---|---|
| the worker is killed, the machine dies | goes on where it was as soon as the lease has run out |
| PostgreSQL or the store is away or full | waits, and is tried again every 15 s for as long as its file is kept |
| the same place ends its worker ATTEMPTS times | failed, `interrupted` |
| its file is not in the store any more | failed, `file_gone` |
| the worker's disk has no room for the file | failed, `no_room` |
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import structlog
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from models import import_requests, imports
from models.bytestore import Missing, StoreFault
from tasks.imports.arriving import shown_name
from tasks.imports.importer import Progress, Result, count_conversations, import_export
from tasks.imports.ledger import Ledger, Stopped, Superseded, take
from tasks.imports.undoing import undo
from tasks.queues import enqueue, later
from tasks.resources import Resources, in_this_process

WORK = "tasks.imports.jobs.work"
ATTEMPTS = 5

log = structlog.get_logger()


class NoRoom(Exception):
    """This machine has no room for the file."""


def work_later(resources: Resources, import_id: str) -> bool:
    """Wakes a worker for an import; False when Redis is away, and then the sweep does it."""
    return later(resources.imports, WORK, import_id)


def work(import_id: str) -> None:
    """The job: takes the import, if there is anything to do, and does it."""
    work_on(in_this_process(), import_id)


def sweep() -> None:
    """The job that queues again what nobody works on."""
    resources = in_this_process()
    with Session(resources.engine) as db, db.begin():
        for import_id in imports.due(db):
            enqueue(resources.imports, WORK, import_id)  # raises when Redis is away: then they stay due


def work_on(resources: Resources, import_id: str, path: Path | None = None) -> None:
    """Does what an import's row says; `path` is its file where that lies at hand.

    Raises SQLAlchemyError alone, when the database is away from the start.
    """
    ledger = take(resources, import_id)
    if ledger is None:
        return
    try:
        with ledger:
            _work(ledger, path)
    except Superseded:
        log.info("import_superseded", import_id=import_id)
    except Exception as fault:  # noqa: BLE001  its text may hold a title; the lease runs out, and it is tried again
        log.error("import_interrupted", import_id=import_id, error=type(fault).__name__)


def _work(ledger: Ledger, path: Path | None) -> None:
    undoing = ledger.state == "undoing"
    try:
        if ledger.stopping:
            raise Stopped
        if ledger.attempts > ATTEMPTS:
            ledger.end("undone" if undoing else "failed", "interrupted", keep=not undoing)
        elif undoing:
            undo(ledger)
        elif path is not None:
            _import(ledger, path)
        else:
            with _fetched(ledger) as fetched:
                _import(ledger, fetched)
    except Stopped:
        ledger.end("undone" if undoing else "stopped", keep=not undoing)
    except Missing:
        ledger.end("failed", "interrupted" if ledger.kind == "command" else "file_gone")
    except NoRoom:
        ledger.end("failed", "no_room", keep=True)
    except StoreFault as fault:
        log.warning("import_store_unreachable", fault=fault.fault)
        ledger.release("store_away")
    except SQLAlchemyError as fault:
        log.warning("import_database_unreachable", error=type(fault).__name__)
        with suppress(SQLAlchemyError):
            ledger.release("database_away")


def _import(ledger: Ledger, path: Path) -> None:
    if not ledger.total:
        ledger.begin(*count_conversations(path, ledger.counted))
    result = import_export(
        ledger.resources,
        ledger.owner.principal_id,
        path,
        again=ledger.again,
        progress=ledger.looked_at,
        witness=ledger,
        result=ledger.result,
        name=ledger.file_name,
    )
    if result.ended_early:
        with suppress(SQLAlchemyError):
            ledger.release("database_away")
        return
    if result.unknown:
        ledger.end("failed", "unknown_kind")
        return
    ledger.end("done", keep=bool(result.skipped or result.failed))


def import_here(
    resources: Resources, principal_id: str, path: Path, *, again: bool, progress: Progress
) -> Result:
    """An import of a file at hand, in this process, with a row of its own so that it is listed and can be undone.

    Raises what `import_export` raises. Ended early or interrupted, its row says so, where PostgreSQL still takes that.
    """
    with Session(resources.engine) as db, db.begin():
        made = import_requests.create(
            db, principal_id, kind="command", file_name=shown_name(path.name), size=_size(path), again=again
        )
        import_id = made.id
    ledger = take(resources, import_id)
    assert ledger is not None, "nobody else knows it"

    def looked_at(position: int, length: int, result: Result) -> None:
        ledger.looked_at(position, length, result)
        progress(position, length, result)

    with ledger:
        try:
            result = import_export(
                resources,
                principal_id,
                path,
                again=again,
                progress=looked_at,
                witness=ledger,
                result=ledger.result,
            )
        except BaseException:
            with suppress(SQLAlchemyError, Superseded):
                ledger.end("stopped")
            raise
        with suppress(SQLAlchemyError, Superseded):
            if result.ended_early:
                ledger.end("failed", "database_away")
            else:
                ledger.end(*("failed", "unknown_kind") if result.unknown else ("done", None))
    return result


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except (OSError, ValueError):
        return 0


@contextmanager
def _fetched(ledger: Ledger) -> Iterator[Path]:
    """The file on this machine for as long as the block lasts. It has no name, so a killed worker leaves nothing.

    Raises Missing, StoreFault, NoRoom.
    """
    if ledger.upload is None:
        raise Missing(ledger.import_id)
    store, folder = ledger.resources.store, ledger.resources.settings.data_dir
    with tempfile.TemporaryFile(dir=folder, prefix="import-") as file:
        try:
            for chunk in store.open(ledger.upload):
                file.write(chunk)
                ledger.fetching()
            file.flush()
        except OSError as fault:
            if fault.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise NoRoom from None
            raise
        yield Path(f"/dev/fd/{file.fileno()}" if os.path.exists("/dev/fd") else file.name)  # noqa: PTH110

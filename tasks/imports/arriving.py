"""A file on its way in: bytes into the store under a key that is owed a deletion until its import is over.

The store is the only way from a web process to a worker, which may be on another host. The key is reserved before the
first byte (models/artifacts.py) and stays reserved while the import works (models/imports.py), so a crash anywhere
leaves bytes that the outbox removes when the reservation runs out, within six hours.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy.orm import Session

from models import artifacts, import_requests, outbox
from models.accounts import Owner
from models.bytestore import Missing
from models.errors import Invalid
from models.ids import new_id
from tasks.imports.fields import base_name
from tasks.outbox import drain_later
from tasks.resources import Resources

EMPTY = "This file is empty, so nothing was imported. Choose the file that the export gave you."


def arrive(
    resources: Resources, owner: Owner, file_name: str, chunks: Iterable[bytes], *, again: bool = False
) -> str:
    """Stores `chunks` and queues their import; returns its id. The caller wakes a worker.

    Whatever goes wrong, the bytes are owed a deletion at once. Raises Invalid("file") for an empty file,
    InvalidState when too many imports are under way, and what the store and `chunks` raise.
    """
    import_id = new_id()
    with Session(resources.engine) as db, db.begin():
        import_requests.refuse_many(db, owner)
        key = artifacts.reserve(db, import_id)
    try:
        stored = resources.store.put(key, chunks)
        if not stored.size:
            raise Invalid("file", EMPTY)
        with Session(resources.engine) as db, db.begin():
            import_requests.create(
                db,
                owner.principal_id,
                kind="file",
                file_name=shown_name(file_name),
                size=stored.size,
                upload=key,
                again=again,
                import_id=import_id,
            )
    except BaseException as fault:
        with Session(resources.engine) as db, db.begin():
            outbox.give_up(db, key)
        drain_later(resources)
        if isinstance(fault, Missing):
            raise artifacts.expired() from None
        raise
    return import_id


def shown_name(name: str) -> str:
    """A file's name as it is shown: its last component, without what moves a cursor, turns text round or is no text."""
    return base_name("".join(c for c in name.encode("utf-8", "replace").decode() if c.isprintable()))

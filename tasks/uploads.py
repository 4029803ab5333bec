"""Bytes into the store under a key that is owed a deletion until their row is written (models/artifacts.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from sqlalchemy.orm import Session

from models import artifacts, outbox
from models.bytestore import Missing, Stored
from tasks.outbox import drain_later
from tasks.resources import Resources

T = TypeVar("T")


def upload(
    resources: Resources,
    session_id: str,
    chunks: Iterable[bytes],
    write: Callable[[Session, str, Stored], T],
) -> T:
    """Stores `chunks`, then calls `write(db, key, stored)` in the transaction that claims the key.

    Whatever goes wrong, from the first byte to the commit, the bytes are owed a deletion at once. Raises what
    the store, `chunks` or `write` raise, and InvalidState("upload_expired") when the key was given up meanwhile.
    """
    with Session(resources.engine) as db, db.begin():
        key = artifacts.reserve(db, session_id)
    try:
        stored = resources.store.put(key, chunks)
        with Session(resources.engine) as db, db.begin():
            written = write(db, key, stored)
            artifacts.claim(db, key)
    except Missing:
        give_up(resources, key)
        raise artifacts.expired() from None
    except BaseException:
        give_up(resources, key)
        raise
    return written


def give_up(resources: Resources, key: str) -> None:
    """Makes the bytes of a reserved key due for deletion now."""
    with Session(resources.engine) as db, db.begin():
        outbox.give_up(db, key)
    drain_later(resources)

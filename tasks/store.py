"""Making the local store once, and comparing rows and bytes ever after.

A local store is made with the schema, while the database names no bytes yet. Later a folder without the store's
marker is an unmounted disk, and is reported instead of being taken for a store from which everything is gone.

Bytes are nobody's when neither an artifact nor an outbox row names their key. An upload under way holds a
reservation in the outbox from before its first byte, so it is never mistaken for a leftover; as a second
guard, bytes younger than an hour are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice

from sqlalchemy import ARRAY, Engine, any_, exists, literal, select
from sqlalchemy.orm import Session

from models.artifacts import Artifact
from models.base import Id
from models.bytestore import Missing, open_store
from models.outbox import Owed, unexplained
from models.rules import BATCH
from models.settings import Settings
from tasks.resources import Resources

YOUNG = timedelta(hours=1)


@dataclass
class Found:
    """Object keys, sorted; `repaired` are those of `bytes_without_rows` that are gone now."""

    rows_without_bytes: list[str] = field(default_factory=list)
    bytes_without_rows: list[str] = field(default_factory=list)
    repaired: list[str] = field(default_factory=list)


def make_store(engine: Engine, settings: Settings) -> None:
    """Makes the local store unless bytes have been named already; other kinds of store are somebody else's to make."""
    with Session(engine) as db:
        named = db.execute(select(exists(select(Artifact.id)) | exists(select(Owed.key)))).scalar_one()
    if not named:
        open_store(settings.object_store_url, settings.aws)


def check_store(resources: Resources, now: datetime, *, repair: bool = False) -> Found:
    """Walks the whole store and the whole table, in batches. Raises StoreFault when the store does not answer."""
    found = Found()
    resources.store.check()
    listing = iter(resources.store.keys())
    while batch := list(islice(listing, BATCH)):
        found.bytes_without_rows += _unnamed(resources, [key for key, at in batch if now - at > YOUNG])
    for keys in _artifact_keys(resources):
        found.rows_without_bytes += [key for key in keys if not _there(resources, key)]
    found.bytes_without_rows.sort()
    found.rows_without_bytes.sort()
    if repair and found.bytes_without_rows:
        left = resources.store.delete(found.bytes_without_rows)
        found.repaired = [key for key in found.bytes_without_rows if key not in left]
    return found


def _unnamed(resources: Resources, keys: Sequence[str]) -> list[str]:
    if not keys:
        return []
    with Session(resources.engine) as db:
        unowed = unexplained(db, keys)
        # The outbox first: a purge moves a key from artifacts to the outbox, never back.
        named = select(Artifact.id).where(Artifact.id == any_(literal(list(unowed), ARRAY(Id()))))
        return sorted(unowed - set(db.scalars(named)))


def _artifact_keys(resources: Resources) -> Iterator[list[str]]:
    last = "00000000-0000-0000-0000-000000000000"
    while True:
        with Session(resources.engine) as db:
            page = select(Artifact.id).where(Artifact.id > last).order_by(Artifact.id).limit(BATCH)
            keys = list(db.scalars(page))
        if not keys:
            return
        yield keys
        last = keys[-1]


def _there(resources: Resources, key: str) -> bool:
    try:
        resources.store.size(key)
    except Missing:
        with Session(resources.engine) as db:  # deleted while we looked: then nothing is missing
            return db.get(Artifact, key) is None
    return True

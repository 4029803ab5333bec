"""One owner's memories on one engine, and what every verb needs of it: a connection, an identity, a clock, chance.

A change of what was deleted is committed, and synced, before what it deletes: `recording` is the one transaction and
`removing` the other, and `phase` names the point at which a crash would leave the rest to the next start (PRODUCT.md
4.4, Crash). A device keeps the two in two files; a ticket in each says whether a deletion that began was finished, so
that a start need not look at every memory to know (`whole`). It says so of a file that was brought back alone, too.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, FromClause, Table, delete, insert, literal, select
from sqlalchemy.dialects import postgresql, sqlite

from models import rules
from models.copies import Copy
from models.marks import Mark
from models.memorystore.tables import BEGUN, FACTS, FINISHED, MARKS, MEMORIES, NOBODY, RECORDS
from models.words import folded, plain, words

MANY = 500  # keys that one statement names
READS = "allgone.reads"  # in a connection's `info`: the transaction that begins will write nothing


class Place(NamedTuple):
    """Where a memory is."""

    workspace: str
    dataset: str


EVERYWHERE = Place(rules.EVERYWHERE, rules.RECORDINGS)


class Held(NamedTuple):
    """A memory as it is kept."""

    place: Place
    key: bytes
    text: str
    copy: Copy


@dataclass
class Store:
    """`clock` tells the time of this device, `chance` gives so many random bytes, `at` hears of each crash point."""

    db: Connection
    device: bytes
    clock: Callable[[], datetime]
    chance: Callable[[int], bytes]
    at: Callable[[str], None] = lambda _point: None
    principal: bytes = NOBODY

    @contextmanager
    def phase(self, point: str) -> Iterator[Connection]:
        """One transaction; `point` is heard of once it is committed."""
        with self.db.begin():
            yield self.db
        self.at(point)

    @contextmanager
    def recording(self, point: str) -> Iterator[bytes]:
        """The transaction of what is to be deleted or moved: records, marks, requests. Gives its ticket."""
        with self.phase(point):
            finished = BEGUN.c.ticket.in_(select(FINISHED.c.ticket))
            self.db.execute(delete(BEGUN).where(finished))
            ticket = secrets.token_bytes(16)  # nothing but its own row hangs on it
            self.db.execute(insert(BEGUN).values(ticket=ticket))
            yield ticket

    @contextmanager
    def removing(self, point: str, ticket: bytes) -> Iterator[Connection]:
        """The transaction of the memories that go, or go elsewhere, by what `recording` wrote."""
        with self.phase(point):
            yield self.db
            self.db.execute(delete(FINISHED).where(FINISHED.c.ticket.not_in(select(BEGUN.c.ticket))))
            self.db.execute(self.insert(FINISHED).values(ticket=ticket).on_conflict_do_nothing())

    def finish(self) -> None:
        """Says that all that began is finished. In the transaction that did it."""
        tickets = select(BEGUN.c.ticket)
        self.db.execute(
            self.insert(FINISHED)
            .from_select(["ticket"], tickets.where(literal(True)))
            .on_conflict_do_nothing()
        )

    def whole(self) -> bool:
        """True when every deletion that began was finished here."""
        open_ones = select(BEGUN.c.ticket).where(BEGUN.c.ticket.not_in(select(FINISHED.c.ticket)))
        return self.db.execute(open_ones.limit(1)).first() is None

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """One transaction that sees one moment of the files, and writes in none but a session's own tables.

        No writer waits for it.
        """
        self.db.info[READS] = True
        try:
            with self.db.begin():
                yield self.db
        finally:
            del self.db.info[READS]

    def mine(self, table: FromClause, place: Place | None = None) -> ColumnElement[bool]:
        """The condition that rows of a table are this owner's, and in one place."""
        found = table.c.principal_id == self.principal
        if place is not None:
            found = found & (table.c.workspace == place.workspace) & (table.c.dataset == place.dataset)
        return found

    def insert(self, table: Table) -> Any:
        """An INSERT that knows ON CONFLICT."""
        return (sqlite if self.db.dialect.name == "sqlite" else postgresql).insert(table)


def word_line(text: str) -> str:
    """A text's words in any script, as the search index takes them (`models/words.py`)."""
    return " ".join(word.text for word in words("".join(folded(plain(text)))))


def in_portions(keys: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """Some keys at a time."""
    return (keys[at : at + MANY] for at in range(0, len(keys), MANY))


def held(store: Store, place: Place, keys: Sequence[bytes]) -> Mapping[bytes, Held]:
    """Those of some keys that are kept in a place."""
    found = {}
    for some in in_portions(list(keys)):
        rows = select(*FACTS).where(store.mine(MEMORIES, place), MEMORIES.c.key.in_(some))
        found.update({row.key: as_held(row) for row in store.db.execute(rows)})
    return found


def as_held(row: Any) -> Held:
    """A row of the memories."""
    copy = Copy(row.made_at, row.recorded_device, row.logical_id, row.source, row.recorded_at)
    return Held(Place(row.workspace, row.dataset), row.key, row.text, copy)


def records(store: Store, place: Place, keys: Sequence[bytes]) -> Mapping[bytes, datetime]:
    """The times of those deletions of some keys that are known."""
    found = {}
    for some in in_portions(list(keys)):
        rows = select(RECORDS.c.key, RECORDS.c.deleted_at)
        found.update(
            dict(store.db.execute(rows.where(store.mine(RECORDS, place), RECORDS.c.key.in_(some))).all())
        )
    return found


def marks(store: Store, logical_ids: Sequence[bytes]) -> Mapping[bytes, Mark]:
    """The marks of those of some logical IDs that have one."""
    found = {}
    for some in in_portions(list(logical_ids)):
        rows = select(MARKS).where(store.mine(MARKS), MARKS.c.logical_id.in_(some))
        found.update({row.logical_id: as_mark(row) for row in store.db.execute(rows)})
    return found


def as_mark(row: Any) -> Mark:
    """A row of the marks."""
    return Mark(row.redacted_at, row.placed_at, row.workspace)

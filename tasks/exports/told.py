"""One conversation, read page by page and given whole or not at all.

Its events are immutable and dense, so pages read one after the other are one state of it; what is said meanwhile
comes along or does not. A conversation that is deleted while it is read raises `Gone`: half of it is never given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from tempfile import SpooledTemporaryFile
from typing import IO, Any

from sqlalchemy import Connection, func, select, union

from models import listing, reading, transcript
from models.accounts import Owner
from models.artifacts import Artifact
from models.errors import NotFound
from models.history import Conversation, Event
from models.listing import Entry
from models.reading import Read
from tasks.resources import Resources

BATCH, BATCH_BYTES = 200, 2 * 1024 * 1024  # events of one read, and bytes of their payloads
IN_MEMORY = 4 * 1024 * 1024  # bytes of one conversation that are kept in memory; more goes to an unnamed file
PIECE = 64 * 1024
LEFT_OUT = transcript.SILENT  # a worker's own book-keeping is no part of what was said


class Gone(Exception):
    """The conversation was deleted while it was read."""


class Told:
    """A conversation as an export tells it: its entry, where it came from, its files, its events."""

    def __init__(self, resources: Resources, owner: Owner, session_id: str) -> None:
        """Raises Gone when there is no such conversation of the owner's."""
        self._resources = resources
        with resources.reader.connect() as connection:
            try:
                self.entry: Entry = listing.find(connection, owner, session_id)
            except NotFound:
                raise Gone from None
            kind = select(Conversation.origin).where(Conversation.id == session_id)
            self.origin: str | None = connection.execute(kind).scalar_one_or_none()
            columns = (Artifact.id, Artifact.name, Artifact.content_type, Artifact.size)
            mine = select(*columns).where(Artifact.session_id == session_id)
            self.files: dict[str, Any] = {row.id: row for row in connection.execute(mine)}
            self.named = _named(connection, session_id) if self.files else frozenset()

    def events(self) -> Iterator[Read]:
        """All events in order. Raises Gone, also half-way."""
        after, more = 0, True
        while more:
            with self._resources.reader.connect() as connection:
                page = reading.above(connection, self.entry.id, after, BATCH, most_bytes=BATCH_BYTES)
                if not page.more and not transcript.stamps(connection, [self.entry.id]):
                    raise Gone
            yield from (event for event in page.events if event.type not in LEFT_OUT)
            after, more = page.events[-1].seq if page.events else after, page.more


def _named(connection: Connection, session_id: str) -> frozenset[str]:
    """The ids of the files that messages and results name: what says that a file was added tells nothing more."""
    of_session = Event.session_id == session_id
    content = select(func.jsonb_path_query(Event.payload, "$.content[*].artifact_id").label("id"))
    output = select(func.jsonb_path_query(Event.payload, "$.output[*].artifact_id"))
    found = union(content.where(of_session), output.where(of_session)).subquery()
    return frozenset(one for one in connection.execute(select(found.c.id)).scalars() if isinstance(one, str))


Shape = Callable[[Told], Iterable[bytes]]


@contextmanager
def spooled(told: Told, shape: Shape) -> Iterator[IO[bytes]]:
    """The conversation in that shape, complete, in a file that no other process sees. Raises Gone."""
    with SpooledTemporaryFile(max_size=IN_MEMORY) as held:
        for piece in shape(told):
            held.write(piece)
        held.seek(0)
        yield held


def pieces(held: IO[bytes]) -> Iterator[bytes]:
    """What a file holds, in pieces of `PIECE` bytes at most."""
    while piece := held.read(PIECE):
        yield piece

"""A whole history as one ZIP, streamed: memory stays the same for one conversation and for 100,000 of them.

Which conversations: those that were there at the start, by one statement; each of them as it is when it is read, and
left out when it is deleted before that. No transaction stays open while somebody downloads. What grows with the number
of conversations is 16 bytes for each id and what a ZIP's directory needs for each file.

| format | in the archive |
|---|---|
| `json` | `conversations.json`, one array; `files/file-ID-NAME` |
| `markdown` | `2026-05/TITLE.md`, by the month in which it began; `files/file-ID-NAME`, linked |

A file whose bytes are not in the store is left out; its name remains where it was said.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import tzinfo
from functools import partial
from typing import Literal
from uuid import UUID

from sqlalchemy import ARRAY, any_, func, literal, select
from sqlalchemy.dialects.postgresql import BYTEA, aggregate_order_by
from zipstream import ZIP_DEFLATED, ZIP_STORED, ZipStream

from models.accounts import Owner
from models.artifacts import Artifact
from models.base import Id
from models.bytestore import Missing
from models.history import Conversation
from tasks.exports import chatgpt, markdown
from tasks.exports.names import Unique, safe
from tasks.exports.told import Gone, Shape, Told, pieces, spooled
from tasks.resources import Resources

Format = Literal["json", "markdown"]
LEVEL = 6
TOGETHER = 200  # conversations whose files are looked up at once
PACKED = ("image/", "audio/", "video/", "application/zip", "application/gzip", "application/pdf")


def archive(
    resources: Resources, owner: Owner, form: Format, zone: tzinfo, *, files: bool
) -> Iterator[bytes]:
    """The archive, piece by piece.

    Raises what the database or the store raises: it is then cut off, and no program takes it for a whole one.
    """
    ids = conversations(resources, owner)
    made = ZipStream(compress_type=ZIP_DEFLATED, compress_level=LEVEL)
    if form == "json":
        made.add(_array(resources, owner, ids), "conversations.json")
        yield from made.all_files()
    else:
        yield from _pages(made, resources, owner, ids, zone, files)
    if files:
        yield from _files(made, resources, owner, ids)
    yield from made.finalize()


def conversations(resources: Resources, owner: Owner) -> Ids:
    """The ids of a principal's conversations, newest first, as they are now. One statement."""
    order = (Conversation.updated_at.desc(), Conversation.id.desc())
    packed = func.string_agg(
        func.uuid_send(Conversation.id), aggregate_order_by(literal(b"", BYTEA()), *order)
    )
    with resources.reader.connect() as connection:
        mine = select(packed).where(Conversation.principal_id == owner.principal_id)
        return Ids(bytes(connection.execute(mine).scalar_one() or b""))


class Ids:
    """Ids in 16 bytes each."""

    def __init__(self, packed: bytes) -> None:
        self._packed = packed

    def __len__(self) -> int:
        return len(self._packed) // 16

    def __iter__(self) -> Iterator[str]:
        for at in range(0, len(self._packed), 16):
            yield str(UUID(bytes=self._packed[at : at + 16]))

    def together(self, count: int) -> Iterator[list[str]]:
        """So many at once."""
        held: list[str] = []
        for one in self:
            held.append(one)
            if len(held) == count:
                yield held
                held = []
        if held:
            yield held


def _array(resources: Resources, owner: Owner, ids: Ids) -> Iterator[bytes]:
    before = b"[\n"
    for session_id in ids:
        for piece in _one(resources, owner, session_id, chatgpt.conversation):
            yield before + piece if before else piece
            before = b""
        before = before or b",\n"
    yield b"[]\n" if before == b"[\n" else b"\n]\n"


def _one(resources: Resources, owner: Owner, session_id: str, shape: Shape) -> Iterator[bytes]:
    """One conversation whole, or nothing when it is gone."""
    try:
        with spooled(Told(resources, owner, session_id), shape) as held:
            yield from pieces(held)
    except Gone:
        return


def _pages(
    made: ZipStream, resources: Resources, owner: Owner, ids: Ids, zone: tzinfo, files: bool
) -> Iterator[bytes]:
    names = Unique()
    for session_id in ids:
        try:
            told = Told(resources, owner, session_id)
            places = {key: f"../{_place(key, row.name)}" for key, row in told.files.items()} if files else {}
            with spooled(told, partial(markdown.conversation, zone=zone, files=places)) as held:
                title = safe(told.entry.title, "Untitled", ".md").removesuffix(".md")
                month = f"{told.entry.created_at.astimezone(zone):%Y-%m}"
                made.add(pieces(held), names.name(f"{month}/{title}", ".md"))
                yield from made.all_files()
        except Gone:
            continue


def _files(made: ZipStream, resources: Resources, owner: Owner, ids: Ids) -> Iterator[bytes]:
    columns = (Artifact.id, Artifact.name, Artifact.content_type)
    for some in ids.together(TOGETHER):
        named = Artifact.session_id == any_(literal(some, ARRAY(Id())))
        with resources.reader.connect() as connection:
            mine = select(*columns).where(named, Artifact.principal_id == owner.principal_id)
            rows = connection.execute(mine.order_by(Artifact.id)).all()
        for row in rows:
            try:
                chunks = resources.store.open(row.id)
            except Missing:
                continue
            packing = ZIP_STORED if row.content_type.startswith(PACKED) else ZIP_DEFLATED
            made.add(chunks, _place(row.id, row.name), compress_type=packing)
            yield from made.all_files()


def _place(artifact_id: str, name: str) -> str:
    return f"files/{chatgpt.file_key(artifact_id)}-{safe(name, 'file')}"

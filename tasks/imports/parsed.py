"""What an export says, in our words: the values that reading yields and writing takes.

| value | is |
|---|---|
| `Parsed` | one conversation, its active branch only |
| `ParsedMessage` | one event to be: a message is one, each tool call and each result is one |
| `Attachment` | a file that a message carried; `open` is None where the export holds only its name |
| `Broken` | one conversation that cannot be used, by name, with its reason |

Every string in here is free of NUL and of lone surrogates, every payload is JSON that PostgreSQL and orjson take.
Times are UTC, or None where the export has none that can be true; clamping them to 1970..now is the writer's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from models.errors import Invalid


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file beside a message.

    `name` is a base name, never a path. `size` is in bytes, what the export claims. `open()` gives the bytes in
    chunks, anew at each call, while the export is open; it raises `AttachmentUnreadable` where they are damaged.
    """

    name: str
    content_type: str
    size: int | None = None
    open: Callable[[], Iterator[bytes]] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class ParsedMessage:
    """One event to be, with the payload that PRODUCT.md 3.2 wants of its `type`.

    Types: `user_message`, `assistant_message`, `tool_call`, `tool_result`; beyond these `system_message`,
    `reasoning` and `message` (a role unknown to us), each with `content`. `source_id` names it within its
    conversation and stays the same in a later export. The n-th block of type `image` or `file` in `content` (or
    in a result's `output`) is the n-th of `attachments`.
    """

    source_id: str
    type: str
    payload: dict[str, Any]
    created_at: datetime | None = None
    attachments: tuple[Attachment, ...] = ()


@dataclass(frozen=True, slots=True)
class Parsed:
    """One conversation: the messages of its active branch, oldest first, never none.

    `source_id` is the export's own, else `#DIGEST/N`: a digest of the first exchange and its occurrence number
    among equal ones of the file. `replaced` counts the U+FFFD put in for NUL, lone surrogates and bad UTF-8.
    """

    format: str
    source_id: str
    messages: tuple[ParsedMessage, ...]
    title_hint: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    replaced: int = 0


@dataclass(frozen=True, slots=True)
class Broken:
    """One conversation that was not read. `conversation` is `TITLE (ID)`, one of them, or `conversation N`."""

    conversation: str
    reason: str


class Unusable(Exception):
    """This one conversation cannot be used; the sentence says why and holds none of its text."""


class AttachmentUnreadable(Exception):
    """The bytes of an attachment are damaged or over a bound; its name remains."""


class UnknownExport(Invalid):
    """The file as a whole is none that can be imported: total 1, failed 1, with this sentence."""

    def __init__(self, reason: str) -> None:
        super().__init__("file", reason)

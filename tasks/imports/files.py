"""What a message carried besides text: names always, bytes where the export holds them.

| where the bytes are | made by |
|---|---|
| an entry of the ZIP around the export | `carried`, which asks `Files` |
| a `data:` address within the JSON | `embedded` |
| the text that the exporter extracted from a file | `extracted` |
| nowhere | any of these, with `open` None |
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from tasks.imports.bounds import CHUNK, MAX_ATTACHMENT
from tasks.imports.fields import base_name
from tasks.imports.parsed import Attachment, AttachmentUnreadable

UNKNOWN_TYPE = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class Found:
    """An entry that holds an attachment's bytes: its base name, its bytes' number, and a way to read them."""

    name: str
    size: int
    open: Callable[[], Iterator[bytes]]


Files = Callable[[str, str], Found | None]
"""Finds bytes by the export's identity of the file and by its name; either may be empty."""


def no_files(identity: str, name: str) -> Found | None:
    """`Files` of an export that is not an archive."""
    return None


def carried(files: Files, identity: str, name: str, content_type: str, size: int | None) -> Attachment:
    """An attachment known by identity and name, with the bytes that `files` finds."""
    found = files(identity, name)
    if found is None:
        return Attachment(base_name(name, identity), content_type or UNKNOWN_TYPE, size)
    opener = found.open if found.size <= MAX_ATTACHMENT else None
    return Attachment(base_name(name, found.name), content_type or UNKNOWN_TYPE, found.size, opener)


def embedded(address: str, name: str, content_type: str = "") -> Attachment | None:
    """The attachment within a `data:` address (RFC 2397); None when the address is of another kind."""
    if address[:5].lower() != "data:":
        return None
    head, comma, body = address[5:].partition(",")
    kind, *parameters = head.split(";")
    in_base64 = "base64" in (parameter.strip().lower() for parameter in parameters)
    kind = content_type or kind.strip().lower() or "text/plain"
    size = len(body) * 3 // 4 - body[-2:].count("=") if in_base64 else len(body)
    usable = comma and size <= MAX_ATTACHMENT
    named = base_name(name or f"{kind.partition('/')[0]}.{_extension(kind)}")

    def read() -> Iterator[bytes]:
        return _base64(body) if in_base64 else iter((unquote_to_bytes(body),))

    return Attachment(named, kind, size if usable else None, read if usable else None)


def extracted(content: str, name: str) -> Attachment:
    """The text that an exporter kept of a file, under the file's name."""
    if len(content) > MAX_ATTACHMENT // 4:
        return Attachment(base_name(name), "text/plain", None)
    data = content.encode("utf-8", "replace")
    return Attachment(base_name(name), "text/plain", len(data), lambda: iter((data,)))


def _base64(body: str) -> Iterator[bytes]:
    step = CHUNK - CHUNK % 4
    compact = "".join(body.split())
    for start in range(0, len(compact), step):
        try:
            yield base64.b64decode(compact[start : start + step], validate=True)
        except (binascii.Error, ValueError):
            raise AttachmentUnreadable("the data: address is not base64") from None


def _extension(kind: str) -> str:
    tail = kind.partition("/")[2].partition("+")[0]
    return tail if tail.isalnum() else "bin"

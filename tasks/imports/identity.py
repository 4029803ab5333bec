"""The id of an imported conversation: the same for the same conversation, telling nothing (PRODUCT.md 6).

A UUIDv7 whose time is the export's and whose random bits are HMAC(the principal's import secret; format, source
id, first user message, n). A tombstone therefore recognises what was deleted here when it is imported again, and
holds nothing more than any other. `n` is 0, and the next one for a user who asks for what they deleted.

Of the first user message the texts count and its files do not: an archive tells names of files that the bare
`conversations.json` beside it leaves out, and both are one conversation.

An export without times gives the id the time 0: the time of import would make another id each time.
"""

from __future__ import annotations

import hmac
from datetime import datetime, timedelta
from hashlib import sha256

import orjson

from models.ids import uuid7
from models.rules import EARLIEST, texts
from tasks.imports.parsed import Parsed

_MILLISECOND = timedelta(milliseconds=1)


def imported_id(parsed: Parsed, secret: bytes, n: int) -> str:
    """The session id of `parsed` for the principal of `secret` (32 bytes), at its n-th revival."""
    said = (m.payload["content"] for m in parsed.messages if m.type == "user_message")
    first = next(("\n\n".join(texts(content)) for content in said), None)
    named = orjson.dumps([parsed.format, parsed.source_id, first, n])
    return uuid7(_milliseconds(parsed.created_at), hmac.digest(secret, named, sha256))


def _milliseconds(at: datetime | None) -> int:
    # In whole numbers: seconds as a float, times a thousand, may fall below the millisecond they stand for.
    return 0 if at is None or at < EARLIEST else (at - EARLIEST) // _MILLISECOND

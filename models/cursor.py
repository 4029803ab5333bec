"""Cursors of the history index: opaque, self-contained, signed (PRODUCT.md 3.4). PURE.

A cursor is base64url( version byte | updated_at in microseconds since 1970, 8 bytes | id, 16 bytes | tag, 16
bytes ). The tag is HMAC-SHA256 over the same bytes and the principal, so that a cursor works for whom it was
given alone, and no other bytes are ever taken for one. It names a place in the order, not a row, so it
outlives the deletion of its row.
"""

from __future__ import annotations

import base64
import hmac
import struct
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from uuid import UUID

from models.errors import InvalidCursor

SESSIONS = "sessions"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LENGTH = 56  # characters of the one valid length: 41 bytes in base64url with padding dropped is 55 or 56
_BODY = struct.Struct(">Bq16s")
_TAG = 16


@dataclass(frozen=True, slots=True)
class Position:
    """A place in the order (updated_at DESC, id DESC): just after the row that has these two values."""

    updated_at: datetime
    id: str


def signing_key(secret_key: str) -> bytes:
    """The key that signs cursors, derived from SECRET_KEY so that no other use shares it."""
    return hmac.digest(secret_key.encode(), b"allgone cursor v1", sha256)


def write(position: Position, principal_id: str, key: bytes, kind: str = SESSIONS) -> str:
    """The cursor text of a position, for this principal and this kind of list alone."""
    micros = (position.updated_at - EPOCH) // timedelta(microseconds=1)
    body = _BODY.pack(1, micros, UUID(position.id).bytes)
    return base64.urlsafe_b64encode(body + _tag(body, principal_id, key, kind)).rstrip(b"=").decode()


def read(text: str, principal_id: str, key: bytes, kind: str = SESSIONS) -> Position:
    """The position of a cursor that `write` made for this principal.

    Raises InvalidCursor for anything else: cut, changed, another principal's, another product's.
    """
    try:
        if not text.isascii() or len(text) > LENGTH:
            raise ValueError
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        body, tag = raw[: _BODY.size], raw[_BODY.size :]
        version, micros, identity = _BODY.unpack(body)
    except (ValueError, struct.error):
        raise _refused() from None
    # Base64 has spare bits in its last character: only the spelling that `write` chose is taken.
    canonical = base64.urlsafe_b64encode(raw).rstrip(b"=").decode() == text
    if version != 1 or not canonical or not hmac.compare_digest(tag, _tag(body, principal_id, key, kind)):
        raise _refused()
    return Position(EPOCH + timedelta(microseconds=micros), str(UUID(bytes=identity)))


def _tag(body: bytes, principal_id: str, key: bytes, kind: str) -> bytes:
    return hmac.digest(key, body + principal_id.encode() + kind.encode(), sha256)[:_TAG]


def _refused() -> InvalidCursor:
    return InvalidCursor("This cursor was not given to you by this server. Start again without a cursor.")

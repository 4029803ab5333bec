"""UUIDv7: the one kind of id (RFC 9562, 5.7).

`uuid7` is pure; `new_id` is the one place that draws chance and time for it.

Ids of one process sort in the order in which they were made, so that lists by id are lists by time even within a
batch, and an index grows at its right edge; their 62 random bits make them unguessable.
"""

from __future__ import annotations

import secrets
import threading
import time
from datetime import UTC, datetime, timedelta
from uuid import UUID

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_giving = threading.Lock()
_last = 0  # milliseconds since 1970, and 12 bits of their fraction


def uuid7(milliseconds: int, entropy: bytes) -> str:
    """The UUIDv7 text of a Unix time in milliseconds (48 bits) and at least 10 bytes of `entropy`.

    The first 74 bits of entropy are used; the same arguments give the same id.
    Raises ValueError when the time does not fit or the entropy is too short.
    """
    if not 0 <= milliseconds < 1 << 48 or len(entropy) < 10:
        raise ValueError("a UUIDv7 needs 48 bits of time and 10 bytes of entropy")
    chance = int.from_bytes(entropy[:10], "big") >> 6  # 74 bits
    high, low = chance >> 62, chance & ((1 << 62) - 1)
    digits = f"{milliseconds << 80 | 0x7 << 76 | high << 64 | 0b10 << 62 | low:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def new_id() -> str:
    """A fresh UUIDv7 text, above every other that this process has made.

    The 12 bits after the milliseconds hold the fraction of one (RFC 9562, 6.2, method 3), raised by one where the
    clock has not moved on or was set back.
    """
    global _last
    milliseconds, rest = divmod(time.time_ns(), 1_000_000)
    with _giving:
        _last = max(milliseconds << 12 | rest * 4096 // 1_000_000, _last + 1)
        stamp = _last
    chance = int.from_bytes(secrets.token_bytes(8), "big") >> 2
    return uuid7(stamp >> 12, ((stamp & 0xFFF) << 68 | chance << 6).to_bytes(10, "big"))


def made_at(some_id: str) -> datetime:
    """When an id was made, to the millisecond: its first 48 bits."""
    return EPOCH + timedelta(milliseconds=UUID(some_id).int >> 80)


def is_id(text: object) -> bool:
    """True when `text` is a UUID in its canonical 36 characters: what any id of ours looks like.

    Anything else can name nothing of ours, so callers answer as for a missing thing, before the database.
    """
    if not isinstance(text, str) or len(text) != 36:
        return False
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False

"""Two copies of one memory, on two devices: which facts stand. PURE.

Source: PRODUCT.md 4.4, First source. The key is the same on both; the text with it.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple


class Copy(NamedTuple):
    """What a device knows of a memory beside its key and text."""

    made_at: datetime
    device: bytes  # that recorded it first, 16 bytes
    logical_id: bytes  # 16 bytes
    source: str
    recorded_at: datetime


def merged(held: Copy, arriving: Copy) -> Copy:
    """The facts after a sync: those of the earlier first making, and the later `recorded_at`.

    The same whichever side asks, so both come to hold the same. A first making at the same microsecond on two
    devices is decided by their ids.
    """
    first = min(held, arriving)
    return first._replace(recorded_at=max(held.recorded_at, arriving.recorded_at))

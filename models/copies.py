"""Two copies of one memory, on two devices: which facts stand. PURE.

Source: PRODUCT.md 4.4, First source. The key is the same on both; the text with it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple


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


def teaches(made_at: Any, logical_id: Any, recorded_at: Any, held: tuple[Any, Any, Any]) -> Any:
    """True when a listed copy knows what the held one does not: an earlier first making, or a later act.

    `held` are the same three of ours. Over columns it is an expression of SQL.
    """
    mine_made, mine_id, mine_recorded = held
    earlier = (made_at < mine_made) | ((made_at == mine_made) & (logical_id != mine_id))
    return earlier | (recorded_at > mine_recorded)

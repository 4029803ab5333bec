"""Marks: where the memory of a logical ID went when it was redacted, moved, or forgotten after either. PURE.

Source: PRODUCT.md 4.2, Marks. A mark holds no hash, so it gives nothing away of what it removed. It has two halves,
so that a move that did not know of a redaction cannot undo it: versions recorded before `redacted_at` are gone
wherever they are; and since `placed_at` the memory is in one workspace, or nowhere.
"""

from __future__ import annotations

from datetime import datetime
from enum import Enum, auto
from typing import Any, NamedTuple

from models.rules import EARLIEST, dominates


class Mark(NamedTuple):
    """Of one logical ID. A half that was never set has the time EARLIEST."""

    redacted_at: datetime = EARLIEST
    placed_at: datetime = EARLIEST
    workspace: str | None = None  # None: gone


class Verdict(Enum):
    """What a mark does to a copy."""

    STAYS = auto()
    REDACTED = auto()  # an older version of the text: dropped, and nothing is recorded
    GONE = auto()  # forgotten: dropped, and nothing is recorded
    ELSEWHERE = auto()  # it belongs into the mark's workspace


def joined(one: Mark, other: Mark) -> Mark:
    """What two stores know together: the later of each half; at equal times gone goes before any place."""
    placed = max(one, other, key=lambda mark: (mark.placed_at, mark.workspace is None, mark.workspace or ""))
    return Mark(max(one.redacted_at, other.redacted_at), placed.placed_at, placed.workspace)


def outdated(recorded_at: Any, redacted_at: Any) -> Any:
    """True when a version of a text is older than its redaction. Over two columns it is SQL's comparison."""
    return recorded_at < redacted_at


def verdict(mark: Mark, workspace: str, recorded_at: datetime) -> Verdict:
    """What becomes of a held or arriving copy of the mark's logical ID in `workspace`.

    A version made by the redaction is recorded at its time, and stays; a copy that was made again after a move or a
    forgetting is younger than these, and stays where it is.
    """
    if outdated(recorded_at, mark.redacted_at):
        return Verdict.REDACTED
    if mark.placed_at == EARLIEST or not dominates(mark.placed_at, recorded_at):
        return Verdict.STAYS
    if mark.workspace is None:
        return Verdict.GONE
    return Verdict.STAYS if mark.workspace == workspace else Verdict.ELSEWHERE

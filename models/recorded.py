"""What a deletion records: the table of ADR 0176 as PRODUCT.md 4.2 has it. PURE.

Where a memory is deleted, its caller says which kind of deletion it is; a kind that is not named here is a
programming error and not a default.
"""

from __future__ import annotations

from enum import Enum, auto


class Deleting(Enum):
    """Why a memory goes."""

    FORGET = auto()  # the user deletes it
    RECORDING = auto()  # the user deletes the recording it came from
    PURGE = auto()  # the user purges a folder
    CONVERSATION = auto()  # its conversation is deleted everywhere
    REPLACED = auto()  # a newer version of its file, URL or inline content
    EMPTIED = auto()  # its file is there and empty
    PROFILE = auto()  # the project profile is rewritten
    FILE_GONE = auto()  # its file is gone from disk: it may still matter on another device
    SCRUB = auto()
    REDACTION = auto()
    MOVE = auto()
    WIPE = auto()
    WORKSPACE = auto()  # its workspace is removed
    MIGRATION = auto()


class Recorded(Enum):
    """Which of the memories that go are recorded."""

    ALL = auto()
    OWN = auto()  # those that this device recorded; another's chunks of its own version are its own affair
    NONE = auto()


RECORDED = {
    Deleting.FORGET: Recorded.ALL,
    Deleting.RECORDING: Recorded.ALL,
    Deleting.PURGE: Recorded.ALL,
    Deleting.CONVERSATION: Recorded.ALL,
    Deleting.REPLACED: Recorded.OWN,
    Deleting.EMPTIED: Recorded.OWN,
    Deleting.PROFILE: Recorded.OWN,
    Deleting.FILE_GONE: Recorded.NONE,
    # A record would be a hash of the secret; the redacted version supersedes the old one by its mark.
    Deleting.SCRUB: Recorded.NONE,
    Deleting.REDACTION: Recorded.NONE,
    # A mark carries a move, and nothing was given up by the others.
    Deleting.MOVE: Recorded.NONE,
    Deleting.WIPE: Recorded.NONE,
    Deleting.WORKSPACE: Recorded.NONE,
    Deleting.MIGRATION: Recorded.NONE,
}


def is_recorded(why: Deleting, *, own: bool) -> bool:
    """Whether a memory that goes for this reason is recorded; `own`: this device recorded it.

    Source: ADR 0176, the table "Deletion | Recorded"; PRODUCT.md 4.2.
    """
    kept = RECORDED[why]
    return kept is Recorded.ALL or (kept is Recorded.OWN and own)

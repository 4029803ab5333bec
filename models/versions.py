"""The version of a principal's list: what an unchanged poll costs is one look-up of it."""

from __future__ import annotations

from sqlalchemy import text
from sqlalchemy.orm import Session

# Text, so that a verb may carry it at the end of a statement of its own. Takes `principal_id`.
RAISING = """
INSERT INTO list_versions (principal_id, version) VALUES (:principal_id, 1)
ON CONFLICT (principal_id) DO UPDATE SET version = list_versions.version + 1
"""
_RAISE = text(RAISING)


def touch_list(db: Session, principal_id: str) -> None:
    """Raises the version of a principal's list: the last lock that any verb takes.

    Called in the transaction of whatever a list shows: opening, each append, a run's start, a title, a deletion.
    """
    db.flush()  # whatever still waits in the session takes its locks before this one
    db.connection().execute(_RAISE, {"principal_id": principal_id})

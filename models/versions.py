"""The version of a principal's list: what an unchanged poll costs is one look-up of it."""

from __future__ import annotations

from sqlalchemy.dialects.postgresql import Insert, insert
from sqlalchemy.orm import Session

from models.history import ListVersion


def touch_list(db: Session, principal_id: str) -> None:
    """Raises the version of a principal's list: the last lock that any verb takes.

    Called in the transaction of whatever a list shows: opening, each append, a run's start, a title, a deletion.
    """
    db.execute(raising(principal_id))


def raising(principal_id: str) -> Insert:
    """The statement of `touch_list`, for a verb that carries it in one of its own."""
    write = insert(ListVersion).values(principal_id=principal_id, version=1)
    raised = ListVersion.version + 1
    return write.on_conflict_do_update(index_elements=["principal_id"], set_={"version": raised})

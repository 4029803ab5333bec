"""The version of a principal's list: what an unchanged poll costs is one look-up of it."""

from __future__ import annotations

from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from models.history import ListVersion


def touch_list(db: Session, principal_id: str) -> None:
    """Raises the version of a principal's list: the last lock that any verb takes.

    Called in the transaction of whatever a list shows: opening, each append, a run's start, a title, a deletion.
    """
    write = insert(ListVersion).values(principal_id=principal_id, version=1)
    raised = ListVersion.version + 1
    db.execute(write.on_conflict_do_update(index_elements=["principal_id"], set_={"version": raised}))

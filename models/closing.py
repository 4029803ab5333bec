"""Closing an account: first nobody gets in, then nothing is left (PRODUCT.md 3.5, "outlives a closed account").

| verb | does |
|---|---|
| holdings | counts what would go |
| close | in one transaction: every way in is gone, and the account is marked; nothing of it is removed yet |
| claim | one job at a time empties an account; its lease is over by itself, should the job die |
| conversations, stop_run, forget_some, clear | the steps of that job, each in its own transaction (tasks/closing.py) |
| settle | marks the account as emptied, once that is so and stays so |
| standing | what is left of it, bytes too |

Conversations go by `purge.delete_conversation` and by nothing else. Memories that no conversation formed go by
`memories.forget`, with a deletion record each, so that a paired device can still be told of them.

What stays: tombstones, the deletion records of memories for as long as records are kept, and the principal's row
without an address: ids and times, by which `tombstones replay` closes the account again in a restored backup.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, delete, exists, func, literal_column, or_, select, update
from sqlalchemy.orm import Session

from models import import_requests, memories, runs
from models.accounts import Owner, Principal, Token
from models.append import lock_conversation
from models.artifacts import Artifact
from models.base import Base, database_time
from models.errors import InvalidState, NotFound
from models.history import Conversation, ListVersion, Tombstone
from models.idempotency import IdempotencyKey
from models.imports import Import
from models.knowledge import SkillRevision
from models.memories import Memory, MemoryTombstone, Workspace
from models.outbox import Owed
from models.rules import BATCH
from models.sign_ins import SignIn, SignInLink
from models.ways import Identity, Password

LEASE = timedelta(seconds=60)
# A request that was let in before the closing may still write; what it writes is found until then.
SETTLING = timedelta(minutes=15)
# What lets somebody in: gone with the closing itself. Tokens are revoked beside, and go with the rest.
WAYS_IN: Sequence[type[Base]] = (SignInLink, Password, Identity, SignIn)
# What belongs to a principal and to no conversation: removed once the conversations and memories are gone.
CLEARED: Sequence[type[Base]] = (
    Token,
    SkillRevision,
    IdempotencyKey,
    MemoryTombstone,
    Workspace,
    ListVersion,
)

LEFT: Sequence[type[Base]] = (Conversation, Memory, Import, *CLEARED)


@dataclass(frozen=True, slots=True)
class Holdings:
    """What an account holds."""

    conversations: int
    files: int
    bytes: int
    memories: int
    tokens: int
    browsers: int


@dataclass(frozen=True, slots=True)
class Standing:
    """What is left of a closed account. `bytes_owed` counts files whose bytes are not confirmed gone."""

    closed_at: datetime
    conversations: int
    memories: int
    bytes_owed: int

    @property
    def gone(self) -> bool:
        """Whether nothing is left."""
        return not (self.conversations or self.memories or self.bytes_owed)


def holdings(db: Session, owner: Owner) -> Holdings:
    """Counts what goes with an account; one statement."""
    now, mine = func.clock_timestamp(), owner.principal_id
    files = select(func.count(), func.coalesce(func.sum(Artifact.size), 0)).where(
        Artifact.principal_id == mine
    )
    counted = files.subquery()
    live_token = (Token.revoked_at.is_(None), or_(Token.expires_at.is_(None), Token.expires_at > now))
    live_sign_in = (SignIn.revoked_at.is_(None), SignIn.expires_at > now)
    row = db.execute(
        select(
            select(func.count()).where(Conversation.principal_id == mine).scalar_subquery(),
            *counted.c,
            select(func.count()).where(Memory.principal_id == mine).scalar_subquery(),
            select(func.count()).where(Token.principal_id == mine, *live_token).scalar_subquery(),
            select(func.count()).where(SignIn.principal_id == mine, *live_sign_in).scalar_subquery(),
        )
    ).one()
    return Holdings(row[0], row[1], int(row[2]), row[3], row[4], row[5])


def close(db: Session, principal_id: str, closed_at: datetime | None = None) -> None:
    """Closes an account: from the commit on nobody gets in, and its address is free. Again is no error.

    Raises InvalidState("last_operator") while no other operator is there, NotFound for no such account.
    `closed_at` is given by a replay in a restored backup, which also closes the last operator's again. The row's lock
    is what `accounts.hold_open` waits for: no token, link or sign-in slips in beside.
    """
    # Every operator in the order of their ids, so that two who leave at once meet here and one is the last.
    operators = select(Principal.id).where(Principal.operator, Principal.closed_at.is_(None))
    others = {row[0] for row in db.execute(operators.order_by(Principal.id).with_for_update())}
    principal = db.get(Principal, principal_id, with_for_update=True, populate_existing=True)
    if principal is None:
        raise NotFound("There is no such account.")
    if principal.closed_at is not None:
        return
    if others == {principal_id} and closed_at is None:
        raise InvalidState(
            "last_operator",
            "This is the only operator's account, and somebody has to run this server. Make another operator first.",
        )
    now = database_time(db)
    for table in WAYS_IN:
        db.execute(delete(table).where(table.__table__.c.principal_id == principal_id))
    import_requests.forget_all(db, Owner(principal.tenant_id, principal_id))
    alive = update(Token).where(Token.principal_id == principal_id, Token.revoked_at.is_(None))
    db.execute(alive.values(revoked_at=now))
    # A blank is in no address that a user can have, so nobody ever signs in by this one.
    principal.email = f"closed {principal_id}"
    principal.operator = False
    principal.import_secret = b""
    principal.closed_at = closed_at or now
    db.flush()


# -- emptying ------------------------------------------------------------------------------------------------


def due(db: Session) -> list[str]:
    """The accounts that were closed, are not empty, and that no job is emptying; those closed first in front."""
    waiting = (Principal.closed_at.is_not(None), Principal.emptied_at.is_(None), _unclaimed())
    return list(db.scalars(select(Principal.id).where(*waiting).order_by(Principal.closed_at)))


def claim(db: Session, principal_id: str) -> Owner | None:
    """Takes the lease of emptying an account; None when another job has it, or there is nothing to empty."""
    waiting = (Principal.closed_at.is_not(None), Principal.emptied_at.is_(None), _unclaimed())
    taken = update(Principal).where(Principal.id == principal_id, *waiting)
    row = db.execute(
        taken.values(emptying_until=func.clock_timestamp() + LEASE).returning(Principal.tenant_id)
    ).one_or_none()
    return None if row is None else Owner(row[0], principal_id)


def renew(db: Session, owner: Owner) -> None:
    """Prolongs the lease of the job that holds it."""
    mine = update(Principal).where(Principal.id == owner.principal_id)
    db.execute(mine.values(emptying_until=func.clock_timestamp() + LEASE))


def let_go(db: Session, owner: Owner) -> None:
    """Gives the lease back, so that the next look finds the account at once."""
    db.execute(update(Principal).where(Principal.id == owner.principal_id).values(emptying_until=None))


def conversations(db: Session, owner: Owner, after: str, limit: int = 100) -> list[str]:
    """Conversations that are left, behind the id `after`."""
    mine = select(Conversation.id).where(Conversation.principal_id == owner.principal_id)
    return list(db.scalars(mine.where(Conversation.id > after).order_by(Conversation.id).limit(limit)))


def stop_run(db: Session, owner: Owner, session_id: str) -> None:
    """Ends a conversation's active run as `cancelled`: its worker's token is dead, so it cannot end it itself."""
    try:
        conversation = lock_conversation(db, owner, session_id)
    except NotFound:
        return  # gone meanwhile
    if conversation.active_run_id is not None:
        runs.end(db, conversation, conversation.active_run_id, "cancelled", database_time(db))


def forget_some(db: Session, owner: Owner, limit: int = BATCH) -> int:
    """Forgets memories that are left, recording each deletion; returns how many of them it took on."""
    memories.lock_all_workspaces(db, owner)
    mine = select(Memory.id).where(Memory.principal_id == owner.principal_id)
    # A number in the text: `forget` takes a select whose every parameter is a plain name.
    some = mine.order_by(Memory.id).limit(literal_column(str(int(limit))))
    return memories.forget(db, some, database_time(db))


def clear(db: Session, owner: Owner) -> None:
    """Removes what belongs to the principal alone."""
    import_requests.forget_all(db, owner)
    for table in CLEARED:
        db.execute(delete(table).where(table.__table__.c.principal_id == owner.principal_id))


def settle(db: Session, owner: Owner) -> bool:
    """Marks an account as emptied: nothing is left, and no request is old enough to write again."""
    mine = owner.principal_id
    left = or_(*(exists().where(table.__table__.c.principal_id == mine) for table in LEFT))
    settled = func.clock_timestamp() - SETTLING
    empty = update(Principal).where(Principal.id == mine, Principal.closed_at < settled, ~left)
    done = db.execute(empty.values(emptied_at=func.clock_timestamp()).returning(Principal.id))
    return done.first() is not None


def standing(db: Session, principal_id: str) -> Standing | None:
    """What is left of a closed account; None when there is no such one. Derived, and true for ever."""
    closed_at = db.execute(
        select(Principal.closed_at).where(Principal.id == principal_id)
    ).scalar_one_or_none()
    if closed_at is None:
        return None
    of_it = select(Tombstone.session_id).where(Tombstone.principal_id == principal_id)
    row = db.execute(
        select(
            select(func.count()).where(Conversation.principal_id == principal_id).scalar_subquery(),
            select(func.count()).where(Memory.principal_id == principal_id).scalar_subquery(),
            select(func.count()).where(Owed.session_id.in_(of_it)).scalar_subquery(),
        )
    ).one()
    return Standing(closed_at, *row)


def _unclaimed() -> ColumnElement[bool]:
    return or_(Principal.emptying_until.is_(None), Principal.emptying_until < func.clock_timestamp())

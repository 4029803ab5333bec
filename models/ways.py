"""What a user may sign in with beside a link: a password, and identities at an identity provider.

A password is kept as argon2's own text, which names its parameters; making and checking it is the edge's, since
both draw chance and take long. An identity is the pair (issuer, subject), which the provider never gives to
anybody else; its address is kept for showing alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import ForeignKey, Text, UniqueConstraint, delete, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Mapped, Session, mapped_column

from models.accounts import Owner, Principal, find_user, hold_open
from models.base import Base, Id, IdKey, database_time
from models.errors import InvalidState, NotFound
from models.ids import is_id, new_id


class Password(Base):
    """The password of a principal who set one: argon2's text."""

    __tablename__ = "passwords"
    principal_id: Mapped[str] = mapped_column(Id(), ForeignKey("principals.id"), primary_key=True)
    hash: Mapped[str] = mapped_column(Text)
    changed_at: Mapped[datetime]


class Identity(Base):
    """One account at an identity provider that signs a principal in here."""

    __tablename__ = "identities"
    id: Mapped[IdKey]
    principal_id: Mapped[str] = mapped_column(Id(), ForeignKey("principals.id"), index=True)
    issuer: Mapped[str] = mapped_column(Text)
    subject: Mapped[str] = mapped_column(Text)
    email: Mapped[str] = mapped_column(Text)  # as the provider gave it when it was linked; "" for none
    created_at: Mapped[datetime]
    used_at: Mapped[datetime | None]
    __table_args__ = (UniqueConstraint("issuer", "subject"),)


def user_at(db: Session, email: str) -> Principal | None:
    """The principal whom a typed or told address means: as it is written, else in small letters."""
    return find_user(db, email) or find_user(db, email.lower())


# -- passwords -----------------------------------------------------------------------------------------------


def any_password(db: Session) -> bool:
    """Whether anybody has one, so that the sign-in page asks for it."""
    return bool(db.execute(select(select(Password.principal_id).exists())).scalar_one())


def password_at(db: Session, email: str) -> tuple[str, str] | None:
    """Principal and hash of the user with that address and a password.

    One statement, whoever is asked for: its time does not tell whether there is such a user.
    """
    if not email.isprintable():
        return None
    named = Principal.email.in_((email, email.lower()))
    wanted = select(Principal.id, Password.hash).join(Password, Password.principal_id == Principal.id)
    exact = (Principal.email == email).desc()
    row = db.execute(
        wanted.where(named, Principal.closed_at.is_(None)).order_by(exact).limit(1)
    ).one_or_none()
    return None if row is None else (row[0], row[1])


def password_of(db: Session, principal_id: str) -> Password | None:
    """The password of a principal, or None."""
    return db.get(Password, principal_id)


def set_password(db: Session, principal_id: str, hash: str) -> None:  # noqa: A002  what the column is called
    """Sets or changes a password. The caller has seen to it that its holder asked for it."""
    hold_open(db, principal_id)
    write = insert(Password).values(principal_id=principal_id, hash=hash, changed_at=database_time(db))
    changed = {"hash": write.excluded.hash, "changed_at": write.excluded.changed_at}
    db.execute(write.on_conflict_do_update(index_elements=["principal_id"], set_=changed))


def rehash_password(db: Session, principal_id: str, old: str, new: str) -> None:
    """Keeps the same password under newer parameters, unless it was changed meanwhile."""
    mine = update(Password).where(Password.principal_id == principal_id, Password.hash == old)
    db.execute(mine.values(hash=new))


def remove_password(db: Session, principal_id: str) -> None:
    """Removes a password; again is no error."""
    db.execute(delete(Password).where(Password.principal_id == principal_id))


# -- identities ----------------------------------------------------------------------------------------------


def identified(db: Session, issuer: str, subject: str) -> str | None:
    """The id of the principal whom that identity signs in, noting the use; None for an identity nobody linked."""
    mine = update(Identity).where(Identity.issuer == issuer, Identity.subject == subject)
    used = mine.values(used_at=database_time(db)).returning(Identity.principal_id)
    return db.execute(used).scalar_one_or_none()


def link_identity(db: Session, principal_id: str, issuer: str, subject: str, email: str) -> None:
    """Lets an identity sign a principal in; again is no error.

    Raises InvalidState("identity_taken") when it is somebody else's.
    """
    hold_open(db, principal_id)
    row = {"issuer": issuer, "subject": subject, "principal_id": principal_id, "email": email[:254]}
    write = insert(Identity).values(id=new_id(), created_at=database_time(db), **row)
    db.execute(write.on_conflict_do_nothing(index_elements=["issuer", "subject"]))
    whose = select(Identity.principal_id).where(Identity.issuer == issuer, Identity.subject == subject)
    if db.execute(whose).scalar_one() != principal_id:
        raise InvalidState("identity_taken", "That account there signs in another user here already.")


def identities_of(db: Session, owner: Owner) -> Sequence[Identity]:
    """The identities that sign a principal in, oldest first."""
    mine = select(Identity).where(Identity.principal_id == owner.principal_id)
    return db.scalars(mine.order_by(Identity.id)).all()


def unlink_identity(db: Session, owner: Owner, identity_id: str) -> None:
    """Takes an identity back at once. Raises NotFound."""
    mine = delete(Identity).where(Identity.id == identity_id, Identity.principal_id == owner.principal_id)
    if not is_id(identity_id) or db.execute(mine.returning(Identity.id)).first() is None:
        raise NotFound("There is no such account at a provider. It may have been taken back already.")

"""Knowledge documents and skill revisions.

A document is sourced from an artifact of a conversation and goes with it. A published skill revision is a
durable resource of its own: a purge only detaches the run that wrote it (ADR-0050, decision 5).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import ARRAY, BigInteger, Integer, Text, UniqueConstraint, func, insert, literal, select
from sqlalchemy.orm import Mapped, Session, mapped_column

from models.accounts import Owner
from models.base import Base, Id, IdKey, IdRef
from models.history import session_key
from models.ids import new_id


class KnowledgeDocument(Base):
    """The text chunks that were read out of an artifact."""

    __tablename__ = "knowledge_documents"
    session_id: Mapped[str] = session_key(primary_key=True)
    seq: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    principal_id: Mapped[IdRef]
    artifact_id: Mapped[IdRef]
    title: Mapped[str] = mapped_column(Text)
    chunks: Mapped[list[str]] = mapped_column(ARRAY(Text))
    created_at: Mapped[datetime]


class SkillRevision(Base):
    """One published revision of a skill; numbered from 1 within its name."""

    __tablename__ = "skill_revisions"
    id: Mapped[IdKey]
    tenant_id: Mapped[IdRef]
    principal_id: Mapped[IdRef]
    name: Mapped[str] = mapped_column(Text)
    revision: Mapped[int] = mapped_column(Integer)
    body: Mapped[str] = mapped_column(Text)
    session_id: Mapped[str | None] = session_key(nullable=True)
    authoring_run_id: Mapped[str | None] = mapped_column(Id())
    created_at: Mapped[datetime]
    __table_args__ = (UniqueConstraint("principal_id", "name", "revision"),)


def lock_skills(db: Session, owner: Owner, names: Iterable[str]) -> None:
    """Locks the names of skills, in one order for everyone: who publishes one at once queues up here.

    Without it two conversations would fail on the number of one revision.
    """
    for name in sorted(set(names)):
        db.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(owner.principal_id + name, 0))))


def publish_skill(
    db: Session, owner: Owner, name: str, body: str, session_id: str, run_id: str | None, at: datetime
) -> None:
    """Publishes the next revision of a skill, written by a run of a conversation. The caller has locked its name."""
    mine = SkillRevision.principal_id == owner.principal_id
    newest = select(func.coalesce(func.max(SkillRevision.revision), literal(0))).where(
        mine, SkillRevision.name == name
    )
    db.execute(
        insert(SkillRevision).values(
            id=new_id(),
            tenant_id=owner.tenant_id,
            principal_id=owner.principal_id,
            name=name,
            revision=db.execute(newest).scalar_one() + 1,
            body=body,
            session_id=session_id,
            authoring_run_id=run_id,
            created_at=at,
        )
    )

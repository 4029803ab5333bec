"""Knowledge documents and skill revisions.

A document is sourced from an artifact of a conversation and goes with it. A published skill revision is a
durable resource of its own: a purge only detaches the run that wrote it (ADR-0050, decision 5).
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ARRAY, BigInteger, Integer, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, Id, IdKey, IdRef
from models.history import session_key


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

"""Every table, in one import: for migrations and for tests that walk the whole schema."""

from __future__ import annotations

from models import (
    accounts,
    artifacts,
    history,
    idempotency,
    imports,
    indexing,
    knowledge,
    memories,
    outbox,
    purge,
    schedule,
    sign_ins,
    ways,
)
from models.base import Base

metadata = Base.metadata
modules = (
    accounts,
    artifacts,
    history,
    idempotency,
    imports,
    indexing,
    knowledge,
    memories,
    outbox,
    purge,
    schedule,
    sign_ins,
    ways,
)

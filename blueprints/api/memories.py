"""Memories of the caller's home (PRODUCT.md 3.1, 4.1)."""

from __future__ import annotations

from typing import Annotated

from flask import Response
from pydantic import Field
from sqlalchemy.orm import Session

from blueprints.api import views, wire
from blueprints.api.contract import Asked, Given, IdGiven, operation
from blueprints.api.sessions import Cursor, Limit
from blueprints.database import transaction
from models import memories, reading
from models.accounts import Owner
from models.append import lock_conversation
from models.base import database_time
from models.errors import Invalid, NotFound
from models.redaction import masked
from models.rules import MEMORY_MAX, NAME_MAX, PAGE_DEFAULT, WORKSPACE

Name = Annotated[str, Field(min_length=1, max_length=NAME_MAX)]


class MemoriesAsked(Asked):
    workspace: Annotated[str | None, Field(max_length=NAME_MAX)] = None
    limit: Limit = PAGE_DEFAULT
    cursor: Cursor = None


class NewMemory(Given):
    text: Annotated[str, Field(min_length=1, max_length=MEMORY_MAX)]
    workspace: Name = WORKSPACE
    session_id: IdGiven | None = Field(
        None, description="The conversation that formed it: it goes when that one goes."
    )
    run_id: IdGiven | None = Field(
        None, description="The run that formed it; it names the conversation as well."
    )
    source: Name = "api"


@operation(
    "GET",
    "/memories",
    scope="memory.read",
    query=MemoriesAsked,
    answers={200: views.Memories},
    refuses=("invalid", "invalid_cursor"),
)
def list_memories(owner: Owner, query: MemoriesAsked) -> Response:
    """A page of memories, newest first; of one workspace when it is named."""
    below = wire.below(owner, query.cursor, "memories")
    with transaction() as db:
        rows = memories.page(db, owner, query.limit + 1, workspace=query.workspace, below=below)
        data = [views.memory(row) for row in rows[: query.limit]]
    following = wire.id_cursor(owner, data[-1]["id"], "memories") if len(rows) > query.limit else None
    return wire.listed(data, following)


@operation(
    "POST",
    "/memories",
    scope="memory.write",
    body=NewMemory,
    answers={201: views.MemoryView, 200: views.MemoryView},
    refuses=("invalid", "not_found"),
)
def create_memory(owner: Owner, body: NewMemory) -> Response:
    """Remember a text: 201, or 200 when it was held already. Secrets in it are masked before anything is stored."""
    text = masked(body.text)
    if not text.strip():
        raise Invalid("text", "text must not be blank.")
    with transaction() as db:
        session_id = _conversation(db, owner, body)
        if session_id is not None:
            lock_conversation(db, owner, session_id)
        memories.lock_workspaces(db, owner, [body.workspace])
        formed = memories.form(
            db,
            owner,
            text,
            body.workspace,
            source=masked(body.source),
            now=database_time(db),
            session_id=session_id,
            run_id=body.run_id,
        )
        view = views.memory(db.get_one(memories.Memory, formed.memory_id))
    return wire.answered(view, 201 if formed.made else 200)


@operation(
    "DELETE",
    "/memories/{memory_id}",
    scope="memory.write",
    answers={204: None},
    refuses=("not_found",),
)
def delete_memory(owner: Owner, memory_id: str) -> Response:
    """Forget a memory, and what was consolidated from it, here and on every paired device: 204, and 204 again."""
    with transaction() as db:
        memories.delete_memory(db, owner, memory_id)
    return Response(status=204)


def _conversation(db: Session, owner: Owner, body: NewMemory) -> str | None:
    """The conversation that formed it, named itself or by its run. Raises NotFound when the two do not agree."""
    if body.run_id is None:
        return body.session_id
    session_id = reading.run(db, owner, body.run_id).session_id
    if body.session_id not in (None, session_id):
        raise NotFound(reading.MISSING_RUN)
    return session_id

"""Conversations over HTTP: create, list, point read, Delete Everywhere (ADR-0050; PRODUCT.md 3.1)."""

from __future__ import annotations

from typing import Annotated

from flask import Response, request
from pydantic import Field

from blueprints.api import views, wire
from blueprints.api.contract import WHOLE, Asked, Given, operation
from blueprints.database import reading, resources, transaction
from models import idempotency, listing
from models.accounts import Owner
from models.errors import Invalid, NotFound
from models.rules import PAGE_DEFAULT, PAGE_MAX
from tasks.deletion import delete_now

KEY_MAX = 200  # characters of an Idempotency-Key

Limit = Annotated[int, Field(ge=1, le=PAGE_MAX, description=f"1 to {PAGE_MAX}"), WHOLE]
Cursor = Annotated[str | None, Field(description="The next_cursor of the page before.")]


class NewSession(Given):
    """A conversation starts empty."""


class PageAsked(Asked):
    limit: Limit = PAGE_DEFAULT
    cursor: Cursor = None


@operation(
    "POST",
    "/sessions",
    scope="session.write",
    body=NewSession,
    answers={201: views.SessionView},
    refuses=("invalid", "invalid_state"),
    headers=("Idempotency-Key",),
)
def create_session(owner: Owner, body: NewSession) -> Response:
    """Open a conversation. An `Idempotency-Key` gives the same one for 24 hours, and never revives a deleted one."""
    key = request.headers.get("Idempotency-Key")
    if key is not None and not (1 <= len(key) <= KEY_MAX and key.isprintable()):
        raise Invalid("Idempotency-Key", f"Idempotency-Key has 1 to {KEY_MAX} printable characters.")
    with transaction() as db:
        session_id = idempotency.create(db, owner, key)
        try:
            entry = listing.find(db, owner, session_id)
        except NotFound:  # deleted since the key was looked up
            raise idempotency.deleted() from None
    return wire.answered(wire.session_view(entry), 201)


@operation(
    "GET",
    "/sessions",
    scope="session.read",
    query=PageAsked,
    answers={200: views.Sessions},
    refuses=("invalid", "invalid_cursor"),
)
def list_sessions(owner: Owner, query: PageAsked) -> Response:
    """A page of the caller's conversations, newest activity first."""
    after = wire.position(owner, query.cursor)
    with reading() as connection:
        page = listing.page(connection, owner, query.limit, after)
    following = wire.next_cursor(owner, page.entries[-1].position) if page.more else None
    return wire.listed([wire.session_view(entry) for entry in page.entries], following)


@operation(
    "GET",
    "/sessions/{session_id}",
    scope="session.read",
    answers={200: views.SessionView},
    refuses=("not_found",),
)
def show_session(owner: Owner, session_id: str) -> Response:
    """The scoped point read: a mirror prunes its row when this answers 404, and at no other time."""
    with reading() as connection:
        return wire.answered(wire.session_view(listing.find(connection, owner, session_id)))


@operation(
    "DELETE",
    "/sessions/{session_id}",
    scope="session.write",
    answers={204: None},
    refuses=("not_found", "invalid_state"),
)
def delete_session(owner: Owner, session_id: str) -> Response:
    """Delete everywhere: 204, and 204 again; 409 `active_run_exists` while a run is active."""
    delete_now(resources(), owner, session_id)
    return Response(status=204)

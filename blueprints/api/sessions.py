"""The history over HTTP: list, point read, Delete Everywhere (ADR-0050, decisions 1, 3, 4; PRODUCT.md 3.1)."""

from __future__ import annotations

from flask import Blueprint, Response

from blueprints import access
from blueprints.api import wire
from blueprints.database import reading, resources
from models import listing
from tasks.deletion import delete_now

sessions = Blueprint("sessions", __name__, url_prefix="/v1/sessions")


@sessions.get("")
def index() -> Response:
    """A page of the caller's conversations, newest activity first."""
    owner = access.bearer("session.read")
    limit, after = wire.limit(), wire.after(owner)
    with reading() as connection:
        page = listing.page(connection, owner, limit, after)
    following = wire.next_cursor(owner, page.entries[-1]) if page.more else None
    return wire.listed([wire.session_view(entry) for entry in page.entries], following)


@sessions.get("/<session_id>")
def show(session_id: str) -> Response:
    """The scoped point read."""
    owner = access.bearer("session.read")
    with reading() as connection:
        return wire.answered(wire.session_view(listing.find(connection, owner, session_id)))


@sessions.delete("/<session_id>")
def delete(session_id: str) -> Response:
    """Deletes everywhere: 204, again 204; 404 for a foreign or missing one; 409 while a run is active."""
    owner = access.bearer("session.write")
    delete_now(resources(), owner, session_id)
    return Response(status=204)

"""The memories that were formed in a conversation, each with its own deletion (PRODUCT.md 7).

| route | answers |
|---|---|
| `GET /conversations/<id>/memories/<memory_id>/delete` | the question |
| `POST` there | forgets it, by the verb of `DELETE /v1/memories`; a script gets what stands beside the transcript now |
"""

from __future__ import annotations

from typing import Any

from flask import Blueprint, redirect, render_template, request, url_for
from werkzeug.wrappers import Response as BaseResponse

from blueprints import access
from blueprints.database import reading, resources, transaction
from models import listing, memories, transcript
from models.accounts import Owner
from models.errors import NotFound
from models.ids import is_id
from tasks.news import tell

remembered = Blueprint(
    "memories", __name__, url_prefix="/conversations/<session_id>/memories/<memory_id>/delete"
)

MISSING = "There is no such memory. It may have been deleted."


@remembered.get("")
@access.signed_in_only
def ask(session_id: str, memory_id: str) -> str:
    """What goes, and how far. Raises NotFound."""
    part = "_" if request.headers.get("HX-Request") else ""
    return render_template(f"conversation/{part}forget.html", **_question(session_id, memory_id))


@remembered.post("")
@access.signed_in_only
def forget(session_id: str, memory_id: str) -> str | BaseResponse:
    """Forgets the memory and what was drawn from it; again is no error. Raises NotFound."""
    owner = access.owner()
    with reading() as connection:
        entry = listing.find(connection, owner, session_id)
        row = transcript.memory(connection, owner, memory_id) if is_id(memory_id) else None
    if row is not None and row.session_id != session_id:
        raise NotFound(MISSING)
    with transaction() as db:
        memories.delete_memory(db, owner, memory_id)
    tell(resources(), session_id)
    if not request.headers.get("HX-Request"):
        return redirect(url_for("talk.page", session_id=session_id, _anchor="beside"), 303)
    with reading() as connection:
        beside = {
            "files": transcript.files(connection, owner, session_id),
            "memories": transcript.memories(connection, owner, session_id),
        }
    here = f"/conversations/{session_id}"
    return render_template("conversation/_beside.html", entry=entry, here=here, **beside)


def _question(session_id: str, memory_id: str) -> dict[str, Any]:
    owner: Owner = access.owner()
    row = None
    if is_id(session_id) and is_id(memory_id):
        with reading() as connection:
            row = transcript.memory(connection, owner, memory_id)
            drawn = transcript.is_drawn_from(connection, memory_id)
    if row is None or row.session_id != session_id:
        raise NotFound(MISSING)
    return {"here": f"/conversations/{session_id}", "memory": row, "drawn": drawn}

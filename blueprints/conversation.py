"""A conversation's page, its files, and its deletion as a browser asks for it.

| route | answers |
|---|---|
| `GET /conversations/<id>` | the page; 404, with the time of its deletion where the reader did that |
| `GET /conversations/<id>/standing` | 204 while it is there, else the notice that takes its place in an open page |
| `GET /conversations/<id>/artifacts/<artifact_id>` | the bytes, as attachment |
| `GET /conversations/<id>/delete` | what goes, and the question; `?seen=` 204 while nothing changed |
| `POST /conversations/<id>/delete` | Delete Everywhere: 200 and the event `allgone:deleted`, or 409 and the question |
| `POST /conversations/<id>/stop` | asks the active run to end, and the question again |

htmx gets a part, a browser without scripts a whole page, from the same route by one test of `HX-Request`.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any
from urllib.parse import quote

import orjson
from flask import Blueprint, Response, make_response, redirect, render_template, request, url_for
from sqlalchemy.orm import Session
from werkzeug.http import dump_options_header
from werkzeug.wrappers import Response as BaseResponse

from blueprints import access, days
from blueprints.database import reading, resources, transaction
from blueprints.errors import answer
from blueprints.sidebar import VERSION, listed
from blueprints.transcript import items
from models import listing, purge, runs, transcript
from models.accounts import Owner
from models.append import lock_conversation
from models.bytestore import Missing, StoreFault
from models.errors import InvalidState, NotFound
from models.ids import is_id
from tasks.deletion import delete_now

conversation = Blueprint("conversation", __name__, url_prefix="/conversations/<session_id>")

SEQ_END = 1 << 63  # no event's number reaches it
SIZES = ("bytes", "kB", "MB", "GB")
_media_type = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,63}/[a-z0-9][a-z0-9!#$&^_.+-]{0,63}", re.IGNORECASE)


@conversation.get("")
@access.signed_in_only
def page(session_id: str) -> str | Response:
    """The transcript, its newest part first; `?before=` shows what was said before that event."""
    owner = access.owner()
    before = request.args.get("before", type=int)
    if before is not None and not 0 < before < SEQ_END:
        before = None
    with reading() as connection:
        try:
            entry = listing.find(connection, owner, session_id)
        except NotFound:
            return _gone_page(owner, session_id)
        part = transcript.part(connection, session_id, before)
        files = transcript.files(connection, owner, session_id)
        memories = transcript.memories(connection, owner, session_id)
    return render_template(
        "conversation/page.html",
        entry=entry,
        items=items(part.events),
        earlier=part.before,
        later=before is not None,
        files=files,
        memories=memories,
        **listed(owner, open_entry=entry),
    )


@conversation.get("/standing")
@access.signed_in_only
def standing(session_id: str) -> Response:
    """Asked by an open page when the list changed: is its conversation still there?"""
    owner = access.owner()
    with reading() as connection:
        try:
            listing.find(connection, owner, session_id)
        except NotFound:
            return make_response(
                render_template("conversation/_gone.html", deleted_at=_when(owner, session_id))
            )
    return Response(status=204)


@conversation.get("/artifacts/<artifact_id>")
@access.signed_in_only
def artifact(session_id: str, artifact_id: str) -> Response:
    """Streams a file. It is a stranger's: never shown in place, never sniffed, never kept. Raises NotFound."""
    owner = access.owner()
    row = None
    if is_id(session_id) and is_id(artifact_id):
        with reading() as connection:
            row = transcript.file(connection, owner, session_id, artifact_id)
    if row is None:
        raise NotFound("There is no such file. Its conversation may have been deleted.")
    try:
        chunks = resources().store.open(artifact_id)
    except Missing:
        raise NotFound("The bytes of this file are not in the store.") from None
    except StoreFault:
        return answer("internal", "The store of files does not answer. Try again in a moment.", {}, 503)
    kind = row.content_type if _media_type.fullmatch(row.content_type) else "application/octet-stream"
    response = Response(chunks, content_type=kind, direct_passthrough=True)
    response.headers["Content-Disposition"] = _attachment(row.name)
    response.headers["Content-Length"] = str(row.size)
    response.headers["Content-Security-Policy"] = "default-src 'none'; sandbox"
    response.headers["Cache-Control"] = "no-store"
    return response


@conversation.get("/delete")
@access.signed_in_only
def ask(session_id: str) -> str | Response:
    """The question before a deletion, with what goes. Raises NotFound."""
    owner = access.owner()
    with transaction() as db:
        try:
            context = _question(db, owner, session_id)
        except NotFound:
            return _already_gone(owner, session_id)
    if request.args.get("seen") == context["state"]:
        return Response(status=204)
    return _rendered("delete", context)


@conversation.post("/delete")
@access.signed_in_only
def delete(session_id: str) -> Response | BaseResponse:
    """Delete Everywhere. Raises NotFound; while a run is active, 409 with the question as it stands now."""
    owner = access.owner()
    try:
        outcome = delete_now(resources(), owner, session_id)
    except InvalidState:
        with transaction() as db:
            return make_response(_rendered("delete", _question(db, owner, session_id)), 409)
    said = "Conversation deleted everywhere."
    if outcome.deleted.again:
        said = "This conversation was deleted everywhere before."
    elif outcome.bytes_owed:
        said += " Its files are still being erased."
    if not request.headers.get("HX-Request"):
        return redirect(url_for("sidebar.history"), 303)
    with reading() as connection:
        version = listing.version(connection, owner)
    response = make_response("")
    told = {"allgone:deleted": {"id": session_id, "said": said, "version": version}}
    response.headers["HX-Trigger"] = orjson.dumps(told).decode()
    response.headers[VERSION] = str(version)
    return response


@conversation.post("/stop")
@access.signed_in_only
def stop(session_id: str) -> str | Response | BaseResponse:
    """Asks the active run to end; its worker, or its lease, ends it. Raises NotFound."""
    owner = access.owner()
    with transaction() as db:
        runs.request_cancel(db, lock_conversation(db, owner, session_id))
        context = _question(db, owner, session_id)
    if not request.headers.get("HX-Request"):
        return redirect(url_for(".ask", session_id=session_id), 303)
    return _rendered("delete", context)


@conversation.app_template_filter("moment")
def moment(at: datetime) -> str:
    """A moment in words, in the reader's zone."""
    return days.written(at, days.zone())


@conversation.app_template_filter("size")
def size(count: int) -> str:
    """Bytes in words: "312 bytes", "1.4 MB"."""
    amount = float(count)
    for unit in SIZES:
        if amount < 1000 or unit == SIZES[-1]:
            break
        amount /= 1000
    if unit == "bytes":
        return "1 byte" if count == 1 else f"{count} bytes"
    return f"{amount:.1f} {unit}" if amount < 99.95 else f"{amount:.0f} {unit}"


def _question(db: Session, owner: Owner, session_id: str) -> dict[str, Any]:
    entry = listing.find(db, owner, session_id)
    alive = runs.alive(db, session_id)
    state = "ready" if alive is None else "stopping" if alive.cancel_requested else "running"
    return {"entry": entry, "reach": purge.reach(db, owner, session_id), "state": state}


def _rendered(name: str, context: dict[str, Any]) -> str:
    part = "_" if request.headers.get("HX-Request") else ""
    return render_template(f"conversation/{part}{name}.html", **context)


def _already_gone(owner: Owner, session_id: str) -> Response:
    deleted_at = _when(owner, session_id)
    if deleted_at is None:
        raise NotFound("There is no such conversation. It may have been deleted.")
    if not request.headers.get("HX-Request"):
        return _gone_page(owner, session_id)
    response = make_response(render_template("conversation/_gone.html", deleted_at=deleted_at, dialog=True))
    response.headers["HX-Trigger"] = orjson.dumps({"allgone:gone": {"id": session_id}}).decode()
    return response


def _gone_page(owner: Owner, session_id: str) -> Response:
    deleted_at = _when(owner, session_id)
    return make_response(
        render_template("conversation/gone.html", deleted_at=deleted_at, **listed(owner)), 404
    )


def _when(owner: Owner, session_id: str) -> str | None:
    """When the reader deleted it, in the reader's zone; None when it never was theirs."""
    with transaction() as db:
        stone = purge.tombstone(db, owner, session_id)
        return days.written(stone.deleted_at, days.zone()) if stone else None


def _attachment(name: str) -> str:
    """A Content-Disposition for any name: control characters dropped, an ASCII stand-in beside the whole one."""
    clean = "".join(c for c in name if c.isprintable()).replace("/", "_").replace("\\", "_")[:200] or "file"
    plain = clean.encode("ascii", "replace").decode().replace("?", "_")
    return dump_options_header("attachment", {"filename": plain}) + (
        "" if plain == clean else f"; filename*=UTF-8''{quote(clean, safe='')}"
    )

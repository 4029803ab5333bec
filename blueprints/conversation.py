"""The run of a conversation that can be stopped, and its deletion as a browser asks for it.

| route | answers |
|---|---|
| `GET /conversations/<id>/standing` | 204 while it is there, else the notice that takes its place in an open page |
| `GET /conversations/<id>/delete` | what goes, and the question; `?seen=` 204 while nothing changed |
| `POST /conversations/<id>/delete` | Delete Everywhere: 200 and the event `allgone:deleted`, or 409 and the question |
| `POST /conversations/<id>/stop` | asks the active run to end, and the question again |

htmx gets a part, a browser without scripts a whole page, from the same route by one test of `HX-Request`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import orjson
from flask import Blueprint, Response, make_response, redirect, render_template, request, url_for
from sqlalchemy.orm import Session
from werkzeug.wrappers import Response as BaseResponse

from blueprints import access, days
from blueprints.database import reading, resources, transaction
from blueprints.gone import deleted_at_of, gone_page
from blueprints.sidebar import VERSION
from models import listing, purge, runs
from models.accounts import Owner
from models.append import lock_conversation
from models.errors import InvalidState, NotFound
from models.outbox import owed_of
from tasks.deletion import delete_now
from tasks.news import tell

conversation = Blueprint("conversation", __name__, url_prefix="/conversations/<session_id>")

SIZES = ("bytes", "kB", "MB", "GB")
REACHED = "gone from this server, and from each client and device as it next connects."


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
                render_template("conversation/_gone.html", deleted_at=deleted_at_of(owner, session_id))
            )
    return Response(status=204)


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
    said, owed = f"Conversation deleted: {REACHED}", 0
    if outcome.deleted.again:
        said = "This conversation was deleted before."
    elif outcome.bytes_owed:
        with transaction() as db:
            owed = owed_of(db, session_id)
        said += f" {owed} file{'' if owed == 1 else 's'} still being erased."
    if not request.headers.get("HX-Request"):
        return redirect(url_for("sidebar.history"), 303)
    with reading() as connection:
        version = listing.version(connection, owner)
    response = make_response("")
    since = outcome.deleted.deleted_at.isoformat()
    told = {"id": session_id, "said": said, "version": version, "since": since, "owed": owed}
    response.headers["HX-Trigger"] = orjson.dumps({"allgone:deleted": told}).decode()
    response.headers[VERSION] = str(version)
    return response


@conversation.post("/stop")
@access.signed_in_only
def stop(session_id: str) -> str | Response | BaseResponse:
    """Asks the active run to end; its worker, or its lease, ends it. Raises NotFound.

    The question before a deletion asks this, and (with `page`) the conversation's own page.
    """
    owner = access.owner()
    with transaction() as db:
        runs.request_cancel(db, lock_conversation(db, owner, session_id))
        context = _question(db, owner, session_id)
    tell(resources(), session_id)
    if not request.headers.get("HX-Request"):
        back = "talk.page" if "page" in request.form else ".ask"
        return redirect(url_for(back, session_id=session_id), 303)
    return _rendered("delete", context)


@conversation.app_template_filter("moment")
def moment(at: datetime) -> str:
    """A moment in words, in the reader's zone."""
    return days.written(at, days.zone())


@conversation.app_template_filter("day")
def day(at: datetime) -> str:
    """A day in words, in the reader's zone."""
    return days.written(at, days.zone()).partition(" at ")[0]


@conversation.app_template_filter("lasting")
def lasting(seconds: float) -> str:
    """A length of time in words: "340 ms", "2.5 s", "3 min"."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


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
    deleted_at = deleted_at_of(owner, session_id)
    if deleted_at is None:
        raise NotFound("There is no such conversation. It may have been deleted.")
    if not request.headers.get("HX-Request"):
        return gone_page(owner, session_id)
    response = make_response(render_template("conversation/_gone.html", deleted_at=deleted_at, dialog=True))
    response.headers["HX-Trigger"] = orjson.dumps({"allgone:gone": {"id": session_id}}).decode()
    return response

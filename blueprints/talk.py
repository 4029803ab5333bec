"""A conversation as it is read: its page, one more part of it, and the news of a page that is open.

| route | answers |
|---|---|
| `GET /conversations/<id>` | the page; 404, with the time of its deletion where the reader did that |
| `GET /conversations/<id>/part` | `_part.html`: below `before` or above `after`, how things stand; 204 when gone |
| `GET /conversations/<id>/live` | Server-Sent Events: `news` with the conversation's stamp, `session_deleted`, `beat` |
| `GET /conversations/<id>/events/<seq>` | one event, whole |

The page and its parts take the same words: `before=SEQ`, `after=SEQ`, and `at=SEQ` for the page that holds an event.
Nothing is told by the stream itself: a hint may be lost or come twice, and the page then asks `part` for everything
above the last event that it shows. A page's stamp is read before its events, so news in between is asked for again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
from flask import Blueprint, Response, render_template, request
from sqlalchemy import Connection

from blueprints import access
from blueprints.api import streams
from blueprints.database import reading
from blueprints.gone import gone_page
from blueprints.search import query_of
from blueprints.sidebar import listed
from blueprints.transcript import Beside, Item, halves, items, named, updates
from blueprints.transcript import asked as approvals_asked
from models import listing, runs, transcript
from models import reading as events
from models.accounts import Owner
from models.errors import NotFound, RateLimited
from models.ids import made_at
from models.listing import Entry
from models.notes import ORIGINS
from models.rules import texts
from models.snippets import said
from models.transcript import Part
from models.words import asked

talk = Blueprint("talk", __name__, url_prefix="/conversations/<session_id>")

SEQ_END = 1 << 63  # no event's number reaches it
AGAIN_MILLISECONDS = 30_000  # until a page asks again that could not be given a stream


@talk.get("")
@access.signed_in_only
def page(session_id: str) -> str | Response:
    """The transcript, its newest part first."""
    owner = access.owner()
    with reading() as connection:
        try:
            entry = listing.find(connection, owner, session_id)
        except NotFound:
            return gone_page(owner, session_id)
        shown = _told(connection, owner, entry)
        imported = transcript.origin(connection, session_id)
    if imported is not None:
        kind, first_id = imported
        shown["imported"] = (ORIGINS.get(kind, kind), made_at(first_id))
    return render_template("conversation/page.html", **shown, **listed(owner, open_entry=entry))


@talk.get("/part")
@access.signed_in_only
def part(session_id: str) -> str | Response:
    """One more part of an open page; 204 when its conversation is not there any more, which is no fault."""
    owner = access.owner()
    with reading() as connection:
        try:
            shown = _told(connection, owner, listing.find(connection, owner, session_id))
        except NotFound:
            return Response(status=204)
    return render_template("conversation/_part.html", **shown)


@talk.get("/live")
def live(session_id: str) -> Response:
    """The hints of an open page, which shows the stamp `seen`. 204 ends it: signed out, or no such conversation.

    A page that cannot be given a stream (there are too many, or the server has none) is told how things stand, and
    comes again after half a minute.
    """
    if access.reader() is None:
        return Response(status=204)
    owner = access.owner()
    with reading() as connection:
        try:
            listing.find(connection, owner, session_id)
        except NotFound:
            return Response(status=204)
        stamp = transcript.stamps(connection, [session_id]).get(session_id)
    taken = None
    if request.method != "HEAD":
        try:
            seen = request.args.get("seen", "")[:100]
            taken = streams.open_watch(owner, session_id, access.signed_in_id(), seen)
        except RateLimited:
            taken = None
    if taken is not None:
        return taken
    return Response(
        f"retry: {AGAIN_MILLISECONDS}\nevent: later\ndata:\n\nevent: news\ndata: {stamp}\n\n",
        content_type=streams.EVENT_STREAM,
    )


@talk.get("/events/<int:seq>")
@access.signed_in_only
def event(session_id: str, seq: int) -> str:
    """One event with all that it holds, and for a tool's call its result. Raises NotFound."""
    owner = access.owner()
    missing = NotFound("There is no such message. Its conversation may have been deleted.")
    if not 0 < seq < SEQ_END:
        raise missing
    with reading() as connection:
        entry = listing.find(connection, owner, session_id)
        found = events.above(connection, session_id, seq - 1, 1).events
        if not found or found[0].seq != seq:
            raise missing
        shown = dict(found[0].payload)
        key = shown.get("call_id")
        if found[0].type == "tool_call" and isinstance(key, str):
            shown["output"] = transcript.output(connection, session_id, key)
    fields = [(name, _whole(value)) for name, value in shown.items() if name != "import"]
    return render_template("conversation/event.html", entry=entry, event=found[0], fields=fields)


def _told(connection: Connection, owner: Owner, entry: Entry) -> dict[str, Any]:
    """What the page and a part of it are rendered from; the stamp is read before the events."""
    session_id = entry.id
    stamp = transcript.stamps(connection, [session_id]).get(session_id)
    if stamp is None:
        raise NotFound("There is no such conversation. It may have been deleted.")
    found, at = _asked_part(connection, session_id)
    files = transcript.files(connection, owner, session_id)
    held = {row.id: row for row in files}
    others = [one for one in named(found.events) if one not in held]
    held |= {row.id: row for row in transcript.files_named(connection, owner, session_id, others)}
    beside = Beside(
        transcript.invocations(connection, session_id, halves(found.events)),
        transcript.approvals(connection, session_id, approvals_asked(found.events)),
        held,
        f"/conversations/{session_id}/artifacts",
    )
    shown = items(found.events, beside)
    query = query_of() if at is not None else ""
    waiting = transcript.pending(connection, session_id)
    alive = runs.alive(connection, session_id)
    state = "idle" if alive is None else "stopping" if alive.cancel_requested else "running"
    last = max(stamp.last_seq, found.events[-1].seq if found.events else 0)
    return {
        "entry": entry,
        "items": shown,
        "updates": updates(found.events, beside) if request.args.get("after") else [],
        "marked": _marked(shown, at),
        "said": _said(found.events, at, query),
        "part": found,
        "last": last if found.after is None else found.after,
        "stamp": stamp,
        "state": state,
        "pending": waiting,
        "files": files,
        "memories": transcript.memories(connection, owner, session_id),
    }


def _asked_part(connection: Connection, session_id: str) -> tuple[Part, int | None]:
    at, before, after = (_seq(name) for name in ("at", "before", "after"))
    if at is not None:
        return transcript.around(connection, session_id, at), at
    if before is not None:
        return transcript.below(connection, session_id, before), None
    if after is not None or request.args.get("after") == "0":
        return transcript.above(connection, session_id, after or 0), None
    return transcript.newest(connection, session_id), None


def _seq(name: str) -> int | None:
    found: int | None = request.args.get(name, type=int)
    return found if found is not None and 0 < found < SEQ_END else None


def _marked(shown: list[Item], at: int | None) -> int | None:
    """The number of the item that holds the event `at`, or the nearest before it."""
    if at is None or not shown:
        return None
    every = [inner for item in shown for inner in (item.inner or [item])]
    return max((item.seq for item in every if item.seq <= at), default=every[0].seq)


def _said(shown: Sequence[transcript.Said], at: int | None, query: str) -> str:
    """The words of the message `at` that a search asked for, for the page's script to mark; "" when there are none."""
    terms = asked(query) if query else ()
    found = [one for one in shown if one.seq == at] if terms else []
    words = said("\n".join(texts(found[0].payload.get("content"))), terms) if found else []
    return orjson.dumps(words).decode() if words else ""


def _whole(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()

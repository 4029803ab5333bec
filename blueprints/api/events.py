"""Reading a conversation's events: a page, or a live stream (PRODUCT.md 3.1)."""

from __future__ import annotations

from typing import Annotated

from flask import Response, request
from pydantic import Field

from blueprints.api import streams, views, wire
from blueprints.api.contract import WHOLE, Asked, operation
from blueprints.database import reading as reading_connection
from blueprints.database import transaction
from models import listing, reading
from models.accounts import Owner
from models.errors import Invalid

EVENTS_DEFAULT, EVENTS_MAX = 200, 1000
Seq = Annotated[int, Field(ge=0, le=(1 << 63) - 1, description="Events above this seq."), WHOLE]


class EventsAsked(Asked):
    after: Seq = 0
    limit: Annotated[int, Field(ge=1, le=EVENTS_MAX), WHOLE] = EVENTS_DEFAULT


@operation(
    "GET",
    "/sessions/{session_id}/events",
    scope="session.read",
    query=EventsAsked,
    answers={200: views.Events},
    refuses=("invalid", "not_found", "rate_limited"),
    headers=("Accept", "Last-Event-ID"),
)
def list_events(owner: Owner, session_id: str, query: EventsAsked) -> Response:
    """Events in order. With `Accept: text/event-stream` a live stream that resumes from `Last-Event-ID`.

    The stream's `id` is `seq`, its `event` the type, its `data` an EventView. A heartbeat comes every 15 seconds;
    `session_deleted` is its last word when the conversation goes.
    """
    after = _resumed(query.after)
    if _wants_stream():
        with reading_connection() as connection:
            listing.find(connection, owner, session_id)  # NotFound before anything is streamed
        if request.method == "HEAD":
            return Response(content_type=streams.EVENT_STREAM)
        return streams.open_stream(owner, session_id, after)
    with transaction() as db:
        page = reading.events(db, owner, session_id, query.after, query.limit)
    data = [views.event(row, session_id, row.parent_id) for row in page.events]
    return wire.listed(data, str(data[-1]["seq"]) if page.more else None)


def _wants_stream() -> bool:
    # Only who names it: `*/*` is anyone who did not think of a stream that never ends.
    named = {kind.partition(";")[0].strip().lower(): quality for kind, quality in request.accept_mimetypes}
    wanted = named.get(streams.EVENT_STREAM, 0)
    return wanted > 0 and wanted >= named.get("application/json", 0)


def _resumed(after: int) -> int:
    text = request.headers.get("Last-Event-ID", "")
    if not text:
        return after
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise Invalid("Last-Event-ID", "Last-Event-ID must be the id of an event of this stream.")
    return int(text)

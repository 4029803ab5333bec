"""A history to take along: one conversation as a file, or all of them as one archive (docs/exporting.md).

| route | answers |
|---|---|
| `GET /conversations/<id>/export.json`, `….md` | one conversation, as attachment |
| `GET /export/conversations.zip?format=json\\|markdown&files=yes` | all of them, as they are now, streamed |
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Literal, cast, get_args
from urllib.parse import quote

from flask import Blueprint, Response, request

from blueprints import access, days
from blueprints.database import resources
from models.errors import Invalid, NotFound, RateLimited
from tasks.exports import chatgpt, everything, markdown
from tasks.exports.names import safe
from tasks.exports.told import Gone, Shape, Told, pieces, spooled

export = Blueprint("export", __name__)

AT_ONCE = 4  # archives that one process makes at the same time: each holds a thread while it is downloaded
_places = threading.BoundedSemaphore(AT_ONCE)


@export.get("/conversations/<session_id>/export.<any(json, md):ending>")
@access.signed_in_only
def one(session_id: str, ending: Literal["json", "md"]) -> Response:
    """One conversation: JSON as a list of one, which is what importers read, or Markdown. Raises NotFound."""
    shape: Shape = (
        chatgpt.conversation if ending == "json" else partial(markdown.conversation, zone=days.zone())
    )
    held = ExitStack()
    try:
        told = Told(resources(), access.owner(), session_id)
        file = held.enter_context(spooled(told, shape))
    except Gone:
        raise NotFound("There is no such conversation. It may have been deleted.") from None

    def body() -> Iterator[bytes]:
        yield b"[" if ending == "json" else b""
        yield from pieces(file)
        yield b"]\n" if ending == "json" else b""

    kind = "application/json" if ending == "json" else "text/markdown; charset=utf-8"
    response = _download(body(), kind, safe(told.entry.title, "Untitled", f".{ending}"))
    response.call_on_close(held.close)
    return response


@export.get("/export/conversations.zip")
@access.signed_in_only
def every() -> Response:
    """All conversations. Raises Invalid("format"), and RateLimited while too many archives are being made."""
    form = request.args.get("format", "json")
    if form not in get_args(everything.Format):
        raise Invalid("format", "The format is json or markdown.")
    owner = access.owner()
    if not _places.acquire(blocking=False):
        raise RateLimited(
            "Too many histories are being exported just now. Try again in a minute.", retry_after=60
        )
    with_files = request.args.get("files") == "yes"
    body = everything.archive(
        resources(),
        owner,
        cast(everything.Format, form),
        days.zone(),
        files=with_files,
    )
    response = _download(body, "application/zip", f"allgone-{form}.zip")
    response.call_on_close(_places.release)
    return response


def _download(body: Iterator[bytes], kind: str, name: str) -> Response:
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "._- ") else "_" for c in name)
    response = Response(
        body, content_type=kind
    )  # passed straight through, it would never hear that it is closed
    response.headers["Content-Disposition"] = (
        f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"
    )
    return response

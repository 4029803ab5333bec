"""The files of a conversation: downloaded, and looked at where that is safe (PRODUCT.md 7).

| route | answers |
|---|---|
| `GET /conversations/<id>/artifacts/<artifact_id>` | the bytes, as attachment |
| `GET …/picture` | the same, when they begin as one of four raster images do, with the type that they have |
| `GET …/text` | the first part as escaped text, in a page or (for a script) in a part |

Whatever is served is a stranger's: always an attachment, never sniffed, sandboxed, kept by nobody. A browser shows an
attachment in an `img` all the same, so a picture needs no weaker headers; opened by itself it is a download.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import Any
from urllib.parse import quote

from flask import Blueprint, Response, render_template, request
from werkzeug.http import dump_options_header

from blueprints import access
from blueprints.database import reading, resources
from blueprints.errors import answer
from models import preview, transcript
from models.bytestore import Missing, StoreFault
from models.errors import NotFound
from models.ids import is_id

files = Blueprint("files", __name__, url_prefix="/conversations/<session_id>/artifacts/<artifact_id>")

_media_type = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,63}/[a-z0-9][a-z0-9!#$&^_.+-]{0,63}", re.IGNORECASE)


@files.get("")
@access.signed_in_only
def artifact(session_id: str, artifact_id: str) -> Response:
    """Streams a file. Raises NotFound."""
    row = _row(session_id, artifact_id)
    try:
        chunks = _bytes(artifact_id)
    except StoreFault:
        return _away()
    kind = row.content_type if _media_type.fullmatch(row.content_type) else "application/octet-stream"
    return _attachment(chunks, kind, row)


@files.get("/picture")
@access.signed_in_only
def picture(session_id: str, artifact_id: str) -> Response:
    """Streams an image for an `img`. Raises NotFound for what is none, whatever it calls itself."""
    row = _row(session_id, artifact_id)
    none = NotFound("This file is no image that can be shown.")
    if preview.kind_of(row.name, row.content_type, row.size) != "image":
        raise none
    try:
        chunks = _bytes(artifact_id)
        first = next(chunks, b"")
    except StoreFault:
        return _away()
    kind = preview.image_type(first[: preview.HEAD])
    if kind is None:
        raise none
    return _attachment(chain((first,), chunks), kind, row)


@files.get("/text")
@access.signed_in_only
def text(session_id: str, artifact_id: str) -> str | Response:
    """The beginning of a file as text. Raises NotFound for what is none."""
    row = _row(session_id, artifact_id)
    try:
        if preview.kind_of(row.name, row.content_type, row.size) != "text":
            raise NotFound("This file is no text that can be shown.")
        data = b"".join(_bytes(artifact_id, preview.TEXT_MAX))
    except StoreFault:
        return _away()
    if b"\0" in data:
        raise NotFound("This file is no text that can be shown.")
    part = "_" if request.headers.get("HX-Request") else ""
    return render_template(
        f"conversation/{part}text.html",
        here=f"/conversations/{session_id}",
        file=row,
        id=artifact_id,
        text=data.decode("utf-8", "replace"),
        cut=row.size > preview.TEXT_MAX,
    )


def _row(session_id: str, artifact_id: str) -> Any:
    row = None
    if is_id(session_id) and is_id(artifact_id):
        with reading() as connection:
            row = transcript.file(connection, access.owner(), session_id, artifact_id)
    if row is None:
        raise NotFound("There is no such file. Its conversation may have been deleted.")
    return row


def _bytes(artifact_id: str, most: int | None = None) -> Iterator[bytes]:
    try:
        return resources().store.open(artifact_id, 0, most)
    except Missing:
        raise NotFound("The bytes of this file are not in the store.") from None


def _away() -> Response:
    return answer("internal", "The store of files does not answer. Try again in a moment.", {}, 503)


def _attachment(chunks: Iterator[bytes], kind: str, row: Any) -> Response:
    response = Response(chunks, content_type=kind, direct_passthrough=True)
    response.headers["Content-Disposition"] = _disposition(row.name)
    response.headers["Content-Length"] = str(row.size)
    response.headers["Content-Security-Policy"] = "default-src 'none'; sandbox"
    response.headers["Cache-Control"] = "no-store"
    return response


def _disposition(name: str) -> str:
    """A Content-Disposition for any name: control characters dropped, an ASCII stand-in beside the whole one."""
    clean = "".join(c for c in name if c.isprintable()).replace("/", "_").replace("\\", "_")[:200] or "file"
    plain = clean.encode("ascii", "replace").decode().replace("?", "_")
    return dump_options_header("attachment", {"filename": plain}) + (
        "" if plain == clean else f"; filename*=UTF-8''{quote(clean, safe='')}"
    )

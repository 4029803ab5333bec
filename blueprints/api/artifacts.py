"""Artifacts: bytes in and out, streamed in constant memory (PRODUCT.md 3.1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated
from urllib.parse import quote

from flask import Response, request
from pydantic import Field
from sqlalchemy import select
from sqlalchemy.orm import Session
from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.http import parse_range_header

from blueprints.api import views, wire
from blueprints.api.body import CUT_OFF, check_whole, cut_off, refuse_encoded
from blueprints.api.contract import Asked, IdGiven, operation
from blueprints.database import resources, transaction
from blueprints.errors import problem
from models import listing
from models.accounts import Owner
from models.append import Draft, append
from models.artifacts import Artifact
from models.bytestore import Missing, Stored
from models.errors import Invalid, NotFound
from models.ids import is_id
from models.reading import MISSING_RUN, run
from tasks.news import tell
from tasks.uploads import upload

ARTIFACT_MAX = 16 * 1024**3  # bytes of one artifact
NAME_MAX = 255  # characters
CHUNK = 256 * 1024
OCTETS = "application/octet-stream"
MISSING = "There is no such artifact. Its conversation may have been deleted."


class ArtifactNamed(Asked):
    name: Annotated[str, Field(min_length=1, max_length=NAME_MAX)] = "artifact"
    run_id: IdGiven | None = Field(None, description="The active run that made it.")


@operation(
    "POST",
    "/sessions/{session_id}/artifacts",
    scope="artifact.write",
    query=ArtifactNamed,
    body=OCTETS,
    body_max=ARTIFACT_MAX,
    answers={201: views.ArtifactView},
    refuses=("invalid", "not_found", "invalid_state", "too_large"),
)
def create_artifact(owner: Owner, session_id: str, query: ArtifactNamed) -> Response:
    """Store the body's bytes under `name`; an upload that dies, or races a deletion, leaves nothing behind."""
    refuse_encoded()
    if not query.name.strip():
        raise Invalid("name", "name must not be blank.")
    with transaction() as db:
        listing.find(db, owner, session_id)
        if query.run_id is not None and run(db, owner, query.run_id).session_id != session_id:
            raise NotFound(MISSING_RUN)
    content_type = request.content_type or OCTETS
    if len(content_type) > NAME_MAX or not content_type.isascii() or not content_type.isprintable():
        raise Invalid("Content-Type", f"Content-Type has at most {NAME_MAX} printable ASCII characters.")

    def write(db: Session, key: str, stored: Stored) -> dict[str, object]:
        payload = {
            "artifact_id": key,
            "name": query.name,
            "content_type": content_type,
            "size": stored.size,
            "sha256": stored.sha256.hex(),
        }
        append(db, owner, session_id, [Draft("artifact_created", payload)], run_id=query.run_id)
        return views.artifact(db.get_one(Artifact, key))

    view = upload(resources(), session_id, _body(), write)
    tell(resources(), session_id)
    return wire.answered(view, 201)


@operation(
    "GET",
    "/artifacts/{artifact_id}",
    scope="artifact.read",
    answers={200: OCTETS, 206: OCTETS, 416: views.Problem},
    refuses=("not_found",),
    headers=("Range",),
)
def read_artifact(owner: Owner, artifact_id: str) -> Response:
    """The bytes, as an attachment that no browser sniffs; one Range of them when asked."""
    with transaction() as db:
        row = _mine(db, owner, artifact_id)
        name, content_type, size, digest = row.name, row.content_type, row.size, bytes(row.sha256).hex()
    start, end, status = 0, size, 200
    wanted = request.headers.get("Range")
    if wanted and request.headers.get("If-Range", f'"{digest}"') == f'"{digest}"':
        asked = parse_range_header(wanted)
        if asked is not None and asked.units == "bytes" and len(asked.ranges) == 1:
            first = asked.ranges[0][0]
            # RFC 9110 14.1.2: a suffix longer than the whole is the whole.
            found = (0, size) if size and first < -size else asked.range_for_length(size)
            if found is None:
                refused = problem(
                    "invalid", "The range lies beyond the artifact's end.", {"field": "Range"}, 416
                )
                refused.headers["Content-Range"] = f"bytes */{size}"
                return refused
            (start, end), status = found, 206
    try:
        if request.method == "HEAD":
            resources().store.size(artifact_id)
            chunks: Iterator[bytes] = iter(())
        else:
            chunks = resources().store.open(artifact_id, start, end)
    except Missing:
        raise NotFound(MISSING) from None
    response = Response(chunks, status, content_type=content_type)
    response.headers["Content-Length"] = str(end - start)
    if status == 206:
        response.headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
    response.headers["Accept-Ranges"] = "bytes"
    response.headers["ETag"] = f'"{digest}"'
    response.headers["Content-Disposition"] = disposition(name)
    response.headers["Content-Security-Policy"] = "default-src 'none'; sandbox"
    return response


def disposition(name: str) -> str:
    """An attachment's header: the name kept in full for those who read RFC 6266, and a safe one for the rest."""
    safe = "".join(c if c.isascii() and (c.isalnum() or c in "._- ") else "_" for c in name)[:100]
    return f"attachment; filename=\"{safe or 'artifact'}\"; filename*=UTF-8''{quote(name, safe='')}"


def _mine(db: Session, owner: Owner, artifact_id: str) -> Artifact:
    found = None
    if is_id(artifact_id):
        mine = select(Artifact).where(Artifact.id == artifact_id, Artifact.principal_id == owner.principal_id)
        found = db.execute(mine).scalar_one_or_none()
    if found is None:
        raise NotFound(MISSING)
    return found


def _body() -> Iterator[bytes]:
    left = ARTIFACT_MAX
    try:
        while chunk := request.stream.read(CHUNK):
            left -= len(chunk)
            if left < 0:
                raise RequestEntityTooLarge
            yield chunk
        check_whole(ARTIFACT_MAX - left)
    except CUT_OFF:
        raise cut_off() from None

"""Many deletions at once, how far those that were done have come, and the page of all of them (PRODUCT.md 7).

| route | answers |
|---|---|
| `GET /deletions` | the page, newest first, `?cursor=` below a place; to htmx, its rows |
| `GET /deletions/progress` | JSON `{"owed", "blocked"}`: files that still have bytes, of what went since `since` |
| `GET /deletions/choices` | JSON `{"held": [[id, title]], "more"}`: all of the list, or of what `q` finds |
| `POST /deletions/question` | `_many.html`: what deleting each `id` would take along, and which can't go |
| `POST /deletions` | deletes each `id`: JSON `{"gone", "kept": {id: reason}, "left", "version", "since", "owed"}` |

A request takes up to MANY ids and stops beginning further ones after some seconds; `left` are asked for again.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from flask import Blueprint, Response, current_app, jsonify, render_template, request

from blueprints import access
from blueprints.database import reading, resources, transaction
from blueprints.search import looked_up, query_of
from blueprints.sidebar import listed
from models import cursor, deletions, listing
from models.errors import Invalid
from models.ids import made_at
from models.words import asked
from tasks.deletion import delete_many

KIND = "deletions"  # of cursors
MANY = 200  # conversations that one request deletes
ASKED_MAX = 5000  # that one question is about
FOUND_MAX = 1000  # found ones that are selected at once

done = Blueprint("deletions", __name__, url_prefix="/deletions")


@done.get("")
@access.signed_in_only
def page() -> str:
    """What was deleted. Raises InvalidCursor."""
    owner = access.owner()
    key = current_app.config["CURSOR_KEY"]
    text = request.args.get("cursor", "")
    after = cursor.read(text, owner.principal_id, key, KIND) if text else None
    with reading() as connection:
        shown = deletions.page(connection, owner, after)
    below = ""
    if shown.more:
        last = shown.held[-1]
        below = cursor.write(cursor.Position(last.deleted_at, last.session_id), owner.principal_id, key, KIND)
    told = {
        "held": [(one, made_at(one.session_id)) for one in shown.held],
        "pending": any(one.owed for one in shown.held),
        "below": below,
        "cursor": text,
    }
    if request.headers.get("HX-Request"):
        return render_template("_deletions.html", **told)
    return render_template("deletions.html", **told, **listed(owner))


@done.get("/progress")
@access.signed_in_only
def progress() -> Response:
    """How many files of what was deleted since `since` (RFC 3339) still have bytes. Raises Invalid."""
    try:
        since = datetime.fromisoformat(request.args.get("since", ""))
        since.astimezone()
        if since.tzinfo is None:
            raise ValueError
    except (ValueError, OverflowError):
        raise Invalid("since", "since must be a time, such as 2026-01-31T09:30:00.000000Z.") from None
    with reading() as connection:
        left = deletions.left_since(connection, access.owner(), since)
    return jsonify(owed=left.owed, blocked=left.blocked)


@done.get("/choices")
@access.signed_in_only
def choices() -> Response:
    """All conversations that a list or a search leads to, newest first; `more` where these are not all."""
    owner = access.owner()
    query = query_of()
    if not query:
        with reading() as connection:
            page = listing.page(connection, owner, ASKED_MAX)
        held, more = page.entries, page.more
    elif terms := asked(query):
        with transaction() as db:
            pages = looked_up(db, owner, terms, {}, FOUND_MAX)
        found = [one.entry for page in pages for one in page.found]
        held, more = found[:FOUND_MAX], len(found) > FOUND_MAX or any(page.more for page in pages)
    else:
        held, more = [], False
    return jsonify(held=[[entry.id, entry.title] for entry in held], more=more)


@done.post("/question")
@access.signed_in_only
def ask() -> str:
    """The one question before many deletions. Raises Invalid."""
    with transaction() as db:
        told = deletions.reach(db, access.owner(), _ids(ASKED_MAX))
    return render_template("_many.html", reach=told)


@done.post("")
@access.signed_in_only
def delete() -> Response:
    """Deletes each, in its own transaction. Raises Invalid."""
    owner = access.owner()
    outcomes = delete_many(resources(), owner, _ids(MANY))
    with reading() as connection:
        version = listing.version(connection, owner)
        since = outcomes.since
        owed = deletions.left_since(connection, owner, since).owed if since else 0
    return jsonify(
        gone=outcomes.gone,
        kept=outcomes.kept,
        left=outcomes.untried,
        version=version,
        since=since.isoformat() if since else None,
        owed=owed,
    )


def _ids(most: int) -> Sequence[str]:
    ids = request.form.getlist("id")
    if not 1 <= len(ids) <= most:
        raise Invalid("id", f"Name 1 to {most} conversations.")
    return ids

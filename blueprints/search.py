"""The search of the history, in the sidebar's own region (PRODUCT.md 7).

| route | answers |
|---|---|
| `GET /history/search` | `_found.html`: what `q` finds, from the top or below `cursor`; to a browser, a page |

Any page with the list takes `?q=` and shows what it finds in place of the list: so a result that is opened keeps the
others beside it, the way back leads to them, and no script is needed. What was searched for is never logged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import urlencode

from flask import Blueprint, Response, current_app, make_response, redirect, render_template, request, url_for
from werkzeug.wrappers import Response as BaseResponse

from blueprints import access, days
from blueprints.database import transaction
from models import cursor, indexing
from models.accounts import Owner
from models.rules import texts
from models.search import Found, search
from models.snippets import Piece, marked, snippet
from models.words import QUERY_MAX, Term, asked

KIND = "search"  # of cursors

finder = Blueprint("search", __name__)


class Result(NamedTuple):
    """A result as it is shown."""

    id: str
    title: Sequence[Piece]
    name: str
    snippet: Sequence[Piece]
    address: str


@finder.get("/history/search")
@access.signed_in_only
def found() -> Response | BaseResponse:
    """What `q` finds. Raises InvalidCursor."""
    if not request.headers.get("HX-Request"):
        given = urlencode({name: request.args[name] for name in ("q", "cursor") if name in request.args})
        return redirect(f"{url_for('sidebar.history')}?{given}", 303)
    return make_response(render_template("_found.html", **sought(access.owner(), whole=False)))


def sought(owner: Owner, *, whole: bool = True) -> Mapping[str, Any]:
    """What `_found.html` needs for the request's `q`, or None; `whole` where it stands in a page."""
    query = request.args.get("q", "").replace("\0", "")[:QUERY_MAX].strip()
    if not query:
        return {"search": None}
    terms = asked(query)
    position = request.args.get("cursor", "")
    key = current_app.config["CURSOR_KEY"]
    after = None
    if position and (not whole or request.endpoint == "sidebar.history"):
        after = cursor.read(position, owner.principal_id, key, KIND)
    with transaction() as db:
        waiting = indexing.pending(db, owner.principal_id) if terms else 0
        results = search(db, owner, terms, after) if terms else None
    held = results.found if results else ()
    below = ""
    if results and results.more:
        below = cursor.write(held[-1].entry.position, owner.principal_id, key, KIND)
    groups = days.grouped([one.entry for one in held], datetime.now(UTC), days.zone())
    by_id = {one.entry.id: one for one in held}
    told = {
        "query": query,
        "terms": terms,
        "results": [
            (group, [_result(by_id[entry.id], terms, query) for entry in group.entries]) for group in groups
        ],
        "count": len(held),
        "first": whole or after is None,
        "later": after is not None,
        "below": urlencode({"q": query, "cursor": below}) if below else "",
        "waiting": waiting,
        "waiting_max": indexing.PENDING_MAX,
    }
    return {"search": told}


def _result(one: Found, terms: Sequence[Term], query: str) -> Result:
    title = one.entry.title or "Untitled"
    address = f"/conversations/{one.entry.id}?{urlencode({'at': one.seq, 'q': query})}#e-{one.seq}"
    said = "\n".join(texts(one.payload.get("content")))
    shown = snippet(said, terms)
    if "".join(piece.text for piece in shown) == one.entry.title:
        shown = []  # the title says it all
    return Result(one.entry.id, marked(title, terms), title, shown, address)

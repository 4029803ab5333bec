"""The search of the history, in the sidebar's own region (PRODUCT.md 7).

| route | answers |
|---|---|
| `GET /history/search` | `_found.html`: what `q` finds, from the top or below a place; to a browser, a page |

The place is `cursor` among the conversations of which one message holds all words, and `apart` among those of which
no one message does; these follow once the others have ended.

Any page with the list takes `?q=` and shows what it finds in place of the list: so a result that is opened keeps the
others beside it, the way back leads to them, and no script is needed. What was searched for is never logged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import urlencode

from flask import Blueprint, Response, current_app, make_response, redirect, render_template, request, url_for
from sqlalchemy.orm import Session
from werkzeug.wrappers import Response as BaseResponse

from blueprints import access, days
from blueprints.database import transaction
from models import cursor, indexing
from models.accounts import Owner
from models.cursor import Position
from models.rules import texts
from models.search import RESULTS, Found, Results, search
from models.snippets import Piece, marked, snippet
from models.spread import spread
from models.words import QUERY_MAX, Term, asked

KINDS = {"cursor": "search", "apart": "search-apart"}  # of cursors, by the word of the address
NOTHING = Results((), more=False)

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
        given = urlencode({name: request.args[name] for name in ("q", *KINDS) if name in request.args})
        return redirect(f"{url_for('sidebar.history')}?{given}", 303)
    return make_response(render_template("_found.html", **sought(access.owner(), whole=False)))


def sought(owner: Owner, *, whole: bool = True) -> Mapping[str, Any]:
    """What `_found.html` needs for the request's `q`, or None; `whole` where it stands in a page."""
    query = query_of()
    if not query:
        return {"search": None}
    terms = asked(query)
    below = {} if whole and request.endpoint != "sidebar.history" else _places(owner)
    with transaction() as db:
        waiting = indexing.pending(db, owner.principal_id) if terms else 0
        together, apart = looked_up(db, owner, terms, below)
    groups = days.grouped([one.entry for one in together.found], datetime.now(UTC), days.zone())
    by_id = {one.entry.id: one for one in together.found}
    told = {
        "query": query,
        "terms": terms,
        "results": [
            (group, [_result(by_id[entry.id], terms, query) for entry in group.entries]) for group in groups
        ],
        "apart": [_result(one, terms, query) for one in apart.found],
        "count": len(together.found) + len(apart.found),
        "first": whole or not below,
        "later": bool(below),
        "below": _below(owner, query, together, apart),
        "waiting": waiting,
        "waiting_max": indexing.PENDING_MAX,
    }
    return {"search": told}


def query_of() -> str:
    """What the request asks for, within bounds; "" for nothing."""
    return request.args.get("q", "").replace("\0", "")[:QUERY_MAX].strip()


def looked_up(
    db: Session, owner: Owner, terms: Sequence[Term], below: Mapping[str, Position], limit: int = RESULTS
) -> tuple[Results, Results]:
    """A page of conversations with all terms in one message, and, where those end, one of those with all in several."""
    together = NOTHING
    if terms and "apart" not in below:
        together = search(db, owner, terms, below.get("cursor"), limit=limit)
    if not terms or together.more:
        return together, NOTHING
    return together, spread(db, owner, terms, below.get("apart"), limit=limit)


def _places(owner: Owner) -> Mapping[str, Position]:
    """Where the request goes on. Raises InvalidCursor."""
    key = current_app.config["CURSOR_KEY"]
    given = {name: request.args[name] for name in KINDS if request.args.get(name)}
    return {name: cursor.read(held, owner.principal_id, key, KINDS[name]) for name, held in given.items()}


def _below(owner: Owner, query: str, together: Results, apart: Results) -> str:
    """The query string of the next page; "" where there is none."""
    for name, page in (("cursor", together), ("apart", apart)):
        if page.more:
            key = current_app.config["CURSOR_KEY"]
            place = cursor.write(page.found[-1].entry.position, owner.principal_id, key, KINDS[name])
            return urlencode({"q": query, name: place})
    return ""


def _result(one: Found, terms: Sequence[Term], query: str) -> Result:
    title = one.entry.title or "Untitled"
    address = f"/conversations/{one.entry.id}?{urlencode({'at': one.seq, 'q': query})}#e-{one.seq}"
    said = "\n".join(texts(one.payload.get("content")))
    shown = snippet(said, terms)
    if "".join(piece.text for piece in shown) == one.entry.title:
        shown = []  # the title says it all
    return Result(one.entry.id, marked(title, terms), title, shown, address)

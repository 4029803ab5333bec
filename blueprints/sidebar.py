"""The history page, its sidebar, and the poll that keeps every open one true (PRODUCT.md 7).

| route | answers |
|---|---|
| `GET /` | the page; `?cursor=` shows an older part of the list where no script runs, `?q=` what a search finds |
| `GET /history/poll` | 204 while the list is as shown, else `_list.html`: the whole loaded window |
| `GET /history/older` | `_list.html`: the next page of the list |

What a list shows travels with it, in one element: its version, the place of its last row, and the day and zone
that its groups were made for. A poll sends them back. The version is read before the rows, so that a change in
between costs one more refresh, and never leaves an old list under a new version.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from flask import Blueprint, Response, current_app, make_response, render_template, request

from blueprints import access, days
from blueprints.database import reading
from blueprints.search import sought
from models import cursor, listing
from models.accounts import Owner
from models.listing import Entry, Page
from models.rules import PAGE_DEFAULT

OPEN_MAX = 500  # rows that a page may be opened with, so that the open conversation's own row is among them
VERSION = "Allgone-List-Version"

sidebar = Blueprint("sidebar", __name__)


@sidebar.get("/")
@access.signed_in_only
def history() -> str:
    """The history page. Raises InvalidCursor for a cursor that is not the reader's."""
    owner = access.owner()
    text = request.args.get("cursor") if not request.args.get("q") else None
    return render_template("history.html", older=bool(text), **listed(owner, cursor_text=text))


@sidebar.get("/history/poll")
def poll() -> Response:
    """Whether the list is still as shown: one statement when it is (`listing.probe`), and 204.

    Never refreshes the sign-in. One that is over sends the whole page to sign-in.
    """
    with reading() as connection:
        version = listing.probe(connection, access.signed_in_id())
    if version is None:
        return access.to_sign_in()
    shown = request.args
    if shown.get("version") == str(version) and shown.get("day") == days.stamp(_now(), days.zone()):
        return Response(status=204)
    owner = access.owner()
    until = shown.get("until")
    with reading() as connection:
        page = (
            listing.window(connection, owner, _position(until, owner), PAGE_DEFAULT)
            if until
            else listing.page(connection, owner, PAGE_DEFAULT)
        )
    return _partial(owner, version, page)


@sidebar.get("/history/older")
@access.signed_in_only
def older() -> Response:
    """The page below `cursor`. Raises InvalidCursor."""
    owner = access.owner()
    position = _position(request.args.get("cursor", ""), owner)
    with reading() as connection:
        version = listing.version(connection, owner)
        page = listing.page(connection, owner, PAGE_DEFAULT, position)
    return _partial(owner, version, page)


def listed(
    owner: Owner, *, open_entry: Entry | None = None, cursor_text: str | None = None
) -> dict[str, Any]:
    """What `_list.html` needs for a whole page: its first rows, down to the open conversation's where that is near."""
    after = _position(cursor_text, owner) if cursor_text else None
    with reading() as connection:
        version = listing.version(connection, owner)
        if open_entry is not None:
            page = listing.window(connection, owner, open_entry.position, PAGE_DEFAULT, OPEN_MAX)
        else:
            page = listing.page(connection, owner, PAGE_DEFAULT, after)
    open_id = open_entry.id if open_entry else None
    return {**_context(owner, version, page), **sought(owner), "open_id": open_id}


def _context(owner: Owner, version: int, page: Page) -> Mapping[str, Any]:
    now, reader = _now(), days.zone()
    key = current_app.config["CURSOR_KEY"]
    last = page.entries[-1].position if page.entries else None
    until = cursor.write(last, owner.principal_id, key) if last else ""
    return {
        "version": version,
        "day": days.stamp(now, reader),
        "until": until,
        "more": page.more,
        "groups": days.grouped(page.entries, now, reader),
    }


def _partial(owner: Owner, version: int, page: Page) -> Response:
    response = make_response(render_template("_list.html", **_context(owner, version, page)))
    response.headers[VERSION] = str(version)
    return response


def _position(text: str, owner: Owner) -> cursor.Position:
    return cursor.read(text, owner.principal_id, current_app.config["CURSOR_KEY"])


def _now() -> datetime:
    return datetime.now(UTC)

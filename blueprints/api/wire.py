"""How values look on the wire, and how query arguments are read off it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import orjson
from flask import Response, current_app, request

from models import cursor
from models.accounts import Owner
from models.errors import Invalid
from models.listing import Entry
from models.rules import PAGE_DEFAULT, PAGE_MAX


def time_text(at: datetime) -> str:
    """RFC 3339 in UTC with microseconds. `at` comes from the database, which speaks UTC to us."""
    return at.isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def time_of(at: datetime) -> datetime | str:
    """What `answered` writes as `time_text` does: left to orjson, which is ten times as fast.

    But for a whole second, whose fraction it would leave out.
    """
    return at if at.microsecond else time_text(at)


def session_view(entry: Entry) -> dict[str, Any]:
    """SessionView (PRODUCT.md 3.1)."""
    return {
        "id": entry.id,
        "title": entry.title,
        "created_at": time_of(entry.created_at),
        "updated_at": time_of(entry.updated_at),
        "active_run_id": entry.active_run_id,
        "last_run_id": entry.last_run_id,
    }


def listed(data: Sequence[dict[str, Any]], next_cursor: str | None) -> Response:
    """A list: `{"data", "next_cursor"}`."""
    return answered({"data": data, "next_cursor": next_cursor})


def answered(body: Any, status: int = 200) -> Response:
    """A JSON answer that no cache keeps."""
    response = Response(orjson.dumps(body, option=orjson.OPT_UTC_Z), status, content_type="application/json")
    response.headers["Cache-Control"] = "no-store"
    return response


def argument(name: str) -> str | None:
    """A query argument given at most once. Raises Invalid."""
    values = request.args.getlist(name)
    if len(values) > 1:
        raise Invalid(name, f"{name} is given {len(values)} times; give it once.")
    return values[0] if values else None


def limit() -> int:
    """`limit` from 1 to 200, 50 when absent. Raises Invalid."""
    text = argument("limit")
    if text is None:
        return PAGE_DEFAULT
    if not (text.isascii() and text.isdigit() and len(text) <= 9 and 1 <= int(text) <= PAGE_MAX):
        raise Invalid("limit", f"limit must be a whole number from 1 to {PAGE_MAX}.")
    return int(text)


def after(owner: Owner) -> cursor.Position | None:
    """The position of `cursor`, or None when absent. Raises InvalidCursor."""
    text = argument("cursor")
    return None if text is None else cursor.read(text, owner.principal_id, cursor_key())


def next_cursor(owner: Owner, entry: Entry) -> str:
    """The cursor of what comes below `entry`."""
    return cursor.write(entry.position, owner.principal_id, cursor_key())


def cursor_key() -> bytes:
    """The key that signs this installation's cursors."""
    key: bytes = current_app.config["CURSOR_KEY"]
    return key

"""What stands in the place of a conversation that is not there, with the time of its deletion for who deleted it."""

from __future__ import annotations

from flask import Response, make_response, render_template

from blueprints import days
from blueprints.database import transaction
from blueprints.sidebar import listed
from models import purge
from models.accounts import Owner


def gone_page(owner: Owner, session_id: str) -> Response:
    """The whole page, 404: the same for a foreign conversation as for one that never was."""
    deleted_at = deleted_at_of(owner, session_id)
    return make_response(
        render_template("conversation/gone.html", deleted_at=deleted_at, **listed(owner)), 404
    )


def deleted_at_of(owner: Owner, session_id: str) -> str | None:
    """When the reader deleted it, in the reader's zone; None when it never was theirs."""
    with transaction() as db:
        stone = purge.tombstone(db, owner, session_id)
        return days.written(stone.deleted_at, days.zone()) if stone else None

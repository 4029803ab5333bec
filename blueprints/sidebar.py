"""The history page and its sidebar."""

from __future__ import annotations

from flask import Blueprint

from blueprints.access import signed_in_only

sidebar = Blueprint("sidebar", __name__)


@sidebar.get("/")
@signed_in_only
def history() -> str:
    """The history page."""
    return "history"

"""A conversation's page."""

from __future__ import annotations

from flask import Blueprint

conversation = Blueprint("conversation", __name__)

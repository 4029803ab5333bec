"""The one blueprint that the modules of this folder hang their routes on."""

from __future__ import annotations

from flask import Blueprint

account = Blueprint("account", "blueprints.account")

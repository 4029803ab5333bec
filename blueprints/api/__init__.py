"""`/v1`: what a client's program asks. No cookie is looked at; a bearer token says who asks (PRODUCT.md 3.1).

Importing the modules declares the sixteen operations on one blueprint.
"""

from __future__ import annotations

from blueprints.api import approvals, artifacts, events, memories, runs, sessions
from blueprints.api.contract import OPERATIONS, v1
from blueprints.api.openapi import openapi

DECLARING = (sessions, events, runs, approvals, artifacts, memories)

__all__ = ["DECLARING", "OPERATIONS", "openapi", "v1"]

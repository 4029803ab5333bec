"""`/v1`: what a client's program asks. No cookie is looked at; a bearer token says who asks (PRODUCT.md 3.1)."""

from __future__ import annotations

from blueprints.api.sessions import sessions

__all__ = ["sessions"]

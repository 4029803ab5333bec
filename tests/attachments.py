"""Files in conversations, stored as the product stores them."""

from __future__ import annotations

from sqlalchemy.orm import Session

from models import append, artifacts
from models.append import Draft
from tasks.resources import Resources
from tests.cast import Player


def attach(
    resources: Resources, player: Player, session_id: str, name: str, data: bytes, kind: str = "text/plain"
) -> str:
    """Puts a file into a conversation of the player's; returns its id."""
    with Session(resources.engine) as db, db.begin():
        key = artifacts.reserve(db, session_id)
    stored = resources.store.put(key, [data])
    payload = {
        "artifact_id": key,
        "name": name,
        "content_type": kind,
        "size": stored.size,
        "sha256": stored.sha256.hex(),
    }
    with Session(resources.engine) as db, db.begin():
        append.append(db, player.owner, session_id, [Draft("artifact_created", payload)])
        artifacts.claim(db, key)
    return key

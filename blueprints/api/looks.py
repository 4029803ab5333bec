"""What the hub of live streams asks PostgreSQL, and the frames that it makes of the answers."""

from __future__ import annotations

from collections.abc import Collection

import orjson
from sqlalchemy import ARRAY, Connection, LargeBinary, any_, func, literal, or_, select

from blueprints.api import views
from blueprints.api.wire import time_text
from models import reading
from models.accounts import Token
from models.base import Id
from models.history import Conversation, Tombstone
from models.sign_ins import SignIn
from models.transcript import Stamp


def live_tokens(connection: Connection, held: Collection[bytes]) -> set[bytes]:
    """Those of these hashes of tokens that are neither revoked nor expired."""
    if not held:
        return set()
    named = Token.hash == any_(literal(list(held), ARRAY(LargeBinary())))
    unexpired = or_(Token.expires_at.is_(None), Token.expires_at > func.now())
    live = select(Token.hash).where(named, Token.revoked_at.is_(None), unexpired)
    return {bytes(row[0]) for row in connection.execute(live)}


def live_sign_ins(connection: Connection, held: Collection[str]) -> set[str]:
    """Those of these sign-ins that are neither signed out nor over."""
    if not held:
        return set()
    named = SignIn.id == any_(literal(list(held), ARRAY(Id())))
    live = select(SignIn.id).where(named, SignIn.revoked_at.is_(None), SignIn.expires_at > func.now())
    return set(connection.execute(live).scalars())


def gone(connection: Connection, session_id: str) -> bool:
    """Whether there is no such conversation any more."""
    there = select(Conversation.id).where(Conversation.id == session_id)
    return connection.execute(there).scalar_one_or_none() is None


def last_word(connection: Connection, session_id: str) -> bytes:
    """The frame that ends every stream of a conversation that was deleted."""
    at = connection.execute(select(Tombstone.deleted_at).where(Tombstone.session_id == session_id)).scalar()
    word = {"session_id": session_id, "deleted_at": None if at is None else time_text(at)}
    return b"event: session_deleted\ndata: " + orjson.dumps(word) + b"\n\n"


def told(row: reading.Read, session_id: str) -> bytes:
    """The frame of an event, for who streams the events themselves."""
    data = orjson.dumps(views.event(row, session_id, row.parent_id))
    # A type may hold no line break (models/append.py), so it is one line here.
    return f"id: {row.seq}\nevent: {row.type}\ndata: ".encode() + data + b"\n\n"


def hint(stamp: Stamp) -> bytes:
    """The frame that says to an open page that its conversation changed; the page asks for what."""
    return f"event: news\ndata: {stamp}\n\n".encode()

"""The standing cast, and what each can do in one line."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from sqlalchemy import Engine
from sqlalchemy.orm import Session

from models import accounts, append, runs, sign_ins
from models.accounts import Owner
from models.append import Draft
from models.base import database_time


@dataclass(frozen=True)
class Player:
    """One user of the tests, with the verbs that most tests need."""

    engine: Engine
    id: str
    email: str
    owner: Owner

    def token(self, *scopes: str) -> dict[str, str]:
        """Request headers with a fresh token of these scopes; of all scopes when none is named."""
        secret = accounts.TOKEN_PREFIX + secrets.token_urlsafe(32)
        with Session(self.engine) as db, db.begin():
            principal = db.get_one(accounts.Principal, self.id)
            accounts.create_token(db, principal, secret, scopes or accounts.SCOPES)
        return {"Authorization": f"Bearer {secret}"}

    def link(self) -> str:
        """The secret of a fresh sign-in link."""
        secret = secrets.token_urlsafe(32)
        with Session(self.engine) as db, db.begin():
            sign_ins.create_link(db, db.get_one(accounts.Principal, self.id), secret)
        return secret

    def converse(self, *texts: str) -> str:
        """A new conversation of user and assistant messages by turns; returns its id."""
        with Session(self.engine) as db, db.begin():
            session_id = append.open_conversation(db, self.owner).id
            if texts:
                append.append(db, self.owner, session_id, messages(*texts))
        return session_id

    def say(self, session_id: str, *drafts: Draft, run_id: str | None = None) -> list[str]:
        """Appends events; returns their ids."""
        with Session(self.engine) as db, db.begin():
            written = append.append(db, self.owner, session_id, drafts, run_id=run_id)
            return [event.id for event in written]

    def start_run(self, session_id: str, lease_seconds: int = 60) -> str:
        """Starts a run; returns its id."""
        with Session(self.engine) as db, db.begin():
            conversation = append.lock_conversation(db, self.owner, session_id)
            return runs.start(db, conversation, database_time(db), lease_seconds).id


@dataclass(frozen=True)
class Cast:
    """Who is on stage."""

    alice: Player
    bob: Player
    mallory: Player
    olivia: Player


def messages(*texts: str) -> list[Draft]:
    """User and assistant messages by turns."""
    kinds = ("user_message", "assistant_message")
    return [Draft(kinds[index % 2], {"content": text}) for index, text in enumerate(texts)]

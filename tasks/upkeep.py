"""Recurring work that no request waits for. Each job is a few lines and one verb; all may run twice at once."""

from __future__ import annotations

import time

from sqlalchemy import Engine
from sqlalchemy.orm import Session

from models import append, idempotency, imports, indexing, runs, sign_ins, titles
from models.accounts import Owner
from models.base import database_time
from models.errors import Refusal
from models.versions import touch_list
from tasks.resources import in_this_process

ROUNDS = 50  # of overdue runs in one job: a bound, should one of them never be ended
INDEXING_SECONDS = 45.0  # of one job, so that a long history keeps no other job waiting


def expire_runs() -> None:
    """Ends runs whose lease is over as `expired`, each in its own transaction."""
    for _ in range(ROUNDS):
        if not _expire_some(in_this_process().engine):
            return


def _expire_some(engine: Engine) -> int:
    with Session(engine) as db:
        late = runs.overdue(db, database_time(db))
    for session_id, principal_id in late:
        with Session(engine) as db, db.begin():
            # The tenant is not asked for: the principal alone scopes the lock.
            owner = Owner(tenant_id="", principal_id=principal_id)
            try:
                conversation = append.lock_conversation(db, owner, session_id)
                runs.refuse_active(db, conversation, database_time(db))
            except Refusal:
                continue  # deleted, or renewed, in between
            touch_list(db, principal_id)
    return len(late)


def derive_titles() -> None:
    """Settles titles of conversations that predate the title's write path."""
    engine = in_this_process().engine
    while True:
        with Session(engine) as db, db.begin():
            if not titles.derive_titles(db):
                return


def index_older() -> None:
    """Makes conversations findable that were written before there was a search."""
    engine = in_this_process().engine
    deadline = time.monotonic() + INDEXING_SECONDS
    while time.monotonic() < deadline:
        with Session(engine) as db, db.begin():
            if not indexing.index_older(db):
                return


def let_go_of_files() -> None:
    """Lets go of exports that are kept for another try and may hold what was deleted while they were worked on."""
    with Session(in_this_process().engine) as db, db.begin():
        imports.let_go_of_deleted(db, database_time(db))


def expire_keys() -> None:
    """Drops `Idempotency-Key`s of over 24 hours."""
    with Session(in_this_process().engine) as db, db.begin():
        idempotency.expire(db)


def expire_sign_ins() -> None:
    """Forgets links that are over, and sign-ins that have been over for a month."""
    with Session(in_this_process().engine) as db, db.begin():
        sign_ins.expire(db)

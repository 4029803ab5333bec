"""Appends of a hundred events, against bare inserts of the same rows, and among a million conversations or a thousand.

The floor gets its rows ready made and does nothing but insert them: no ids, no JSON, no lock, no lease, no title and
no version of a list. Both sides commit each batch, and both wait for the disk.

One table cannot be large and small in turn, so the thousand conversations have a database of their own in the same
engine. Each append among them, and each among the million, goes to a conversation that is drawn at random.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import orjson
import psycopg2
from psycopg2.extras import execute_values
from sqlalchemy import Engine, text
from sqlalchemy.orm import Session

from benchmarks.figures import Figure
from benchmarks.ground import SESSIONS, Ground, beside
from benchmarks.rounds import taking_turns
from models import runs
from models.accounts import Owner
from models.append import Draft, append, open_conversation
from models.base import database_time
from models.ids import new_id
from models.words import tag, vector

NAME = "appending"
EVENTS, BATCHES, ROUNDS = 100, 10, 31
FEW = 1_000  # conversations
APPENDS, WARM = 401, 40  # among the many, and as many among the few
SAID = "What was said, at the length that such answers often have. " * 3

_TABLES = "events, tool_invocations, checkpoints, search_entries"
_EVENTS = "INSERT INTO events (session_id, seq, id, run_id, type, parent_id, payload, created_at) VALUES %s"
_TOOLS = (
    "INSERT INTO tool_invocations (session_id, call_id, run_id, name, arguments, output, status, created_at) "
    "VALUES %s"
)
_ENTRIES = "INSERT INTO search_entries (session_id, seq, words) VALUES %s"
_CHECKPOINTS = "INSERT INTO checkpoints (session_id, seq, run_id, state, created_at) VALUES %s"

Rows = dict[str, list[tuple[Any, ...]]]


def run(ground: Ground) -> Iterator[Figure]:
    """The rate against bare inserts, and the median among the many against the median among the few."""
    _emptied(ground)
    took = _against_inserts(ground)
    rates = {name: BATCHES / seconds for name, seconds in took.items()}
    yield Figure(
        NAME,
        f"batches of {EVENTS} events against bare inserts of their rows",
        rates["append"] / rates["bare"],
        "at least",
        0.5,
        f"{rates['append']:,.0f}/s against {rates['bare']:,.0f}/s",
    )
    with beside(ground, FEW) as small:
        _emptied(ground)
        works = {name: _among(each) for name, each in (("many", ground), ("few", small))}
        took = taking_turns(works, APPENDS, warm=WARM)
    yield Figure(
        NAME,
        f"a batch among {SESSIONS:,} conversations against among {FEW:,}",
        took["many"] / took["few"],
        bound=1.3,
        note=f"{took['many'] * 1e3:.2f} ms against {took['few'] * 1e3:.2f} ms",
    )


def _against_inserts(ground: Ground) -> dict[str, float]:
    """Median seconds of BATCHES batches each way, all within one run of one conversation each."""
    engine, owner = ground.resources.engine, ground.player()
    batches = (ROUNDS + 1) * BATCHES
    ours, theirs = _running(engine, owner), _running(engine, owner)
    drafts = iter([_drafts() for _ in range(batches)])
    of = tag(owner.principal_id)
    rows = iter([_rows(*theirs, of, number * EVENTS, _drafts()) for number in range(batches)])
    with closing(
        psycopg2.connect(ground.resources.settings.database_url.replace("+psycopg2", ""))
    ) as connection:

        def appended() -> None:
            for _ in range(BATCHES):
                _append(engine, owner, ours[0], next(drafts), ours[1])

        def inserted() -> None:
            for _ in range(BATCHES):
                with connection, connection.cursor() as cursor:
                    for statement, each in next(rows).items():
                        execute_values(cursor, statement, each)

        return taking_turns({"append": appended, "bare": inserted}, ROUNDS)


def _among(ground: Ground) -> Callable[[], None]:
    """An append to a conversation of the one principal, another at each call."""
    mine = text("SELECT id FROM sessions WHERE principal_id = :one AND active_run_id IS NULL")
    with ground.resources.reader.connect() as connection:
        ids = connection.execute(mine, {"one": ground.one.principal_id}).scalars().all()
    chosen = iter(random.choices(ids, k=APPENDS + WARM))
    drafts = iter([_drafts() for _ in range(APPENDS + WARM)])
    return lambda: _append(ground.resources.engine, ground.one, next(chosen), next(drafts))


def _append(
    engine: Engine, owner: Owner, session_id: str, drafts: list[Draft], run_id: str | None = None
) -> None:
    with Session(engine) as db, db.begin():
        append(db, owner, session_id, drafts, run_id=run_id)


def _running(engine: Engine, owner: Owner) -> tuple[str, str]:
    """A new conversation and its active run."""
    with Session(engine) as db, db.begin():
        conversation = open_conversation(db, owner)
        run_id = runs.start(db, conversation, database_time(db)).id
        # As the API starts a run: with the user's message, which settles the title.
        append(db, owner, conversation.id, [Draft("user_message", {"content": "go"})], run_id=run_id)
        return conversation.id, run_id


def _drafts() -> list[Draft]:
    """Of ten events eight are messages, one is a tool's call, and one is a checkpoint."""
    return [_draft(number) for number in range(EVENTS)]


def _draft(number: int) -> Draft:
    if number % 10 == 8:
        call = {"call_id": new_id(), "name": "search", "arguments": {"query": "something to look for"}}
        return Draft("tool_call", call)
    if number % 10 == 9:
        return Draft("checkpoint", {"state": {"step": number, "plan": ["look", "read", "answer"]}})
    return Draft("assistant_message", {"content": f"{number}: {SAID}"[:150]})


def _rows(session_id: str, run_id: str, of: str, after: int, drafts: list[Draft]) -> Rows:
    """What an append of `drafts` would leave in the tables."""
    now, dumped = datetime.now(UTC), lambda value: orjson.dumps(value).decode()
    rows: Rows = {_EVENTS: [], _TOOLS: [], _CHECKPOINTS: [], _ENTRIES: []}
    for seq, draft in enumerate(drafts, start=after + 2):  # the first is the message that started the run
        payload = draft.payload
        rows[_EVENTS].append((session_id, seq, new_id(), run_id, draft.type, None, dumped(payload), now))
        if draft.type == "tool_call":
            call = (payload["call_id"], run_id, payload["name"], dumped(payload["arguments"]))
            rows[_TOOLS].append((session_id, *call, None, "called", now))
        elif draft.type == "checkpoint":
            rows[_CHECKPOINTS].append((session_id, seq, run_id, dumped(payload["state"]), now))
        else:
            rows[_ENTRIES].append((session_id, seq, vector([payload["content"]], of)))
    return rows


def _emptied(ground: Ground) -> None:
    with ground.resources.engine.begin() as connection:
        connection.execute(text(f"TRUNCATE {_TABLES}"))

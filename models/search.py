"""Looking for words in a principal's conversations: what is found, newest conversation first.

A message is found when every term of the query is in it (`models/words.py`); a conversation is shown once, with the
newest such message. The order is the history's own, so that a reader looks where they look for it anyway, and a
page of results is followed by `Position` as a page of the history is. Conversations whose messages hold the terms
between them come after these: `models/spread.py`.

| words are in | how | cost |
|---|---|---|
| up to HITS_MAX messages | their rows from the index, then their conversations in order | of those messages |
| more | down the history, newest first, each conversation asked for itself | of the conversations passed over |

Neither depends on what others have written: the index keeps each principal's words apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import text
from sqlalchemy.orm import Session

from models.accounts import Owner
from models.cursor import Position
from models.listing import TOP, Entry
from models.words import Term, tag, tsquery

RESULTS = 30  # conversations of one page
HITS_MAX = 20_000  # messages that are looked up in the index

ENTRY = "s.id, coalesce(s.title, '') AS title, s.created_at, s.updated_at, s.active_run_id, s.last_run_id"
BELOW = "s.principal_id = :principal_id AND (s.updated_at, s.id) < (:updated_at, CAST(:id AS uuid))"
ORDER = "ORDER BY s.updated_at DESC, s.id DESC LIMIT :limit"
_LOOKED_UP = text(f"""
    WITH hits AS MATERIALIZED (
        SELECT session_id, seq FROM search_entries WHERE words @@ CAST(:query AS tsquery) LIMIT :most + 1
    ),
    counted AS (SELECT count(*) AS hits FROM hits)
    SELECT counted.hits, found.*, said.payload FROM counted LEFT JOIN LATERAL (
        SELECT {ENTRY}, newest.seq
        FROM (SELECT session_id, max(seq) AS seq FROM hits GROUP BY session_id) newest
        JOIN sessions s ON s.id = newest.session_id
        WHERE counted.hits <= :most AND {BELOW} {ORDER}
    ) found ON true LEFT JOIN events said ON said.session_id = found.id AND said.seq = found.seq
    ORDER BY found.updated_at DESC, found.id DESC
""")  # noqa: S608  words of our own
_WALKED = text(f"""
    SELECT {ENTRY}, newest.seq, said.payload FROM sessions s CROSS JOIN LATERAL (
        SELECT e.seq FROM search_entries e
        WHERE e.session_id = s.id AND e.words @@ CAST(:query AS tsquery) ORDER BY e.seq DESC LIMIT 1
    ) newest JOIN events said ON said.session_id = s.id AND said.seq = newest.seq
    WHERE {BELOW} {ORDER}
""")  # noqa: S608  words of our own


class Found(NamedTuple):
    """A conversation, and the newest message in it that has all that was asked for."""

    entry: Entry
    seq: int
    payload: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Results:
    """What was found, in order; `more` says that there is more below the last."""

    found: Sequence[Found]
    more: bool


def search(
    db: Session,
    owner: Owner,
    terms: Sequence[Term],
    after: Position | None = None,
    *,
    limit: int = RESULTS,
    most: int = HITS_MAX,
) -> Results:
    """Up to `limit` conversations in which the terms are said, below `after`. At least one term.

    Changes settings of the transaction for the planner, which cannot know that a tag keeps principals apart.
    """
    place = after or TOP
    wanted = {
        "query": tsquery(terms, tag(owner.principal_id)),
        "principal_id": owner.principal_id,
        "updated_at": place.updated_at,
        "id": place.id,
        "limit": limit + 1,
    }
    settle(db, enable_seqscan="off", jit="off")
    rows = db.execute(_LOOKED_UP, {**wanted, "most": most}).all()
    if rows[0][0] > most:
        settle(db, enable_bitmapscan="off")
        held = [found(row) for row in db.execute(_WALKED, wanted)]
    else:
        held = [found(row[1:]) for row in rows if row[1] is not None]
    return Results(held[:limit], more=len(held) > limit)


def found(row: Sequence[Any]) -> Found:
    """A row of ENTRY, the message's `seq` and its payload."""
    return Found(Entry(*row[:6]), row[6], row[7])


def settle(db: Session, **settings: str) -> None:
    """Settings of PostgreSQL's planner until the transaction ends."""
    told = ", ".join(f"set_config('{name}', '{value}', true)" for name, value in settings.items())
    db.execute(text(f"SELECT {told}"))

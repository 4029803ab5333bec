"""Conversations that hold all that is asked for, though no one message of theirs does.

Somebody remembers a conversation by a word of its title and one of its end. These come after what `models/search.py`
finds, newest first, each with the newest of the messages that have the most of the terms.

| a term is in | how |
|---|---|
| up to RARE_MAX messages | their conversations, from the index |
| more | asked for in each conversation that has all the rarer terms |

Without a term as rare as that nothing is looked for: words that are everywhere tell a conversation from others only
where they stand together. So the cost is bounded by RARE_MAX messages for each term, however much a principal has.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import text
from sqlalchemy.orm import Session

from models.accounts import Owner
from models.cursor import Position
from models.listing import TOP
from models.search import BELOW, ENTRY, ORDER, RESULTS, Results, found, settle
from models.words import Term, tag, tsquery

RARE_MAX = 2_000  # messages that have a term by which conversations are looked up

_HAVE = text("SELECT session_id FROM search_entries WHERE words @@ CAST(:query AS tsquery) LIMIT :most + 1")
_SPREAD = text(f"""
    SELECT held.*, best.seq, said.payload FROM (
        SELECT {ENTRY} FROM sessions s
        WHERE s.id = ANY(CAST(:ids AS uuid[])) AND {BELOW} AND NOT EXISTS (
            SELECT FROM search_entries e WHERE e.session_id = s.id AND e.words @@ CAST(:all AS tsquery)
        ) AND NOT EXISTS (
            SELECT FROM unnest(CAST(:common AS text[])) q WHERE NOT EXISTS (
                SELECT FROM search_entries e WHERE e.session_id = s.id AND e.words @@ q::tsquery
            )
        ) {ORDER}
    ) held CROSS JOIN LATERAL (
        SELECT e.seq FROM search_entries e WHERE e.session_id = held.id AND e.words @@ CAST(:any AS tsquery)
        ORDER BY (SELECT count(*) FROM unnest(CAST(:each AS text[])) q WHERE e.words @@ q::tsquery) DESC, e.seq DESC
        LIMIT 1
    ) best JOIN events said ON said.session_id = held.id AND said.seq = best.seq
    ORDER BY held.updated_at DESC, held.id DESC
""")  # noqa: S608  words of our own


def spread(
    db: Session,
    owner: Owner,
    terms: Sequence[Term],
    after: Position | None = None,
    *,
    limit: int = RESULTS,
    most: int = RARE_MAX,
) -> Results:
    """Up to `limit` conversations, below `after`, in which each of the terms is said but never all in one message.

    None for a single term. Changes settings of the transaction for the planner, as `search` does.
    """
    of = tag(owner.principal_id)
    each = [tsquery([term], of) for term in terms]
    settle(db, enable_seqscan="off", jit="off", enable_bitmapscan="on")
    having, common = [], []
    for query in each if len(each) > 1 else ():
        rows = db.execute(_HAVE, {"query": query, "most": most}).all()
        if len(rows) > most:
            common.append(query)
        else:
            having.append({row[0] for row in rows})
    ids = set.intersection(*having) if having else set()
    if not ids:
        return Results((), more=False)
    place = after or TOP
    wanted = {
        "principal_id": owner.principal_id,
        "updated_at": place.updated_at,
        "id": place.id,
        "ids": list(ids),
        "each": each,
        "common": common,
        "any": " | ".join(each),
        "all": tsquery(terms, of),
        "limit": limit + 1,
    }
    settle(db, enable_bitmapscan="off")  # each conversation's own entries, not the index of all
    held = [found(row) for row in db.execute(_SPREAD, wanted)]
    return Results(held[:limit], more=len(held) > limit)

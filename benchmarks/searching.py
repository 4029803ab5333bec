"""Search among 100,000 conversations of one principal, with as many of others beside.

The floor is the bare statement: the same look-up in the same index, its conversations in order, and what was said in
them, sent by the driver alone and read by nobody. Words are drawn as people use them, the n-th most common one in
proportion to 1/n, and their beginnings are spread as letters are, so that a rare word, a common one and a beginning
differ as they do in life. Words in different messages are measured against the bare look-ups of each of them.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from io import StringIO
from typing import Any

import psycopg2
from sqlalchemy import text
from sqlalchemy.orm import Session

from benchmarks.figures import Figure
from benchmarks.ground import Ground
from benchmarks.rounds import taking_turns
from models.indexing import SearchEntry
from models.search import RESULTS, search
from models.spread import spread
from models.words import asked, tag, tsquery, vector

NAME = "searching"
CONVERSATIONS, MESSAGES, WORDS = 100_000, 3, 20  # of one principal, and of others; of each; of each message
VOCABULARY = 50_000
RARE, SELDOM, COMMON, OPEN = (
    9_000,
    300,
    3,
    1,
)  # the words that are searched for; of the last its first two letters
ROUNDS, SLOW_ROUNDS, WARM = 101, 31, 3

_MINE = "SELECT id, principal_id FROM sessions WHERE principal_id = :one ORDER BY updated_at DESC LIMIT :many"
_OTHERS = "SELECT id, principal_id FROM sessions WHERE principal_id <> :one LIMIT :many"
_FOUND = "SELECT session_id, seq FROM search_entries WHERE words @@ CAST(%(query)s AS tsquery)"
_BARE = f"""
    SELECT s.id, s.title, s.updated_at, e.seq, e.payload
    FROM ({_FOUND}) f JOIN sessions s ON s.id = f.session_id JOIN events e USING (session_id, seq)
    ORDER BY s.updated_at DESC, s.id DESC LIMIT {RESULTS}
"""


def run(ground: Ground) -> Iterator[Figure]:
    """A rare word against the bare statement; a common one and a beginning against their bare look-ups."""
    words = [_word(number) for number in range(VOCABULARY)]
    rare, common, beginning = words[RARE], words[COMMON], words[OPEN][:2]
    _fill(ground, words)
    with closing(_connected(ground)) as connection, connection.cursor() as cursor:
        bare = _by_driver(cursor, _BARE, ground, rare)
        quick = taking_turns({"search": _searching(ground, rare), "bare": bare}, ROUNDS, warm=WARM)
        hits = {
            query: len(_by_driver(cursor, _FOUND, ground, query)()) for query in (rare, common, beginning)
        }
        slow = {}
        for query in (common, beginning):
            works = {"search": _searching(ground, query), "bare": _by_driver(cursor, _FOUND, ground, query)}
            slow[query] = taking_turns(works, SLOW_ROUNDS, warm=WARM)
        far = {}
        for other in (words[RARE + 1], common):
            pair = [_by_driver(cursor, _FOUND, ground, query) for query in (words[SELDOM], other)]
            works = {"spread": _spreading(ground, f"{words[SELDOM]} {other}"), "bare": _each(pair)}
            far[other] = taking_turns(works, ROUNDS, warm=WARM)
    yield Figure(
        NAME,
        f"a word that {hits[rare]} messages have against the bare statement",
        quick["search"] / quick["bare"],
        bound=2,
        note=f"{_millis(quick['search'])} against {_millis(quick['bare'])}",
    )
    for what, query in (("a word", common), ("two letters", beginning)):
        took = slow[query]
        yield Figure(
            NAME,
            f"{what} that {hits[query]:,} of {CONVERSATIONS * MESSAGES:,} have against their bare look-up",
            took["search"] / took["bare"],
            bound=1.3,
            note=f"{_millis(took['search'])} against {_millis(took['bare'])}",
        )

    for what, took in zip(("another as rare", "a common one"), far.values(), strict=True):
        yield Figure(
            NAME,
            f"a rare word and {what} in different messages against the bare look-up of both",
            took["spread"] / took["bare"],
            bound=2,
            note=f"{_millis(took['spread'])} against {_millis(took['bare'])}",
        )


def _spreading(ground: Ground, query: str) -> Callable[[], object]:
    """The conversations that hold the words in different messages, as the product looks for them."""

    def searched() -> object:
        with Session(ground.resources.engine) as db, db.begin():
            return spread(db, ground.one, asked(query))

    return searched


def _each(works: Sequence[Callable[[], object]]) -> Callable[[], object]:
    return lambda: [work() for work in works]


def _searching(ground: Ground, query: str) -> Callable[[], object]:
    """A page of results as the product makes it."""

    def searched() -> object:
        with Session(ground.resources.engine) as db, db.begin():
            results = search(db, ground.one, asked(query))
            assert results.found
            return results

    return searched


def _by_driver(cursor: Any, statement: str, ground: Ground, query: str) -> Callable[[], Sequence[Any]]:
    values = {"query": tsquery(asked(query), tag(ground.one.principal_id))}

    def asked_for() -> Sequence[Any]:
        cursor.execute(statement, values)
        rows: Sequence[Any] = cursor.fetchall()
        return rows

    return asked_for


def _word(number: int) -> str:
    """A word of letters for each number, the same at each run; neighbours begin differently."""
    drawn = random.Random(number)
    return "".join(drawn.choices("etaoinshrdlucmfwypvbgkjqxz", weights=range(26, 0, -1), k=3 + number % 7))


def _connected(ground: Ground) -> Any:
    connection = psycopg2.connect(ground.resources.settings.database_url.replace("+psycopg2", ""))
    connection.autocommit = True
    return connection


def _fill(ground: Ground, words: Sequence[str]) -> None:
    index = next(one for one in SearchEntry.__table__.indexes if one.name == "ix_search_entries_words")
    with ground.resources.reader.connect() as connection:
        connection.execute(text("TRUNCATE search_entries, events"))
        values = {"one": ground.one.principal_id, "many": CONVERSATIONS}
        owners = [tuple(row) for sql in (_MINE, _OTHERS) for row in connection.execute(text(sql), values)]
        index.drop(connection)
        weights = list(itertools.accumulate(1 / n for n in range(1, VOCABULARY + 1)))
        drawn = random.Random(1)
        random.shuffle(owners)
        with closing(_connected(ground)) as driver, driver.cursor() as cursor:
            for start in range(0, len(owners), 10_000):
                _copy(
                    cursor,
                    owners[start : start + 10_000],
                    lambda: drawn.choices(words, cum_weights=weights, k=WORDS),
                )
        index.create(connection)
        connection.execute(text("VACUUM ANALYZE search_entries, events"))


def _copy(cursor: Any, owners: Sequence[Sequence[str]], say: Callable[[], list[str]]) -> None:
    entries, events = StringIO(), StringIO()
    for session_id, principal_id in owners:
        of = tag(principal_id)
        for seq in range(1, MESSAGES + 1):
            content = " ".join(say())
            entries.write(f"{session_id}\t{seq}\t{vector([content], of)}\n")
            payload = f'{{"content": "{content}"}}'
            events.write(f"{session_id}\t{seq}\t{session_id}\tuser_message\t{payload}\t2026-01-01\n")
    for table, columns, rows in (
        ("search_entries", ("session_id", "seq", "words"), entries),
        ("events", ("session_id", "seq", "id", "type", "payload", "created_at"), events),
    ):
        rows.seek(0)
        cursor.copy_from(rows, table, columns=columns)


def _millis(seconds: float) -> str:
    return f"{seconds * 1e3:,.2f} ms"

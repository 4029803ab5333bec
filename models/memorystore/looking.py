"""Reading what is kept: lists, and what is recalled by its words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlalchemy import literal_column, select, text

from models.errors import Invalid
from models.marks import Mark
from models.memorystore.store import Held, Place, Store, as_held, as_mark
from models.memorystore.tables import FACTS, MARKS, MEMORIES, WORKSPACES
from models.rules import DATASET
from models.words import asked

PORTION = 500  # memories that are read at a time


def workspaces(store: Store) -> Sequence[tuple[str, int]]:
    """Every workspace with how many memories it holds, by name."""
    counted = select(MEMORIES.c.workspace, literal_column("count(*)").label("held")).where(
        store.mine(MEMORIES)
    )
    counts = counted.group_by(MEMORIES.c.workspace).subquery()
    rows = (
        select(WORKSPACES.c.name, counts.c.held)
        .join_from(WORKSPACES, counts, counts.c.workspace == WORKSPACES.c.name, isouter=True)
        .where(store.mine(WORKSPACES))
        .order_by(WORKSPACES.c.name)
    )
    with store.reading():
        return [(name, count or 0) for name, count in store.db.execute(rows)]


def memories(store: Store, place: Place | None = None, *, dataset: str = DATASET) -> Iterator[Held]:
    """The memories of one place, or of a dataset in all workspaces, as they came here; a portion at a time."""
    last = None
    while True:
        rows = select(MEMORIES).where(store.mine(MEMORIES, place), MEMORIES.c.dataset == dataset)
        if last is not None:
            rows = rows.where(MEMORIES.c.id > last)
        with store.reading():
            some = store.db.execute(rows.order_by(MEMORIES.c.id).limit(PORTION)).all()
        yield from map(as_held, some)
        if len(some) < PORTION:
            return
        last = some[-1].id


def recall(store: Store, query: str, workspace: str | None = None, limit: int = 50) -> Sequence[Held]:
    """The memories in which every word of `query` is, best first; of all workspaces when none is named. SQLite only.

    Words are those of `models/words.py`, in any script; "words in quotes" follow one another. Raises Invalid("words")
    when there is no word in it.
    """
    terms = asked(query)
    if not terms:
        raise Invalid("words", "There is no word in this to look for.")
    phrases = []
    for term in terms:
        line = " ".join(word for word, _ in term.words)
        phrases.append(f'"{line}"' + ("*" if term.open else ""))
    names = ", ".join(f"m.{column.name}" for column in FACTS)
    where = "AND m.workspace = :workspace" if workspace is not None else ""
    found = text(
        f"""SELECT {names} FROM memory_words JOIN memories m ON m.id = memory_words.rowid
        WHERE memory_words MATCH :query AND m.principal_id = :principal {where} ORDER BY rank LIMIT :limit"""  # noqa: S608
    ).columns(*FACTS)
    told = {
        "query": " AND ".join(phrases),
        "principal": store.principal,
        "workspace": workspace,
        "limit": limit,
    }
    with store.reading():
        rows = store.db.execute(found, told)
        return [as_held(row) for row in rows]


def all_marks(store: Store) -> dict[bytes, Mark]:
    """Every mark, by logical ID."""
    with store.reading():
        return {
            row.logical_id: as_mark(row) for row in store.db.execute(select(MARKS).where(store.mine(MARKS)))
        }

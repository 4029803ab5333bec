"""The index: what a page costs at the top, far down, and by OFFSET; its statements and its buffers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Row, text

from benchmarks.figures import Figure
from benchmarks.ground import Ground, statements
from benchmarks.rounds import taking_turns
from models import listing
from models.base import open_engine
from models.cursor import Position
from models.rules import PAGE_DEFAULT

NAME = "history"
DEPTH = 2_000  # pages
ROUNDS = 401
OFFSET_ROUNDS = 15
PAGES = 10
SOME = 20  # pages beside each page by OFFSET, which is so much longer

_OFFSET = text(
    "SELECT id, title, created_at, updated_at, active_run_id, last_run_id FROM sessions "
    "WHERE principal_id = :one ORDER BY updated_at DESC, id DESC LIMIT :limit OFFSET :offset"
)


def run(ground: Ground) -> Iterator[Figure]:
    """A page at the top against one at page 2,000, and that one against OFFSET."""
    one = ground.one
    offset = PAGE_DEFAULT * (DEPTH - 1)
    by_offset = {"one": one.principal_id, "limit": PAGE_DEFAULT, "offset": offset}
    with ground.resources.reader.connect() as connection:
        above = connection.execute(_OFFSET, {**by_offset, "limit": 1, "offset": offset - 1}).one()
        place = Position(above.updated_at, above.id)

        def first() -> listing.Page:
            return listing.page(connection, one, PAGE_DEFAULT)

        def deep() -> listing.Page:
            return listing.page(connection, one, PAGE_DEFAULT, place)

        def some_deep() -> None:
            for _ in range(SOME):
                deep()

        def skipped() -> Sequence[Row[Any]]:
            return connection.execute(_OFFSET, by_offset).all()

        assert [row.id for row in skipped()] == [entry.id for entry in deep().entries]
        asked, top = _looked_into(ground, place)
        took = taking_turns({"first": first, "deep": deep}, ROUNDS, warm=20)
        slow = taking_turns({"deep": some_deep, "offset": skipped}, OFFSET_ROUNDS)
    buffers = top["Shared Hit Blocks"] + top["Shared Read Blocks"]
    by_cursor = slow["deep"] / SOME
    yield Figure(
        NAME,
        f"page {DEPTH:,} against page 1",
        took["deep"] / took["first"],
        bound=1.15,
        note=f"{_micros(took['deep'])} against {_micros(took['first'])}",
    )
    yield Figure(
        NAME,
        f"page {DEPTH:,} by OFFSET against by cursor",
        slow["offset"] / by_cursor,
        "at least",
        500,
        f"{_micros(slow['offset'])} against {_micros(by_cursor)}",
    )
    yield Figure(NAME, "SQL statements a page", asked, bound=1)
    yield Figure(NAME, f"shared buffers of page {DEPTH:,}", buffers, bound=56)


def _looked_into(ground: Ground, place: Position) -> tuple[float, dict[str, Any]]:
    """The SQL statements a page, the preparing one left out, and the plan of the last as it ran."""
    engine = open_engine(ground.resources.settings.database_url, reader=True)
    with engine.connect() as connection:
        with statements(connection) as seen:
            for _ in range(PAGES):
                listing.page(connection, ground.one, PAGE_DEFAULT, place)
        explained = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {seen[-1]}"
        plan = connection.exec_driver_sql(explained).scalar_one()
    engine.dispose()
    return (len(seen) - 1) / PAGES, plan[0]["Plan"]


def _micros(seconds: float) -> str:
    return f"{seconds * 1e6:,.0f} µs"

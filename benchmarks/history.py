"""The index: what a page costs at the top, far down, and by OFFSET; its statements and its buffers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sqlalchemy import text

from benchmarks.figures import Figure
from benchmarks.ground import Ground, statements
from benchmarks.rounds import taking_turns
from models import listing
from models.rules import PAGE_DEFAULT

NAME = "history"
DEPTH = 2_000  # pages
ROUNDS = 401
OFFSET_ROUNDS = 15

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
        place = listing.Position(above.updated_at, above.id)
        works = {
            "first": partial(listing.page, connection, one, PAGE_DEFAULT),
            "deep": partial(listing.page, connection, one, PAGE_DEFAULT, place),
            "offset": lambda: connection.execute(_OFFSET, by_offset).all(),
        }
        assert [row.id for row in works["offset"]()] == [entry.id for entry in works["deep"]().entries]
        with statements(connection) as seen:
            works["deep"]()
        plan = connection.exec_driver_sql(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {seen[0]}").scalar_one()
        took = taking_turns({name: works[name] for name in ("first", "deep")}, ROUNDS, warm=20)
        slow = taking_turns({name: works[name] for name in ("deep", "offset")}, OFFSET_ROUNDS)
    top = plan[0]["Plan"]
    buffers = top["Shared Hit Blocks"] + top["Shared Read Blocks"]
    micros = {name: f"{seconds * 1e6:,.0f} µs" for name, seconds in (took | {"offset": slow["offset"]}).items()}
    yield Figure(
        NAME,
        f"page {DEPTH:,} against page 1",
        took["deep"] / took["first"],
        bound=1.15,
        note=f"{micros['deep']} against {micros['first']}",
    )
    yield Figure(
        NAME,
        f"page {DEPTH:,} by OFFSET against by cursor",
        slow["offset"] / slow["deep"],
        "at least",
        500,
        f"{micros['offset']} against {slow['deep'] * 1e6:,.0f} µs",
    )
    yield Figure(NAME, "SQL statements a page", len(seen), bound=1)
    yield Figure(NAME, f"shared buffers of page {DEPTH:,}", buffers, bound=56)

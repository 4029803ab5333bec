"""The index: order, pages, windows, point reads and the poll's probe (FAULTS.md S53 to S61)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, event, text
from sqlalchemy.orm import Session

from models import listing
from models.accounts import Owner
from models.append import Draft
from models.base import database_time
from models.cursor import Position
from models.errors import NotFound
from models.ids import new_id
from models.purge import delete_conversation
from models.sign_ins import SignIn
from tasks.resources import Resources
from tests.cast import Cast, Player

START = datetime(2026, 11, 1, 12, tzinfo=UTC)


@pytest.fixture(params=["reader", "session"])
def reading(request: pytest.FixtureRequest, resources: Resources) -> Iterator[Connection | Session]:
    """Both ways that a read is asked: a reader's connection, and inside a transaction."""
    if request.param == "reader":
        with resources.reader.connect() as connection:
            yield connection
    else:
        with Session(resources.engine, autobegin=True) as session:
            yield session


def settle(resources: Resources, player: Player, times: list[datetime]) -> list[str]:
    """Conversations of `player` with these times; returns their ids in the order of the index."""
    made = sorted(((at, new_id()) for at in times), reverse=True)
    insert = text(
        "INSERT INTO sessions (id, tenant_id, principal_id, title, created_at, updated_at) "
        "VALUES (:id, :tenant, :owner, :id, :at, :at)"
    )
    values = [
        {"id": one, "tenant": player.owner.tenant_id, "owner": player.id, "at": at}
        for at, one in reversed(made)
    ]
    with resources.engine.begin() as connection:
        connection.execute(insert, values)
    return [one for _, one in made]


def walk(db: Connection | Session, owner: Owner, size: int, rows: int) -> list[str]:
    """The ids of all pages; fails when the walk does not end in as many pages as there are."""
    found: list[str] = []
    after: Position | None = None
    for _ in range(math.ceil(rows / size) + 1):
        page = listing.page(db, owner, size, after)
        found += [entry.id for entry in page.entries]
        assert len(page.entries) == size or not page.more
        if not page.more:
            return found
        assert after is None or page.entries[-1].position != after
        after = page.entries[-1].position
    raise AssertionError("the walk did not end")


TIMES = {
    "all at one moment": [START] * 105,
    "within 100 microseconds": [START + timedelta(microseconds=n % 100) for n in range(105)],
    "a second apart": [START + timedelta(seconds=n) for n in range(105)],
}


@pytest.mark.parametrize("times", TIMES.values(), ids=TIMES)
def test_the_pages_together_are_the_whole_index_once_in_its_order(
    resources: Resources, cast: Cast, reading: Connection | Session, times: list[datetime]
) -> None:
    settle(resources, cast.bob, times)
    ids = settle(resources, cast.alice, times)
    settle(resources, cast.mallory, times)
    for size in (1, 2, 50, 104, 105, 106, 200):
        assert walk(reading, cast.alice.owner, size, len(ids)) == ids


def test_a_cursor_goes_on_where_its_row_was_when_that_row_is_gone(
    resources: Resources, alice: Player, reading: Connection | Session
) -> None:
    ids = settle(resources, alice, [START] * 5)
    after = listing.page(reading, alice.owner, 2).entries[-1].position
    with Session(resources.engine) as db, db.begin():
        for one in ids[:2]:
            delete_conversation(db, alice.owner, one)
    assert [entry.id for entry in listing.page(reading, alice.owner, 9, after).entries] == ids[2:]


def test_activity_brings_a_conversation_to_the_top_and_nothing_else_does(
    resources: Resources, alice: Player, reading: Connection | Session
) -> None:
    ids = [alice.converse(name) for name in ("a", "b", "c")]
    run_id = alice.start_run(ids[0])
    assert walk(reading, alice.owner, 50, 3) == ids[::-1]
    alice.say(ids[0], Draft("note", {}), run_id=run_id)
    assert walk(reading, alice.owner, 50, 3) == [ids[0], ids[2], ids[1]]


def test_an_entry_says_what_a_session_view_needs(alice: Player, reading: Connection | Session) -> None:
    session_id = alice.converse("Hello")
    first = alice.start_run(session_id)
    alice.say(session_id, Draft("run_ended", {"status": "succeeded"}), run_id=first)
    second = alice.start_run(session_id)
    (entry,) = listing.page(reading, alice.owner, 50).entries
    assert entry == listing.find(reading, alice.owner, session_id)
    assert (entry.id, entry.title, entry.active_run_id, entry.last_run_id) == (
        session_id,
        "Hello",
        second,
        first,
    )
    assert entry.updated_at >= entry.created_at
    assert entry.updated_at.utcoffset() == timedelta(0)
    untitled = alice.converse()
    assert listing.find(reading, alice.owner, untitled).title == ""


def test_an_empty_history_is_one_empty_page(
    alice: Player, bob: Player, reading: Connection | Session
) -> None:
    bob.converse("bob's")
    assert listing.page(reading, alice.owner, 50) == listing.Page([], more=False)
    window = listing.window(reading, alice.owner, Position(START, new_id()), 50)
    assert (list(window.entries), window.more) == ([], False)


def test_a_point_read_finds_ones_own_and_tells_nothing_of_others(
    cast: Cast, reading: Connection | Session
) -> None:
    session_id = cast.alice.converse("mine")
    assert listing.find(reading, cast.alice.owner, session_id).id == session_id
    nothing = ("", "nonsense", "%", "0" * 36, new_id(), new_id().upper(), "\0")
    refusals = []
    for owner, wanted in (
        (cast.bob.owner, session_id),
        (cast.mallory.owner, session_id),
        *((cast.alice.owner, missing) for missing in nothing),
    ):
        with pytest.raises(NotFound) as refusal:
            listing.find(reading, owner, wanted)
        refusals.append((refusal.value.detail, refusal.value.details))
    assert all(one == refusals[0] for one in refusals)


# -- the window of a poll ------------------------------------------------------------------------------------


def test_a_window_reaches_down_to_what_was_seen_and_at_least_a_page(
    resources: Resources, alice: Player, reading: Connection | Session
) -> None:
    ids = settle(resources, alice, [START + timedelta(microseconds=n) for n in range(20)])
    places = {entry.id: entry.position for entry in listing.page(reading, alice.owner, 200).entries}
    for last, least, size in (
        (0, 5, 5),
        (4, 5, 5),
        (5, 5, 6),
        (11, 5, 12),
        (19, 5, 20),
        (19, 50, 20),
        (0, 50, 20),
    ):
        window = listing.window(reading, alice.owner, places[ids[last]], least)
        assert [entry.id for entry in window.entries] == ids[:size]
        assert window.more == (size < 20)


def test_a_window_stays_where_it_was_when_its_last_row_is_gone(
    resources: Resources, alice: Player, reading: Connection | Session
) -> None:
    ids = settle(resources, alice, [START] * 9)
    until = listing.page(reading, alice.owner, 6).entries[-1].position
    with Session(resources.engine) as db, db.begin():
        delete_conversation(db, alice.owner, ids[5])
    window = listing.window(reading, alice.owner, until, 2)
    assert [entry.id for entry in window.entries] == ids[:5]
    assert window.more


def test_a_window_over_its_bound_is_a_first_page(
    resources: Resources, cast: Cast, reading: Connection | Session
) -> None:
    ids = settle(resources, cast.alice, [START] * 12)
    settle(resources, cast.bob, [START] * 12)
    last = listing.page(reading, cast.alice.owner, 12).entries[-1].position
    window = listing.window(reading, cast.alice.owner, last, 3, 10)
    assert [entry.id for entry in window.entries] == ids[:3]
    assert window.more
    exact = listing.window(reading, cast.alice.owner, last, 3, 12)
    assert [entry.id for entry in exact.entries] == ids
    assert not exact.more


# -- version and probe ---------------------------------------------------------------------------------------


def sign_in(resources: Resources, player: Player, **change: Any) -> str:
    with Session(resources.engine) as db, db.begin():
        now = database_time(db)
        values = {"created_at": now, "expires_at": now + timedelta(days=1), "revoked_at": None}
        values |= {name: now + by for name, by in change.items()}
        how = {"method": "link", "browser": "", "proved_at": now, "seen_at": now}
        made = SignIn(id=new_id(), principal_id=player.id, **how, **values)
        db.add(made)
        return made.id


def test_the_version_rises_with_every_change_of_the_list_and_of_no_other(
    resources: Resources, cast: Cast, reading: Connection | Session
) -> None:
    seen = [listing.version(reading, cast.alice.owner)]
    assert seen == [0]

    def changed() -> bool:
        seen.append(listing.version(reading, cast.alice.owner))
        return seen[-1] > seen[-2]

    session_id = cast.alice.converse()
    assert changed()
    cast.alice.say(session_id, Draft("note", {}))
    assert changed()
    cast.bob.converse("bob's")
    assert not changed()
    with Session(resources.engine) as db, db.begin():
        delete_conversation(db, cast.alice.owner, session_id)
    assert changed()


def test_a_run_that_starts_is_a_change_of_the_list(alice: Player, reading: Connection | Session) -> None:
    """A row with an active run shows it, so a poll must not take the list for unchanged."""
    session_id = alice.converse("go")
    before = listing.version(reading, alice.owner)
    alice.start_run(session_id)
    assert listing.version(reading, alice.owner) > before


def test_a_probe_answers_with_the_version_while_the_sign_in_holds(
    resources: Resources, cast: Cast, reading: Connection | Session
) -> None:
    live, empty = sign_in(resources, cast.alice), sign_in(resources, cast.bob)
    cast.alice.converse("one")
    assert listing.probe(reading, live) == listing.version(reading, cast.alice.owner) > 0
    assert listing.probe(reading, empty) == 0
    for dead in (
        sign_in(resources, cast.alice, expires_at=timedelta(seconds=-1)),
        sign_in(resources, cast.alice, revoked_at=timedelta(0)),
        new_id(),
        "",
        "nonsense",
    ):
        assert listing.probe(reading, dead) is None


# -- what a read costs (FAULTS.md S60) -----------------------------------------------------------------------


@contextmanager
def statements(resources: Resources) -> Iterator[list[str]]:
    """The statements that run in the block."""
    seen: list[str] = []

    def note(_c: Any, _cursor: Any, statement: str, *_: Any) -> None:
        seen.append(statement)

    event.listen(resources.engine, "before_cursor_execute", note)
    yield seen
    event.remove(resources.engine, "before_cursor_execute", note)


def test_each_read_is_one_statement(resources: Resources, alice: Player) -> None:
    ids = settle(resources, alice, [START] * 30)
    signed_in = sign_in(resources, alice)
    with Session(resources.engine) as db:
        after = listing.page(db, alice.owner, 5).entries[-1].position
        reads = (
            lambda: listing.page(db, alice.owner, 5),
            lambda: listing.page(db, alice.owner, 5, after),
            lambda: listing.window(db, alice.owner, after, 5),
            lambda: listing.find(db, alice.owner, ids[0]),
            lambda: listing.version(db, alice.owner),
            lambda: listing.probe(db, signed_in),
        )
        for read in reads:
            with statements(resources) as seen:
                read()
            assert len(seen) == 1


@contextmanager
def plans(resources: Resources, caught: list[str]) -> Iterator[None]:
    """The plan of each statement that runs in the block, as PostgreSQL chooses it for a large table."""

    def explain(connection: Connection, cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if statement.lstrip().startswith(("SELECT", "WITH")):
            cursor.execute("EXPLAIN (COSTS OFF) " + statement, parameters)
            caught.append("\n".join(row[0] for row in cursor.fetchall()))

    event.listen(resources.engine, "before_cursor_execute", explain)
    try:
        yield
    finally:
        event.remove(resources.engine, "before_cursor_execute", explain)


def test_a_page_at_any_depth_is_a_walk_along_the_index_without_a_sort(
    resources: Resources, cast: Cast
) -> None:
    many = """
        INSERT INTO sessions (id, tenant_id, principal_id, title, created_at, updated_at)
        SELECT gen_random_uuid(), :tenant, :owner, 'x', now(), now() - n * interval '1 s'
        FROM generate_series(1, 4000) n
    """
    with resources.engine.begin() as connection:
        for player in (cast.alice, cast.bob):
            connection.execute(text(many), {"tenant": player.owner.tenant_id, "owner": player.id})
        connection.execute(text("ANALYZE sessions"))
    caught: list[str] = []
    with Session(resources.engine) as db, plans(resources, caught):
        after = listing.page(db, cast.alice.owner, 50).entries[-1].position
        listing.page(db, cast.alice.owner, 50, after)
        listing.page(db, cast.alice.owner, 50, Position(after.updated_at - timedelta(seconds=3000), after.id))
        listing.window(db, cast.alice.owner, after, 50)
    assert len(caught) == 4
    for plan in caught:
        assert "ix_sessions_order" in plan
        assert "Sort" not in plan
        assert "Seq Scan" not in plan


def test_a_probe_reads_no_row_of_a_session(resources: Resources, alice: Player) -> None:
    alice.converse("one")
    signed_in = sign_in(resources, alice)
    caught: list[str] = []
    with Session(resources.engine) as db, plans(resources, caught):
        listing.probe(db, signed_in)
    assert len(caught) == 1
    assert "list_versions" in caught[0]
    assert " sessions" not in caught[0]
    assert "events" not in caught[0]

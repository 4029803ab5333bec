"""Closing an account: nobody gets in from the commit on, and what is left is counted, claimed, removed and settled."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import select, text, update
from sqlalchemy.orm import Session

from models import accounts, closing, sign_ins, ways
from models.accounts import Principal
from models.base import database_time
from models.closing import CLEARED, LEFT, WAYS_IN
from models.errors import InvalidState, NotFound, Unauthorized
from models.ids import new_id
from models.purge import PURGED
from tasks.resources import Resources
from tests.cast import Cast, Player
from tests.models.graph import dump, fill, rows, traces, typed_in
from tests.models.racing import at_once

# Tables with a principal of their own that are in no list of the closing, each with what sees to it.
OTHERWISE = {
    "sessions": "Delete Everywhere",
    "artifacts": "Delete Everywhere, which owes their bytes",
    "memories": "Delete Everywhere, or forgotten with a record",
    "imports": "taken off the list with the closing, their files owed",
    "tombstones": "outlive the account",
    "deletion_records": "stay until they expire, so that a paired device can be told",
}


def close(resources: Resources, player: Player) -> None:
    with Session(resources.engine) as db, db.begin():
        closing.close(db, player.id)


def test_every_table_that_names_a_principal_has_somebody_who_empties_it(db: Session) -> None:
    """A new table has no place until someone gives it one."""
    statement = "SELECT table_name FROM information_schema.columns WHERE column_name = 'principal_id'"
    here = set(db.scalars(text(statement + " AND table_schema = 'public'")))
    ours = {table.__tablename__ for table in (*WAYS_IN, *CLEARED)}
    purged = {table.__tablename__ for table in PURGED}
    assert ours.isdisjoint(OTHERWISE)
    assert here == ours | set(OTHERWISE) | (here & purged)
    assert {table.__tablename__ for table in LEFT} <= here


@pytest.fixture
def furnished(resources: Resources, alice: Player) -> Player:
    """Alice with a row in every table that an account can have one in."""
    fill(resources, alice, "hers")
    typed_in(resources, alice, "typed by hand")
    alice.token()
    with Session(resources.engine) as db, db.begin():
        sign_ins.use_link(db, alice.link())
        ways.set_password(db, alice.id, "a hash")
        ways.link_identity(db, alice.id, "https://id.example", "7", "")
    alice.link()
    return alice


def test_the_holdings_are_what_goes(
    resources: Resources, furnished: Player, bob: Player, db: Session
) -> None:
    fill(resources, bob, "his")
    held = closing.holdings(db, furnished.owner)
    assert (held.conversations, held.files, held.bytes) == (1, 3, 3 * len("hers") + 1 + 100_000)
    assert (held.memories, held.tokens, held.browsers) == (6, 1, 1)
    assert closing.holdings(db, accounts.Owner(new_id(), new_id())) == closing.Holdings(0, 0, 0, 0, 0, 0)


def test_nobody_gets_in_from_the_commit_on_and_the_address_is_free(
    resources: Resources, furnished: Player, cast: Cast, db: Session
) -> None:
    bobs = cast.bob.token()
    waiting = furnished.link()
    with Session(resources.engine) as other, other.begin():
        here = sign_ins.use_link(other, furnished.link()).id
    close(resources, furnished)
    assert sign_ins.signed_in(db, here) is None
    assert sign_ins.link_owner(db, waiting) is None
    live = "SELECT principal_id FROM tokens WHERE revoked_at IS NULL"
    assert rows(resources, live) == [(cast.bob.id,)]
    assert bobs
    for table in WAYS_IN:
        assert rows(resources, f"SELECT * FROM {table.__tablename__}") == []
    assert traces(resources, furnished.email) == set()
    assert accounts.find_user(db, furnished.email) is None
    assert accounts.find_user(db, f"closed {furnished.id}") is None
    again = accounts.create_user(db, furnished.email, b"s" * 32)
    assert again.id != furnished.id
    assert closing.holdings(db, again.owner) == closing.Holdings(0, 0, 0, 0, 0, 0)


def test_closing_again_changes_nothing_and_a_missing_account_is_missing(
    resources: Resources, furnished: Player, db: Session
) -> None:
    close(resources, furnished)
    before = dump(resources)
    close(resources, furnished)
    assert dump(resources) == before
    with pytest.raises(NotFound):
        closing.close(db, new_id())


def test_no_way_in_slips_in_beside_a_closing(resources: Resources, cast: Cast) -> None:
    """A token, a link or a sign-in that is made at the same moment is dead, or was refused."""

    def token(player: Player) -> None:
        player.token()

    def enter(player: Player, secret: str) -> None:
        with Session(resources.engine) as db, db.begin():
            sign_ins.use_link(db, secret)

    for _ in range(20):
        with Session(resources.engine) as db, db.begin():
            made = accounts.create_user(db, f"{new_id()}@example.com", b"s" * 32)
            player = Player(resources.engine, made.id, made.email, made.owner)
        secret = player.link()
        acts = [
            lambda p=player: close(resources, p),
            *[lambda p=player: token(p)] * 2,
            lambda p=player: p.link(),
        ]
        outcomes = at_once([*acts, lambda p=player, s=secret: enter(p, s)])
        assert {type(one) for one in outcomes} <= {type(None), str, Unauthorized}
        named = {"p": player.id}
        assert (
            rows(resources, "SELECT * FROM tokens WHERE principal_id = :p AND revoked_at IS NULL", **named)
            == []
        )
        for table in ("sign_ins", "sign_in_links"):
            assert rows(resources, f"SELECT * FROM {table} WHERE principal_id = :p", **named) == []


def test_the_last_operator_stays_also_when_two_leave_at_once(
    resources: Resources, cast: Cast, db: Session
) -> None:
    with pytest.raises(InvalidState) as refusal:
        close(resources, cast.olivia)
    assert refusal.value.details["reason"] == "last_operator"
    close(resources, cast.bob)  # no operator: nobody minds
    for _ in range(5):
        db.execute(update(Principal).where(Principal.closed_at.is_(None)).values(operator=False))
        db.commit()
        pair = []
        for _ in range(2):
            made = accounts.create_user(db, f"{new_id()}@example.com", b"s" * 32, operator=True)
            pair.append(Player(resources.engine, made.id, made.email, made.owner))
        db.commit()
        outcomes = at_once([lambda p=player: close(resources, p) for player in pair])
        assert sorted(type(one).__name__ for one in outcomes) == ["InvalidState", "NoneType"]
        assert len(db.scalars(select(Principal).where(Principal.operator)).all()) == 1
        db.commit()


def test_one_job_at_a_time_has_an_account_and_a_dead_ones_lease_runs_out(
    resources: Resources, alice: Player, bob: Player, db: Session
) -> None:
    assert closing.due(db) == []
    assert closing.claim(db, alice.id) is None  # open
    close(resources, alice)
    close(resources, bob)
    assert closing.due(db) == [alice.id, bob.id]
    assert closing.claim(db, alice.id) == alice.owner
    assert closing.claim(db, alice.id) is None
    assert closing.due(db) == [bob.id]
    past = database_time(db) - timedelta(seconds=1)
    db.execute(update(Principal).where(Principal.id == alice.id).values(emptying_until=past))
    assert closing.claim(db, alice.id) == alice.owner
    closing.let_go(db, alice.owner)
    assert closing.due(db) == [alice.id, bob.id]


def test_of_many_jobs_at_once_one_gets_an_account(resources: Resources, alice: Player) -> None:
    close(resources, alice)

    def claim() -> bool:
        with Session(resources.engine) as db, db.begin():
            return closing.claim(db, alice.id) is not None

    assert at_once([claim] * 6).count(True) == 1


def test_an_account_is_settled_only_when_it_is_empty_and_stays_so(
    resources: Resources, alice: Player, db: Session
) -> None:
    close(resources, alice)
    long_ago = database_time(db) - closing.SETTLING - timedelta(seconds=1)
    assert not closing.settle(db, alice.owner)  # somebody let in before may still write
    db.execute(update(Principal).where(Principal.id == alice.id).values(closed_at=long_ago))
    db.commit()
    session_id = alice.converse("a late writer's")
    assert not closing.settle(db, alice.owner)
    db.commit()
    assert closing.conversations(db, alice.owner, "00000000-0000-0000-0000-000000000000") == [session_id]
    with resources.engine.begin() as connection:
        for table in ("search_entries", "events"):
            connection.execute(text(f"DELETE FROM {table}"))
        connection.execute(text("DELETE FROM sessions"))
    closing.clear(db, alice.owner)
    assert closing.settle(db, alice.owner)
    assert closing.due(db) == []
    assert not closing.settle(db, accounts.Owner(new_id(), new_id()))


def test_the_standing_is_derived_and_nobodys_who_is_open(
    resources: Resources, furnished: Player, db: Session
) -> None:
    assert closing.standing(db, furnished.id) is None
    assert closing.standing(db, new_id()) is None
    close(resources, furnished)
    standing = closing.standing(db, furnished.id)
    assert standing is not None
    assert (standing.conversations, standing.memories, standing.bytes_owed, standing.gone) == (1, 6, 0, False)

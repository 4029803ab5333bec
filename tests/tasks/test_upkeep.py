"""Recurring work: dead runs are ended, old titles settled; both by jobs that may run twice at once."""

from __future__ import annotations

import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session

from models import listing
from models.history import Conversation, Run
from tasks import upkeep
from tasks.deletion import delete_now
from tasks.resources import Resources
from tests.cast import Cast, Player
from tests.models.graph import dump, rows
from tests.models.racing import all_well, at_once


@pytest.fixture(autouse=True)
def here(resources: Resources, monkeypatch: pytest.MonkeyPatch) -> None:
    """The jobs work on this test's resources."""
    monkeypatch.setattr(upkeep, "in_this_process", lambda: resources)


def lapse(resources: Resources) -> None:
    with resources.engine.begin() as connection:
        connection.execute(update(Run).values(lease_expires_at=Run.created_at))


def states(resources: Resources) -> set[tuple[str, bool]]:
    return set(rows(resources, "SELECT status, ended_at IS NOT NULL FROM runs"))


def test_dead_runs_of_everyone_are_ended_and_the_living_go_on(resources: Resources, cast: Cast) -> None:
    for player in (cast.alice, cast.bob, cast.mallory):
        player.start_run(player.converse("dead"))
    lapse(resources)
    alive = cast.alice.start_run(cast.alice.converse("alive"))
    upkeep.expire_runs()
    assert states(resources) == {("expired", True), ("running", False)}
    assert rows(resources, "SELECT id FROM runs WHERE status = 'running'") == [(alive,)]
    assert rows(resources, "SELECT count(*) FROM sessions WHERE active_run_id IS NOT NULL") == [(1,)]


def test_after_a_dead_run_its_conversation_can_be_deleted_and_its_list_has_changed(
    resources: Resources, alice: Player
) -> None:
    """FAULTS.md S40."""
    session_id = alice.converse("dead")
    run_id = alice.start_run(session_id)
    lapse(resources)
    with Session(resources.engine) as db:
        before, entry = listing.version(db, alice.owner), listing.find(db, alice.owner, session_id)
    upkeep.expire_runs()
    with Session(resources.engine) as db:
        assert listing.version(db, alice.owner) > before
        after = listing.find(db, alice.owner, session_id)
    assert (after.active_run_id, after.last_run_id) == (None, run_id)
    assert after.updated_at == entry.updated_at  # upkeep moves no order
    assert not delete_now(resources, alice.owner, session_id).deleted.again


def test_ending_dead_runs_twice_at_once_ends_each_once(resources: Resources, alice: Player) -> None:
    for _ in range(10):
        alice.start_run(alice.converse("dead"))
    lapse(resources)
    all_well(at_once([upkeep.expire_runs] * 4))
    assert states(resources) == {("expired", True)}
    before = dump(resources)
    upkeep.expire_runs()
    assert dump(resources) == before


def test_titles_of_before_the_title_are_settled_all_of_them(
    resources: Resources, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    from functools import partial

    for player in (cast.alice, cast.bob):
        for number in range(4):
            player.converse(f"Title {number}")
        player.converse()
    with resources.engine.begin() as connection:
        connection.execute(update(Conversation).values(title=None))
    monkeypatch.setattr(upkeep.titles, "derive_titles", partial(upkeep.titles.derive_titles, limit=3))
    all_well(at_once([upkeep.derive_titles] * 2))
    upkeep.derive_titles()
    found = rows(resources, "SELECT title, count(*) FROM sessions GROUP BY title ORDER BY title")
    assert found == [(f"Title {number}", 2) for number in range(4)] + [(None, 2)]

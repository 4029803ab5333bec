"""A restored backup forgets what was deleted after it was taken."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from sqlalchemy import select, text
from sqlalchemy.orm import Session

from models import closing, listing, purge, replay
from models.accounts import Principal
from models.append import Draft
from models.base import Base
from models.errors import Invalid, NotFound
from models.memories import DeletionRecord, Memory
from models.tables import metadata
from tasks.resources import Resources
from tests.cast import Player

KEY = "k" * 40


def exported(resources: Resources) -> list[bytes]:
    with Session(resources.engine) as db:
        return list(replay.exported(db, KEY))


def replayed(resources: Resources, lines: list[bytes], key: str = KEY) -> list[str]:
    said = []
    for line in replay.in_order(lines):
        with Session(resources.engine) as db, db.begin():
            said.append(replay.replay_line(db, line, key))
    return said


def backup(resources: Resources) -> dict[str, list[dict[str, Any]]]:
    with resources.engine.connect() as connection:
        return {
            table.name: [dict(row) for row in connection.execute(select(table)).mappings()]
            for table in metadata.sorted_tables
        }


def restore(resources: Resources, rows: dict[str, list[dict[str, Any]]]) -> None:
    names = ", ".join(f'"{name}"' for name in metadata.tables)
    with resources.engine.begin() as connection:
        connection.execute(text(f"TRUNCATE {names}"))
        for table in Base.metadata.sorted_tables:
            if rows[table.name]:
                connection.execute(table.insert(), rows[table.name])


def delete(resources: Resources, player: Player, session_id: str) -> purge.Deleted:
    with Session(resources.engine) as db, db.begin():
        return purge.delete_conversation(db, player.owner, session_id)


def test_a_restored_conversation_and_its_memories_go_again_with_their_first_times(
    resources: Resources, alice: Player, bob: Player
) -> None:
    gone, kept, foreign = alice.converse("Gone"), alice.converse("Kept"), bob.converse("Gone")
    for player, session_id in ((alice, gone), (alice, kept), (bob, foreign)):
        player.say(session_id, Draft("memory_formed", {"text": f"of {session_id}"}))
    run_id = alice.start_run(gone)
    before = backup(resources)
    alice.say(gone, Draft("run_ended", {"status": "succeeded"}), run_id=run_id)
    deleted = delete(resources, alice, gone)
    lines = exported(resources)
    with Session(resources.engine) as db:
        record = db.scalars(select(DeletionRecord)).one()
        recorded = (record.key, record.deleted_at)

    restore(resources, before)
    assert replayed(resources, lines) == ["header", "records", "removed"]

    with Session(resources.engine) as db:
        with pytest.raises(NotFound):
            listing.find(db, alice.owner, gone)
        assert listing.find(db, alice.owner, kept).title == "Kept"
        assert listing.find(db, bob.owner, foreign).title == "Gone"
        stone = purge.tombstone(db, alice.owner, gone)
        assert stone is not None
        assert stone.deleted_at == deleted.deleted_at
        assert [(one.key, one.deleted_at) for one in db.scalars(select(DeletionRecord))] == [recorded]
        assert sorted(db.scalars(select(Memory.text))) == sorted([f"of {kept}", f"of {foreign}"])


def test_a_second_replay_changes_nothing(resources: Resources, alice: Player) -> None:
    session_id = alice.converse("Gone")
    alice.say(session_id, Draft("memory_formed", {"text": "a"}))
    before = backup(resources)
    delete(resources, alice, session_id)
    lines = exported(resources)
    restore(resources, before)
    replayed(resources, lines)
    once = backup(resources)
    assert replayed(resources, lines) == ["header", "records", "kept"]
    assert backup(resources) == once


def test_a_copy_made_after_the_deletion_stays(resources: Resources, alice: Player) -> None:
    first, second = alice.converse("One"), alice.converse("Two")
    alice.say(first, Draft("memory_formed", {"text": "again"}))
    delete(resources, alice, first)
    lines = exported(resources)
    alice.say(second, Draft("memory_formed", {"text": "again"}))
    replayed(resources, lines)
    with Session(resources.engine) as db:
        assert list(db.scalars(select(Memory.text))) == ["again"]


def test_the_records_are_sealed_and_the_tombstones_hold_four_values(
    resources: Resources, alice: Player
) -> None:
    session_id = alice.converse("Gone")
    alice.say(session_id, Draft("memory_formed", {"text": "a"}))
    with Session(resources.engine) as db:
        key = db.scalars(select(Memory.key)).one()
    delete(resources, alice, session_id)
    whole = b"\n".join(exported(resources))
    for form in (key.hex().encode(), base64.b64encode(key), key):
        assert form not in whole
    assert b"Gone" not in whole


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [b"not json"],
        [b'{"allgone":"tombstones","version":2}'],
        [b'{"allgone":"tombstones","version":1}', b'{"session_id":"x"}'],
        [b'{"allgone":"tombstones","version":1}', b'{"records":"AAAA"}'],
        [b'{"allgone":"tombstones","version":1}', b'{"records":7}'],
        [b'{"allgone":"tombstones","version":1}', b"[]"],
    ],
)
def test_anything_else_is_refused(resources: Resources, lines: list[bytes]) -> None:
    with pytest.raises(Invalid):
        replayed(resources, lines)


def test_another_secret_key_is_named(resources: Resources, alice: Player) -> None:
    session_id = alice.converse("Gone")
    alice.say(session_id, Draft("memory_formed", {"text": "a"}))
    delete(resources, alice, session_id)
    with pytest.raises(Invalid, match="another SECRET_KEY"):
        replayed(resources, exported(resources), key="x" * 40)


def test_an_account_that_was_closed_is_closed_again_with_its_first_time_the_last_operators_too(
    resources: Resources, alice: Player, olivia: Player, bob: Player
) -> None:
    before = backup(resources)
    with Session(resources.engine) as db, db.begin():
        closing.close(db, alice.id)
        first = db.get_one(Principal, alice.id).closed_at
        db.get_one(Principal, bob.id).operator = True
    with Session(resources.engine) as db, db.begin():
        closing.close(db, olivia.id)
    lines = exported(resources)
    assert not any(b"@" in line for line in lines)
    restore(resources, before)
    for _ in range(2):
        assert replayed(resources, lines).count("account") == 2
        with Session(resources.engine) as db:
            again = db.get_one(Principal, alice.id)
            assert (again.closed_at, again.email) == (first, f"closed {alice.id}")
            assert set(closing.due(db)) == {alice.id, olivia.id}
            assert db.get_one(Principal, bob.id).closed_at is None
    with pytest.raises(Invalid):
        replayed(resources, [lines[0], b'{"account": "nonsense", "closed_at": "2026-11-30T12:00:00+00:00"}'])

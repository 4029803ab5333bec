"""Comparing rows and bytes: what each side lacks, and that nothing under way is mistaken for a leftover."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import delete
from sqlalchemy.orm import Session

import tasks.store
from models.artifacts import Artifact
from models.bytestore import StoreFault
from models.ids import new_id
from models.outbox import Owed
from models.purge import delete_conversation
from tasks.outbox import drain_due
from tasks.resources import Resources
from tasks.store import YOUNG, check_store
from tests.cast import Player
from tests.models.graph import attach, dump, stored, upload

NOW = datetime.now(UTC)
LATER = NOW + timedelta(days=1)  # when everything that is written here is old


def test_rows_and_bytes_that_agree_give_nothing_to_say(resources: Resources, alice: Player) -> None:
    attach(resources, alice, alice.converse(), b"a", b"", b"c")
    found = check_store(resources, LATER, repair=True)
    assert (found.rows_without_bytes, found.bytes_without_rows, found.repaired) == ([], [], [])
    assert len(list(resources.store.keys())) == 3


def test_bytes_that_nothing_names_are_found_and_removed_only_when_asked(
    resources: Resources, alice: Player
) -> None:
    """FAULTS.md S4."""
    kept = attach(resources, alice, alice.converse(), b"kept")
    lost = sorted(new_id() for _ in range(3))
    for key in lost:
        resources.store.put(key, [b"lost"])
    before = dump(resources)
    assert check_store(resources, LATER).bytes_without_rows == lost
    assert len(list(resources.store.keys())) == 4
    found = check_store(resources, LATER, repair=True)
    assert found.bytes_without_rows == found.repaired == lost
    assert stored(resources) == kept
    assert check_store(resources, LATER).bytes_without_rows == []
    assert dump(resources) == before


def test_a_row_whose_bytes_are_missing_is_found_and_never_repaired_away(
    resources: Resources, alice: Player
) -> None:
    keys = attach(resources, alice, alice.converse(), b"a", b"b")
    resources.store.delete([keys[0]])
    before = dump(resources)
    found = check_store(resources, LATER, repair=True)
    assert (found.rows_without_bytes, found.bytes_without_rows) == ([keys[0]], [])
    assert dump(resources) == before


def test_an_upload_under_way_owed_bytes_and_young_ones_are_no_leftovers(
    resources: Resources, alice: Player
) -> None:
    session_id = alice.converse()
    upload(resources, session_id, b"under way")
    gone = alice.converse()
    attach(resources, alice, gone, b"owed")
    with Session(resources.engine) as db, db.begin():
        delete_conversation(db, alice.owner, gone)
    young = new_id()
    resources.store.put(young, [b"young"])
    assert check_store(resources, LATER).bytes_without_rows == [young]
    assert check_store(resources, NOW + YOUNG - timedelta(minutes=1), repair=True).bytes_without_rows == []
    assert len(list(resources.store.keys())) == 3


def test_an_upload_that_died_is_drained_when_its_time_is_over(resources: Resources, alice: Player) -> None:
    session_id = alice.converse()
    upload(resources, session_id, b"died")
    assert drain_due(resources).gone == 0
    with resources.engine.begin() as connection:
        connection.execute(Owed.__table__.update().values(next_attempt_at=Owed.created_at))
    assert drain_due(resources).gone == 1
    assert list(resources.store.keys()) == []


def test_more_than_a_batch_is_walked_whole(
    resources: Resources, alice: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks.store, "BATCH", 10)
    session_id = alice.converse()
    with resources.engine.begin() as connection:
        connection.exec_driver_sql(
            "INSERT INTO artifacts (id, session_id, principal_id, seq, name, content_type, size, sha256, created_at) "
            f"SELECT gen_random_uuid(), '{session_id}', '{alice.id}', n, 'a', 'b', 1, '', now() "
            "FROM generate_series(1, 21) n"
        )
    assert len(check_store(resources, LATER).rows_without_bytes) == 21
    with resources.engine.begin() as connection:
        connection.execute(delete(Artifact))
    for _ in range(21):
        resources.store.put(new_id(), [b""])
    assert len(check_store(resources, LATER, repair=True).repaired) == 21
    assert list(resources.store.keys()) == []


def test_a_store_that_is_not_there_is_a_fault_and_no_finding(resources: Resources, alice: Player) -> None:
    """Else every row would be reported as lost, or worse, every byte as nobody's."""
    attach(resources, alice, alice.converse(), b"a")
    folder = Path(resources.settings.object_store_url.removeprefix("file://"))
    folder.rename(folder.with_name("moved"))
    folder.write_text("a file where the folder should be")
    before = dump(resources)
    with pytest.raises(StoreFault):
        check_store(resources, LATER, repair=True)
    assert dump(resources) == before

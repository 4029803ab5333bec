"""Delete Everywhere, by habit: fill every table, delete, find nothing left, and the neighbour's twin untouched."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import event, select, text, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from models import append, purge
from models.accounts import Owner
from models.append import Draft
from models.base import database_time
from models.errors import InvalidState, NotFound
from models.history import Run
from models.ids import new_id
from models.memories import DeletionRecord, Memory, key_of
from models.purge import PURGED, Deleted, delete_conversation, reach, tombstone
from models.rules import TICK
from tasks.resources import Resources
from tests.cast import Cast, Player, messages
from tests.models.graph import attach, count, dump, fill, held_texts, memory_id, rows, traces

# Tables that a deletion changes on purpose; every other one must be as if the conversation had never been.
CHANGED = {"tombstones", "outbox", "deletion_records", "list_versions", "skill_revisions", "imports"}
OWN_STEP = {
    "artifacts",
    "memories",
    "skill_revisions",
    "sessions",
    "import_failures",
}  # removed by a step of their own


def delete(resources: Resources, owner: Owner, session_id: str) -> Deleted:
    with Session(resources.engine) as db, db.begin():
        return delete_conversation(db, owner, session_id)


@contextmanager
def statements(resources: Resources) -> Iterator[list[str]]:
    """The statements that run while the block does."""
    seen: list[str] = []

    def note(_c: Any, _cursor: Any, statement: str, *_: Any) -> None:
        seen.append(statement)

    event.listen(resources.engine, "before_cursor_execute", note)
    yield seen
    event.remove(resources.engine, "before_cursor_execute", note)


class Fault(Exception):
    """A fault that no code of ours expects."""


@contextmanager
def fault_at(resources: Resources, number: int) -> Iterator[None]:
    """The statement of that number fails, counted from 1."""
    seen = 0

    def fail(*_: Any) -> None:
        nonlocal seen
        seen += 1
        if seen == number:
            raise Fault

    event.listen(resources.engine, "before_cursor_execute", fail)
    try:
        yield
    finally:
        event.remove(resources.engine, "before_cursor_execute", fail)


def test_nothing_of_a_deleted_conversation_is_left_and_its_twins_are_untouched(
    resources: Resources, cast: Cast
) -> None:
    for twin in (cast.bob, cast.mallory, cast.alice):
        fill(resources, twin, "twin")
    before = dump(resources)
    filled = fill(resources, cast.alice, "victim")
    here = traces(resources, filled.session_id)
    assert here == {table.__tablename__ for table in PURGED} | OWN_STEP
    done = delete(resources, cast.alice.owner, filled.session_id)
    assert (done.again, done.memories, done.files) == (False, 4, 3)
    after = dump(resources)
    changed = {name for name in before if before[name] != after[name]}
    assert changed == CHANGED
    assert traces(resources, filled.session_id) == {"tombstones", "outbox"}
    assert traces(resources, filled.run_id) == set()
    assert traces(resources, "victim") == set()
    for name in CHANGED - {"list_versions"}:
        assert set(before[name]) <= set(after[name]), f"{name} lost rows of a twin"


def test_what_is_kept_is_a_tombstone_the_owed_keys_and_the_records_of_the_memories(
    resources: Resources, alice: Player, db: Session
) -> None:
    filled = fill(resources, alice, "m")
    done = delete(resources, alice.owner, filled.session_id)
    stone = rows(resources, "SELECT * FROM tombstones")
    assert [tuple(row) for row in stone] == [
        (filled.session_id, alice.owner.tenant_id, alice.id, done.deleted_at)
    ]
    owed = rows(resources, "SELECT key, session_id, reserved, attempts, error FROM outbox ORDER BY key")
    assert [tuple(row) for row in owed] == [
        (key, filled.session_id, False, 0, None) for key in sorted(filled.artifact_ids)
    ]
    recorded = {(record.workspace, record.key) for record in db.scalars(select(DeletionRecord))}
    assert recorded == {
        ("default", key_of("fact 1 m")),
        ("work", key_of("fact 2 m")),
        ("drawn", key_of("both m")),
        ("default", key_of("alone m")),
    }


def test_a_published_skill_stays_and_forgets_who_wrote_it(resources: Resources, alice: Player) -> None:
    filled = fill(resources, alice, "m")
    wrote = "SELECT name, revision, body, session_id, authoring_run_id FROM skill_revisions"
    assert tuple(rows(resources, wrote)[0]) == ("greeting", 1, "say hello", filled.session_id, filled.run_id)
    delete(resources, alice.owner, filled.session_id)
    assert tuple(rows(resources, wrote)[0]) == ("greeting", 1, "say hello", None, None)


def test_a_deletion_raises_the_version_of_its_owners_list_alone(resources: Resources, cast: Cast) -> None:
    session_id, _ = cast.alice.converse("a"), cast.bob.converse("b")
    versions = "SELECT version FROM list_versions WHERE principal_id = :p"
    before = [rows(resources, versions, p=player.id)[0][0] for player in (cast.alice, cast.bob)]
    delete(resources, cast.alice.owner, session_id)
    after = [rows(resources, versions, p=player.id)[0][0] for player in (cast.alice, cast.bob)]
    assert after == [before[0] + 1, before[1]]


def test_deleting_again_changes_nothing_and_says_so(resources: Resources, alice: Player) -> None:
    filled = fill(resources, alice, "m")
    first = delete(resources, alice.owner, filled.session_id)
    before = dump(resources)
    second = delete(resources, alice.owner, filled.session_id)
    assert second == Deleted(first.deleted_at, again=True)
    assert dump(resources) == before


def test_the_reach_counts_what_a_deletion_removes(resources: Resources, alice: Player, bob: Player) -> None:
    filled = fill(resources, alice, "m")
    with Session(resources.engine) as db:
        told = reach(db, alice.owner, filled.session_id)
        assert (told.messages, told.files, told.memories) == (2, 3, 4)
        assert told.bytes == 3 + 1 + 100_000
        for owner, session_id in (
            (bob.owner, filled.session_id),
            (alice.owner, new_id()),
            (alice.owner, "no"),
        ):
            with pytest.raises(NotFound):
                reach(db, owner, session_id)


def test_a_tombstone_is_shown_to_its_own_principal_alone(
    resources: Resources, cast: Cast, db: Session
) -> None:
    session_id = cast.alice.converse("a")
    delete(resources, cast.alice.owner, session_id)
    assert tombstone(db, cast.alice.owner, session_id) is not None
    assert tombstone(db, cast.bob.owner, session_id) is None
    assert tombstone(db, cast.alice.owner, "nonsense") is None


def test_nobody_else_can_delete_it(resources: Resources, cast: Cast) -> None:
    session_id = fill(resources, cast.alice, "m").session_id
    before = dump(resources)
    for stranger in (cast.bob, cast.mallory):
        with pytest.raises(NotFound):
            delete(resources, stranger.owner, session_id)
    assert dump(resources) == before


def test_what_names_nothing_deletes_nothing(resources: Resources, alice: Player) -> None:
    alice.converse("stays")
    before = dump(resources)
    for missing in ("", "nonsense", "null", "%", "%20", "*", "0" * 36, new_id().upper(), new_id()):
        with pytest.raises(NotFound):
            delete(resources, alice.owner, missing)
    assert dump(resources) == before


# -- runs ----------------------------------------------------------------------------------------------------


def test_an_active_run_refuses_the_deletion_by_its_id(resources: Resources, alice: Player) -> None:
    filled = fill(resources, alice, "m")
    run_id = alice.start_run(filled.session_id)
    before = dump(resources)
    with pytest.raises(InvalidState) as refusal:
        delete(resources, alice.owner, filled.session_id)
    assert refusal.value.details == {"reason": "active_run_exists", "active_run_id": run_id}
    assert dump(resources) == before


def test_a_run_past_its_lease_does_not_stand_in_the_way(resources: Resources, alice: Player) -> None:
    session_id = alice.converse("a")
    run_id = alice.start_run(session_id)
    with resources.engine.begin() as connection:
        connection.execute(update(Run).values(lease_expires_at=Run.created_at))
    with statements(resources) as seen:
        assert not delete(resources, alice.owner, session_id).again
    assert len(seen) <= 20
    assert traces(resources, run_id) == set()


# -- all or nothing ------------------------------------------------------------------------------------------


def test_a_purge_that_leaves_any_table_out_is_refused_by_the_database(
    resources: Resources, alice: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled = fill(resources, alice, "m")
    before = dump(resources)
    for left_out in PURGED:
        monkeypatch.setattr(purge, "PURGED", [table for table in PURGED if table is not left_out])
        with pytest.raises(IntegrityError, match=f'table "{left_out.__tablename__}"'):
            delete(resources, alice.owner, filled.session_id)
        assert dump(resources) == before, left_out.__tablename__
    monkeypatch.setattr(purge, "PURGED", PURGED)
    for step, nothing, table in (("forget", lambda *_: 0, "memories"), ("_owe", lambda *_: 0, "artifacts")):
        with monkeypatch.context() as patched:
            patched.setattr(purge, step, nothing)
            with pytest.raises(IntegrityError, match=f'table "{table}"'):
                delete(resources, alice.owner, filled.session_id)
        assert dump(resources) == before, table
    delete(resources, alice.owner, filled.session_id)


def test_a_fault_at_any_statement_rolls_all_of_it_back(resources: Resources, alice: Player) -> None:
    filled = fill(resources, alice, "m")
    before = dump(resources)
    number = 0
    while True:
        number += 1
        try:
            with fault_at(resources, number):
                delete(resources, alice.owner, filled.session_id)
        except Fault:
            assert dump(resources) == before, f"statement {number}"
            continue
        break
    assert number > len(PURGED) + 6  # it did fail at each step, and then there was none left to fail
    assert count(resources, "tombstones") == 1


def test_a_deletion_takes_at_most_twenty_statements_however_large(
    resources: Resources, alice: Player
) -> None:
    """FAULTS.md S19: no step stops at a default limit."""
    session_id = alice.converse("a")
    run_id = alice.start_run(session_id)
    alice.say(session_id, Draft("run_ended", {"status": "succeeded"}), run_id=run_id)
    with resources.engine.begin() as connection:
        for insertion in LARGE:
            connection.execute(text(insertion), {"s": session_id, "p": alice.id})
    with statements(resources) as seen:
        done = delete(resources, alice.owner, session_id)
    assert len(seen) <= 20
    assert (done.memories, done.files) == (1001, 1001)
    assert count(resources, "outbox") == count(resources, "deletion_records") == 1001
    assert [count(resources, name) for name in ("events", "memories", "artifacts", "runs")] == [0, 0, 0, 0]


LARGE = (
    "INSERT INTO events (session_id, seq, id, type, payload, created_at) "
    "SELECT :s, n, gen_random_uuid(), 'note', '{}', now() FROM generate_series(10, 10010) n",
    "INSERT INTO memories (id, principal_id, workspace, dataset, key, logical_id, text, source, session_id, made_at, "
    "recorded_at, recorded_device) SELECT gen_random_uuid(), :p, 'default', 'memories', "
    "sha256(convert_to(n::text, 'UTF8')), gen_random_uuid(), n::text, 'conversation', :s, now(), now(), "
    "gen_random_uuid() FROM generate_series(1, 1001) n",
    "INSERT INTO artifacts (id, session_id, principal_id, seq, name, content_type, size, sha256, created_at) "
    "SELECT gen_random_uuid(), :s, :p, n, 'a', 'text/plain', 1, '', now() FROM generate_series(1, 1001) n",
    "INSERT INTO workspaces (principal_id, name) VALUES (:p, 'default')",
)


# -- memories: first source, consolidation, times ------------------------------------------------------------


def form(player: Player, session_id: str, said: str, workspace: str = "default") -> None:
    player.say(session_id, Draft("memory_formed", {"text": said, "workspace": workspace}))


def consolidate(player: Player, session_id: str, said: str, *memory_ids: str) -> None:
    player.say(session_id, Draft("consolidated", {"text": said, "memory_ids": list(memory_ids)}))


def test_a_memory_goes_with_its_first_source_and_not_with_a_later_one(
    resources: Resources, alice: Player
) -> None:
    first, second = alice.converse("one"), alice.converse("two")
    for session_id in (first, second):
        form(alice, session_id, "likes tea")
    delete(resources, alice.owner, second)
    assert held_texts(resources, alice) == {"likes tea"}
    assert count(resources, "deletion_records") == 0
    delete(resources, alice.owner, first)
    assert held_texts(resources, alice) == set()
    assert count(resources, "deletion_records") == 1


def test_the_same_text_in_two_workspaces_is_two_memories(resources: Resources, alice: Player) -> None:
    first, second = alice.converse("one"), alice.converse("two")
    form(alice, first, "likes tea")
    form(alice, second, "likes tea", "work")
    delete(resources, alice.owner, first)
    left = rows(resources, "SELECT workspace FROM memories")
    assert [row[0] for row in left] == ["work"]


def test_what_was_consolidated_from_a_memory_goes_with_it_across_conversations(
    resources: Resources, alice: Player, bob: Player
) -> None:
    source, middle, last = (alice.converse(name) for name in ("source", "middle", "last"))
    form(alice, source, "a")
    form(alice, middle, "b")
    consolidate(alice, middle, "a and b", memory_id(resources, alice, "a"), memory_id(resources, alice, "b"))
    form(alice, last, "c")
    consolidate(alice, last, "all", memory_id(resources, alice, "a and b"), memory_id(resources, alice, "c"))
    form(bob, bob.converse("bob"), "a")
    done = delete(resources, alice.owner, source)
    assert done.memories == 3
    assert held_texts(resources, alice) == {"b", "c"}
    assert held_texts(resources, bob) == {"a"}
    assert count(resources, "consolidations") == count(resources, "consolidation_inputs") == 0
    recorded = {row[0] for row in rows(resources, "SELECT key FROM deletion_records")}
    assert recorded == {key_of("a"), key_of("a and b"), key_of("all")}


def test_a_consolidation_of_other_inputs_stays(resources: Resources, alice: Player) -> None:
    source, other = alice.converse("source"), alice.converse("other")
    form(alice, source, "a")
    form(alice, other, "b")
    consolidate(alice, other, "of b", memory_id(resources, alice, "b"))
    delete(resources, alice.owner, source)
    assert held_texts(resources, alice) == {"b", "of b"}
    assert count(resources, "consolidations") == count(resources, "consolidation_inputs") == 1


def test_a_consolidated_text_that_was_held_from_elsewhere_stays(resources: Resources, alice: Player) -> None:
    source, other = alice.converse("source"), alice.converse("other")
    form(alice, source, "a")
    form(alice, other, "known")
    consolidate(alice, other, "known", memory_id(resources, alice, "a"))
    delete(resources, alice.owner, source)
    assert held_texts(resources, alice) == {"known"}
    assert count(resources, "consolidations") == count(resources, "consolidation_inputs") == 0
    assert [row[0] for row in rows(resources, "SELECT key FROM deletion_records")] == [key_of("a")]


def test_a_circle_of_consolidations_ends(resources: Resources, alice: Player) -> None:
    source, other = alice.converse("source"), alice.converse("other")
    form(alice, source, "a")
    consolidate(alice, other, "b", memory_id(resources, alice, "a"))
    consolidate(alice, other, "b", memory_id(resources, alice, "b"))
    assert delete(resources, alice.owner, source).memories == 2
    assert held_texts(resources, alice) == set()


def test_a_deletion_is_stamped_past_the_newest_copy(resources: Resources, alice: Player, db: Session) -> None:
    """A slow clock loses nothing: the record dominates a copy of the future (PRODUCT.md 4.4, Time)."""
    now_ish, ahead = alice.converse("one"), alice.converse("two")
    form(alice, now_ish, "past")
    form(alice, ahead, "future")
    db.execute(
        update(Memory)
        .where(Memory.text == "future")
        .values(recorded_at=Memory.recorded_at + timedelta(days=1))
    )
    db.commit()
    copies = {row.text: row.recorded_at for row in db.scalars(select(Memory))}
    started = database_time(db)
    db.commit()
    done = delete(resources, alice.owner, now_ish)
    delete(resources, alice.owner, ahead)
    times = {record.key: record.deleted_at for record in db.scalars(select(DeletionRecord))}
    assert times[key_of("future")] == copies["future"] + TICK
    assert times[key_of("past")] == done.deleted_at >= max(started, copies["past"] + TICK)


def test_of_two_deletions_the_later_time_is_kept(resources: Resources, alice: Player, db: Session) -> None:
    session_id = alice.converse("one")
    form(alice, session_id, "tea")
    later = database_time(db) + timedelta(days=2)
    db.add(
        DeletionRecord(
            principal_id=alice.id,
            workspace="default",
            dataset="memories",
            key=key_of("tea"),
            deleted_at=later,
            raised_at=later - timedelta(days=90),
        )
    )
    db.commit()
    done = delete(resources, alice.owner, session_id)
    record = db.scalars(select(DeletionRecord).execution_options(populate_existing=True)).one()
    assert record.deleted_at == later
    assert record.raised_at == done.deleted_at


def test_a_copy_made_again_after_a_deletion_stays_and_is_stamped_past_it(
    resources: Resources, alice: Player, db: Session
) -> None:
    session_id = alice.converse("one")
    form(alice, session_id, "tea")
    delete(resources, alice.owner, session_id)
    ahead = database_time(db) + timedelta(hours=1)
    db.execute(update(DeletionRecord).values(deleted_at=ahead))
    db.commit()
    form(alice, alice.converse("two"), "tea")
    copy = db.scalars(select(Memory)).one()
    assert copy.recorded_at == copy.made_at == ahead + TICK


def test_two_names_for_one_memory_do_not_hide_a_file_of_another_conversation(
    resources: Resources, alice: Player
) -> None:
    """FAULTS.md S3: equal bytes are two objects, so one owner's deletion never costs the other."""
    first, second = alice.converse("one"), alice.converse("two")
    (mine,), (other,) = attach(resources, alice, first, b"same"), attach(resources, alice, second, b"same")
    delete(resources, alice.owner, first)
    assert [row[0] for row in rows(resources, "SELECT key FROM outbox")] == [mine]
    assert [row[0] for row in rows(resources, "SELECT id FROM artifacts")] == [other]


def test_a_late_writer_is_told_and_brings_nothing_back(resources: Resources, alice: Player) -> None:
    session_id = alice.converse("one")
    delete(resources, alice.owner, session_id)
    before = dump(resources)
    with pytest.raises(NotFound, match="may have been deleted"):
        alice.say(session_id, *messages("late"))
    with pytest.raises(NotFound, match="may have been deleted"):
        alice.start_run(session_id)
    assert dump(resources) == before


def test_an_id_that_was_deleted_is_never_opened_again(resources: Resources, cast: Cast) -> None:
    session_id = cast.alice.converse("one")
    delete(resources, cast.alice.owner, session_id)
    before = dump(resources)
    for player in (cast.alice, cast.mallory):
        with pytest.raises(InvalidState) as refusal, Session(resources.engine) as db, db.begin():
            append.open_conversation(db, player.owner, session_id=session_id)
        assert refusal.value.details == {"reason": "session_deleted"}
    assert dump(resources) == before

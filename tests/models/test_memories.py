"""Memories of an account's home: identity, acts, first source and the records of deletion (PRODUCT.md 4.1)."""

from __future__ import annotations

from datetime import timedelta
from hashlib import sha256

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from models.accounts import Principal
from models.append import Draft
from models.base import database_time
from models.memories import (
    DeletionRecord,
    Memory,
    Workspace,
    forget,
    form,
    formed_in,
    held_ids,
    key_of,
    lock_workspaces,
)
from models.redaction import MASK
from models.rules import TICK
from tasks.resources import Resources
from tests.cast import Cast, Player
from tests.models.graph import count, rows, traces

SECRET = "AKIA" + "QWERTYUIOPASDFGH"


def test_a_memory_is_keyed_by_its_masked_text_and_says_where_it_is_from(alice: Player, db: Session) -> None:
    session_id = alice.converse()
    run_id = alice.start_run(session_id)
    alice.say(session_id, Draft("memory_formed", {"text": "likes tea", "workspace": "work"}), run_id=run_id)
    memory = db.scalars(select(Memory)).one()
    assert memory.key == sha256(b"likes tea").digest() == key_of("likes tea")
    assert (memory.principal_id, memory.workspace, memory.dataset) == (alice.id, "work", "memories")
    assert (memory.text, memory.source, memory.session_id, memory.run_id) == (
        "likes tea",
        "conversation",
        session_id,
        run_id,
    )
    assert memory.made_at == memory.recorded_at
    assert memory.recorded_device == db.get_one(Principal, alice.id).device_id
    assert len({memory.id, memory.logical_id}) == 2


def test_no_secret_reaches_a_memory_an_event_or_a_key(
    resources: Resources, alice: Player, db: Session
) -> None:
    session_id = alice.converse()
    alice.say(
        session_id,
        Draft("memory_formed", {"text": f"the key is {SECRET}"}),
        Draft("memory_rejected", {"text": f"no: {SECRET}", "reason": "secret"}),
    )
    alice.say(
        session_id,
        Draft("consolidated", {"text": f"so {SECRET}", "memory_ids": [db.scalars(select(Memory.id)).one()]}),
    )
    assert traces(resources, SECRET) == set()
    assert {row[0] for row in rows(resources, "SELECT key FROM memories")} == {
        key_of(f"the key is {MASK}"),
        key_of(f"so {MASK}"),
    }


def test_the_same_text_again_raises_the_time_and_keeps_everything_else(
    resources: Resources, alice: Player, db: Session
) -> None:
    first, second = alice.converse(), alice.converse()
    alice.say(first, Draft("memory_formed", {"text": "tea"}))
    before = rows(resources, "SELECT * FROM memories")[0]
    started = database_time(db)
    alice.say(second, Draft("memory_formed", {"text": "tea"}))
    after = rows(resources, "SELECT * FROM memories")
    names = [column.name for column in Memory.__table__.columns]
    changed = {name for name, old, new in zip(names, before, after[0], strict=True) if old != new}
    assert len(after) == 1
    assert changed == {"recorded_at"}
    assert after[0][names.index("recorded_at")] >= started


def test_a_held_copy_of_the_future_is_never_taken_back_in_time(alice: Player, db: Session) -> None:
    alice.say(alice.converse(), Draft("memory_formed", {"text": "tea"}))
    ahead = database_time(db) + timedelta(hours=1)
    db.execute(update(Memory).values(recorded_at=ahead))
    db.commit()
    alice.say(alice.converse(), Draft("memory_formed", {"text": "tea"}))
    assert db.scalars(select(Memory.recorded_at)).one() == ahead


def test_one_text_in_two_workspaces_and_of_two_people_is_its_own_memory_each(
    resources: Resources, cast: Cast
) -> None:
    for player, workspace in ((cast.alice, "default"), (cast.alice, "work"), (cast.bob, "default")):
        player.say(player.converse(), Draft("memory_formed", {"text": "tea", "workspace": workspace}))
    assert count(resources, "memories") == count(resources, "workspaces") == 3
    assert len({row[0] for row in rows(resources, "SELECT logical_id FROM memories")}) == 3


def test_held_are_those_of_the_asker_alone(cast: Cast, db: Session) -> None:
    for player in (cast.alice, cast.mallory):
        player.say(player.converse(), Draft("memory_formed", {"text": "tea"}))
    ids = {memory.principal_id: memory.id for memory in db.scalars(select(Memory))}
    wanted = list(ids.values())
    assert held_ids(db, cast.alice.owner, wanted) == {ids[cast.alice.id]}
    assert held_ids(db, cast.bob.owner, wanted) == set()
    assert held_ids(db, cast.alice.owner, []) == set()


def test_formed_in_selects_a_conversations_own_memories_and_nobody_elses(cast: Cast, db: Session) -> None:
    session_id, other = cast.alice.converse(), cast.alice.converse()
    cast.alice.say(session_id, Draft("memory_formed", {"text": "a"}))
    cast.alice.say(other, Draft("memory_formed", {"text": "b"}))
    found = db.scalars(
        select(Memory.text).where(Memory.id.in_(formed_in(cast.alice.owner, session_id)))
    ).all()
    assert found == ["a"]
    assert db.scalars(formed_in(cast.bob.owner, session_id)).all() == []


def test_forgetting_records_before_it_removes_and_counts_what_went(resources: Resources, cast: Cast) -> None:
    session_id = cast.alice.converse()
    cast.alice.say(session_id, *(Draft("memory_formed", {"text": f"{n}"}) for n in range(3)))
    cast.bob.say(cast.bob.converse(), Draft("memory_formed", {"text": "0"}))
    with Session(resources.engine) as db, db.begin():
        lock_workspaces(db, cast.alice.owner, ["default"])
        now = database_time(db)
        assert forget(db, formed_in(cast.alice.owner, session_id), now) == 3
        assert forget(db, formed_in(cast.alice.owner, session_id), now) == 0
        records = db.scalars(select(DeletionRecord)).all()
        assert {(one.principal_id, one.workspace, one.dataset) for one in records} == {
            (cast.alice.id, "default", "memories")
        }
        assert {one.deleted_at for one in records} == {one.raised_at for one in records} == {now}
    assert rows(resources, "SELECT principal_id, text FROM memories") == [(cast.bob.id, "0")]


def test_a_text_like_a_parameter_or_a_format_is_only_a_text(resources: Resources, alice: Player) -> None:
    """The statement that forgets is put together from two; no text of a user is ever part of it."""
    session_id = alice.converse()
    texts = ("100 % :seeds :forget_now", "'; DROP TABLE memories; --", "%(x)s {y} \\", "ключ 🗝")
    alice.say(session_id, *(Draft("memory_formed", {"text": one, "workspace": one}) for one in texts))
    with Session(resources.engine) as db, db.begin():
        assert forget(db, formed_in(alice.owner, session_id), database_time(db)) == len(texts)
        assert set(db.scalars(select(DeletionRecord.workspace))) == set(texts)


def test_an_act_after_a_deletion_of_the_future_is_stamped_past_it(alice: Player, db: Session) -> None:
    lock_workspaces(db, alice.owner, ["w"])
    now = database_time(db)
    record = DeletionRecord(
        principal_id=alice.id,
        workspace="w",
        dataset="memories",
        key=key_of("tea"),
        deleted_at=now + timedelta(hours=1),
        raised_at=now,
    )
    db.add(record)
    db.flush()
    formed = form(db, alice.owner, "tea", "w", source="text", now=now)
    assert formed.made
    assert db.get_one(Memory, formed.memory_id).recorded_at == record.deleted_at + TICK
    assert not form(db, alice.owner, "tea", "w", source="text", now=now).made


def test_workspaces_are_made_once_each(resources: Resources, cast: Cast) -> None:
    for player in (cast.alice, cast.alice, cast.bob):
        with Session(resources.engine) as db, db.begin():
            lock_workspaces(db, player.owner, ["b", "a", "b"])
    with Session(resources.engine) as db:
        found = {(one.principal_id, one.name) for one in db.scalars(select(Workspace))}
    assert found == {(player.id, name) for player in (cast.alice, cast.bob) for name in "ab"}

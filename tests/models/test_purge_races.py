"""Delete Everywhere against everyone who writes at the same moment (FAULTS.md S29, S47, S69)."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from models.accounts import Owner
from models.append import Draft, append, lock_conversation, open_conversation
from models.base import database_time
from models.errors import Invalid, InvalidState, NotFound
from models.memories import DeletionRecord, Memory
from models.purge import PURGED, Deleted, delete_conversation
from models.runs import start
from tasks.resources import Resources
from tests.cast import Cast, Player
from tests.models.graph import count, held_texts, memory_id, rows, traces
from tests.models.racing import all_well, at_once, blocked, wait_for

ROUNDS = 100
Act = Callable[[Session, Owner, str], Any]


def delete(resources: Resources, owner: Owner, session_id: str) -> Deleted:
    with Session(resources.engine) as db, db.begin():
        return delete_conversation(db, owner, session_id)


def say(db: Session, owner: Owner, session_id: str) -> Any:
    return append(db, owner, session_id, [Draft("user_message", {"content": "late"})])


def remember(db: Session, owner: Owner, session_id: str) -> Any:
    payload = {"text": f"fact {random.random()}", "workspace": random.choice("abc")}
    return append(db, owner, session_id, [Draft("memory_formed", payload)])


def run(db: Session, owner: Owner, session_id: str) -> Any:
    return start(db, lock_conversation(db, owner, session_id), database_time(db))


def reopen(db: Session, owner: Owner, session_id: str) -> Any:
    """As an import does that looked before the conversation was deleted."""
    return open_conversation(db, owner, session_id=session_id)


# What may stop each of them; anything else is a fault.
MAY_MEET: dict[Act, tuple[type[Exception], ...]] = {
    say: (NotFound,),
    remember: (NotFound,),
    run: (NotFound,),
    reopen: (InvalidState, IntegrityError),
}


@pytest.mark.parametrize("act", MAY_MEET, ids=lambda act: act.__name__)
def test_who_writes_while_a_conversation_is_deleted_brings_nothing_back(
    resources: Resources, alice: Player, act: Act
) -> None:
    ids = [alice.converse("round") for _ in range(ROUNDS)]
    meeting = threading.Barrier(2)
    outcomes: dict[str, list[Any]] = {"write": [], "delete": []}

    def write(session_id: str) -> Any:
        with Session(resources.engine) as db, db.begin():
            act(db, alice.owner, session_id)
        return "written"

    def each(name: str, verb: Callable[[str], Any]) -> Callable[[], None]:
        def loop() -> None:
            for session_id in ids:
                meeting.wait(30)
                try:
                    outcomes[name].append(verb(session_id))
                except (NotFound, InvalidState, IntegrityError) as fault:
                    outcomes[name].append(fault)

        return loop

    all_well(at_once([each("write", write), each("delete", lambda one: delete(resources, alice.owner, one))]))
    refused = {type(outcome) for outcome in outcomes["write"] if outcome != "written"}
    assert refused <= set(MAY_MEET[act])
    kept = {
        one for one, outcome in zip(ids, outcomes["delete"], strict=True) if isinstance(outcome, InvalidState)
    }
    assert not kept or act is run
    assert all(isinstance(one, Deleted | InvalidState) for one in outcomes["delete"])
    assert {row[0] for row in rows(resources, "SELECT id FROM sessions")} == kept
    assert {row[0] for row in rows(resources, "SELECT session_id FROM tombstones")} == set(ids) - kept
    for table in (*(table.__tablename__ for table in PURGED), "memories", "artifacts"):
        left = {row[0] for row in rows(resources, f"SELECT session_id FROM {table}")}
        assert left <= kept, table


def test_of_two_deletions_at_once_both_succeed_and_one_did_it(resources: Resources, alice: Player) -> None:
    for _ in range(30):
        session_id = alice.converse("twice")
        outcomes = at_once([lambda one=session_id: delete(resources, alice.owner, one)] * 3)  # type: ignore[misc]
        all_well(outcomes)
        assert sorted(outcome.again for outcome in outcomes) == [False, True, True]
        assert len({outcome.deleted_at for outcome in outcomes}) == 1


def test_many_that_delete_and_append_over_the_same_conversations_never_deadlock(
    resources: Resources, cast: Cast
) -> None:
    """FAULTS.md S69: no error but that it is gone, or that a run is active."""
    players = (cast.alice, cast.bob)
    ids = {player.id: [player.converse(f"{n}") for n in range(12)] for player in players}

    def work(seed: int) -> Callable[[], None]:
        chance = random.Random(seed)

        def loop() -> None:
            for _ in range(30):
                player = chance.choice(players)
                act = chance.choice((say, remember, run, consolidate, None))
                try:
                    with Session(resources.engine) as db, db.begin():
                        session_id = chance.choice(ids[player.id])
                        (act or delete_conversation)(db, player.owner, session_id)
                except (NotFound, InvalidState):
                    continue

        return loop

    all_well(at_once([work(seed) for seed in range(8)]))
    gone = {row[0] for row in rows(resources, "SELECT session_id FROM tombstones")}
    left = {row[0] for row in rows(resources, "SELECT id FROM sessions")}
    assert gone
    assert gone.isdisjoint(left)
    assert len(gone | left) == 24


def consolidate(db: Session, owner: Owner, session_id: str) -> Any:
    """Draws a memory from the newest one of the conversation."""
    newest = select(Memory.id).where(Memory.session_id == session_id).order_by(Memory.id.desc()).limit(1)
    payload = {
        "memory_ids": db.scalars(newest).all(),
        "text": f"of {random.random()}",
        "workspace": random.choice("de"),
    }
    if not payload["memory_ids"]:
        return remember(db, owner, session_id)
    try:
        return append(db, owner, session_id, [Draft("consolidated", payload)])
    except Invalid as refusal:  # it went since we looked
        raise NotFound(refusal.detail) from None


def test_a_memory_formed_while_its_key_is_being_deleted_is_made_again_past_the_deletion(
    resources: Resources, alice: Player, db: Session
) -> None:
    first, second = alice.converse("one"), alice.converse("two")
    alice.say(first, Draft("memory_formed", {"text": "tea"}))
    before = memory_id(resources, alice, "tea")
    delete_conversation(db, alice.owner, first)  # not committed yet
    writer = threading.Thread(target=alice.say, args=(second, Draft("memory_formed", {"text": "tea"})))
    writer.start()
    wait_for(lambda: blocked(resources))
    db.commit()
    writer.join(30)
    copy, record = db.scalars(select(Memory)).one(), db.scalars(select(DeletionRecord)).one()
    assert (copy.id != before, copy.session_id) == (True, second)
    assert copy.recorded_at > record.deleted_at


def test_nothing_is_consolidated_from_a_memory_that_is_being_deleted(
    resources: Resources, alice: Player, db: Session
) -> None:
    first, second = alice.converse("one"), alice.converse("two")
    alice.say(first, Draft("memory_formed", {"text": "tea", "workspace": "z"}))
    payload = {"text": "drawn from it", "memory_ids": [memory_id(resources, alice, "tea")]}
    delete_conversation(db, alice.owner, first)
    outcome: list[Exception] = []

    def draw() -> None:
        try:
            alice.say(second, Draft("consolidated", payload))
        except Invalid as refusal:
            outcome.append(refusal)

    writer = threading.Thread(target=draw)
    writer.start()
    wait_for(lambda: blocked(resources))
    db.commit()
    writer.join(30)
    assert len(outcome) == 1
    assert held_texts(resources, alice) == set()
    assert count(resources, "consolidations") == 0


def test_what_was_consolidated_just_before_a_deletion_goes_with_it(
    resources: Resources, alice: Player, db: Session
) -> None:
    first, second = alice.converse("one"), alice.converse("two")
    alice.say(first, Draft("memory_formed", {"text": "tea", "workspace": "z"}))
    payload = {
        "text": "drawn from it",
        "memory_ids": [memory_id(resources, alice, "tea")],
        "workspace": "new",
    }
    append(db, alice.owner, second, [Draft("consolidated", payload)])  # not committed yet
    remover = threading.Thread(target=delete, args=(resources, alice.owner, first))
    remover.start()
    wait_for(lambda: blocked(resources))
    db.commit()
    remover.join(30)
    assert held_texts(resources, alice) == set()
    assert count(resources, "consolidations") == count(resources, "consolidation_inputs") == 0
    assert count(resources, "deletion_records") == 2


def test_no_other_principal_waits_for_a_deletion(resources: Resources, cast: Cast, db: Session) -> None:
    session_id, other = cast.alice.converse("one"), cast.bob.converse("two")
    cast.alice.say(session_id, Draft("memory_formed", {"text": "tea"}))
    delete_conversation(db, cast.alice.owner, session_id)  # held open
    cast.bob.say(other, Draft("memory_formed", {"text": "tea"}))
    cast.bob.converse("new")
    delete(resources, cast.bob.owner, other)
    db.rollback()
    assert traces(resources, other) == {"tombstones"}

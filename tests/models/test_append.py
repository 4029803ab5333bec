"""The one verb that appends: dense numbers, whole batches, activity, and the run that writes (PRODUCT.md 3.1, 3.2)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from models import listing
from models.append import BATCH_MAX, PAYLOAD_MAX, Draft, append, lock_conversation, open_conversation
from models.base import database_time
from models.errors import Invalid, InvalidState, NotFound, TooLarge
from models.history import Conversation, Event, Run
from models.ids import new_id
from models.runs import end
from models.storable import DEEP
from tasks.resources import Resources
from tests.cast import Cast, Player
from tests.models.graph import count, dump, rows
from tests.models.racing import at_once, blocked, wait_for


def said(value: Any, **more: Any) -> Draft:
    return Draft("user_message", {"content": value}, **more)


def title(resources: Resources, player: Player, session_id: str) -> str:
    with Session(resources.engine) as db:
        return listing.find(db, player.owner, session_id).title


def moved(resources: Resources, player: Player, session_id: str) -> datetime:
    with Session(resources.engine) as db:
        return listing.find(db, player.owner, session_id).updated_at


def nested(depth: int) -> Any:
    value: Any = "bottom"
    for _ in range(depth):
        value = [value]
    return value


# -- numbers, order, wholeness -------------------------------------------------------------------------------


def test_events_are_stored_as_they_were_sent_and_numbered_from_one(
    resources: Resources, alice: Player
) -> None:
    session_id = alice.converse()
    sent = {"content": "Hi", "more": {"kept": [1, 2.5, None, True, "é", "\\u0000", 2**53]}}
    with Session(resources.engine) as db, db.begin():
        parent = append(db, alice.owner, session_id, [Draft("user_message", sent)])[0]
        written = append(db, alice.owner, session_id, [Draft("anything", {}, parent_id=parent.id), said("x")])
    stored = rows(resources, "SELECT id, seq, type, parent_id, run_id, payload FROM events ORDER BY seq")
    assert stored[0] == (parent.id, 1, "user_message", None, None, sent)
    assert [row[:4] for row in stored[1:]] == [
        (written[0].id, 2, "anything", parent.id),
        (written[1].id, 3, "user_message", None),
    ]


def test_eight_writers_at_once_leave_no_gap_and_no_double(resources: Resources, alice: Player) -> None:
    session_id = alice.converse("start")
    faults: list[BaseException] = []

    def write() -> None:
        try:
            for _ in range(15):
                alice.say(session_id, said("a"), said("b"))
        except BaseException as fault:  # noqa: BLE001  a thread's own fault is for the assertion below
            faults.append(fault)

    writers = [threading.Thread(target=write) for _ in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert faults == []
    numbers = [row[0] for row in rows(resources, "SELECT seq FROM events ORDER BY seq")]
    assert numbers == list(range(1, 2 + 8 * 15 * 2))
    pairs = [
        row[0] for row in rows(resources, "SELECT payload->>'content' FROM events WHERE seq > 1 ORDER BY seq")
    ]
    assert pairs == ["a", "b"] * 120
    assert rows(resources, "SELECT last_seq FROM sessions") == [(241,)]


def test_every_append_raises_the_version_of_the_owners_list(resources: Resources, cast: Cast) -> None:
    session_id = cast.alice.converse()
    with Session(resources.engine) as db:
        before = listing.version(db, cast.alice.owner)
        cast.alice.say(session_id, said("a"), said("b"))
        db.rollback()
        assert listing.version(db, cast.alice.owner) == before + 1
        assert listing.version(db, cast.bob.owner) == 0


GOOD = said("good")
BAD = [
    ("events[1].type", Draft("", {})),
    ("events[1].type", Draft("x" * 201, {})),
    ("events[1].type", Draft("a\nb", {})),
    ("events[1].type", Draft("nul\0", {})),
    ("events[1].type", Draft("\ud800", {})),
    ("events[1].parent_id", Draft("note", {}, parent_id="nobody")),
    ("events[1].payload", Draft("note", [])),  # type: ignore[arg-type]
    ("events[1].payload", Draft("note", {"n": 2**64})),
    ("events[1].payload", Draft("note", {"n": -(2**63) - 1})),
    ("events[1].payload", Draft("note", {"t": "\ud83d"})),
    ("events[1].payload", Draft("note", {"\udc00": 1})),
    ("events[1].payload", Draft("note", {"deep": nested(100_000)})),
    ("events[1].payload.a.b[1]", Draft("note", {"a": {"b": ["ok", "nul\0"]}})),
    ("events[1].payload.a", Draft("note", {"a": {"nul\0": 1}})),
    ("events[1].payload.text", Draft("memory_formed", {"text": "nul\0"})),
    ("events[1].payload.content", Draft("user_message", {})),
    ("events[1]", Draft("run_ended", {"status": "succeeded"})),
    ("events[1].payload.memory_ids", Draft("consolidated", {"text": "x", "memory_ids": [new_id()]})),
    (
        "events[1].payload.artifact_id",
        Draft("knowledge_added", {"artifact_id": new_id(), "title": "t", "chunks": []}),
    ),
]


@pytest.mark.parametrize(("field", "draft"), BAD, ids=[f"{n}-{field}" for n, (field, _) in enumerate(BAD)])
def test_one_bad_event_refuses_the_whole_batch_and_is_named(
    resources: Resources, alice: Player, field: str, draft: Draft
) -> None:
    session_id = alice.converse("before")
    unchanged = dump(resources)
    batch = [Draft("memory_formed", {"text": "kept?"}), draft, GOOD]
    with pytest.raises(Invalid) as refusal:
        alice.say(session_id, *batch)
    assert refusal.value.details["field"] == field
    assert dump(resources) == unchanged


def test_numbers_and_depths_that_can_be_stored_are(resources: Resources, alice: Player) -> None:
    payload = {"n": [2**63 - 1, -(2**63), 2**64 - 1, 1e308, 0.1], "deep": nested(DEEP - 1), "": "empty name"}
    session_id = alice.converse()
    alice.say(session_id, Draft("note", payload))
    assert rows(resources, "SELECT payload FROM events")[0][0] == payload


def test_a_payload_or_a_batch_over_its_bound_is_refused_before_anything(
    resources: Resources, alice: Player
) -> None:
    session_id = alice.converse("before")
    unchanged = dump(resources)
    with pytest.raises(TooLarge) as refusal:
        alice.say(session_id, GOOD, said("x" * PAYLOAD_MAX))
    assert refusal.value.details == {"field": "events[1].payload"}
    for batch in ([], [GOOD] * (BATCH_MAX + 1)):
        with pytest.raises(Invalid) as invalid:
            alice.say(session_id, *batch)
        assert invalid.value.details == {"field": "events"}
    assert dump(resources) == unchanged
    alice.say(session_id, *([GOOD] * BATCH_MAX))
    assert count(resources, "events") == BATCH_MAX + 1


@pytest.mark.parametrize("whose", ["bob", "mallory", "missing", "malformed"])
def test_nobody_else_can_append_and_nothing_tells_them_why(
    resources: Resources, cast: Cast, whose: str
) -> None:
    session_id = cast.alice.converse("mine")
    unchanged = dump(resources)
    player = {"bob": cast.bob, "mallory": cast.mallory}.get(whose, cast.alice)
    target = {"missing": new_id(), "malformed": "%"}.get(whose, session_id)
    with pytest.raises(NotFound) as refusal:
        player.say(target, GOOD)
    assert refusal.value.detail == "There is no such conversation. It may have been deleted."
    assert refusal.value.details == {}
    assert dump(resources) == unchanged


# -- activity ------------------------------------------------------------------------------------------------


def test_activity_moves_with_each_event_and_never_backwards(resources: Resources, alice: Player) -> None:
    session_id = alice.converse("one")
    first = moved(resources, alice, session_id)
    alice.say(session_id, Draft("note", {}))
    second = moved(resources, alice, session_id)
    assert second > first
    ahead = second + timedelta(hours=1)
    with resources.engine.begin() as connection:
        connection.execute(update(Conversation).values(updated_at=ahead))
    alice.say(session_id, Draft("note", {}))
    assert moved(resources, alice, session_id) == ahead


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (datetime(2020, 5, 1, tzinfo=UTC), datetime(2020, 5, 1, tzinfo=UTC)),
        (datetime(1900, 1, 1, tzinfo=UTC), datetime(1970, 1, 1, tzinfo=UTC)),
        (datetime(2999, 1, 1, tzinfo=UTC), None),
    ],
)
def test_an_import_keeps_the_exports_times_between_1970_and_now(
    resources: Resources, alice: Player, given: datetime, kept: datetime | None
) -> None:
    with Session(resources.engine) as db, db.begin():
        start = database_time(db)
        made = open_conversation(db, alice.owner, created_at=given, updated_at=given, origin="chatgpt")
        append(db, alice.owner, made.id, [said("old", created_at=given)], at=given)
        end = database_time(db)
        times = {made.created_at, made.updated_at, *db.scalars(select(Event.created_at))}
    if kept is not None:
        assert times == {kept}
    else:
        assert all(start <= at <= end for at in times)


def test_opening_a_conversation_twice_with_one_id_is_refused_by_the_database(
    resources: Resources, alice: Player
) -> None:
    from sqlalchemy.exc import IntegrityError

    session_id = alice.converse("one")
    unchanged = dump(resources)
    with pytest.raises(IntegrityError), Session(resources.engine) as db, db.begin():
        open_conversation(db, alice.owner, session_id=session_id)
    assert dump(resources) == unchanged


# -- runs ----------------------------------------------------------------------------------------------------


def test_the_active_runs_worker_writes_and_renews_its_lease(
    resources: Resources, alice: Player, db: Session
) -> None:
    session_id = alice.converse("go")
    run_id = alice.start_run(session_id, lease_seconds=30)
    with resources.engine.begin() as connection:
        soon = Run.created_at + timedelta(seconds=3)
        connection.execute(update(Run).values(lease_expires_at=soon))
    alice.say(session_id, Draft("assistant_message", {"content": "hi"}), run_id=run_id)
    run = db.get_one(Run, run_id)
    left = (run.lease_expires_at - database_time(db)).total_seconds()
    assert 25 < left <= 30
    assert rows(resources, "SELECT run_id FROM events WHERE seq = 2") == [(run_id,)]


def test_run_ended_ends_the_run_and_makes_it_the_last_one(
    resources: Resources, alice: Player, db: Session
) -> None:
    session_id = alice.converse("go")
    run_id = alice.start_run(session_id)
    entry = listing.find(db, alice.owner, session_id)
    assert (entry.active_run_id, entry.last_run_id) == (run_id, None)
    db.rollback()
    alice.say(session_id, Draft("note", {}), Draft("run_ended", {"status": "failed"}), run_id=run_id)
    entry = listing.find(db, alice.owner, session_id)
    assert (entry.active_run_id, entry.last_run_id) == (None, run_id)
    run = db.get_one(Run, run_id)
    assert run.status == "failed"
    assert run.ended_at is not None
    assert entry.updated_at == run.ended_at


@pytest.mark.parametrize(("why", "status"), [("ended", "cancelled"), ("overdue", "expired")])
def test_a_run_that_is_over_writes_nothing_and_is_told_how_it_ended(
    resources: Resources, alice: Player, why: str, status: str
) -> None:
    session_id = alice.converse("go")
    run_id = alice.start_run(session_id)
    if why == "ended":
        alice.say(session_id, Draft("run_ended", {"status": "cancelled"}), run_id=run_id)
    else:
        with resources.engine.begin() as connection:
            connection.execute(update(Run).values(lease_expires_at=Run.created_at))
    unchanged = dump(resources)
    with pytest.raises(InvalidState) as refusal:
        alice.say(session_id, Draft("note", {}), run_id=run_id)
    assert refusal.value.details == {"reason": "run_ended", "run_id": run_id, "status": status}
    assert dump(resources) == unchanged


@pytest.mark.parametrize("why", ["another", "foreign", "malformed"])
def test_a_run_of_another_conversation_is_not_there(resources: Resources, cast: Cast, why: str) -> None:
    alice = cast.alice
    session_id = alice.converse("go")
    alice.start_run(session_id)
    run_id = {
        "another": lambda: alice.start_run(alice.converse("other")),
        "foreign": lambda: cast.mallory.start_run(cast.mallory.converse("theirs")),
        "malformed": lambda: "no id",
    }[why]()
    unchanged = dump(resources)
    with pytest.raises(NotFound):
        alice.say(session_id, Draft("note", {}), run_id=run_id)
    assert dump(resources) == unchanged


def test_run_ended_is_the_last_event_of_its_batch_and_a_runs_own(resources: Resources, alice: Player) -> None:
    session_id = alice.converse("go")
    run_id = alice.start_run(session_id)
    ended = Draft("run_ended", {"status": "succeeded"})
    for batch, run in (([ended, Draft("note", {})], run_id), ([ended, ended], run_id), ([ended], None)):
        with pytest.raises(Invalid) as refusal:
            alice.say(session_id, *batch, run_id=run)
        assert refusal.value.details == {"field": "events[0]"}
    assert count(resources, "events") == 1


def test_a_worker_that_waited_while_its_run_was_ended_writes_nothing(
    resources: Resources, alice: Player, db: Session
) -> None:
    """The lock must show the run as it is after the wait, not as it was before."""
    session_id = alice.converse("go")
    run_id = alice.start_run(session_id)
    conversation = lock_conversation(db, alice.owner, session_id)
    end(db, conversation, run_id, "expired", database_time(db))  # not committed yet
    (outcome,) = waiting(resources, db, lambda: alice.say(session_id, Draft("note", {}), run_id=run_id))
    assert isinstance(outcome, InvalidState)
    assert outcome.details["status"] == "expired"
    assert count(resources, "events") == 1
    ended = rows(resources, "SELECT status, lease_expires_at > ended_at FROM runs")
    assert ended == [("expired", True)]


def test_appends_that_wait_for_each_other_go_on_from_the_last_number(
    resources: Resources, alice: Player, db: Session
) -> None:
    session_id = alice.converse("go")
    run_id = alice.start_run(session_id)
    append(db, alice.owner, session_id, [Draft("note", {})] * 3, run_id=run_id)  # not committed yet
    (written,) = waiting(resources, db, lambda: alice.say(session_id, Draft("note", {}), run_id=run_id))
    stored = rows(resources, "SELECT seq, id, created_at FROM events ORDER BY seq")
    assert [row[0] for row in stored] == [1, 2, 3, 4, 5]
    assert written == [stored[-1][1]]
    assert [row[2] for row in stored] == sorted(row[2] for row in stored)


def waiting(resources: Resources, db: Session, act: Callable[[], Any]) -> list[Any]:
    """What `act` returned or raised, which waits for a lock of `db` and goes on when `db` commits."""
    outcomes: list[Any] = []
    thread = threading.Thread(target=lambda: outcomes.extend(at_once([act])))
    thread.start()
    wait_for(lambda: blocked(resources))
    db.commit()
    thread.join(30)
    return outcomes

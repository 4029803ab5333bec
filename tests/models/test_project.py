"""Which rows each type of event becomes (PRODUCT.md 3.2, the table)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from hashlib import sha256

import pytest
from sqlalchemy import text
from sqlalchemy.orm import Session

from models import artifacts
from models.append import Draft
from models.errors import Invalid, InvalidState
from models.ids import new_id
from tasks.resources import Resources
from tests.cast import Cast, Player
from tests.models.graph import attach, count, dump, memory_id, rows, upload
from tests.models.racing import all_well, at_once, wait_for


def call(call_id: str, arguments: object = None, name: str = "search") -> Draft:
    return Draft("tool_call", {"call_id": call_id, "name": name, "arguments": arguments})


def result(call_id: str, output: object, status: str = "ok", **more: object) -> Draft:
    return Draft("tool_result", {"call_id": call_id, "output": output, "status": status, **more})


TOOLS = "SELECT call_id, name, arguments, output, status, run_id FROM tool_invocations ORDER BY call_id"


def test_a_checkpoint_is_kept_each_and_a_projection_is_the_latest_of_its_name(
    resources: Resources, alice: Player
) -> None:
    session_id = alice.converse()
    run_id = alice.start_run(session_id)
    alice.say(
        session_id,
        Draft("checkpoint", {"state": {"n": 1}}),
        Draft("projected", {"name": "plan", "state": "a"}),
        Draft("projected", {"name": "plan", "state": "b"}),
        Draft("checkpoint", {"state": None}),
        run_id=run_id,
    )
    assert rows(resources, "SELECT seq, run_id, state FROM checkpoints ORDER BY seq") == [
        (1, run_id, {"n": 1}),
        (4, run_id, None),
    ]
    assert rows(resources, "SELECT name, seq, state, run_id FROM projections") == [("plan", 3, "b", run_id)]
    alice.say(session_id, Draft("projected", {"name": "plan", "state": ["c"]}))
    assert rows(resources, "SELECT name, seq, state, run_id FROM projections") == [("plan", 5, ["c"], None)]


def test_a_call_and_its_result_are_one_invocation_in_one_batch_or_in_two(
    resources: Resources, alice: Player
) -> None:
    session_id = alice.converse()
    alice.say(session_id, call("a", {"q": 1}), result("a", ["found"]), call("b", {"q": 2}))
    assert rows(resources, TOOLS) == [
        ("a", "search", {"q": 1}, ["found"], "ok", None),
        ("b", "search", {"q": 2}, None, "called", None),
    ]
    alice.say(session_id, result("b", "late", "failed"))
    assert rows(resources, TOOLS)[1] == ("b", "search", {"q": 2}, "late", "failed", None)


def test_a_result_before_its_call_and_values_that_are_null_are_kept(
    resources: Resources, alice: Player
) -> None:
    session_id = alice.converse()
    alice.say(session_id, result("a", None, name="early"))
    alice.say(session_id, call("a", None, "search"))
    assert rows(resources, TOOLS) == [("a", "search", None, None, "ok", None)]


def test_an_approval_is_its_event_waiting(resources: Resources, alice: Player) -> None:
    session_id = alice.converse()
    asked = {"summary": "Delete it?", "tool": "rm", "arguments": {"path": "/"}}
    (event_id,) = alice.say(session_id, Draft("approval_requested", asked))
    found = rows(
        resources,
        "SELECT id, principal_id, seq, summary, tool, arguments, decision, decided_at FROM approvals",
    )
    assert found == [(event_id, alice.id, 1, "Delete it?", "rm", {"path": "/"}, None, None)]


def test_a_recall_and_a_rejection_leave_their_traces(resources: Resources, alice: Player) -> None:
    session_id, some = alice.converse(), new_id()
    alice.say(
        session_id,
        Draft("recall", {"query": "tea?", "memory_ids": [some]}),
        Draft("memory_rejected", {"text": "gossip", "reason": "unkind"}),
    )
    assert rows(resources, "SELECT seq, query, memory_ids FROM recall_traces") == [(1, "tea?", [some])]
    assert rows(resources, "SELECT seq, text, reason FROM memory_rejections") == [(2, "gossip", "unkind")]


def test_an_artifacts_event_is_its_row_and_takes_its_reservation_back(
    resources: Resources, alice: Player
) -> None:
    session_id = alice.converse()
    (key,) = attach(resources, alice, session_id, b"bytes")
    found = rows(
        resources, "SELECT id, session_id, principal_id, name, content_type, size, sha256 FROM artifacts"
    )
    assert found == [
        (key, session_id, alice.id, "a.bin", "application/octet-stream", 5, sha256(b"bytes").digest())
    ]
    assert count(resources, "outbox") == 0
    assert b"".join(resources.store.open(key)) == b"bytes"


def test_a_reservation_that_was_given_up_cannot_become_an_artifact(
    resources: Resources, alice: Player
) -> None:
    session_id = alice.converse()
    uploaded = upload(resources, session_id, b"late")
    with resources.engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM outbox")
    with pytest.raises(InvalidState) as refusal, Session(resources.engine) as db:
        artifacts.claim(db, uploaded.key)
    assert refusal.value.details == {"reason": "upload_expired"}
    assert count(resources, "artifacts") == 0


def test_a_document_is_sourced_from_an_artifact_of_its_own_conversation(
    resources: Resources, cast: Cast
) -> None:
    session_id, other = cast.alice.converse(), cast.alice.converse()
    (key,) = attach(resources, cast.alice, session_id, b"text")
    theirs = attach(resources, cast.mallory, cast.mallory.converse(), b"x")
    alien = [attach(resources, cast.alice, other, b"x")[0], theirs[0]]
    document = {"title": "T", "chunks": ["one", "two"]}
    for artifact_id in (*alien, new_id()):
        with pytest.raises(Invalid) as refusal:
            cast.alice.say(session_id, Draft("knowledge_added", document | {"artifact_id": artifact_id}))
        assert refusal.value.details == {"field": "events[0].payload.artifact_id"}
    cast.alice.say(session_id, Draft("knowledge_added", document | {"artifact_id": key}))
    found = rows(resources, "SELECT principal_id, artifact_id, title, chunks FROM knowledge_documents")
    assert found == [(cast.alice.id, key, "T", ["one", "two"])]


def test_revisions_of_a_skill_are_numbered_within_its_name_and_owner(
    resources: Resources, cast: Cast
) -> None:
    def publish(player: Player, name: str) -> None:
        player.say(player.converse(), Draft("skill_published", {"name": name, "body": "b"}))

    for player, name in ((cast.alice, "a"), (cast.alice, "b"), (cast.alice, "a"), (cast.bob, "a")):
        publish(player, name)
    found = rows(resources, "SELECT principal_id, name, revision FROM skill_revisions ORDER BY id")
    assert found == [
        (cast.alice.id, "a", 1),
        (cast.alice.id, "b", 1),
        (cast.alice.id, "a", 2),
        (cast.bob.id, "a", 1),
    ]


def test_conversations_that_publish_one_skill_at_once_each_get_a_number(
    resources: Resources, alice: Player
) -> None:
    all_well(
        at_once(
            [lambda: alice.say(alice.converse(), Draft("skill_published", {"name": "s", "body": "b"}))] * 8
        )
    )
    assert [row[0] for row in rows(resources, "SELECT revision FROM skill_revisions ORDER BY 1")] == list(
        range(1, 9)
    )


def test_a_consolidation_keeps_each_input_once_and_says_whether_its_text_was_new(
    resources: Resources, alice: Player
) -> None:
    session_id = alice.converse()
    alice.say(
        session_id,
        Draft("memory_formed", {"text": "a"}),
        Draft("memory_formed", {"text": "b", "workspace": "w"}),
    )
    ids = [memory_id(resources, alice, name) for name in ("a", "b")]
    alice.say(
        session_id,
        Draft("consolidated", {"text": "both", "memory_ids": [*ids, ids[0]]}),
        Draft("consolidated", {"text": "a", "memory_ids": [ids[1]]}),
    )
    made = rows(resources, "SELECT seq, memory_id, made FROM consolidations ORDER BY seq")
    assert made == [(3, memory_id(resources, alice, "both"), True), (4, ids[0], False)]
    inputs = rows(resources, "SELECT seq, memory_id FROM consolidation_inputs ORDER BY seq, memory_id")
    assert inputs == [(3, ids[0]), (3, ids[1]), (4, ids[1])] or set(inputs) == {
        (3, ids[0]),
        (3, ids[1]),
        (4, ids[1]),
    }


def test_nobody_consolidates_from_a_memory_of_somebody_else(resources: Resources, cast: Cast) -> None:
    cast.mallory.say(cast.mallory.converse(), Draft("memory_formed", {"text": "secret"}))
    theirs = memory_id(resources, cast.mallory, "secret")
    session_id = cast.alice.converse()
    unchanged = dump(resources)
    answers = []
    for one in (theirs, new_id()):
        with pytest.raises(Invalid) as refusal:
            cast.alice.say(session_id, Draft("consolidated", {"text": "x", "memory_ids": [one]}))
        assert refusal.value.details == {"field": "events[0].payload.memory_ids"}
        answers.append(refusal.value.detail.replace(one, "ID"))
    assert answers[0] == answers[1]
    assert dump(resources) == unchanged


def test_a_consolidation_locks_the_workspaces_in_the_order_of_their_names(
    resources: Resources, alice: Player, db: Session
) -> None:
    """A purge takes all in that order: whoever holds a late one and waits for an early one would deadlock with it."""
    session_id = alice.converse()
    for name in ("early", "late"):
        alice.say(session_id, Draft("memory_formed", {"text": name, "workspace": name}))
    seed = memory_id(resources, alice, "early")
    lock = "SELECT name FROM workspaces WHERE name = :name FOR UPDATE NOWAIT"
    db.execute(text(lock), {"name": "early"})
    payload = {"text": "both", "memory_ids": [seed], "workspace": "late"}
    writer = threading.Thread(target=alice.say, args=(session_id, Draft("consolidated", payload)))
    writer.start()
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    wait_for(lambda: rows(resources, waiting)[0][0] == 1)
    db.execute(text(lock), {"name": "late"})
    db.rollback()
    writer.join(30)
    assert count(resources, "consolidations") == 1


def test_workspaces_made_by_several_at_once_are_made_once(resources: Resources, alice: Player) -> None:
    def form(session_id: str, names: Sequence[str]) -> Callable[[], object]:
        drafts = [Draft("memory_formed", {"text": "t", "workspace": name}) for name in names]
        return lambda: alice.say(session_id, *drafts)

    for number in range(10):
        names = [f"w{number}-{letter}" for letter in "abc"]
        all_well(at_once([form(alice.converse(), names), form(alice.converse(), names[::-1])]))
    assert count(resources, "workspaces") == count(resources, "memories") == 30


def test_skills_published_in_opposite_orders_wait_for_each_other_and_never_deadlock(
    resources: Resources, alice: Player
) -> None:
    names = [f"skill {number}" for number in range(30)]

    def publish(session_id: str, ordered: Sequence[str]) -> Callable[[], object]:
        drafts = [Draft("skill_published", {"name": name, "body": "how"}) for name in ordered]
        return lambda: alice.say(session_id, *drafts)

    acts = [publish(alice.converse(), names if number % 2 else names[::-1]) for number in range(8)]
    all_well(at_once(acts))
    per_skill = rows(
        resources, "SELECT name, array_agg(revision ORDER BY revision) FROM skill_revisions GROUP BY name"
    )
    assert dict(per_skill) == {name: list(range(1, 9)) for name in names}

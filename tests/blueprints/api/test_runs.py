"""Runs over HTTP: one at a time, written by its worker alone, ended by it, by its lease, or never."""

from __future__ import annotations

import time
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy.orm import Session

from models.append import Draft
from tasks.resources import Resources
from tests.cast import Player
from tests.models.graph import count, dump, rows
from tests.models.racing import at_once

GO = {"message": {"content": "go"}}
NOTE = {"events": [{"type": "note", "payload": {}}]}


def lapse(resources: Resources, run_id: str) -> None:
    with resources.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE runs SET lease_expires_at = now() WHERE id = %s", (run_id,))


def started(client: FlaskClient, session_id: str, headers: dict[str, str], **more: Any) -> Any:
    answer = client.post(f"/v1/sessions/{session_id}/runs", json={**GO, **more}, headers=headers)
    assert answer.status_code == 201, answer.text
    return answer.json


def test_a_run_starts_with_its_message_and_ends_with_its_own_word(client: FlaskClient, alice: Player) -> None:
    token, session_id = alice.token(), alice.converse()
    run = started(client, session_id, token, lease_s=5)
    assert (run["status"], run["cancel_requested"], run["ended_at"]) == ("running", False, None)
    session = client.get(f"/v1/sessions/{session_id}", headers=token).json
    assert session is not None
    assert (session["title"], session["active_run_id"], session["last_run_id"]) == ("go", run["id"], None)
    for status in ("cancelled",):
        ended = {"events": [{"type": "run_ended", "payload": {"status": status}}]}
        assert client.post(f"/v1/runs/{run['id']}/events", json=ended, headers=token).status_code == 201
    shown = client.get(f"/v1/runs/{run['id']}", headers=token).json
    assert shown is not None
    assert shown["status"] == "cancelled"
    session = client.get(f"/v1/sessions/{session_id}", headers=token).json
    assert session is not None
    assert (session["active_run_id"], session["last_run_id"]) == (None, run["id"])


def test_of_ten_who_start_at_once_one_does(app: Flask, resources: Resources, alice: Player) -> None:
    token, session_id = alice.token(), alice.converse()

    def start() -> Any:
        return app.test_client().post(f"/v1/sessions/{session_id}/runs", json=GO, headers=token)

    answers = at_once([start] * 10)
    assert sorted(answer.status_code for answer in answers) == [201] + [409] * 9
    (run_id,) = (answer.json["id"] for answer in answers if answer.status_code == 201)
    for answer in answers:
        if answer.status_code == 409:
            assert answer.json["details"] == {"reason": "active_run_exists", "active_run_id": run_id}
    assert (count(resources, "runs"), count(resources, "events")) == (1, 1)


def test_a_busy_conversation_is_refused_its_deletion_at_once_and_nothing_changes(
    client: FlaskClient, resources: Resources, alice: Player
) -> None:
    token, session_id = alice.token(), alice.converse()
    run = started(client, session_id, token)
    before = dump(resources)
    times = []
    for _ in range(5):
        began = time.perf_counter()
        answer = client.delete(f"/v1/sessions/{session_id}", headers=token)
        times.append(time.perf_counter() - began)
        assert answer.status_code == 409
        assert answer.json is not None
        assert answer.json["details"] == {"reason": "active_run_exists", "active_run_id": run["id"]}
    assert min(times) < 0.05
    assert dump(resources) == before


def test_an_append_renews_the_lease(client: FlaskClient, resources: Resources, alice: Player) -> None:
    token, session_id = alice.token(), alice.converse()
    run = started(client, session_id, token, lease_s=300)
    with resources.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE runs SET lease_expires_at = now() + interval '2 s'")
    assert client.post(f"/v1/runs/{run['id']}/events", json=NOTE, headers=token).status_code == 201
    ((left,),) = rows(resources, "SELECT extract(epoch FROM lease_expires_at - now()) FROM runs")
    assert 290 < left <= 300


@pytest.mark.parametrize(
    ("why", "status", "told"),
    [
        ("ended", 409, {"reason": "run_ended", "status": "succeeded"}),
        ("lapsed", 409, {"reason": "run_ended", "status": "expired"}),
        ("deleted", 404, {}),
        ("taken away", 404, {}),
    ],
)
@pytest.mark.parametrize("what", ["events", "cancel", "artifacts"])
def test_a_writer_that_comes_too_late_is_told_why_and_changes_nothing(
    client: FlaskClient,
    resources: Resources,
    alice: Player,
    what: str,
    why: str,
    status: int,
    told: dict[str, str],
) -> None:
    token, session_id = alice.token(), alice.converse()
    run_id = started(client, session_id, token)["id"]
    if why == "ended":
        alice.say(session_id, Draft("run_ended", {"status": "succeeded"}), run_id=run_id)
    elif why == "lapsed":
        lapse(resources, run_id)
    elif why == "deleted":
        lapse(resources, run_id)
        assert client.delete(f"/v1/sessions/{session_id}", headers=token).status_code == 204
    else:
        with resources.engine.begin() as connection:
            connection.exec_driver_sql("DELETE FROM runs")
    before = dump(resources)
    if what == "artifacts":
        path = f"/v1/sessions/{session_id}/artifacts?run_id={run_id}"
        answer = client.post(path, data=b"late", headers=token)
    else:
        body = NOTE if what == "events" else None
        answer = (
            client.post(f"/v1/runs/{run_id}/{what}", json=body, headers=token)
            if body
            else client.post(f"/v1/runs/{run_id}/{what}", headers=token)
        )
    assert answer.status_code == status
    assert answer.json is not None
    assert answer.json["details"] == (told and {**told, "run_id": run_id})
    if status == 404:
        assert "may have been deleted" in answer.json["detail"]
    after = dump(resources)
    del before["outbox"], after["outbox"]  # the late bytes are owed, and go
    assert after == before
    # Nobody is locked out of deleting.
    assert client.delete(f"/v1/sessions/{session_id}", headers=token).status_code == 204


def test_two_workers_of_one_run_write_one_dense_order(
    app: Flask, resources: Resources, alice: Player
) -> None:
    token, session_id = alice.token(), alice.converse()
    run_id = started(app.test_client(), session_id, token)["id"]

    def work(name: str) -> None:
        client = app.test_client()
        for number in range(8):
            batch = {
                "events": [{"type": "note", "payload": {"by": name, "n": [number, at]}} for at in range(3)]
            }
            assert client.post(f"/v1/runs/{run_id}/events", json=batch, headers=token).status_code == 201

    at_once([lambda: work("a"), lambda: work("b")])
    seen = rows(resources, "SELECT seq, payload FROM events WHERE type = 'note' ORDER BY seq")
    assert [row[0] for row in seen] == list(range(2, 50))
    for name in ("a", "b"):
        assert [row[1]["n"] for row in seen if row[1]["by"] == name] == [
            [n, at] for n in range(8) for at in range(3)
        ]
    assert all(len({row[1]["by"] for row in seen[at : at + 3]}) == 1 for at in range(0, 48, 3))


def test_cancel_is_asked_seen_and_answered_by_the_worker(client: FlaskClient, alice: Player) -> None:
    token, session_id = alice.token(), alice.converse()
    run_id = started(client, session_id, token)["id"]
    for _ in range(2):
        answer = client.post(f"/v1/runs/{run_id}/cancel", headers=token)
        assert answer.status_code == 202
        assert answer.json is not None
        assert (answer.json["status"], answer.json["cancel_requested"]) == ("running", True)
    assert client.delete(f"/v1/sessions/{session_id}", headers=token).status_code == 409
    ended = {"events": [{"type": "run_ended", "payload": {"status": "cancelled"}}]}
    assert client.post(f"/v1/runs/{run_id}/events", json=ended, headers=token).status_code == 201
    assert client.delete(f"/v1/sessions/{session_id}", headers=token).status_code == 204


def test_a_batch_is_all_or_nothing_and_pages_walk_it(
    client: FlaskClient, resources: Resources, alice: Player, db: Session
) -> None:
    token, session_id = alice.token(), alice.converse()
    run_id = started(client, session_id, token)["id"]
    bad = {
        "events": [{"type": "memory_formed", "payload": {"text": "kept?"}}] * 5
        + [{"type": "recall", "payload": {}}]
    }
    before = dump(resources)
    assert client.post(f"/v1/runs/{run_id}/events", json=bad, headers=token).status_code == 400
    assert dump(resources) == before
    batch = {"events": [{"type": "note", "payload": {"n": n}} for n in range(10)]}
    made = client.post(f"/v1/runs/{run_id}/events", json=batch, headers=token).json
    assert made is not None
    walked: list[Any] = []
    after = "1"
    for _ in range(5):
        page = client.get(f"/v1/sessions/{session_id}/events?limit=3&after={after}", headers=token).json
        assert page is not None
        walked += page["data"]
        if page["next_cursor"] is None:
            break
        assert page["next_cursor"] != after
        after = page["next_cursor"]
    assert walked == made["data"]

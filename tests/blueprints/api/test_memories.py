"""Memories over HTTP: remembered once, found by workspace, forgotten for good."""

from __future__ import annotations

import hashlib
from typing import Any

from flask import Flask
from flask.testing import FlaskClient

from models.ids import new_id
from tasks.resources import Resources
from tests.cast import Player
from tests.models.graph import count, dump, rows
from tests.models.racing import at_once

SECRET = "ghp_" + "a1B2" * 9


def test_a_text_is_made_once_and_its_key_is_the_hash_of_what_was_masked(
    client: FlaskClient, resources: Resources, alice: Player
) -> None:
    token = alice.token()
    first = client.post("/v1/memories", json={"text": f"my key is {SECRET}"}, headers=token)
    assert first.status_code == 201
    assert first.json is not None
    assert SECRET not in first.text
    assert first.json["key"] == hashlib.sha256(first.json["text"].encode()).hexdigest()
    again = client.post(
        "/v1/memories", json={"text": f"my key is {SECRET}", "source": "other"}, headers=token
    )
    assert again.status_code == 200
    assert again.json is not None
    assert (again.json["id"], again.json["source"]) == (first.json["id"], "api")
    assert again.json["recorded_at"] >= first.json["recorded_at"]
    assert all(SECRET not in line for lines in dump(resources).values() for line in lines)


def test_a_list_is_of_one_workspace_or_all_and_newest_first(
    client: FlaskClient, alice: Player, bob: Player
) -> None:
    token = alice.token()
    ids = []
    for number in range(5):
        body = {"text": f"fact {number}", "workspace": "work" if number % 2 else "home"}
        made: Any = client.post("/v1/memories", json=body, headers=token).json
        ids.append(made["id"])
    client.post("/v1/memories", json={"text": "bob's"}, headers=bob.token())
    newest = sorted(ids, reverse=True)
    seen: list[str] = []
    cursor = ""
    for _ in range(4):
        page: Any = client.get(f"/v1/memories?limit=2{cursor}", headers=token).json
        seen += [row["id"] for row in page["data"]]
        cursor = f"&cursor={page['next_cursor']}"
        if page["next_cursor"] is None:
            break
    assert seen == newest
    work: Any = client.get("/v1/memories?workspace=work", headers=token).json
    assert {row["workspace"] for row in work["data"]} == {"work"}
    assert len(work["data"]) == 2


def test_a_deletion_is_recorded_repeated_and_said_to_nobody_else(
    client: FlaskClient, resources: Resources, alice: Player, bob: Player
) -> None:
    token = alice.token()
    made: Any = client.post("/v1/memories", json={"text": "tea"}, headers=token).json
    path = f"/v1/memories/{made['id']}"
    assert client.delete(path, headers=bob.token()).status_code == 404
    assert [client.delete(path, headers=token).status_code for _ in range(2)] == [204, 204]
    assert client.delete(path, headers=bob.token()).status_code == 404
    (record,) = rows(resources, "SELECT key, deleted_at FROM deletion_records")
    assert record[0].hex() == made["key"]
    assert count(resources, "memories") == 0
    again: Any = client.post("/v1/memories", json={"text": "tea"}, headers=token)
    assert again.status_code == 201
    ((recorded_at,),) = rows(resources, "SELECT recorded_at FROM memories")
    assert recorded_at > record[1]


def test_a_memory_of_a_conversation_goes_with_it_and_moves_no_order(
    client: FlaskClient, resources: Resources, alice: Player, bob: Player
) -> None:
    token, session_id = alice.token(), alice.converse("Hello")
    run_id = alice.start_run(session_id)
    before: Any = client.get(f"/v1/sessions/{session_id}", headers=token).json
    body = {"text": "tea", "session_id": session_id, "run_id": run_id}
    made: Any = client.post("/v1/memories", json=body, headers=token).json
    assert made["session_id"] == session_id
    assert client.get(f"/v1/sessions/{session_id}", headers=token).json == before
    for wrong in (
        {**body, "session_id": new_id()},
        {**body, "run_id": new_id()},
        {**body, "session_id": bob.converse("theirs")},
        {**body, "run_id": alice.start_run(alice.converse("other"))},
        {**body, "session_id": "x"},
        {"run_id": "x"},
        {"run_id": bob.start_run(bob.converse("theirs too"))},
    ):
        assert client.post("/v1/memories", json={**wrong, "text": "new"}, headers=token).status_code == 404
    with resources.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE runs SET lease_expires_at = now()")
    assert client.delete(f"/v1/sessions/{session_id}", headers=token).status_code == 204
    assert count(resources, "memories") == 0
    assert count(resources, "deletion_records") == 1
    assert client.delete(f"/v1/memories/{made['id']}", headers=token).status_code == 404


def test_making_and_deleting_one_text_at_once_ends_in_one_of_both(
    app: Flask, resources: Resources, alice: Player
) -> None:
    token = alice.token()
    for turn in range(10):
        made: Any = app.test_client().post("/v1/memories", json={"text": f"t {turn}"}, headers=token).json

        def make(text: str = f"t {turn}") -> int:
            return app.test_client().post("/v1/memories", json={"text": text}, headers=token).status_code

        def delete(path: str = f"/v1/memories/{made['id']}") -> int:
            return app.test_client().delete(path, headers=token).status_code

        first, second, deleted, again = at_once([make, make, delete, delete])
        assert {first, second} <= {200, 201}
        assert deleted == again == 204
    both = "memories m JOIN deletion_records d USING (principal_id, workspace, key)"
    held = rows(resources, f"SELECT m.recorded_at > d.deleted_at FROM {both}")
    assert all(row[0] for row in held)

"""The three routes of the history, from outside: first that they work, then who may not, then what is odd."""

from __future__ import annotations

from flask.testing import FlaskClient

from models.ids import new_id
from tests.cast import Player


def test_a_list_shows_newest_activity_first_as_session_views(client: FlaskClient, alice: Player) -> None:
    first, second = alice.converse("One", "1"), alice.converse("Two", "2")
    answer = client.get("/v1/sessions", headers=alice.token("session.read"))
    assert answer.status_code == 200
    assert answer.json is not None
    assert [row["id"] for row in answer.json["data"]] == [second, first]
    assert answer.json["next_cursor"] is None
    row = answer.json["data"][0]
    assert set(row) == {"id", "title", "created_at", "updated_at", "active_run_id", "last_run_id"}
    assert row["title"] == "Two"
    assert row["updated_at"].endswith("Z")
    assert len(row["updated_at"]) == len("2026-11-30T12:00:00.000000Z")


def test_a_deletion_answers_204_again_204_and_404_to_everyone_else(
    client: FlaskClient, alice: Player, bob: Player, mallory: Player
) -> None:
    session_id = alice.converse("Secret plans")
    for stranger in (bob, mallory):
        assert client.delete(f"/v1/sessions/{session_id}", headers=stranger.token()).status_code == 404
    headers = alice.token("session.write")
    assert client.delete(f"/v1/sessions/{session_id}", headers=headers).status_code == 204
    assert client.delete(f"/v1/sessions/{session_id}", headers=headers).status_code == 204
    for stranger in (bob, mallory):
        assert client.delete(f"/v1/sessions/{session_id}", headers=stranger.token()).status_code == 404
    assert client.get(f"/v1/sessions/{session_id}", headers=alice.token()).status_code == 404


def test_an_active_run_refuses_the_deletion_and_is_named(client: FlaskClient, alice: Player) -> None:
    session_id = alice.converse("Hello")
    run_id = alice.start_run(session_id)
    answer = client.delete(f"/v1/sessions/{session_id}", headers=alice.token())
    assert answer.status_code == 409
    assert answer.content_type == "application/problem+json"
    assert answer.json is not None
    assert answer.json["code"] == "invalid_state"
    assert answer.json["details"] == {"reason": "active_run_exists", "active_run_id": run_id}
    assert client.get(f"/v1/sessions/{session_id}", headers=alice.token()).status_code == 200


def test_a_foreign_and_a_missing_conversation_cannot_be_told_apart(
    client: FlaskClient, alice: Player, bob: Player
) -> None:
    foreign, missing = alice.converse("Hello"), new_id()
    headers = bob.token()
    for method in ("get", "delete"):
        answers = [
            getattr(client, method)(f"/v1/sessions/{one}", headers=headers) for one in (foreign, missing)
        ]
        assert [answer.status_code for answer in answers] == [404, 404]
        assert answers[0].data == answers[1].data

"""Approvals over HTTP: listed, decided once, and seen by the worker that waits."""

from __future__ import annotations

from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from models.append import Draft
from tasks.resources import Resources
from tests.cast import Player
from tests.models.graph import dump, rows
from tests.models.racing import at_once


def ask_leave(player: Player, session_id: str, count: int = 1) -> list[str]:
    return player.say(
        session_id, *(Draft("approval_requested", {"summary": f"May I {n}?"}) for n in range(count))
    )


def test_a_list_shows_the_newest_first_by_state_page_by_page(
    client: FlaskClient, alice: Player, mallory: Player
) -> None:
    token = alice.token()
    ids = ask_leave(alice, alice.converse("Hello"), 5)
    ask_leave(mallory, mallory.converse("theirs"))
    newest = sorted(ids, reverse=True)
    for one in ids[:2]:
        assert (
            client.post(f"/v1/approvals/{one}/decision", json={"decision": "deny"}, headers=token).status_code
            == 200
        )
    for state, wanted in (
        ("", newest),
        ("&state=decided", [one for one in newest if one in ids[:2]]),
        ("&state=pending", [one for one in newest if one not in ids[:2]]),
    ):
        seen: list[str] = []
        cursor = ""
        for _ in range(6):
            page: Any = client.get(f"/v1/approvals?limit=2{state}{cursor}", headers=token).json
            seen += [row["id"] for row in page["data"]]
            if page["next_cursor"] is None:
                break
            cursor = f"&cursor={page['next_cursor']}"
        assert seen == wanted, state


def test_a_decision_is_made_once_and_seen_in_list_and_events(
    client: FlaskClient, resources: Resources, alice: Player
) -> None:
    token, session_id = alice.token(), alice.converse("Hello")
    (one,) = ask_leave(alice, session_id)
    first = client.post(f"/v1/approvals/{one}/decision", json={"decision": "approve"}, headers=token)
    assert first.json is not None
    assert (first.json["state"], first.json["decision"]) == ("decided", "approve")
    before = dump(resources)
    again = client.post(f"/v1/approvals/{one}/decision", json={"decision": "approve"}, headers=token)
    assert (again.status_code, again.json) == (200, first.json)
    other = client.post(f"/v1/approvals/{one}/decision", json={"decision": "deny"}, headers=token)
    assert other.status_code == 409
    assert other.json is not None
    assert other.json["details"] == {"reason": "already_decided", "decision": "approve"}
    assert dump(resources) == before
    told = client.get(f"/v1/sessions/{session_id}/events?after=2", headers=token).json
    assert told is not None
    assert [(row["type"], row["payload"]) for row in told["data"]] == [
        ("approval_decided", {"approval_id": one, "decision": "approve"})
    ]


@pytest.mark.parametrize("turn", range(5))
def test_of_opposite_decisions_at_once_one_wins(
    app: Flask, resources: Resources, alice: Player, turn: int
) -> None:
    token, session_id = alice.token(), alice.converse("Hello")
    for one in ask_leave(alice, session_id, 4):

        def decide(decision: str, path: str = f"/v1/approvals/{one}/decision") -> Any:
            return app.test_client().post(path, json={"decision": decision}, headers=token)

        answers = at_once([lambda: decide("approve"), lambda: decide("deny")])
        assert sorted(answer.status_code for answer in answers) == [200, 409]
        (winner,) = (answer.json["decision"] for answer in answers if answer.status_code == 200)
        assert rows(resources, "SELECT decision FROM approvals WHERE id = :id", id=one) == [(winner,)]
    assert rows(resources, "SELECT count(*) FROM events WHERE type = 'approval_decided'") == [(4,)]

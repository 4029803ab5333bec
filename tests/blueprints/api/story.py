"""A conversation made through `/v1` alone, and one good call of each route in it.

story.calls["POST /v1/sessions/{session_id}/runs"].by(client, headers)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from tests.cast import Player


@dataclass(frozen=True)
class Call:
    """One request: `body` goes as JSON, `data` as bytes."""

    method: str
    path: str
    body: Any = None
    data: bytes | None = None

    def by(self, client: FlaskClient, headers: dict[str, str]) -> TestResponse:
        """The answer to it."""
        if self.data is not None:
            return client.open(self.path, method=self.method, headers=headers, data=self.data)
        given = {} if self.body is None else {"json": self.body}
        return client.open(self.path, method=self.method, headers=headers, **given)


@dataclass
class Story:
    """Who owns it, what it holds, and the calls by route; each is good once."""

    player: Player
    ids: dict[str, str]
    calls: dict[str, Call] = field(default_factory=dict)


def tell_story(client: FlaskClient, player: Player) -> Story:
    """A conversation with an active run, a pending approval, an artifact and a memory; and one that is idle."""
    token = player.token()

    def made(path: str, body: Any) -> Any:
        answer = client.post(path, json=body, headers=token)
        assert answer.status_code == 201, answer.text
        return answer.json

    idle, busy = made("/v1/sessions", {})["id"], made("/v1/sessions", {})["id"]
    run_id = made(f"/v1/sessions/{busy}/runs", {"message": {"content": "go"}})["id"]
    asked = {"events": [{"type": "approval_requested", "payload": {"summary": "May I?"}}]}
    approval_id = made(f"/v1/runs/{run_id}/events", asked)["data"][0]["id"]
    kept = client.post(f"/v1/sessions/{busy}/artifacts?name=a.txt", data=b"bytes", headers=token)
    assert kept.json is not None
    artifact_id = kept.json["id"]
    memory_id = made("/v1/memories", {"text": "likes tea"})["id"]
    ids = {
        "idle": idle,
        "session_id": busy,
        "run_id": run_id,
        "approval_id": approval_id,
        "artifact_id": artifact_id,
        "memory_id": memory_id,
    }
    note = {"events": [{"type": "note", "payload": {"a": 1}}]}
    calls = {
        "POST /v1/sessions": Call("POST", "/v1/sessions", {}),
        "GET /v1/sessions": Call("GET", "/v1/sessions"),
        "GET /v1/sessions/{session_id}": Call("GET", f"/v1/sessions/{busy}"),
        "DELETE /v1/sessions/{session_id}": Call("DELETE", f"/v1/sessions/{idle}"),
        "GET /v1/sessions/{session_id}/events": Call("GET", f"/v1/sessions/{busy}/events"),
        "POST /v1/sessions/{session_id}/runs": Call(
            "POST", f"/v1/sessions/{idle}/runs", {"message": {"content": "go"}}
        ),
        "GET /v1/runs/{run_id}": Call("GET", f"/v1/runs/{run_id}"),
        "POST /v1/runs/{run_id}/events": Call("POST", f"/v1/runs/{run_id}/events", note),
        "POST /v1/runs/{run_id}/cancel": Call("POST", f"/v1/runs/{run_id}/cancel"),
        "GET /v1/approvals": Call("GET", "/v1/approvals"),
        "POST /v1/approvals/{approval_id}/decision": Call(
            "POST", f"/v1/approvals/{approval_id}/decision", {"decision": "approve"}
        ),
        "POST /v1/sessions/{session_id}/artifacts": Call(
            "POST", f"/v1/sessions/{busy}/artifacts?name=b.bin", data=b"more"
        ),
        "GET /v1/artifacts/{artifact_id}": Call("GET", f"/v1/artifacts/{artifact_id}"),
        "GET /v1/memories": Call("GET", "/v1/memories"),
        "POST /v1/memories": Call("POST", "/v1/memories", {"text": "likes cake"}),
        "DELETE /v1/memories/{memory_id}": Call("DELETE", f"/v1/memories/{memory_id}"),
    }
    return Story(player, ids, calls)

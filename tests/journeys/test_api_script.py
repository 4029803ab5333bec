"""A script that uses `/v1` alone fills every table of the graph, deletes the session, and finds nothing left."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable
from typing import Any

from tasks.outbox import drain_due
from tasks.resources import Resources
from tests.cast import Player
from tests.models.graph import count, dump, traces

GRAPH = (
    "sessions",
    "runs",
    "events",
    "checkpoints",
    "projections",
    "approvals",
    "tool_invocations",
    "recall_traces",
    "memories",
    "memory_rejections",
    "consolidations",
    "consolidation_inputs",
    "knowledge_documents",
    "artifacts",
    "skill_revisions",
)
Ask = Callable[..., Any]


def asking(address: str, token: dict[str, str]) -> Ask:
    """One request to `/v1`; the answer's JSON."""

    def ask(method: str, path: str, body: Any = None, **headers: str) -> Any:
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        kind = {"Content-Type": "text/plain" if isinstance(body, bytes) else "application/json"}
        sent = {**token, **kind, **{name.replace("_", "-"): value for name, value in headers.items()}}
        request = urllib.request.Request(f"{address}/v1{path}", data, sent, method=method)  # noqa: S310  our own address
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
            read = answer.read()
            return json.loads(read) if read and "json" in answer.headers["Content-Type"] else read

    return ask


def script(ask: Ask, marker: str) -> dict[str, str]:
    """A conversation with everything in it."""
    session_id = ask("POST", "/sessions", {}, Idempotency_Key=f"key {marker}")["id"]
    run_id = ask("POST", f"/sessions/{session_id}/runs", {"message": {"content": f"Hello {marker}"}})["id"]
    artifact_id = ask(
        "POST", f"/sessions/{session_id}/artifacts?name={marker}.txt&run_id={run_id}", marker.encode()
    )["id"]
    memory = {"text": f"typed {marker}", "session_id": session_id, "run_id": run_id, "source": "script"}
    memory_id = ask("POST", "/memories", memory)["id"]

    def say(*events: tuple[str, dict[str, Any]]) -> list[Any]:
        batch = {"events": [{"type": kind, "payload": payload} for kind, payload in events]}
        data: list[Any] = ask("POST", f"/runs/{run_id}/events", batch)["data"]
        return data

    said = say(
        ("assistant_message", {"content": [{"type": "text", "text": f"Hi {marker}"}]}),
        ("tool_call", {"call_id": marker, "name": "search", "arguments": {"q": marker}}),
        ("tool_result", {"call_id": marker, "output": [marker], "status": "ok"}),
        ("approval_requested", {"summary": f"May I? {marker}", "tool": "rm", "arguments": {"path": marker}}),
        ("checkpoint", {"state": {"at": marker}}),
        ("projected", {"name": f"plan {marker}", "state": [marker]}),
        ("recall", {"query": f"who? {marker}", "memory_ids": [memory_id]}),
        ("memory_formed", {"text": f"fact {marker}"}),
        ("memory_rejected", {"text": f"gossip {marker}", "reason": "unkind"}),
        ("consolidated", {"text": f"both {marker}", "memory_ids": [memory_id], "workspace": "drawn"}),
        ("knowledge_added", {"artifact_id": artifact_id, "title": marker, "chunks": [marker]}),
        ("skill_published", {"name": "greeting", "body": "say hello"}),
        ("something_else", {"text": marker}),
    )
    asked = next(event["id"] for event in said if event["type"] == "approval_requested")
    assert ask("POST", f"/approvals/{asked}/decision", {"decision": "approve"})["state"] == "decided"
    say(("run_ended", {"status": "succeeded"}))
    assert ask("GET", f"/artifacts/{artifact_id}") == marker.encode()
    return {"session_id": session_id, "run_id": run_id, "artifact_id": artifact_id, "memory_id": memory_id}


def test_v1_alone_fills_every_table_and_one_deletion_empties_them(
    resources: Resources, live_server: str, alice: Player, mallory: Player
) -> None:
    ask, neighbour = asking(live_server, alice.token()), asking(live_server, mallory.token())
    twin = script(neighbour, "twin")
    filled = script(ask, "a4marker")
    for table in GRAPH:
        assert "a4marker" in "".join(dump(resources)[table]) or any(
            one in "".join(dump(resources)[table]) for one in filled.values()
        ), table
    theirs = {
        table: [row for row in rows if "twin" in row or twin["session_id"] in row]
        for table, rows in dump(resources).items()
    }
    assert ask("DELETE", f"/sessions/{filled['session_id']}") == b""
    drain_due(resources)
    assert traces(resources, "a4marker") == set()
    # What stays: the tombstone, and the key of the create for 24 hours, each with the session's id alone.
    assert traces(resources, filled["session_id"]) == {"tombstones", "idempotency_keys"}
    assert traces(resources, filled["run_id"]) == traces(resources, filled["artifact_id"]) == set()
    assert traces(resources, filled["memory_id"]) == set()
    assert count(resources, "deletion_records") == 3
    left = {
        table: [row for row in rows if "twin" in row or twin["session_id"] in row]
        for table, rows in dump(resources).items()
    }
    assert left == theirs
    kept = resources.store.keys()
    assert [key for key, _ in kept] == [twin["artifact_id"]]
    assert neighbour("GET", f"/artifacts/{twin['artifact_id']}") == b"twin"
    assert (
        ask("GET", "/sessions")["data"]
        == ask("GET", "/memories")["data"]
        == ask("GET", "/approvals")["data"]
        == []
    )
    assert count(resources, "skill_revisions") == 2

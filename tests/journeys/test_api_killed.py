"""kill -9 of the web processes in the middle of an append and an upload: a clean error, a retry, nothing doubled."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import http.client
import threading
import time
from collections.abc import Iterator

import pytest

from models.settings import Settings
from tasks.resources import Resources
from tests.cast import Player
from tests.models.graph import count, rows
from tests.models.racing import wait_for
from tests.served import Served


@pytest.fixture(scope="module")
def served(engines: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server for the module; its store is the module's."""
    folder = tmp_path_factory.mktemp("killed")
    held = Served(
        dataclasses.replace(engines, object_store_url=(folder / "objects").as_uri()), folder
    ).start()
    yield held
    held.stop()


@pytest.fixture
def settings(served: Served) -> Settings:
    return served.settings


def test_an_append_that_is_killed_is_whole_or_not_there_and_the_worker_sees_which(
    served: Served, resources: Resources, alice: Player
) -> None:
    session_id, token = alice.converse(), alice.token()
    started = served.ask("POST", f"/v1/sessions/{session_id}/runs", token, {"message": {"content": "go"}})
    run_id = started.json["id"]
    batch = {"events": [{"type": "note", "payload": {"n": n, "fill": "x" * 500}} for n in range(200)]}
    appended, cut = 0, 0
    deadline = time.monotonic() + 40
    killer = threading.Thread()
    while (killer.is_alive() or not cut) and time.monotonic() < deadline:
        if not killer.is_alive() and not cut:  # a kill between two appends cuts none: once more
            killer = threading.Timer(0.4, served.kill_workers)
            killer.start()
        try:
            assert served.ask("POST", f"/v1/runs/{run_id}/events", token, batch).status == 201
            appended += 1
        except (OSError, http.client.HTTPException):
            cut += 1
            wait_for(lambda: reachable(served, token))
            # What the client does: looks at what is there, and sends the batch again unless it is.
            held = served.ask("GET", f"/v1/sessions/{session_id}/events?after={1 + 200 * appended}", token)
            appended += bool(held.json["data"])
    killer.join()
    assert cut
    served.ask("POST", f"/v1/runs/{run_id}/events", token, batch)
    seqs = [row[0] for row in rows(resources, "SELECT seq FROM events ORDER BY seq")]
    assert seqs == list(range(1, 2 + 200 * (appended + 1)))


def test_an_upload_that_is_killed_leaves_nothing_but_what_is_owed_and_a_retry_succeeds(
    served: Served, resources: Resources, alice: Player
) -> None:
    session_id, token = alice.converse(), alice.token()
    path = f"/v1/sessions/{session_id}/artifacts?name=a.bin"
    said = f"Host: x\r\nAuthorization: {token['Authorization']}\r\nContent-Length: 4000000\r\n\r\n"
    sock = served.raw(f"POST {path} HTTP/1.1\r\n{said}".encode() + b"x" * 2_000_000)
    wait_for(lambda: count(resources, "outbox") == 1)
    served.kill_workers()
    with contextlib.suppress(ConnectionResetError):
        assert sock.recv(100) == b""
    sock.close()
    assert count(resources, "artifacts") == count(resources, "events") == 0
    assert rows(resources, "SELECT reserved FROM outbox") == [(True,)]  # until it runs out
    data = b"y" * 4_000_000
    made = served.ask("POST", path, token, data)
    assert made.status == 201
    assert made.json["sha256"] == hashlib.sha256(data).hexdigest()
    assert count(resources, "artifacts") == 1
    assert served.ask("GET", f"/v1/artifacts/{made.json['id']}", token).body == data


def reachable(served: Served, token: dict[str, str]) -> bool:
    try:
        return served.ask("GET", "/v1/sessions", token, timeout=5).status == 200
    except (OSError, http.client.HTTPException):
        return False

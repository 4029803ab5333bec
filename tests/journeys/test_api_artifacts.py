"""Artifacts over real sockets: constant memory, bodies that are cut off, uploads that race a deletion."""

from __future__ import annotations

import dataclasses
import hashlib
import http.client
import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy.orm import Session

from models.artifacts import Artifact
from models.settings import Settings
from tasks.outbox import drain_due
from tasks.resources import Resources
from tests.cast import Player
from tests.models.graph import count, dump, rows
from tests.models.racing import all_well, at_once, wait_for
from tests.served import Listener, Served

MIB = 1024**2


@pytest.fixture(scope="module")
def served(engines: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server for the module; its store is the module's."""
    folder = tmp_path_factory.mktemp("files")
    held = Served(
        dataclasses.replace(engines, object_store_url=(folder / "objects").as_uri()), folder
    ).start()
    yield held
    held.stop()


@pytest.fixture
def settings(served: Served) -> Settings:
    return served.settings


def pieces(megabytes: int) -> Iterator[bytes]:
    for number in range(megabytes):
        yield bytes([number % 251]) * MIB


def head_of(method: str, path: str, token: dict[str, str], *lines: str) -> bytes:
    said = [
        f"{method} {path} HTTP/1.1",
        "Host: localhost",
        f"Authorization: {token['Authorization']}",
        *lines,
    ]
    return "".join(f"{line}\r\n" for line in said).encode()


def resident(served: Served) -> int:
    return sum(worker.memory_info().rss for worker in served.workers())


@pytest.mark.parametrize("framing", ["Content-Length", "chunked"])
def test_bytes_go_in_and_out_in_constant_memory(
    served: Served, resources: Resources, alice: Player, framing: str
) -> None:
    session_id, token, size = alice.converse(), alice.token(), 160
    digest = hashlib.sha256()
    for piece in pieces(size):
        digest.update(piece)
    served.ask("GET", "/v1/sessions", token)
    before = peak = resident(served)

    def watched() -> Iterator[bytes]:
        nonlocal peak
        for piece in pieces(size):
            yield piece
            if piece[0] % 8 == 0:
                peak = max(peak, resident(served))

    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
    length = {"Content-Length": str(size * MIB)} if framing == "Content-Length" else {}
    path = f"/v1/sessions/{session_id}/artifacts?name=big.bin"
    connection.request("POST", path, watched(), {**token, **length}, encode_chunked=not length)
    answer = connection.getresponse()
    made = json.loads(answer.read())
    assert answer.status == 201, made
    assert (made["size"], made["sha256"]) == (size * MIB, digest.hexdigest())
    connection.request("GET", f"/v1/artifacts/{made['id']}", headers=token)
    answer = connection.getresponse()
    got, read = hashlib.sha256(), 0
    while data := answer.read(MIB):
        got.update(data)
        read += len(data)
    peak = max(peak, resident(served))
    connection.close()
    assert (read, got.hexdigest()) == (size * MIB, digest.hexdigest())
    assert peak - before < 48 * MIB, f"{(peak - before) // MIB} MiB more"
    assert served.ask("DELETE", f"/v1/sessions/{session_id}", token).status == 204


BROKEN = {
    "a document that is whole before its length": (b"Content-Length: 1000\r\n\r\n", b"{}"),
    "a length that does not come": (b"Content-Length: 1000\r\n\r\n", b"x" * 500),
    "chunks without their end": (b"Transfer-Encoding: chunked\r\n\r\n", b"3e8\r\n" + b"x" * 500),
    "chunks that stop between two": (b"Transfer-Encoding: chunked\r\n\r\n", b"5\r\nxxxxx\r\n"),
    "chunks that are none": (b"Transfer-Encoding: chunked\r\n\r\n", b"zz\r\nxxxxx\r\n"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_body_that_is_cut_off_stores_nothing_and_is_told_so(
    served: Served, resources: Resources, alice: Player, what: str
) -> None:
    session_id, token = alice.converse("Hello"), alice.token()
    served.ask("GET", "/v1/sessions", token)  # its last use is noted before we look
    before = dump(resources)
    stored = set(resources.store.keys())
    framing, body = BROKEN[what]
    head = head_of("POST", f"/v1/sessions/{session_id}/artifacts", token)
    sock = served.raw(head + framing + body)
    sock.shutdown(socket.SHUT_WR)
    answer = Listener(sock)
    assert answer.status == 400
    assert b'"field":"body"' in answer.body()
    sock.close()
    drain_due(resources)
    assert dump(resources) == before
    assert set(resources.store.keys()) == stored


def test_a_json_body_that_is_cut_off_changes_nothing(
    served: Served, resources: Resources, alice: Player
) -> None:
    session_id, token = alice.converse("Hello"), alice.token()
    served.ask("GET", "/v1/sessions", token)
    before = dump(resources)
    for path in (f"/v1/sessions/{session_id}/runs", "/v1/sessions", "/v1/memories"):
        for framing, body in BROKEN.values():
            head = head_of("POST", path, token, "Content-Type: application/json")
            sock = served.raw(head + framing + body)
            sock.shutdown(socket.SHUT_WR)
            answer = Listener(sock)
            assert answer.status == 400, path
            sock.close()
    assert dump(resources) == before


def test_a_body_over_its_bound_is_refused_before_it_is_read(
    served: Served, resources: Resources, alice: Player
) -> None:
    token = alice.token()
    for path, size in (("/v1/memories", 2 * MIB), ("/v1/sessions", 10 * MIB)):
        said = ("Content-Type: application/json", f"Content-Length: {size}", "")
        head = head_of("POST", path, token, *said)
        sock = served.raw(head + b"[" * 1000)
        sock.shutdown(socket.SHUT_WR)
        answer = Listener(sock)
        assert answer.status == 413
        assert b'"code":"too_large"' in answer.body()
        sock.close()


def test_an_upload_that_races_a_deletion_leaves_nothing(
    served: Served, resources: Resources, alice: Player
) -> None:
    token, stored = alice.token(), set(resources.store.keys())
    for _ in range(60):
        session_id = alice.converse("Hello")
        upload = f"/v1/sessions/{session_id}/artifacts?name=a.bin"
        sent, deleted = at_once(
            [
                lambda path=upload: served.ask("POST", path, token, b"x" * 100_000).status,  # type: ignore[misc]
                lambda one=session_id: served.ask("DELETE", f"/v1/sessions/{one}", token).status,  # type: ignore[misc]
            ]
        )
        all_well([sent, deleted])
        assert deleted == 204
        assert sent in (201, 404)
    drain_due(resources)
    wait_for(lambda: count(resources, "outbox") == 0)
    for table in ("artifacts", "events", "sessions"):
        assert count(resources, table) == 0, table
    assert set(resources.store.keys()) == stored


def test_a_store_that_is_away_answers_503_and_says_what_is_safe(
    served: Served, resources: Resources, alice: Player
) -> None:
    session_id, token = alice.converse(), alice.token()
    made = served.ask("POST", f"/v1/sessions/{session_id}/artifacts", token, b"kept").json
    root = Path(served.settings.object_store_url.removeprefix("file://"))
    marker = root / ".allgone-store"
    away = root.with_name("away")
    root.rename(away)
    try:
        refused = [
            served.ask("POST", f"/v1/sessions/{session_id}/artifacts", token, b"new"),
            served.ask("GET", f"/v1/artifacts/{made['id']}", token),
            served.ask("GET", f"/v1/artifacts/{made['id']}", {**token, "Range": "bytes=0-1"}),
        ]
    finally:
        away.rename(root)
    assert marker.exists()
    for answer in refused:
        assert answer.status == 503
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert answer.headers["Retry-After"] == "5"
        assert answer.json["code"] == "internal"
        assert "Nothing was lost" in answer.json["detail"]
    assert served.ask("GET", f"/v1/artifacts/{made['id']}", token).body == b"kept"
    with Session(resources.engine) as db:
        assert [row.id for row in db.query(Artifact)] == [made["id"]]
    drain_due(resources)
    assert rows(resources, "SELECT key FROM outbox") == []

"""Every method of `examples/allgone_client.py`, run in the examples' Python: URL TOKEN."""

# ruff: noqa: T201, PT017  it runs without pytest, and says what it did

from __future__ import annotations

import io
import sys
import threading
import time

import httpx
from allgone_client import Allgone, AllgoneError, event, patiently


def main(url: str, token: str) -> None:
    with Allgone(url, token) as client:
        session_id = creating_and_listing(client)
        running(client, session_id)
        bytes_and_memories(client, session_id)
        refusals(client, url, session_id)
        a_stream_goes_on_after_a_break(client)
        deleting(client, session_id)
    print("all is well")


def creating_and_listing(client: Allgone) -> str:
    first = client.create_session("one key")
    assert client.create_session("one key") == first
    made = {client.create_session()["id"] for _ in range(3)} | {first["id"]}
    listed = [session["id"] for session in client.sessions()]
    assert made == set(listed)
    assert len(listed) == 4
    return first["id"]


def running(client: Allgone, session_id: str) -> None:
    run = client.start_run(session_id, [{"type": "text", "text": "Look  it up"}], lease_s=5)
    assert client.session(session_id)["active_run_id"] == run["id"]
    started = time.monotonic()
    try:
        patiently(lambda: client.start_run(session_id, "me too"), 0.3)
    except AllgoneError as refused:
        assert (refused.status, refused.code, refused.reason) == (409, "invalid_state", "active_run_exists")
        assert refused.details["active_run_id"] == run["id"]
    assert time.monotonic() - started > 0.25
    client.append(run["id"], [event("approval_requested", summary="May I?", tool="web")])
    [asked] = client.approvals("pending")
    assert client.decide(asked["id"], "approve")["decision"] == "approve"
    assert [one["id"] for one in client.approvals("decided")] == [asked["id"]]
    assert client.cancel(run["id"])["cancel_requested"]
    client.append(run["id"], [event("note", text="one\u2028two")] * 500)
    client.append(run["id"], [event("note", text="more")] * 700)
    client.append(run["id"], [event("run_ended", status="cancelled")])
    seqs = [one["seq"] for one in client.events(session_id)]
    assert seqs == list(range(1, len(seqs) + 1))
    assert len(seqs) > 1200
    assert [one["seq"] for one in client.events(session_id, after=seqs[-1] - 2)] == seqs[-2:]
    assert client.session(session_id)["title"] == "Look it up"


def bytes_and_memories(client: Allgone, session_id: str) -> None:
    data = bytes(range(256)) * 40_000
    stored = client.upload(session_id, io.BytesIO(data), name="ö.bin", content_type="application/x-test")
    assert (stored["size"], stored["name"]) == (len(data), "ö.bin")
    assert client.read_artifact(stored["id"]) == data
    into = io.BytesIO()
    assert client.download(stored["id"], into) == len(data)
    assert into.getvalue() == data
    assert client.download(client.upload(session_id, b"")["id"], io.BytesIO()) == 0
    held = client.remember("Likes tea", workspace="work", session_id=session_id)
    assert client.remember("Likes tea", workspace="work")["id"] == held["id"]
    assert [one["id"] for one in client.memories("work")] == [held["id"]]
    assert list(client.memories("play")) == []
    client.forget(held["id"])
    client.forget(held["id"])
    assert list(client.memories()) == []


def refusals(client: Allgone, url: str, session_id: str) -> None:
    for ask, status, code in (
        (lambda: client.session("nonsense/../x"), 404, "not_found"),
        (lambda: client.remember("  "), 400, "invalid"),
        (lambda: Allgone(url, "wrong").session(session_id), 401, "unauthorized"),
        (lambda: next(client.stream("0190a0a0-0000-7000-8000-000000000000")), 404, "not_found"),
    ):
        try:
            ask()
        except AllgoneError as refused:
            assert (refused.status, refused.code) == (status, code), refused
        else:
            raise AssertionError(code)


def a_stream_goes_on_after_a_break(client: Allgone) -> None:
    session_id = client.create_session()["id"]
    seen: list[int] = []
    breaks = [3]
    listen = client._listen

    def breaking(session_id: str, after: int):  # the wire as it is at a train station
        for number, one in enumerate(listen(session_id, after)):
            yield one
            if breaks[0] and number >= 2:
                breaks[0] -= 1
                raise httpx.ReadError("cut")

    client._listen = breaking  # type: ignore[method-assign]
    watching = threading.Thread(target=lambda: seen.extend(one["seq"] for one in client.stream(session_id)))
    watching.start()
    run = client.start_run(session_id, "hello")
    for number in range(20):
        client.append(run["id"], [event("note", number=number)])
    client.append(run["id"], [event("run_ended", status="succeeded")])
    until = time.monotonic() + 20
    while len(seen) < 22 and time.monotonic() < until:
        time.sleep(0.05)
    client.delete_session(session_id)
    watching.join(20)
    assert not breaks[0]
    assert seen == list(range(1, 23)), seen
    assert not watching.is_alive()


def deleting(client: Allgone, session_id: str) -> None:
    client.delete_session(session_id)
    client.delete_session(session_id)
    try:
        client.create_session("one key")
    except AllgoneError as refused:
        assert refused.reason == "session_deleted"
    else:
        raise AssertionError("revived")


if __name__ == "__main__":
    main(*sys.argv[1:])

"""A client of Allgone's `/v1` in one file: copy it, and change what you like. It needs Python 3.11 and httpx.

    python allgone_client.py http://127.0.0.1:8000 TOKEN        create, run, stream, delete, saying what happens

    client = Allgone("http://127.0.0.1:8000", token)
    session = client.create_session()
    run = client.start_run(session["id"], "What is a tombstone?")
    client.append(run["id"], [event("assistant_message", content="…"), event("run_ended", status="succeeded")])

| what goes wrong | what it does |
|---|---|
| the server refuses | raises AllgoneError with `code` and `details`, the words to branch on |
| too many requests (429) | waits as long as it is told, then asks again |
| the connection breaks, or a proxy says 502 to 504 | asks again where that does nothing twice, such as GET and DELETE |
| a live stream breaks | connects again with `Last-Event-ID`, so no event is lost or doubled |

One client may be used by several threads.
"""

from __future__ import annotations

import json
import random
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, Literal, NotRequired, TypedDict, TypeVar
from urllib.parse import quote

import httpx

T = TypeVar("T")
Content = str | list[dict[str, Any]]  # a text, or blocks such as {"type": "text", "text": …}

PAGE = 200  # the most that a list gives at once
EVENTS_PAGE = 1000
HEARTBEAT = 15.0  # seconds between a live stream's signs of life
WAIT_FIRST, WAIT_MAX = 0.2, 30.0  # seconds between tries


class Session(TypedDict):
    """One conversation, as the index shows it."""

    id: str
    title: str
    created_at: str
    updated_at: str
    active_run_id: str | None
    last_run_id: str | None


class Run(TypedDict):
    """One run of an agent."""

    id: str
    session_id: str
    status: Literal["running", "succeeded", "failed", "cancelled", "expired"]
    cancel_requested: bool
    lease_expires_at: str
    created_at: str
    ended_at: str | None


class NewEvent(TypedDict):
    """An event to append."""

    type: str
    payload: dict[str, Any]
    parent_id: NotRequired[str]


class Event(TypedDict):
    """A stored event: immutable, with a `seq` that is dense per session from 1."""

    id: str
    session_id: str
    run_id: str | None
    seq: int
    type: str
    parent_id: str | None
    payload: dict[str, Any]
    created_at: str


class Approval(TypedDict):
    """Something a run asked leave for."""

    id: str
    session_id: str
    run_id: str | None
    state: Literal["pending", "decided"]
    summary: str
    tool: str | None
    arguments: Any
    decision: Literal["approve", "deny"] | None
    created_at: str
    decided_at: str | None


class Artifact(TypedDict):
    """What is known of some bytes."""

    id: str
    session_id: str
    run_id: str | None
    name: str
    content_type: str
    size: int
    sha256: str
    created_at: str


class Memory(TypedDict):
    """One memory of the account."""

    id: str
    key: str
    text: str
    workspace: str
    source: str
    session_id: str | None
    recorded_at: str


class AllgoneError(Exception):
    """A refusal. `code` is stable; `details` says which field or why; `status` is HTTP's."""

    def __init__(self, status: int, code: str, detail: str, details: dict[str, Any]) -> None:
        super().__init__(f"{detail} ({code}{', ' + str(details) if details else ''})")
        self.status = status
        self.code = code
        self.detail = detail
        self.details = details

    @property
    def reason(self) -> str | None:
        """Why an `invalid_state` is one: `active_run_exists`, `run_ended`, `session_deleted`, …"""
        return self.details.get("reason")


def event(kind: str, **payload: Any) -> NewEvent:
    """An event to append, such as `event("assistant_message", content="Hello.")`."""
    return {"type": kind, "payload": payload}


class Allgone:
    """The sixteen routes. Every method raises AllgoneError, and httpx.TransportError when nobody answers."""

    def __init__(self, url: str, token: str, *, timeout: float = 30.0, tries: int = 5) -> None:
        self._tries = tries
        self._http = httpx.Client(
            base_url=url.rstrip("/") + "/v1",
            headers={"Authorization": f"Bearer {token}"},
            timeout=timeout,
            # The server closes an idle connection after two seconds; we let go of it before that.
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=1.0),
        )

    def close(self) -> None:
        """Lets go of every connection."""
        self._http.close()

    def __enter__(self) -> Allgone:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- sessions

    def create_session(self, idempotency_key: str | None = None) -> Session:
        """A new conversation; within 24 hours the same key gives the same one.

        409 `session_deleted` when the one that this key made is gone.
        """
        headers = {"Idempotency-Key": idempotency_key} if idempotency_key else {}
        made: Session = self._json("POST", "/sessions", again=bool(idempotency_key), json={}, headers=headers)
        return made

    def sessions(self) -> Iterator[Session]:
        """Every conversation, newest activity first, page by page as one reads on."""
        return self._pages("/sessions", {})

    def session(self, session_id: str) -> Session:
        """One conversation; `not_found` says that a mirror may drop it."""
        found: Session = self._json("GET", f"/sessions/{_id(session_id)}")
        return found

    def delete_session(self, session_id: str) -> None:
        """Delete everywhere; again is no error. 409 `active_run_exists` while a run is active."""
        self._send("DELETE", f"/sessions/{_id(session_id)}")

    # -- runs and events

    def start_run(self, session_id: str, content: Content, *, lease_s: int = 60) -> Run:
        """Appends the user's message and starts the run that answers it; 409 while another is active.

        The lease is renewed by every append; a run that lets it run out has ended as `expired`.
        """
        body = {"message": {"content": content}, "lease_s": lease_s}
        started: Run = self._json("POST", f"/sessions/{_id(session_id)}/runs", again=False, json=body)
        return started

    def run(self, run_id: str) -> Run:
        """A run; its worker looks at `cancel_requested` here."""
        found: Run = self._json("GET", f"/runs/{_id(run_id)}")
        return found

    def append(self, run_id: str, events: Iterable[NewEvent]) -> list[Event]:
        """Appends a batch, all or nothing; 409 `run_ended` once the run has ended or its lease is over."""
        body = {"events": list(events)}
        stored: list[Event] = self._json("POST", f"/runs/{_id(run_id)}/events", again=False, json=body)[
            "data"
        ]
        return stored

    def cancel(self, run_id: str) -> Run:
        """Asks the run's worker to end it."""
        asked: Run = self._json("POST", f"/runs/{_id(run_id)}/cancel", again=False, json={})
        return asked

    def events(self, session_id: str, after: int = 0) -> Iterator[Event]:
        """The events above `after`, in order, page by page."""
        while True:
            asked = {"after": after, "limit": EVENTS_PAGE}
            page = self._json("GET", f"/sessions/{_id(session_id)}/events", params=asked)
            yield from page["data"]
            if page["next_cursor"] is None:
                return
            after = int(page["next_cursor"])

    def stream(self, session_id: str, after: int = 0) -> Iterator[Event]:
        """The events above `after` and then each new one as it comes; it ends when the conversation is deleted.

        A broken connection is made again and again, from the last event that was seen.
        """
        begun, waits = False, 0
        while True:
            try:
                for kind, data in self._listen(session_id, after):
                    begun, waits = True, 0
                    if kind == "session_deleted":
                        return
                    if kind and data["seq"] > after:
                        after = data["seq"]
                        yield data
            except httpx.TransportError:
                pass
            except AllgoneError as refused:
                if begun and refused.code == "not_found":  # deleted while we were away
                    return
                if refused.status < 500 and refused.code != "rate_limited":
                    raise
            time.sleep(_wait(waits))
            waits += 1

    def _listen(self, session_id: str, after: int) -> Iterator[tuple[str, Any]]:
        headers = {"Accept": "text/event-stream", "Last-Event-ID": str(after)}
        path = f"/sessions/{_id(session_id)}/events"
        patience = httpx.Timeout(30.0, read=3 * HEARTBEAT)
        with self._http.stream("GET", path, headers=headers, timeout=patience) as answer:
            if answer.status_code != 200:
                answer.read()
                raise _refusal(answer)
            yield "", None  # connected
            kind, data = "", ""
            for line in _lines(answer.iter_bytes()):
                name, _, value = line.partition(":")
                value = value.removeprefix(" ")
                if name == "event":
                    kind = value
                elif name == "data":
                    data += value
                elif not line and data:
                    yield kind, json.loads(data)
                    kind, data = "", ""

    # -- approvals

    def approvals(self, state: Literal["pending", "decided"] | None = None) -> Iterator[Approval]:
        """Approvals, newest first."""
        return self._pages("/approvals", {"state": state} if state else {})

    def decide(self, approval_id: str, decision: Literal["approve", "deny"]) -> Approval:
        """Decides once; 409 `already_decided` when it was decided otherwise. The same decision again is no error."""
        body = {"decision": decision}
        decided: Approval = self._json("POST", f"/approvals/{_id(approval_id)}/decision", json=body)
        return decided

    # -- artifacts

    def upload(
        self,
        session_id: str,
        data: bytes | BinaryIO | Iterable[bytes],
        *,
        name: str = "artifact",
        content_type: str = "application/octet-stream",
        run_id: str | None = None,
    ) -> Artifact:
        """Stores bytes beside a conversation; an open file is sent as it is read."""
        params = {"name": name} | ({"run_id": run_id} if run_id else {})
        headers = {"Content-Type": content_type}
        path = f"/sessions/{_id(session_id)}/artifacts"
        stored: Artifact = self._json("POST", path, again=False, params=params, headers=headers, content=data)
        return stored

    def download(self, artifact_id: str, to: BinaryIO) -> int:
        """Writes an artifact's bytes to an open file and returns how many; a broken download goes on where it was."""
        size, waits = 0, 0
        while True:
            headers = {"Range": f"bytes={size}-"} if size else {}  # the bytes of an artifact never change
            try:
                with self._http.stream("GET", f"/artifacts/{_id(artifact_id)}", headers=headers) as answer:
                    if answer.status_code != (206 if size else 200):
                        answer.read()
                        raise _refusal(answer)
                    for chunk in answer.iter_raw():
                        size += to.write(chunk)
                        waits = 0
                return size
            except httpx.TransportError:
                if waits + 1 >= self._tries:
                    raise
            time.sleep(_wait(waits))
            waits += 1

    def read_artifact(self, artifact_id: str) -> bytes:
        """An artifact's bytes, where they fit in memory."""
        return self._send("GET", f"/artifacts/{_id(artifact_id)}").content

    # -- memories

    def memories(self, workspace: str | None = None) -> Iterator[Memory]:
        """Memories, newest first; of one workspace when it is named."""
        return self._pages("/memories", {"workspace": workspace} if workspace else {})

    def remember(self, text: str, *, workspace: str = "default", session_id: str | None = None) -> Memory:
        """Remembers a text; the same text again gives the memory that is held. With a session, it goes with it."""
        body = {"text": text, "workspace": workspace} | ({"session_id": session_id} if session_id else {})
        held: Memory = self._json("POST", "/memories", json=body)
        return held

    def forget(self, memory_id: str) -> None:
        """Deletes a memory here and on every paired device; again is no error."""
        self._send("DELETE", f"/memories/{_id(memory_id)}")

    # -- requests

    def _pages(self, path: str, asked: dict[str, Any]) -> Iterator[Any]:
        cursor: str | None = None
        while True:
            params = asked | {"limit": PAGE} | ({"cursor": cursor} if cursor else {})
            page = self._json("GET", path, params=params)
            yield from page["data"]
            cursor = page["next_cursor"]
            if cursor is None:
                return

    def _json(self, method: str, path: str, *, again: bool = True, **rest: Any) -> Any:
        return self._send(method, path, again=again, **rest).json()

    def _send(self, method: str, path: str, *, again: bool = True, **rest: Any) -> httpx.Response:
        waits = 0
        while True:
            last = waits + 1 >= self._tries
            told = None
            try:
                answer = self._http.request(method, path, **rest)
            except httpx.TransportError:
                if last or not again:
                    raise
            else:
                if answer.is_success:
                    return answer
                slow_down = answer.status_code == 429
                if last or not (slow_down or (again and answer.status_code in (502, 503, 504))):
                    raise _refusal(answer)
                told = answer.headers.get("Retry-After") if slow_down else None
            time.sleep(float(told) if told else _wait(waits))
            waits += 1


def patiently(ask: Callable[[], T], seconds: float) -> T:
    """What `ask` gives, asked again for up to `seconds` while another run is active. Raises as `ask` does."""
    until, waits = time.monotonic() + seconds, 0
    while True:
        try:
            return ask()
        except AllgoneError as refused:
            if refused.reason != "active_run_exists" or time.monotonic() > until:
                raise
        time.sleep(min(_wait(waits, first=0.02), 1.0))
        waits += 1


def _wait(waits: int, first: float = WAIT_FIRST) -> float:
    # Doubling, and spread, so that a thousand clients do not come back at once.
    return min(WAIT_MAX, first * 2.0 ** min(waits, 20)) * random.uniform(0.5, 1.0)  # noqa: S311


def _id(text: str) -> str:
    return quote(text, safe="")


def _lines(chunks: Iterable[bytes]) -> Iterator[str]:
    # Not httpx's iter_lines: it also breaks lines at U+2028 and the like, which JSON may hold.
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line.removesuffix(b"\r").decode()


def _refusal(answer: httpx.Response) -> AllgoneError:
    try:
        said = answer.json()
        return AllgoneError(answer.status_code, said["code"], said["detail"], said["details"])
    except (ValueError, KeyError, TypeError):  # a proxy's page
        return AllgoneError(answer.status_code, "internal", f"The server answered {answer.status_code}.", {})


def main(url: str, token: str) -> None:
    """Create, run, stream, delete; says each step."""

    def say(text: str) -> None:
        print(text, flush=True)  # noqa: T201

    with Allgone(url, token) as client:
        session = client.create_session(idempotency_key=f"example-{random.getrandbits(64):x}")
        say(f"created   {session['id']}")

        def watch() -> None:
            for seen in client.stream(session["id"]):
                say(f"streamed  {seen['seq']} {seen['type']}")
            say("streamed  the end: the conversation was deleted")

        watching = threading.Thread(target=watch)
        watching.start()
        run = client.start_run(session["id"], "What does Delete Everywhere leave behind?")
        say(f"running   {run['id']}")
        answer = event("assistant_message", content="A tombstone: which session, whose, and when.")
        client.append(run["id"], [answer, event("run_ended", status="succeeded")])
        say(f"run       {client.run(run['id'])['status']}")
        say(f"titled    {client.session(session['id'])['title']}")
        client.delete_session(session["id"])
        say("deleted   everywhere")
        watching.join()
        try:
            client.session(session["id"])
        except AllgoneError as refused:
            say(f"asked     {refused.status} {refused.code}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python allgone_client.py URL TOKEN")
    main(*sys.argv[1:])

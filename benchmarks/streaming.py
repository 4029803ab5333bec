"""How long a live event takes from its POST to an open stream, while others append 200 events a second.

The production server, Valkey and PostgreSQL are as the product runs them. The load comes from a process of its own
(this module, run by name), by principals of their own, each over a connection that it keeps. The sampled events are
posted over a new connection each, so that each of the server's processes gets its share.
"""

from __future__ import annotations

import http.client
import json
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy.orm import Session

from benchmarks.figures import Figure
from benchmarks.ground import Ground
from benchmarks.serving import Headers, bearer, server
from models import runs
from models.accounts import Owner
from models.append import open_conversation
from models.base import database_time
from models.rules import LEASE_MAX

NAME = "streaming"
SAMPLES, PAUSE = 60, 0.2  # at most so many seconds between two of them
WRITERS, RATE = 8, 200  # of the load, and its events a second
WARM = 3.0
SINGLE, BATCHED = 1, 10  # events of one POST of the load
SAID = {"type": "assistant_message", "payload": {"content": "What was said. " * 10}}


def run(ground: Ground) -> Iterator[Figure]:
    """The median milliseconds from just before the POST to the event's arrival on the stream's socket."""
    with tempfile.TemporaryDirectory() as folder, server(ground, Path(folder)) as port:
        # The same load in a tenth of the requests tells how much of the wait is the server's being full.
        for size, bound in ((SINGLE, 50), (BATCHED, None)):
            took, rate = _beside(ground, port, size)
            tenth = statistics.quantiles(took, n=10)[-1] * 1e3
            yield Figure(
                NAME,
                f"a live event beside {RATE} events a second, {size} a POST, ms",
                statistics.median(took) * 1e3,
                bound=bound,
                note=f"a tenth took over {tenth:,.0f} ms; {SAMPLES} samples beside {rate:,.0f} events/s",
            )


def _beside(ground: Ground, port: int, size: int) -> tuple[list[float], float]:
    """The seconds of each sample, and the events a second that the load reached."""
    owner = ground.player()
    session_id, run_id = _running(ground, owner)
    headers = _headers(ground, owner)
    with closing(_stream(port, session_id, headers)) as stream, _load(ground, port, size) as told:
        time.sleep(WARM)
        took = [_sample(port, run_id, headers, stream, seq) for seq in range(1, SAMPLES + 1)]
    return took, told["rate"]


def _sample(port: int, run_id: str, headers: Headers, stream: socket.socket, seq: int) -> float:
    time.sleep(random.uniform(0, PAUSE))
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
        connection.connect()
        began = time.perf_counter()
        connection.request("POST", f"/v1/runs/{run_id}/events", _batch(1), headers)
        _await(stream, f"id: {seq}\n".encode())
        took = time.perf_counter() - began
        _created(connection)
    return took


def _stream(port: int, session_id: str, headers: Headers) -> socket.socket:
    stream = socket.create_connection(("127.0.0.1", port), timeout=10)  # sooner than a heartbeat comes
    lines = [f"GET /v1/sessions/{session_id}/events HTTP/1.1", "Host: localhost", "Accept: text/event-stream"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    stream.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
    _await(stream, b"retry:")
    return stream


def _await(stream: socket.socket, words: bytes) -> None:
    """Reads until a whole block that holds `words` is there."""
    held = b""
    while words not in held or not held.endswith(b"\n\n"):
        part = stream.recv(1 << 16)
        if not part:
            raise SystemExit("the server closed the stream")
        held += part


def _created(connection: http.client.HTTPConnection) -> None:
    response = connection.getresponse()
    body = response.read()
    if response.status != 201:
        raise SystemExit(f"an append answered {response.status}: {body[:200]!r}")


def _running(ground: Ground, owner: Owner) -> tuple[str, str]:
    """A new conversation and its active run."""
    with Session(ground.resources.engine) as db, db.begin():
        conversation = open_conversation(db, owner)
        return conversation.id, runs.start(db, conversation, database_time(db), LEASE_MAX).id


def _batch(size: int) -> bytes:
    return json.dumps({"events": [SAID] * size}).encode()


def _headers(ground: Ground, owner: Owner) -> Headers:
    return {**bearer(ground, owner), "Content-Type": "application/json"}


@contextmanager
def _load(ground: Ground, port: int, size: int) -> Iterator[dict[str, float]]:
    """The load while the block runs; afterwards its `rate` is what it reached."""
    owners = [ground.player() for _ in range(WRITERS)]
    plan = [(_running(ground, owner)[1], _headers(ground, owner)) for owner in owners]
    told: dict[str, float] = {}
    child = [sys.executable, "-m", "benchmarks.streaming", str(port), str(size)]
    with subprocess.Popen(child, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as load:
        assert load.stdin is not None
        load.stdin.write(json.dumps(plan) + "\n")
        load.stdin.flush()
        try:
            yield told
        finally:
            answer = load.communicate()[0]  # the end of its input ends it
        told |= json.loads(answer)


def _child() -> None:
    """The load of the plan in the first line of standard input, until that input ends."""
    port, size, plan = int(sys.argv[1]), int(sys.argv[2]), json.loads(sys.stdin.readline())
    over, counts, body = threading.Event(), [0] * len(plan), _batch(size)

    def write(number: int, run_id: str, headers: Headers) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        every = len(plan) * size / RATE
        due = time.perf_counter() + every * number / len(plan)
        while not over.wait(max(0.0, due - time.perf_counter())):
            connection.request("POST", f"/v1/runs/{run_id}/events", body, headers)
            _created(connection)
            counts[number] += size
            due += every
        connection.close()

    writers = [threading.Thread(target=write, args=(number, *each)) for number, each in enumerate(plan)]
    began = time.perf_counter()
    for writer in writers:
        writer.start()
    sys.stdin.read()
    over.set()
    for writer in writers:
        writer.join()
    sys.stdout.write(json.dumps({"rate": sum(counts) / (time.perf_counter() - began)}))


if __name__ == "__main__":
    _child()

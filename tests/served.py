"""The app under its own web server, as the Procfile starts it, on the tests' engines; and clients that see the wire.

served = Served(settings, folder)          gunicorn: 2 processes of 4 threads
served.ask("POST", "/v1/sessions", alice.token(), {})     one request, answered whole
with served.listen(path, headers) as stream: stream.next()     a live stream, event by event
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from models.settings import Settings
from tests.models.racing import wait_for

ROOT = Path(__file__).resolve().parents[1]


@dataclass
class Answer:
    """What a request was answered with."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Served:
    """One gunicorn. `extra` is laid over its environment."""

    settings: Settings
    folder: Path
    extra: dict[str, str] = field(default_factory=dict)
    port: int = 0
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> Served:
        """Starts it and waits until it answers."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        command = [sys.executable, "-m", "gunicorn", "app:create_app()", "--bind", f"127.0.0.1:{self.port}"]
        shape = ["--workers", "2", "--threads", "4", "--no-control-socket"]
        with (self.folder / "gunicorn.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*command, *shape], cwd=ROOT, env=self._environment(), stdout=log, stderr=log
            )
        wait_for(self._answers, 60)
        wait_for(lambda: len(self.workers()) == 2, 60)
        return self

    def stop(self) -> None:
        """Ends it, and all of it."""
        if self.process is not None:
            below = self.workers()
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                for pid in (*(one.pid for one in below), self.process.pid):
                    with suppress(psutil.NoSuchProcess):  # it ended meanwhile
                        psutil.Process(pid).kill()
                self.process.wait(10)

    def workers(self) -> list[psutil.Process]:
        """Its worker processes."""
        assert self.process is not None
        return psutil.Process(self.process.pid).children()

    def kill_workers(self) -> None:
        """kill -9 of each worker process; the arbiter starts others."""
        old = self.workers()
        for worker in old:
            worker.kill()
        psutil.wait_procs(old, 10)
        wait_for(lambda: len(self.workers()) == 2 and self._answers(), 60)

    def said(self) -> str:
        """What it wrote to its log."""
        return (self.folder / "gunicorn.log").read_text()

    def ask(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] | None = None,
        body: Any = None,
        *,
        timeout: float = 30,
    ) -> Answer:
        """One request; a body that is no bytes goes as JSON."""
        sent = dict(headers or {})
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            return Answer(answer.status, dict(answer.getheaders()), answer.read())
        finally:
            connection.close()

    def raw(self, data: bytes, timeout: float = 15) -> socket.socket:
        """A socket on which `data` was sent."""
        sock = socket.create_connection(("127.0.0.1", self.port), timeout)
        sock.sendall(data)
        return sock

    @contextmanager
    def listen(self, path: str, headers: Mapping[str, str], last: int | None = None) -> Iterator[Listener]:
        """A live stream that resumes above `last`."""
        lines = [f"GET {path} HTTP/1.1", "Host: localhost", "Accept: text/event-stream"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        lines += [] if last is None else [f"Last-Event-ID: {last}"]
        sock = self.raw("\r\n".join([*lines, "", ""]).encode())
        try:
            yield Listener(sock)
        finally:
            sock.close()

    def _environment(self) -> dict[str, str]:
        settings = self.settings
        ours = {
            "ALLGONE_DATA_DIR": str(settings.data_dir),
            "DATABASE_URL": settings.database_url,
            "REDIS_URL": settings.redis_url,
            "OBJECT_STORE_URL": settings.object_store_url,
            "SECRET_KEY": settings.secret_key,
            "PUBLIC_URL": settings.public_url,
            "PYTHONUNBUFFERED": "1",
        }
        return {**os.environ, **ours, **self.extra}

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.said()[-3000:]
        try:
            return self.ask("GET", "/v1/openapi.json", timeout=5).status == 200
        except OSError:
            return False


class Listener:
    """Reads a stream's events off its socket."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._read = b""
        head = self._until(b"\r\n\r\n", 10)
        assert head is not None, "the stream was closed before its head"
        self.status = int(head.split()[1])
        self.head = head.decode()
        self.comments: list[str] = []
        self.retry: str | None = None

    def next(self, seconds: float = 10) -> dict[str, Any] | None:
        """The next event as {"id", "event", "data"}; None when the stream has ended. Raises TimeoutError."""
        until = time.monotonic() + seconds
        while True:
            block = self._until(b"\n\n", until - time.monotonic())
            if block is None:
                return None
            told: dict[str, Any] = {}
            for line in block.decode().split("\n"):
                name, _, value = line.partition(": ")
                if name:
                    told[name] = value
                else:
                    self.comments.append(value)
            self.retry = told.pop("retry", self.retry)
            if told:
                return {**told, "data": json.loads(told["data"])}

    def seqs(self, until: int, seconds: float = 10) -> list[int]:
        """The ids of the coming events, up to `until`, or to the end of the stream."""
        found: list[int] = []
        while not found or found[-1] < until:
            event = self.next(seconds)
            if event is None:
                break
            found.append(int(event["id"]))
        return found

    def body(self) -> bytes:
        """What comes until the other end closes."""
        while self._more(10):
            pass
        return self._read

    def _until(self, mark: bytes, seconds: float) -> bytes | None:
        deadline = time.monotonic() + seconds
        while mark not in self._read:
            if not self._more(max(0.001, deadline - time.monotonic())):
                return None
        found, _, self._read = self._read.partition(mark)
        return found

    def _more(self, seconds: float) -> bool:
        self._sock.settimeout(seconds)
        try:
            data = self._sock.recv(1 << 20)
        except ConnectionError:
            return False
        self._read += data
        return bool(data)

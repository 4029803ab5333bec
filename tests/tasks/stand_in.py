"""A product of stand-ins for the tests of `tasks/processes.py`: real supervisor and engines, tiny processes.

    python -m tests.tasks.stand_in DATA_DIR PORT [bare] [stubborn] [failing]

`bare` runs without engines; a `stubborn` worker ignores SIGTERM; a `failing` worker ends at once.
The worker has a child of its own in a process group of its own, as RQ's have.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import PIPE, Popen
from threading import Thread
from typing import Any
from uuid import uuid4

import orjson
import psutil
import psycopg2

from models.errors import Misconfigured
from models.settings import Settings, load
from tasks.children import Command
from tasks.processes import run_product

ROOT = Path(__file__).resolve().parents[2]
FAST = {"fsync": "off", "full_page_writes": "off"}  # a killed process loses nothing by these
WEB = """
import http.server, sys
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Answer).serve_forever()
"""
WORKER = """
import os, signal, sys, time
if "failing" in sys.argv: raise SystemExit("Error: no work today")
if "stubborn" in sys.argv: signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0: os.setpgrp()
time.sleep(3600)
"""
SCHEDULER = "import time; time.sleep(3600)"


def settings_in(folder: Path, port: int = 8000, *, bare: bool = False) -> Settings:
    """Settings of `folder`; `bare` names engines that are somebody else's."""
    elsewhere = {"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none", "REDIS_URL": "redis://127.0.0.1:1"}
    return load({"ALLGONE_DATA_DIR": str(folder), "PORT": str(port), **(elsewhere if bare else {})})


def ask(settings: Settings, statement: str) -> Any:
    """The first value of `statement`, committed."""
    connection = psycopg2.connect(settings.database_url.replace("+psycopg2", ""))
    try:
        with connection, connection.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchone()[0] if cursor.description else None
    finally:
        connection.close()


def eventually(condition: Callable[[], Any], seconds: float = 10.0) -> Any:
    """The first true value of `condition` within `seconds`, or its last value."""
    until = time.monotonic() + seconds
    while not (value := condition()) and time.monotonic() < until:
        time.sleep(0.01)
    return value


def left_of(folder: Path, mark: str = "") -> list[psutil.Process]:
    """Running processes that name `folder`, work inside it, or carry `mark` in their environment."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.pid == os.getpid() or process.status() == psutil.STATUS_ZOMBIE:
                continue
            near = str(folder) in " ".join(process.cmdline()) or Path(process.cwd()).is_relative_to(folder)
            if near or (mark and process.environ().get("STAND_IN_MARK") == mark):
                found.append(process)
    return found


class Product:
    """A running stand-in: its output by line, its events, its processes."""

    def __init__(self, folder: Path, port: int, *options: str) -> None:
        self.folder, self.mark = folder, uuid4().hex
        self.out: list[str] = []
        self.err: list[str] = []
        self.process = Popen(
            [sys.executable, "-m", "tests.tasks.stand_in", str(folder), str(port), *options],
            cwd=ROOT,
            env={**os.environ, "STAND_IN_MARK": self.mark},
            stdout=PIPE,
            stderr=PIPE,
            text=True,
            start_new_session=True,
        )
        for stream, lines in ((self.process.stdout, self.out), (self.process.stderr, self.err)):
            Thread(target=lambda stream=stream, lines=lines: lines.extend(stream), daemon=True).start()

    def ready(self) -> Product:
        assert eventually(lambda: self.out or self.process.poll() is not None, 30) is True or self.out, (
            self.err
        )
        assert self.out, self.err
        return self

    def events(self) -> list[dict[str, Any]]:
        log = self.folder / "log" / "supervisor.log"
        lines = log.read_text("utf-8").splitlines() if log.exists() else []
        return [event for event in map(orjson.loads, lines) if event["supervisor"] == self.process.pid]

    def pids(self, name: str) -> list[int]:
        """Of each start of that process, in order."""
        return [e["pid"] for e in self.events() if e["event"] == "started" and e["name"] == name]

    def tree(self) -> list[psutil.Process]:
        me = psutil.Process(self.process.pid)
        return [me, *me.children(recursive=True)]

    def left(self) -> list[psutil.Process]:
        return left_of(self.folder, self.mark)

    def stop(self, number: int = signal.SIGTERM, *, group: bool = False) -> float:
        """Send the signal; seconds until the supervisor has ended."""
        started = time.monotonic()
        (os.killpg if group else os.kill)(self.process.pid, number)
        self.process.wait(15)
        return time.monotonic() - started


@contextmanager
def product(folder: Path, port: int, *options: str) -> Iterator[Product]:
    """A product that is gone at the end, whatever the test did."""
    one = Product(folder, port, *options)
    try:
        yield one
    finally:
        if one.process.poll() is None:
            one.process.terminate()
            one.process.wait(15)
        if one.pids("guardian"):  # it got as far as starting anything
            for process in one.left():
                process.kill()


def main() -> int:
    folder, port, *options = sys.argv[1:]
    settings = settings_in(Path(folder), int(port), bare="bare" in options)

    def python(name: str, code: str, *arguments: str) -> Command:
        return Command(name, (sys.executable, "-c", code, *arguments), stop=((signal.SIGTERM, 1.0),))

    def migrate() -> None:
        if settings.embedded_database:
            ask(settings, "CREATE TABLE IF NOT EXISTS starts (at timestamptz)")
            ask(settings, "INSERT INTO starts VALUES (now())")

    processes = [
        python("web", WEB, port),
        python("worker", WORKER, *options),
        python("scheduler", SCHEDULER),
    ]
    try:
        run_product(
            settings,
            migrate,
            lambda: f"{settings.public_url}/sign-in/x",
            processes=processes,
            parameters=FAST,
        )
    except Misconfigured as fault:
        sys.stderr.write(f"{fault}\n")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

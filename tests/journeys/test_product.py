"""The product itself, as its README starts it: import, delete, kill, stop, start again."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

ROOT = Path(__file__).resolve().parents[2]
FLASK = [sys.executable, "-m", "flask", "--app", "app"]


@dataclass
class Product:
    """One installation: its folder, its port, and the process that runs it."""

    folder: Path
    port: int
    extra: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[str] | None = None

    @property
    def environment(self) -> dict[str, str]:
        ours = {"ALLGONE_DATA_DIR": str(self.folder), "PORT": str(self.port), **self.extra}
        return {**os.environ, **ours}

    def start(self) -> str:
        """Starts it and returns the address that its one line names."""
        self.process = subprocess.Popen(
            [*FLASK, "start"],
            cwd=ROOT,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("Allgone is ready: http://127.0.0.1:"), line
        return line.removeprefix("Allgone is ready: ").strip()

    def stop(self, number: int = signal.SIGTERM) -> None:
        """Ends it by a signal and waits until nothing of it is left."""
        assert self.process is not None
        below = psutil.Process(self.process.pid).children(recursive=True)
        self.process.send_signal(number)
        assert self.process.wait(15) == 0
        assert [one for one in below if _alive(one)] == []

    def command(self, *words: str, code: int = 0) -> Any:
        """A command's JSON document."""
        done = subprocess.run(
            [*FLASK, *words, "--json"],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == code, done.stderr
        return json.loads(done.stdout)

    def ask(self, method: str, path: str, token: str) -> tuple[int, Any]:
        """Status and JSON of a request to /v1."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", method=method, headers={"Authorization": f"Bearer {token}"}
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310  our own loopback address
                body = answer.read()
                return answer.status, json.loads(body) if body else None
        except urllib.error.HTTPError as refused:
            return refused.code, json.loads(refused.read())

    def child(self, name: str) -> psutil.Process:
        """The one process below the product whose command line holds `name`."""
        assert self.process is not None
        for one in psutil.Process(self.process.pid).children(recursive=True):
            try:
                if name in " ".join(one.cmdline()):
                    return one
            except psutil.Error:
                continue
        raise LookupError(name)


def _alive(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def until(condition: Callable[[], bool], what: str, seconds: float = 60.0) -> None:
    """Waits for a condition; its time-out is the failure."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.1)  # between two looks at a condition


@pytest.fixture
def product(tmp_path: Path) -> Iterator[Product]:
    made = Product(tmp_path / "var", free_port())
    yield made
    if made.process is not None and made.process.poll() is None:
        made.process.send_signal(signal.SIGTERM)
        made.process.wait(20)


def export(path: Path, count: int) -> Path:
    """A ShareGPT-style export, the last with a file's bytes as an Open WebUI data URI would not have."""
    rows = [
        {
            "id": f"c{n}",
            "conversations": [{"from": "human", "value": f"Question {n}"}, {"from": "gpt", "value": "Yes."}],
        }
        for n in range(count)
    ]
    path.write_text(json.dumps(rows), "utf-8")
    return path


def claude_with_file(path: Path) -> Path:
    """A Claude export whose first message carries an attachment's text: bytes in the store."""
    message = {
        "uuid": "m1",
        "sender": "human",
        "text": "Read this file",
        "content": [{"type": "text", "text": "Read this file"}],
        "created_at": "2024-12-01T10:00:00Z",
        "attachments": [
            {"file_name": "notes.txt", "file_type": "text/plain", "extracted_content": "secret bytes"}
        ],
        "files": [],
    }
    conversation = {
        "uuid": "claude-1",
        "name": "Files",
        "created_at": "2024-12-01T10:00:00Z",
        "updated_at": "2024-12-01T10:05:00Z",
        "chat_messages": [message],
    }
    path.write_text(json.dumps([conversation]), "utf-8")
    return path


def stored(folder: Path) -> list[str]:
    """The names of the objects that the local store holds."""
    return [path.name for path in (folder / "objects").rglob("*") if path.is_file() and path.name[0] != "."]


def test_import_delete_kill_and_start_again(product: Product, tmp_path: Path) -> None:
    product.start()
    made = product.command(
        "token", "create", "owner@localhost", "--scope", "session.read", "--scope", "session.write"
    )
    token = made["token"]
    rows = export(tmp_path / "export.json", 3)
    assert product.command("import", str(rows), "--user", "owner@localhost")["imported"] == 3
    again = product.command("import", str(rows), "--user", "owner@localhost")
    assert (again["already_there"], again["imported"], again["total"]) == (3, 0, 3)
    file = claude_with_file(tmp_path / "claude.json")
    assert product.command("import", str(file), "--user", "owner@localhost")["imported"] == 1
    assert len(stored(product.folder)) == 1

    status, page = product.ask("GET", "/v1/sessions", token)
    assert status == 200
    assert {row["title"] for row in page["data"]} == {
        "Question 0",
        "Question 1",
        "Question 2",
        "Read this file",
    }
    with_file = next(row for row in page["data"] if row["title"] == "Read this file")
    assert with_file["created_at"] == "2024-12-01T10:00:00.000000Z"
    assert with_file["updated_at"] == "2024-12-01T10:05:00.000000Z"

    assert product.ask("DELETE", f"/v1/sessions/{with_file['id']}", token)[0] == 204
    until(lambda: stored(product.folder) == [], "the bytes go")
    assert product.command("outbox", "status")["owed"] == 0
    deleted = product.command("import", str(file), "--user", "owner@localhost")
    assert (deleted["skipped"], deleted["skips"][0]["reason"]) == (1, "deleted_here")

    # Each process killed outright is noticed and healed, and the history is the same.
    for name in ("gunicorn", "tasks.worker", "tasks.schedule", "valkey-server", "postgres"):
        dead = product.child(name)
        dead.send_signal(signal.SIGKILL)
        until(lambda name=name, dead=dead: _replaced(product, name, dead), f"{name} comes back")
        until(lambda: _ready(product), f"ready after {name}")
    assert len(product.ask("GET", "/v1/sessions", token)[1]["data"]) == 3

    product.stop(signal.SIGINT)
    product.start()
    assert len(product.ask("GET", "/v1/sessions", token)[1]["data"]) == 3
    assert product.ask("GET", f"/v1/sessions/{with_file['id']}", token)[0] == 404
    product.stop()


def test_a_failing_store_owes_and_pays_also_when_the_queue_was_emptied(
    product: Product, tmp_path: Path
) -> None:
    product.start()
    made = product.command(
        "token", "create", "owner@localhost", "--scope", "session.read", "--scope", "session.write"
    )
    file = claude_with_file(tmp_path / "claude.json")
    product.command("import", str(file), "--user", "owner@localhost")
    session_id = product.ask("GET", "/v1/sessions", made["token"])[1]["data"][0]["id"]
    objects = product.folder / "objects"
    objects.rename(product.folder / "away")
    objects.write_text("a plain file where the folder should be", "utf-8")

    assert product.ask("DELETE", f"/v1/sessions/{session_id}", made["token"])[0] == 204
    assert product.ask("DELETE", f"/v1/sessions/{session_id}", made["token"])[0] == 204
    owed = product.command("outbox", "status")
    assert (owed["owed"], owed["blocked"], owed["errors"]) == (1, 1, {"misconfigured": 1})

    _flush_queue(product)
    objects.unlink()
    (product.folder / "away").rename(objects)
    assert len(stored(product.folder)) == 1
    until(lambda: product.command("outbox", "status")["owed"] == 0, "the worker pays what is owed", 150)
    assert stored(product.folder) == []
    product.stop()


def test_a_second_start_says_that_it_is_running(product: Product) -> None:
    product.start()
    second = subprocess.run(
        [*FLASK, "start"], cwd=ROOT, env=product.environment, capture_output=True, text=True, timeout=60
    )
    assert second.returncode == 1
    assert "already running" in second.stderr
    assert len(second.stderr.strip().splitlines()) == 1
    product.stop()


def _replaced(product: Product, name: str, dead: psutil.Process) -> bool:
    try:
        return product.child(name).pid != dead.pid
    except LookupError:
        return False


def _ready(product: Product) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{product.port}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _flush_queue(product: Product) -> None:
    from redis import Redis

    from models.settings import load

    Redis.from_url(load({"ALLGONE_DATA_DIR": str(product.folder)}).redis_url).flushall()

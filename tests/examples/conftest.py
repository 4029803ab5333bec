"""The product's own web server on the tests' engines, and the examples' Python, in which their packages live."""

from __future__ import annotations

import dataclasses
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from models.settings import Settings
from tasks.processes import product_processes
from tasks.resources import Resources
from tests.cast import Player

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv-examples" / "bin" / "python"
ABSENT = "The examples' packages are not installed, so the examples were not run: make examples"


@pytest.fixture
def product(settings: Settings, resources: Resources, tmp_path: Path) -> Iterator[str]:
    """The address of the web processes, started by the very command that the product starts them with."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    web = product_processes(dataclasses.replace(settings, host="127.0.0.1", port=port, public_url=address))[0]
    told = {
        "DATABASE_URL": settings.database_url,
        "REDIS_URL": settings.redis_url,
        "OBJECT_STORE_URL": settings.object_store_url,
        "SECRET_KEY": settings.secret_key,
    }
    environment = {**os.environ, **(web.environ or {}), **told}
    log = tmp_path / "web.log"
    with log.open("wb") as heard:
        process = subprocess.Popen(
            web.argv, cwd=ROOT, env=environment, stdout=heard, stderr=subprocess.STDOUT
        )
    try:
        _wait_for(f"{address}/healthz", process, log)
        yield address
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()


@pytest.fixture(scope="session")
def examples_python() -> Path:
    """The Python of the examples. `make examples` names it, and then it must be there."""
    named = os.environ.get("EXAMPLES_PYTHON")
    if named:
        return Path(named).absolute()
    if not PYTHON.exists():
        pytest.skip(ABSENT)
    return PYTHON


@pytest.fixture
def run_example(examples_python: Path, product: str, alice: Player) -> Callable[..., str]:
    """Runs a file in the examples' Python as alice, with the product's address and a token; returns what it says."""

    def run(file: str, *words: str, seconds: float = 400) -> str:
        token = alice.token()["Authorization"].removeprefix("Bearer ")
        done = subprocess.run(
            [str(examples_python), str(ROOT / file), product, token, *words],
            cwd=ROOT,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "examples"), "PYTHONUTF8": "1"},
            capture_output=True,
            text=True,
            timeout=seconds,
        )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return done.stdout

    return run


def _wait_for(url: str, process: subprocess.Popen[Any], log: Path) -> None:
    until = time.monotonic() + 30
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5):  # noqa: S310  ours, on loopback
                return
        except (urllib.error.URLError, OSError):
            if process.poll() is not None or time.monotonic() > until:
                pytest.fail(f"{sys.executable}: the web did not start.\n{log.read_text()}")
            time.sleep(0.05)

"""A device driven as a person does: processes of `python -m relay.device` on a home directory of the test's own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]


class Typed:
    """One home directory, and what is typed there."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def run(self, *words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-m", "relay.device", "--home", str(self.home), *words]
        return subprocess.run(command, cwd=ROOT, input=stdin, capture_output=True, timeout=60, check=False)

    def json(self, *words: str, stdin: bytes = b"") -> Any:
        """The one JSON document of a command that was done."""
        done = self.run("--json", *words, stdin=stdin)
        assert (done.returncode, done.stderr) == (0, b""), done
        return json.loads(done.stdout)

    def refused(self, *words: str, stdin: bytes = b"", code: int = 1) -> str:
        """What standard error says of a command that was refused; nothing else was printed."""
        done = self.run(*words, stdin=stdin)
        said = done.stderr.decode()
        assert (done.returncode, done.stdout) == (code, b""), done
        assert "Traceback" not in said
        return said

    def remember(self, *texts: str, workspace: str = "default") -> list[str]:
        return [self.json("remember", one, "--workspace", workspace)["key"] for one in texts]

    def texts(self, *words: str) -> list[str]:
        return [one["text"] for one in self.json("memories", *words)["memories"]]


@pytest.fixture
def device_at(tmp_path: Path) -> Callable[[str], Typed]:
    """Makes a device of a name."""

    def make(name: str) -> Typed:
        made = Typed(tmp_path / name)
        assert made.json("init", "--name", name) == {"device": name, "home": str(made.home)}
        return made

    return make


@pytest.fixture
def device(device_at: Callable[[str], Typed]) -> Typed:
    return device_at("laptop")

"""The device as it is installed: in a fresh environment that has neither Flask nor PostgreSQL's driver nor Redis."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.relay.device.conftest import ROOT

WITHOUT = ("flask", "psycopg2", "redis", "rq")


def test_a_fresh_environment_with_the_extra_alone_has_a_working_device(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "env"], check=True, timeout=120)
    python = tmp_path / "env" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    source = tmp_path / "source"
    shown = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    for name in shown.stdout.decode().split("\0"):
        if name.startswith(("models/", "relay/")) or name in {"pyproject.toml", "README.md", "LICENSE"}:
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    subprocess.run(
        [*pip, f"{source}[device]", "-c", ROOT / "requirements.lock"], check=True, timeout=300, cwd=tmp_path
    )

    def typed(*words: str) -> str:
        command = [python, "-m", "relay.device", "--home", tmp_path / "home", *words]
        return subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=60, cwd=tmp_path
        ).stdout

    typed("init", "--name", "laptop")
    key = typed("remember", "Ada bakes on Saturdays").strip()
    assert key in typed("recall", "bakes")
    assert typed("forget", key) == "1 deleted, 1 recorded.\n"
    for name in WITHOUT:
        tried = subprocess.run([python, "-c", f"import {name}"], capture_output=True, check=False, timeout=60)
        assert b"ModuleNotFoundError" in tried.stderr, name


def test_what_a_device_takes_is_pinned_as_the_servers_packages_are() -> None:
    extra = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"][
        "device"
    ]
    pinned = dict(
        re.findall(r"^([\w.-]+)==([\w.]+)", (ROOT / "requirements.txt").read_text("utf-8"), re.MULTILINE)
    )
    for one in extra:
        name, version = one.split("==")
        assert pinned[name] == version

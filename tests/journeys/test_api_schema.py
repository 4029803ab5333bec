"""Schemathesis on the running product: what the document allows is taken, what it forbids is refused, links lead on."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest

from models.settings import Settings
from tasks.resources import Resources
from tests.cast import Player
from tests.served import Served

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def settings(engines: Settings, tmp_path: Path) -> Settings:
    return dataclasses.replace(engines, object_store_url=(tmp_path / "objects").as_uri())


def test_schemathesis_finds_nothing(
    settings: Settings, resources: Resources, alice: Player, tmp_path: Path
) -> None:
    served = Served(settings, tmp_path).start()
    try:
        done = subprocess.run(
            [
                str(Path(sys.executable).with_name("schemathesis")),
                "--config-file",
                str(ROOT / "tests" / "journeys" / "schemathesis.toml"),
                "run",
                f"http://127.0.0.1:{served.port}/v1/openapi.json",
                "--header",
                f"Authorization: {alice.token()['Authorization']}",
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
        )
    finally:
        served.stop()
    assert done.returncode == 0, done.stdout[-20_000:] + served.said()[-2000:]

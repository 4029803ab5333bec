"""Valkey of one data folder: never two of it, and a plain line where there is none."""

from __future__ import annotations

import os
import platform
import signal
import time
from pathlib import Path

import psutil
import pytest
import redis

from models.errors import Misconfigured
from tasks.children import Child
from tasks.embedded import log_folder
from tasks.folder import hold
from tasks.valkey import Valkey
from tests.tasks.stand_in import eventually, settings_in


def test_a_leftover_is_stopped_and_what_it_held_is_kept(tmp_path: Path) -> None:
    settings = settings_in(tmp_path / "d")
    with hold(settings.data_dir, "command"):
        engine = Valkey(settings)
        engine.prepare(time.sleep)
        leftover = Child(engine.command(), log_folder(settings.data_dir))
        assert eventually(engine.ready)
        redis.Redis.from_url(settings.redis_url).set("kept", "yes")
        engine.prepare(time.sleep)
        assert leftover.ended() is not None
        child = Child(engine.command(), log_folder(settings.data_dir))
        assert eventually(engine.ready)
        assert redis.Redis.from_url(settings.redis_url).get("kept") == b"yes"
        child.end()


def test_a_stranger_with_the_number_of_a_dead_one_is_left_alone(tmp_path: Path) -> None:
    settings = settings_in(tmp_path / "d")
    engine = Valkey(settings)
    engine.prepare(time.sleep)
    stranger = psutil.Popen(["sleep", "60"])
    try:
        (engine.folder / "valkey.pid").write_text(f"{stranger.pid}\n")
        (engine.folder / "temp-17.rdb").write_bytes(b"half a snapshot")
        engine.prepare(time.sleep)
        assert stranger.is_running()
        assert list(engine.folder.iterdir()) == []
    finally:
        os.kill(stranger.pid, signal.SIGKILL)
        stranger.wait()


def test_a_platform_without_a_binary_is_told_to_set_redis_url(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.raises(
        Misconfigured, match=r"^REDIS_URL: no Valkey comes with Allgone on \w+ riscv64; set it to one$"
    ):
        Valkey(settings_in(tmp_path / "d"))

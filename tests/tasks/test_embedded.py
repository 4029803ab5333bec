"""The engines of one machine: they keep their data, are their owner's alone, and are lent to commands."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import pytest
import redis

from models.errors import Misconfigured
from models.settings import Settings, socket_folder
from tasks.embedded import engines, reach_engines, running_engines
from tasks.folder import Busy
from tests.tasks.stand_in import FAST, ROOT, ask, eventually, left_of, settings_in
from tests.tasks.strangers import as_another_user

COMMAND = """
import sys
from pathlib import Path
from tasks.embedded import reach_engines
from tests.tasks.stand_in import settings_in
with reach_engines(settings_in(Path(sys.argv[1]))):
    print("reached", flush=True)
    sys.stdin.readline()
"""


def _command(folder: Path) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    argv = [sys.executable, "-c", COMMAND, str(folder)]
    return subprocess.Popen(argv, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def _connect(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))


def _queues(settings: Settings) -> redis.Redis:
    return redis.Redis.from_url(settings.redis_url)


def _modes_above(folder: Path) -> list[int]:
    return [stat.S_IMODE(one.stat().st_mode) for one in folder.parents]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Settings, list[int]]]:
    """Engines in a deep, oddly named folder below closed ones, and the modes above it before their start.

    Deep, so that the sockets are in the system's folder for short-lived files, where others can look.
    """
    parent = tmp_path_factory.mktemp("closed") / 'a "quoted", odd name' / ("very deep " * 15)
    parent.mkdir(parents=True, mode=0o700)
    settings = settings_in(parent / "d")
    settings.data_dir.chmod(0o755)  # made by hand, as people do
    before = _modes_above(settings.data_dir)
    with running_engines(settings, FAST):
        yield settings, before
    assert _modes_above(settings.data_dir) == before
    assert not socket_folder(settings.data_dir).exists()


@pytest.fixture
def settings(running: tuple[Settings, list[int]]) -> Settings:
    return running[0]


def test_rows_and_queues_survive_a_restart(tmp_path: Path) -> None:
    settings = settings_in(tmp_path / "d")
    with running_engines(settings, FAST):
        ask(settings, "CREATE TABLE kept AS SELECT 'a row' AS word")
        _queues(settings).rpush("queue", "a job")
    with running_engines(settings, FAST):
        assert ask(settings, "SELECT word FROM kept") == "a row"
        assert _queues(settings).lrange("queue", 0, -1) == [b"a job"]
    assert left_of(tmp_path) == []


def test_the_database_is_utf_8_and_sorts_the_same_everywhere(settings: Settings) -> None:
    assert ask(settings, "SHOW server_encoding") == "UTF8"
    assert ask(settings, "SELECT datlocale FROM pg_database WHERE datname = current_database()") == "C.UTF-8"
    assert ask(settings, "SHOW fsync") == "off"
    assert ask(settings, "SHOW shared_buffers") == "128MB"


def test_a_start_loosens_no_mode_and_everything_inside_is_the_owners_alone(
    running: tuple[Settings, list[int]],
) -> None:
    settings, before = running
    assert _modes_above(settings.data_dir) == before
    sockets = socket_folder(settings.data_dir)
    assert not sockets.is_relative_to(settings.data_dir)
    inside = [settings.data_dir, *settings.data_dir.rglob("*"), sockets, *sockets.iterdir()]
    found = {path: path.lstat() for path in inside if path.exists()}  # PostgreSQL's own come and go
    assert {path for path, one in found.items() if one.st_mode & 0o077} == set()
    assert {one.st_uid for one in found.values()} == {os.geteuid()}


def test_nothing_listens_on_tcp(settings: Settings) -> None:
    ours = {process.pid for process in left_of(settings.data_dir)}
    assert len(ours) > 2
    assert [one for one in psutil.net_connections("inet") if one.pid in ours] == []
    assert ask(settings, "SHOW listen_addresses") == ""
    assert _queues(settings).config_get("port") == {"port": "0"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_another_user_reaches_neither_engine(settings: Settings) -> None:
    sockets = socket_folder(settings.data_dir)
    for name in (".s.PGSQL.5432", "valkey.sock"):
        _connect(sockets / name)
        refused = as_another_user(lambda name=name: _connect(sockets / name))
        assert refused.startswith("PermissionError")
    assert "Permission denied" in as_another_user(lambda: ask(settings, "SELECT 1"))


def test_the_owner_needs_the_password_too(settings: Settings) -> None:
    wrong = replace(settings, database_url=settings.database_url.replace("allgone:", "allgone:x"))
    with pytest.raises(Misconfigured, match=r"postgres\.password does not open"):
        engines(wrong)[0].ready()


def test_two_data_folders_run_side_by_side(settings: Settings, tmp_path: Path) -> None:
    other = settings_in(tmp_path / "other")
    with running_engines(other, FAST):
        ask(settings, "CREATE TABLE only_here ()")
        _queues(settings).set("key", "one")
        assert ask(other, "SELECT to_regclass('only_here')") is None
        assert _queues(other).get("key") is None


def test_quotes_and_blanks_in_a_short_path() -> None:
    with TemporaryDirectory() as short:  # so that the sockets are inside
        settings = settings_in(Path(short) / "a \"q\" 'x' \\ k=v b")
        assert socket_folder(settings.data_dir).is_relative_to(settings.data_dir)
        with running_engines(settings, FAST):
            assert ask(settings, "SELECT 1") == 1
            assert "run/valkey.sock" in _queues(settings).client_info()["addr"]  # RQ's worker reads it


def test_a_comma_in_a_short_path_is_refused_by_name() -> None:
    with TemporaryDirectory() as short:
        settings = settings_in(Path(short) / "a, b")
        if socket_folder(settings.data_dir).is_relative_to(settings.data_dir):
            with pytest.raises(Misconfigured, match="holds a comma"), running_engines(settings, FAST):
                pass
        else:
            with running_engines(settings, FAST):
                assert ask(settings, "SELECT 1") == 1


def test_an_engine_that_is_somebody_elses_is_not_run(tmp_path: Path) -> None:
    settings = settings_in(tmp_path / "d", bare=True)
    assert engines(settings) == []
    with reach_engines(settings), running_engines(settings):
        assert left_of(tmp_path) == []
    assert [engine.name for engine in engines(replace(settings, embedded_redis=True))] == ["valkey"]


def test_a_folder_in_use_is_refused(settings: Settings) -> None:
    with (
        pytest.raises(Busy, match=rf"^a command of Allgone is using .* \(process {os.getpid()}\)"),
        running_engines(settings),
    ):
        pass
    assert ask(settings, "SELECT 1") == 1


@pytest.fixture(scope="module")
def idle(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A data folder with a cluster in it that nobody runs; tests leave it so."""
    made = settings_in(tmp_path_factory.mktemp("idle") / "d")
    with running_engines(made, FAST):
        pass
    return made


def test_a_command_runs_the_engines_for_itself_and_stops_them(idle: Settings) -> None:
    with reach_engines(idle):
        assert ask(idle, "SELECT 1") == 1
    assert left_of(idle.data_dir) == []


def test_a_second_command_rides_with_the_first_which_waits_for_it(idle: Settings) -> None:
    with _command(idle.data_dir) as first:
        assert first.stdout is not None
        assert first.stdin is not None
        assert first.stdout.readline() == "reached\n"
        with _command(idle.data_dir) as second:
            assert second.stdout is not None
            assert second.stdout.readline() == "reached\n"
            first.stdin.write("done\n")
            first.stdin.flush()
            assert not eventually(lambda: first.poll() is not None, 0.3)
            assert ask(idle, "SELECT 1") == 1
            second.communicate("done\n", timeout=10)
            assert second.returncode == 0
        assert first.wait(10) == 0
    assert left_of(idle.data_dir) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_command_that_is_stopped_takes_its_engines_along(idle: Settings, number: signal.Signals) -> None:
    with _command(idle.data_dir) as command:
        assert command.stdout is not None
        assert command.stdout.readline() == "reached\n"
        command.send_signal(number)
        command.wait(10)
    assert left_of(idle.data_dir) == []


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the next start ends them")
def test_a_command_that_is_killed_takes_its_engines_along(idle: Settings) -> None:
    with _command(idle.data_dir) as command:
        assert command.stdout is not None
        assert command.stdout.readline() == "reached\n"
        command.kill()
        command.wait(10)
    assert eventually(lambda: not left_of(idle.data_dir))

"""The whole product on one machine: start, one line, healing, and an end that leaves nothing."""

from __future__ import annotations

import os
import signal
import socket
import sys
from pathlib import Path

import psutil
import psycopg2
import pytest
import redis

from models.settings import Settings
from tasks.children import vanished
from tasks.listening import answers
from tasks.processes import product_processes
from tests.tasks.stand_in import ask, eventually, product, settings_in

NAMES = ("guardian", "postgres", "valkey", "web", "worker", "scheduler")


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _gone(processes: list[psutil.Process], seconds: float = 10.0) -> list[psutil.Process]:
    eventually(lambda: all(vanished(one) for one in processes), seconds)
    return [one for one in processes if not vanished(one)]


def test_a_start_prints_one_line_and_sigterm_ends_everything_in_order(tmp_path: Path, port: int) -> None:
    with product(tmp_path / "d", port) as running:
        running.ready()
        tree = running.tree()
        assert running.stop(signal.SIGTERM) < 10
        assert running.process.returncode == 0
        assert _gone(tree, 1) == []
        assert running.left() == []
        assert running.out == [f"Allgone is ready: http://127.0.0.1:{port}/sign-in/x\n"]
        assert [len(running.pids(name)) for name in NAMES] == [1] * len(NAMES)
        assert [event["event"] for event in running.events()][-3:] == ["ready", "stopping", "stopped"]
        assert all(line.startswith("{") for line in running.err)


def test_ctrl_c_reaches_the_whole_group_and_ends_everything(tmp_path: Path, port: int) -> None:
    with product(tmp_path / "d", port) as running:
        running.ready()
        tree = running.tree()
        assert running.stop(signal.SIGINT, group=True) < 10
        assert running.process.returncode == 0
        assert _gone(tree, 1) == []
        assert "KeyboardInterrupt" not in "".join(running.err)


def test_sighup_ends_even_processes_that_will_not_end(tmp_path: Path, port: int) -> None:
    with product(tmp_path / "d", port, "bare", "stubborn") as running:
        running.ready()
        tree = running.tree()
        assert running.stop(signal.SIGHUP) < 10
        assert running.process.returncode == 0
        assert _gone(tree, 1) == []


def test_each_process_that_is_killed_is_noticed_within_a_second_and_replaced(
    tmp_path: Path, port: int
) -> None:
    folder = tmp_path / "d"
    settings = settings_in(folder, port)
    with product(folder, port) as running:
        running.ready()
        worker = psutil.Process(running.pids("worker")[0])
        horse = eventually(worker.children)[0]
        for name in NAMES:
            os.kill(running.pids(name)[0], signal.SIGKILL)
        assert eventually(
            lambda: {e["name"] for e in running.events() if e["event"] == "died"} == set(NAMES), 1.5
        )
        assert eventually(lambda: all(len(running.pids(name)) == 2 for name in NAMES), 5)
        assert vanished(horse)  # what the dead worker left behind
        assert eventually(lambda: answers("127.0.0.1", port, "/readyz"))
        assert eventually(lambda: _answers_again(settings))
        tree = running.tree()
        assert running.stop() < 10
        assert _gone(tree, 1) == []


def _answers_again(settings: Settings) -> bool:
    try:
        kept = ask(settings, "SELECT count(*) FROM starts") == 1
        return kept and bool(redis.Redis.from_url(settings.redis_url).ping())
    except (psycopg2.OperationalError, redis.RedisError):
        return False


def test_a_killed_supervisor_leaves_nothing_and_the_next_start_goes_on(tmp_path: Path, port: int) -> None:
    folder = tmp_path / "d"
    with product(folder, port) as running:
        running.ready()
        assert eventually(lambda: psutil.Process(running.pids("worker")[0]).children())
        tree = running.tree()
        running.stop(signal.SIGKILL)
        assert _gone(tree, 10) == []
        assert eventually(lambda: not running.left())
    with product(folder, port) as again:
        again.ready()
        assert ask(settings_in(folder, port), "SELECT count(*) FROM starts") == 2


def test_the_next_start_need_not_wait_for_the_leftovers_of_a_kill(tmp_path: Path, port: int) -> None:
    folder = tmp_path / "d"
    with product(folder, port) as running:
        running.ready()
        guardian, postgres = running.pids("guardian")[0], psutil.Process(running.pids("postgres")[0])
        postgres.suspend()  # it cannot hear the kernel's signal yet: the leftover of a machine under load
        os.kill(guardian, signal.SIGKILL)
        running.stop(signal.SIGKILL)
        assert not vanished(postgres)
        postgres.resume()
        with product(folder, port + 1) as again:
            again.ready()
            assert vanished(postgres)
            assert ask(settings_in(folder, port), "SELECT count(*) FROM starts") == 2


def test_a_process_that_keeps_ending_ends_everything_with_one_line(tmp_path: Path, port: int) -> None:
    with product(tmp_path / "d", port, "bare", "failing") as running:
        assert running.process.wait(30) == 1
        said = [line for line in running.err if not line.startswith("{")]
        assert len(said) == 1
        assert "worker ended 5 times within 60 s" in said[0]
        assert "no work today" in said[0]
        assert eventually(lambda: not running.left(), 2)


def test_a_second_start_on_the_same_folder_is_refused_and_harms_nothing(tmp_path: Path, port: int) -> None:
    with product(tmp_path / "d", port) as running:
        running.ready()
        with product(tmp_path / "d", port) as second:
            assert second.process.wait(15) == 1
            pid = running.process.pid
            assert second.err == [f"Allgone is already running on {tmp_path / 'd'} (process {pid})\n"]
        assert answers("127.0.0.1", port, "/readyz")
        assert ask(settings_in(tmp_path / "d"), "SELECT count(*) FROM starts") == 1


def test_a_port_in_use_ends_the_start_with_one_line_that_names_it(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with product(tmp_path / "d", taken.getsockname()[1]) as running:
            assert running.process.wait(15) == 1
            said = [line for line in running.err if not line.startswith("{")]
            assert len(said) == 1
            assert said[0].startswith("PORT: ")
            assert running.pids("postgres") == []


@pytest.mark.parametrize("moment", ["initdb", "single", "postgres", "web"])
def test_a_signal_during_the_first_start_leaves_nothing_half_made(
    tmp_path: Path, port: int, moment: str
) -> None:
    folder = tmp_path / "d"

    def reached() -> bool:
        if moment == "initdb":
            return any(folder.glob("postgres.new-*/data/PG_VERSION"))
        if moment == "single":
            return any(folder.glob("postgres.new-*/data/postmaster.pid"))
        return bool(running.pids(moment))

    with product(folder, port) as running:
        assert eventually(reached)
        assert running.stop() < 10
        assert running.process.returncode == 0
        assert running.out == []
        assert eventually(lambda: not running.left(), 1)
        assert list(folder.glob("postgres.new-*")) == []
    with product(folder, port) as again:
        again.ready()


def test_the_product_runs_web_worker_and_scheduler_with_the_settings_it_was_given(tmp_path: Path) -> None:
    web, worker, importer, scheduler = product_processes(settings_in(tmp_path, 8123))
    made = (web, worker, importer, scheduler)
    assert [one.name for one in made] == ["web", "worker", "importer", "scheduler"]
    assert (worker.argv[3:], importer.argv[3:]) == (("allgone",), ("allgone-imports",))
    assert web.argv[:5] == (sys.executable, "-m", "gunicorn", "app:create_app()", "--bind")
    assert web.argv[5] == "127.0.0.1:8123"
    assert worker.environ is not None
    assert worker.environ["ALLGONE_DATA_DIR"] == str(tmp_path)
    assert sum(grace for one in made for _, grace in one.stop) <= 5

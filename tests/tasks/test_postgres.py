"""PostgreSQL of one data folder: made whole or not at all, and never two of it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import psutil
import pytest

from models.errors import Misconfigured
from models.settings import Settings, socket_folder
from tasks.children import Child
from tasks.embedded import log_folder, running_engines
from tasks.postgres import Postgres
from tests.tasks.stand_in import FAST, ask, eventually, settings_in


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A data folder with a cluster in it that nobody runs; tests leave it so."""
    made = settings_in(tmp_path_factory.mktemp("made") / "d")
    with running_engines(made, FAST):
        ask(made, "CREATE TABLE kept ()")
    return made


def test_a_half_made_cluster_is_thrown_away_and_made_anew(tmp_path: Path) -> None:
    settings = settings_in(tmp_path / "d")
    half = settings.data_dir / "postgres.new-abandoned" / "data"
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("18\n")
    with running_engines(settings, FAST):
        assert ask(settings, "SELECT 1") == 1
    assert not half.parent.exists()


def test_a_leftover_postmaster_is_stopped_before_a_new_one_starts(settings: Settings) -> None:
    engine = Postgres(settings, FAST)
    engine.prepare(time.sleep)
    leftover = Child(engine.command(), log_folder(settings.data_dir))
    assert eventually(engine.ready)
    try:
        with running_engines(settings, FAST):
            assert leftover.ended() == 0
            assert ask(settings, "SELECT to_regclass('kept')") == "kept"
    finally:
        leftover.end()


def test_a_killed_postmaster_recovers(settings: Settings) -> None:
    engine = Postgres(settings, FAST)
    engine.prepare(time.sleep)
    killed = Child(engine.command(), log_folder(settings.data_dir))
    assert eventually(engine.ready)
    ask(settings, "CREATE TABLE committed ()")
    os.kill(killed.process.pid, signal.SIGKILL)
    assert eventually(lambda: killed.ended() == -signal.SIGKILL)
    with running_engines(settings, FAST):
        assert ask(settings, "SELECT to_regclass('committed')") == "committed"


def test_a_stranger_that_got_the_number_of_a_dead_postmaster_is_left_alone(settings: Settings) -> None:
    stranger = psutil.Popen(["sleep", "60"])
    try:
        stale = f"{stranger.pid}\n{settings.data_dir / 'postgres'}\n1\n5432\n\n\n\nready\n"
        (settings.data_dir / "postgres" / "postmaster.pid").write_text(stale)
        (socket_folder(settings.data_dir) / ".s.PGSQL.5432.lock").write_text(stale)
        with running_engines(settings, FAST):
            assert ask(settings, "SELECT 1") == 1
            assert stranger.is_running()
    finally:
        stranger.kill()
        stranger.wait()


def test_data_of_another_release_is_refused_by_name(tmp_path: Path) -> None:
    settings = settings_in(tmp_path / "d")
    (settings.data_dir / "postgres").mkdir(mode=0o700)
    with pytest.raises(Misconfigured, match="is no PostgreSQL data"), running_engines(settings):
        pass
    (settings.data_dir / "postgres" / "PG_VERSION").write_text("17\n")
    with (
        pytest.raises(Misconfigured, match="is of PostgreSQL 17; this release runs 18"),
        running_engines(settings),
    ):
        pass


def test_an_engine_that_cannot_start_says_why_in_one_line(settings: Settings) -> None:
    with (
        pytest.raises(Misconfigured, match=r"^PostgreSQL did not start: .*shared_bufers"),
        running_engines(settings, {**FAST, "shared_bufers": "1"}),
    ):
        pass


def test_the_log_holds_no_value_of_a_failed_statement(settings: Settings) -> None:
    with running_engines(settings, FAST):
        with pytest.raises(Exception, match="a secret title"):
            ask(settings, "SELECT 'a secret title'::integer")
        ask(settings, "CREATE TABLE one (title text PRIMARY KEY)")
        ask(settings, "INSERT INTO one VALUES ('a secret title')")
        with pytest.raises(Exception, match="duplicate key"):
            ask(settings, "INSERT INTO one VALUES ('a secret title')")
    assert "secret" not in (settings.data_dir / "log" / "postgres.log").read_text()

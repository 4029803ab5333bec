"""A worker that died locks nobody out: scheduler and worker processes end its run within two lease times."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from models.settings import Settings
from tasks.resources import Resources
from tests.cast import Player
from tests.models.graph import rows
from tests.models.racing import wait_for
from tests.served import ROOT


def test_a_dead_workers_run_is_expired_within_two_lease_times(
    settings: Settings, resources: Resources, alice: Player
) -> None:
    ours = {
        "ALLGONE_DATA_DIR": str(settings.data_dir),
        "DATABASE_URL": settings.database_url,
        "REDIS_URL": settings.redis_url,
        "OBJECT_STORE_URL": settings.object_store_url,
        "SECRET_KEY": settings.secret_key,
    }
    started = [
        subprocess.Popen(
            [sys.executable, "-m", name],
            cwd=ROOT,
            env={**os.environ, **ours},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for name in ("tasks.worker", "tasks.schedule")
    ]
    try:
        first = alice.converse("warm")
        lapsed = alice.start_run(first)
        with resources.engine.begin() as connection:
            connection.exec_driver_sql("UPDATE runs SET lease_expires_at = now()")
        wait_for(lambda: status(resources, lapsed) == "expired", 60)  # both processes are up
        session_id = alice.converse("go")
        run_id = alice.start_run(session_id, lease_seconds=5)
        began = time.monotonic()
        wait_for(lambda: status(resources, run_id) == "expired")
        assert 4.9 < time.monotonic() - began < 10
        assert rows(
            resources, "SELECT active_run_id, last_run_id FROM sessions WHERE id = :id", id=session_id
        ) == [(None, run_id)]
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait(20)


def status(resources: Resources, run_id: str) -> str:
    return str(rows(resources, "SELECT status FROM runs WHERE id = :id", id=run_id)[0][0])

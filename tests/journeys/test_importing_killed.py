"""kill -9 of the worker in the middle of an import: it goes on, nothing is doubled, and the counts are those of one."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from sqlalchemy.orm import Session

from models import import_requests
from models.imports import Import
from models.settings import Settings
from tasks.imports.arriving import arrive
from tasks.imports.jobs import work_later
from tasks.outbox import drain_due
from tasks.queues import IMPORTS, NAME
from tasks.resources import Resources
from tests.cast import Player
from tests.models.graph import count, rows, stored
from tests.models.racing import wait_for
from tests.tasks.imports.exports import chatgpt
from tests.tasks.imports.histories import put

ROOT = Path(__file__).resolve().parents[2]
CONVERSATIONS, BROKEN = 300, 7


@pytest.fixture
def settings(settings: Settings, tmp_path: Path) -> Settings:
    """The worker has a data folder of its own, in which nothing may be left."""
    (tmp_path / "data").mkdir()
    return dataclasses.replace(settings, data_dir=tmp_path / "data")


@dataclasses.dataclass
class Worker:
    """`python -m tasks.worker`, with its work-horse."""

    settings: Settings
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        settings = self.settings
        told = {
            "ALLGONE_DATA_DIR": str(settings.data_dir),
            "DATABASE_URL": settings.database_url,
            "REDIS_URL": settings.redis_url,
            "OBJECT_STORE_URL": settings.object_store_url,
            "SECRET_KEY": settings.secret_key,
        }
        command = [sys.executable, "-m", "tasks.worker", IMPORTS, NAME]
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **told},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def kill(self) -> None:
        """kill -9 of it and of what it forked."""
        assert self.process is not None
        parent = psutil.Process(self.process.pid)
        all_of_it = [parent, *parent.children(recursive=True)]
        for one in all_of_it:
            one.kill()
        psutil.wait_procs(all_of_it, 10)
        self.process.wait(10)


@pytest.fixture
def worker(settings: Settings, resources: Resources) -> Iterator[Worker]:
    made = Worker(settings)
    yield made
    if made.process is not None and made.process.poll() is None:
        made.kill()


def look(resources: Resources, player: Player, import_id: str) -> Import:
    with Session(resources.engine) as db:
        return import_requests.find(db, player.owner, import_id)


def done(resources: Resources, player: Player, import_id: str, at_least: int) -> bool:
    row = look(resources, player, import_id)
    assert row.state in ("queued", "running"), row.state
    return row.done >= at_least


def lapse(resources: Resources) -> None:
    """What half a minute does: the dead worker's lease is over, and the sweep queues the import again."""
    with resources.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE imports SET lease_until = clock_timestamp()")


def test_an_import_whose_worker_is_killed_again_and_again_goes_on_and_doubles_nothing(
    resources: Resources, alice: Player, worker: Worker, settings: Settings, tmp_path: Path
) -> None:
    items = [chatgpt(n) for n in range(CONVERSATIONS)]
    for n in range(BROKEN):
        items.insert(n * 40, {"mapping": {}, "title": f"broken {n}"})
    path = put(tmp_path / "f.json", *items)
    import_id = arrive(resources, alice.owner, "export.json", [path.read_bytes()])
    for at in (1, 100, 200):
        worker.start()
        work_later(resources, import_id)
        wait_for(lambda at=at: done(resources, alice, import_id, at), 60)
        worker.kill()
        resources.redis.flushall()  # Redis may lose everything, too
        lapse(resources)
    worker.start()
    work_later(resources, import_id)
    wait_for(lambda: look(resources, alice, import_id).over, 60)
    row = look(resources, alice, import_id)
    assert (row.state, row.error) == ("done", None)
    assert (row.imported, row.created, row.already_there) == (CONVERSATIONS, CONVERSATIONS, 0)
    assert (row.skipped, row.failed, row.total) == (0, BROKEN, CONVERSATIONS + BROKEN)
    assert count(resources, "sessions") == CONVERSATIONS
    assert count(resources, "events") == 2 * CONVERSATIONS
    assert rows(resources, "SELECT count(*) FROM sessions WHERE import_id = :i", i=import_id) == [
        (CONVERSATIONS,)
    ]
    with Session(resources.engine) as db:
        named = [one.conversation for one in import_requests.failures(db, import_id)]
    assert named == [f"broken {n}" for n in range(BROKEN)]
    assert list(settings.data_dir.glob("import-*")) == []  # the copy of a killed worker had no name
    with Session(resources.engine) as db, db.begin():
        import_requests.forget(db, alice.owner, import_id)
    deadline = time.monotonic() + 20
    while stored(resources) and time.monotonic() < deadline:
        drain_due(resources)
    assert stored(resources) == []

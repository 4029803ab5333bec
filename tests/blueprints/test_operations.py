"""Health, readiness and the operator's pages, which do not exist for anyone else."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy.orm import Session

from models import schedule
from models.schedule import Recurring
from tasks.queues import later, open_queue, open_redis
from tasks.resources import Resources
from tests.cast import Cast, Player
from tests.models.graph import attach
from tests.s3_server import free_port

SignInAs = Callable[[FlaskClient, Player], None]
PAGES = (
    "/operations/",
    "/operations",
    "/operations/rq/",
    "/operations/rq/0/view/queues",
    "/operations/nothing",
)


def beat(resources: Resources) -> None:
    with Session(resources.engine) as db, db.begin():
        schedule.beat(db)


def test_health_asks_nobody(client: FlaskClient) -> None:
    answer = client.get("/healthz")
    assert (answer.status_code, answer.text) == (200, "ok\n")


def test_it_is_ready_when_everything_answers(client: FlaskClient, resources: Resources) -> None:
    beat(resources)
    answer = client.get("/readyz")
    assert answer.status_code == 200
    assert answer.json == dict.fromkeys(("database", "migrations", "redis", "store", "scheduler"), "ok")


def test_each_part_that_is_wrong_is_named_and_the_others_are_well(
    app: Flask, client: FlaskClient, resources: Resources
) -> None:
    """FAULTS.md S101: a scheduler that nobody saw is red."""

    def wrong() -> dict[str, str]:
        answer = client.get("/readyz")
        assert answer.status_code == 503
        assert answer.json is not None
        return {name: said for name, said in answer.json.items() if said != "ok"}

    assert set(wrong()) == {"scheduler"}
    with resources.engine.begin() as connection:
        connection.execute(Recurring.__table__.insert().values(name="scheduler", last_at=schedule.EARLIEST))
    assert set(wrong()) == {"scheduler"}
    beat(resources)
    held = app.extensions["allgone"]
    away = open_redis(f"redis://127.0.0.1:{free_port()}")
    app.extensions["allgone"] = dataclasses.replace(held, redis=away, queue=open_queue(away))
    assert set(wrong()) == {"redis"}
    app.extensions["allgone"] = held
    folder = Path(held.settings.object_store_url.removeprefix("file://"))
    if folder.exists():
        folder.rename(folder.with_name("moved"))
    folder.write_text("a file where the folder should be")
    assert set(wrong()) == {"store"}


@pytest.mark.parametrize("path", PAGES)
def test_the_operators_pages_do_not_exist_for_anyone_else(
    client: FlaskClient, cast: Cast, sign_in: SignInAs, path: str
) -> None:
    assert client.get(path).status_code == 404
    assert client.get(path, headers=cast.olivia.token()).status_code == 404  # a token is for /v1 alone
    sign_in(client, cast.alice)
    for method in ("GET", "POST", "DELETE"):
        assert client.open(path, method=method).status_code in (404, 405) or method != "GET"
    assert client.get(path).status_code == 404


def test_an_operator_sees_the_backlog_as_the_database_knows_it(
    client: FlaskClient, cast: Cast, sign_in: SignInAs, resources: Resources
) -> None:
    """FAULTS.md S108."""
    session_id = cast.alice.converse("Confidential words")
    (key,) = attach(resources, cast.alice, session_id, b"x")
    with resources.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE artifacts SET name = 'Confidential file'")
        connection.exec_driver_sql(
            "INSERT INTO outbox (key, session_id, next_attempt_at, error, created_at) "
            f"VALUES ('{key}', '{session_id}', now() + interval '1 hour', 'credentials', now() - interval '1 hour')"
        )
    sign_in(client, cast.olivia)
    page = client.get("/operations/")
    assert page.status_code == 200
    assert "credentials" in page.text
    assert "Confidential" not in page.text


def test_the_pages_work_without_redis(app: Flask, client: FlaskClient, cast: Cast, sign_in: SignInAs) -> None:
    held = app.extensions["allgone"]
    away = open_redis(f"redis://127.0.0.1:{free_port()}")
    app.extensions["allgone"] = dataclasses.replace(held, redis=away, queue=open_queue(away))
    sign_in(client, cast.olivia)
    assert client.get("/operations/").status_code == 200
    app.extensions["allgone"] = held


def test_the_dashboard_opens_for_an_operator_and_changes_nothing_for_other_sites(
    client: FlaskClient, cast: Cast, sign_in: SignInAs, resources: Resources
) -> None:
    later(resources.queue, "tasks.outbox.drain")
    sign_in(client, cast.olivia)
    assert client.get("/operations/rq/", follow_redirects=True).status_code == 200
    empty = "/operations/rq/queue/allgone/empty"
    for origin in (
        {},
        {"Origin": "null"},
        {"Origin": "https://evil.example"},
        {"Origin": "http://localhost.evil"},
    ):
        assert client.post(empty, headers=origin).status_code in (400, 404)
    job_id = resources.queue.job_ids[0]
    for path in (
        f"/operations/rq/job/{job_id}/requeue",
        "/operations/rq/requeue/allgone",
        "/operations/rq/requeue/all",
    ):
        assert client.get(path).status_code in (404, 405)
    assert resources.queue.count == 1

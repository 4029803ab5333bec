"""For operators: health, readiness, the backlog, and the RQ dashboard under `/operations/rq/` (PRODUCT.md 8).

All but the two health answers are behind an operator's sign-in; to everyone else they do not exist.
"""

from __future__ import annotations

from typing import Any

import orjson
import rq_dashboard
from flask import Blueprint, Flask, Response, render_template, request
from redis.exceptions import RedisError
from rq import Worker
from rq.serializers import JSONSerializer
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from blueprints import access
from blueprints.database import resources, transaction
from models import outbox, schedule
from models.bytestore import StoreFault
from models.errors import NotFound
from models.migrations import at_head

SCHEDULER_SECONDS = 30.0  # a scheduler that was not seen for so long counts as gone
RQ_PREFIX = "/operations/rq"

operations = Blueprint("operations", __name__)


def mount(app: Flask) -> None:
    """Mounts the pages and, under its own prefix and guard, the RQ dashboard."""
    app.register_blueprint(operations)
    app.config["RQ_DASHBOARD_REDIS_URL"] = app.extensions["allgone"].settings.redis_url
    rq_dashboard.web.setup_rq_connection(app)
    rq_dashboard.web.config.serializer = JSONSerializer
    app.register_blueprint(rq_dashboard.blueprint, url_prefix=RQ_PREFIX)
    app.before_request(_guard)


@operations.get("/healthz")
def healthz() -> Response:
    """The process answers; asks nothing of anyone."""
    return Response("ok\n", content_type="text/plain")


@operations.get("/readyz")
def readyz() -> Response:
    """Database, migrations, Redis, store and scheduler, each `ok` or what is wrong; 503 when any is wrong."""
    checks = {name: check() for name, check in CHECKS.items()}
    ready = all(said == "ok" for said in checks.values())
    return Response(orjson.dumps(checks), 200 if ready else 503, content_type="application/json")


@operations.get("/operations/")
def overview() -> str:
    """The backlog as PostgreSQL knows it, and the queue's own figures as a hint."""
    with transaction() as db:
        backlog = outbox.backlog(db)
    return render_template("operations.html", backlog=backlog, queue=_queue_figures(), checks=_checks())


def _checks() -> dict[str, str]:
    return {name: check() for name, check in CHECKS.items()}


def _queue_figures() -> dict[str, Any] | None:
    held = resources()
    try:
        return {
            "waiting": held.queue.count,
            "failed": held.queue.failed_job_registry.count,
            "workers": Worker.count(connection=held.redis),
        }
    except RedisError:
        return None


def _database() -> str:
    try:
        with resources().reader.connect() as connection:
            connection.execute(text("SELECT 1"))
    except SQLAlchemyError:
        return "PostgreSQL does not answer"
    return "ok"


def _migrations() -> str:
    try:
        return "ok" if at_head(resources().reader) else "run: flask --app app db upgrade"
    except SQLAlchemyError:
        return "unknown while PostgreSQL does not answer"


def _redis() -> str:
    try:
        resources().redis.ping()
    except RedisError:
        return "Redis does not answer"
    return "ok"


def _store() -> str:
    try:
        resources().store.check()
    except StoreFault as fault:
        return str(fault) if access.is_operator() else fault.fault  # the sentence names folders and buckets
    return "ok"


def _scheduler() -> str:
    try:
        with transaction() as db:
            seen = schedule.seconds_since_beat(db)
    except SQLAlchemyError:
        return "unknown while PostgreSQL does not answer"
    if seen is None:
        return "no scheduler was seen yet"
    return "ok" if seen <= SCHEDULER_SECONDS else f"no scheduler for {seen:.0f} s"


CHECKS = {
    "database": _database,
    "migrations": _migrations,
    "redis": _redis,
    "store": _store,
    "scheduler": _scheduler,
}


def _guard() -> None:
    if not (request.path == "/operations" or request.path.startswith("/operations/")):
        return
    access.operators_only()
    if request.path.startswith(RQ_PREFIX):
        # The dashboard's forms carry no CSRF token, and one of its GETs changes state (PARTS.md).
        origin = request.headers.get("Origin")
        if request.method != "GET" and origin != resources().settings.public_url:
            raise NotFound("There is nothing at this address.")
        if request.method == "GET" and "/requeue/" in request.path:
            raise NotFound("There is nothing at this address.")

"""`outbox status|drain`, `store check [--repair]`, `queues status`."""

from __future__ import annotations

from datetime import UTC, datetime

import click
from rq import Worker
from sqlalchemy.orm import Session

from blueprints.api.wire import time_text
from blueprints.commands.terminal import command, held, json_option, say
from models import outbox, schedule
from models.bytestore import StoreFault
from models.errors import InvalidState
from tasks.outbox import drain_all
from tasks.store import check_store


@click.group("outbox")
def outbox_group() -> None:
    """Bytes that are owed a deletion."""


@outbox_group.command("status")
@json_option
@command
def outbox_status(as_json: bool) -> None:
    """Say what is owed, and why it still is."""
    with Session(held().engine) as db:
        now = outbox.backlog(db)
    document = {
        "owed": now.owed,
        "blocked": now.blocked,
        "oldest_seconds": round(now.oldest_seconds, 3),
        "errors": dict(now.errors),
        "next_attempt_at": None if now.next_attempt_at is None else time_text(now.next_attempt_at),
    }
    lines = [f"{now.owed} owed, {now.blocked} blocked, the oldest for {now.oldest_seconds:.0f} s"]
    lines += [f"  {count} last failed as {name}" for name, count in sorted(now.errors.items())]
    say(as_json, document, *lines)


@outbox_group.command("drain")
@json_option
@command
def outbox_drain(as_json: bool) -> None:
    """Try everything that is owed now, also what backs off."""
    done = drain_all(held())
    with Session(held().engine) as db:
        left = outbox.backlog(db).owed
    say(
        as_json,
        {"gone": done.gone, "failed": done.failed, "owed": left},
        f"{done.gone} gone, {left} still owed",
    )
    if done.failed:
        raise click.exceptions.Exit(1)


@click.group("store")
def store_group() -> None:
    """The object store."""


@store_group.command("check")
@click.option("--repair", is_flag=True, help="Delete the bytes that no row names.")
@json_option
@command
def store_check(repair: bool, as_json: bool) -> None:
    """Compare rows and bytes: rows without bytes, bytes without rows."""
    try:
        found = check_store(held(), datetime.now(UTC), repair=repair)
    except StoreFault as fault:
        raise InvalidState("store_fault", fault.sentence) from None
    document = {
        "rows_without_bytes": found.rows_without_bytes,
        "bytes_without_rows": found.bytes_without_rows,
    }
    lines = [f"row without bytes: {key}" for key in found.rows_without_bytes]
    lines += [f"bytes without row: {key}" for key in found.bytes_without_rows]
    if repair:
        document["repaired"] = found.repaired
        lines += [f"repaired: {key}" for key in found.repaired]
    say(as_json, document, *(lines or ["Rows and bytes agree."]))


@click.command("queues")
@click.argument("what", type=click.Choice(["status"]))
@json_option
@command
def queues(what: str, as_json: bool) -> None:
    """Say what waits in the queue, who works, and when a scheduler was seen."""
    resources = held()
    with Session(resources.engine) as db:
        seen = schedule.seconds_since_beat(db)
    figures = {
        "waiting": resources.queue.count,
        "failed": resources.queue.failed_job_registry.count,
        "workers": Worker.count(connection=resources.redis),
        "scheduler_seen_seconds": None if seen is None else round(seen, 3),
    }
    say(as_json, figures, *(f"{name}: {value}" for name, value in figures.items()))

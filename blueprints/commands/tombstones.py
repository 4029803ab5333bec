"""`tombstones export FILE`, `tombstones replay FILE`: so that a restored backup forgets what was deleted since."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import click
from sqlalchemy.orm import Session

from blueprints.commands.terminal import command, held, json_option, say
from models.errors import Invalid
from models.replay import exported, in_order, replay_line
from tasks.outbox import drain_due


@click.group("tombstones")
def tombstones() -> None:
    """What was deleted, for the day a backup is restored."""


@tombstones.command("export")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@json_option
@command
def export(file: Path, as_json: bool) -> None:
    """Write every tombstone, and the sealed deletion records, to FILE (owner-only, whole or not at all)."""
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    lines = 0
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as out, Session(held().engine) as db:
            for line in exported(db, held().settings.secret_key):
                out.write(line + b"\n")
                lines += 1
            out.flush()
            os.fsync(out.fileno())
        temporary.replace(file)
    except OSError as fault:
        temporary.unlink(missing_ok=True)
        raise Invalid("file", f"Cannot write {file}: {fault.strerror}.") from None
    say(as_json, {"lines": lines}, f"{lines} lines written to {file}.")


@tombstones.command("replay")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@json_option
@command
def replay(file: Path, as_json: bool) -> None:
    """Forget again what FILE says was deleted; safe to repeat."""
    resources = held()
    seen: Counter[str] = Counter()
    try:
        lines = list(in_order(file.read_bytes().splitlines()))
    except OSError as fault:
        raise Invalid("file", f"Cannot read {file}: {fault.strerror}.") from None
    for line in lines:
        with Session(resources.engine) as db, db.begin():
            seen[replay_line(db, line, resources.settings.secret_key)] += 1
    drain_due(resources)
    document = {"removed": seen["removed"], "already_gone": seen["kept"]}
    say(
        as_json, document, f"{seen['removed']} conversations removed again, {seen['kept']} were gone already."
    )

"""`export` and `import`: memories as a file, and back through the same admission as a sync's.

A file is JSON lines: a header, then one memory a line. What a deletion here dominates does not come back.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from models.copies import Copy
from models.errors import Invalid
from models.memorystore import looking, verbs
from models.memorystore.store import EVERYWHERE, Held, Place, Store, held
from models.rules import EARLIEST, key_of
from relay.device.terminal import opened, refusing, say, time_text, told

HEADER = {"allgone": "memories", "version": 1}
BATCH = 500  # memories of one transaction
LINE_MAX = 4_000_000  # bytes


@click.command("export")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--workspace", metavar="W", help="One workspace; all of them without it.")
@refusing
def export_memories(file: Path, workspace: str | None) -> None:
    """Write the memories to FILE, for its owner alone.

    \b
    python -m relay.device export memories.jsonl
    """
    beside = file.with_name(f"{file.name}.new")
    count = 0
    with (
        opened() as device,
        os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out,
    ):
        out.write(json.dumps(HEADER) + "\n")
        for dataset in ("memories", "recordings"):
            place = Place(workspace, dataset) if workspace is not None else None
            for one in looking.memories(device.store, place, dataset=dataset):
                out.write(json.dumps({**told(one), "made_at": time_text(one.copy.made_at)}) + "\n")
                count += 1
        out.flush()
        os.fsync(out.fileno())
    beside.replace(file)
    say({"exported": count}, f"{count:,} memories are in {file}.")


@click.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@refusing
def import_memories(file: Path) -> None:
    """Take in the memories of FILE, as `export` wrote it. What was deleted here since does not come back.

    \b
    python -m relay.device import memories.jsonl
    """
    total = changed = blocked = 0
    with opened() as device:
        for batch in _batches(file):
            for place in sorted({one.place for one in batch}):
                some = [one for one in batch if one.place == place]
                changed += verbs.admit(device.store, place, some)
                blocked += _absent(device.store, place, some)
            total += len(batch)
    say(
        {"imported": changed, "already_there": total - changed - blocked, "blocked": blocked, "total": total},
        f"{changed:,} imported, {total - changed - blocked:,} already there, {blocked:,} deleted here before.",
    )


def _absent(store: Store, place: Place, some: list[Held]) -> int:
    with store.reading():
        there = held(store, place, [one.key for one in some])
    return sum(one.key not in there for one in some)


def _batches(file: Path) -> Iterator[list[Held]]:
    batch: list[Held] = []
    with file.open("rb") as lines:
        for number, line in enumerate(iter(lambda: lines.readline(LINE_MAX), b""), start=1):
            try:
                value = json.loads(line)
                if number == 1:
                    if value != HEADER:
                        raise ValueError
                    continue
                batch.append(_memory(value))
            except (ValueError, KeyError, TypeError, RecursionError):
                raise Invalid(
                    "file",
                    f"{file} is no export of memories: line {number} is not one. What came before it is in.",
                ) from None
            if len(batch) == BATCH:
                yield batch
                batch = []
    if batch:
        yield batch


def _memory(value: dict[str, Any]) -> Held:
    said = verbs.checked_text(value["text"])
    place = Place(value["workspace"], value["dataset"])
    if place != EVERYWHERE:
        verbs.check_workspace(place.workspace)
    if place.dataset not in ("memories", "recordings") or bytes.fromhex(value["key"]) != key_of(said):
        raise ValueError
    made_at, recorded_at = (datetime.fromisoformat(value[name]) for name in ("made_at", "recorded_at"))
    device, logical_id = (bytes.fromhex(value[name]) for name in ("recorded_device", "logical_id"))
    source = value["source"]
    if (
        min(made_at, recorded_at) < EARLIEST
        or len(device) != 16
        or len(logical_id) != 16
        or not isinstance(source, str)
    ):
        raise ValueError
    return Held(place, key_of(said), said, Copy(made_at, device, logical_id, source, recorded_at))

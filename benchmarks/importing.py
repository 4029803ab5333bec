"""An import of 10,000 conversations: memory that does not grow with the file, and rows a second.

The export is written to a file first. Each import runs in a process of its own (this module, run by name), which
reports its peak resident memory. The floor of the rate is the same rows in bare inserts of
many rows, one transaction a conversation, as an import has it.
"""

from __future__ import annotations

import json
import logging
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import psycopg2
from psycopg2.extras import execute_values

from benchmarks.figures import Figure
from benchmarks.ground import Ground
from models.ids import new_id
from models.settings import load
from tasks import logs
from tasks.imports.importer import Result, import_export
from tasks.resources import open_resources

NAME = "importing"
FEW, MANY = 1_000, 10_000  # conversations
MESSAGES = 6


def run(ground: Ground) -> Iterator[Figure]:
    """Peak memory of ten times as many conversations, and conversations a second."""
    with tempfile.TemporaryDirectory(prefix="allgone-benchmarks-") as folder:
        told = {count: _import(ground, _export(Path(folder), count), count) for count in (FEW, MANY)}
        floor = _floor(ground, MANY)
        size = Path(folder, f"{MANY}.json").stat().st_size
    rate = MANY / told[MANY]["seconds"]
    yield Figure(
        NAME,
        f"peak memory of {MANY:,} conversations over that of {FEW:,}, MiB",
        (told[MANY]["peak"] - told[FEW]["peak"]) / 1024,
        bound=8,
        note=f"{told[MANY]['peak'] / 1024:.0f} MiB against {told[FEW]['peak'] / 1024:.0f} MiB; "
        f"the file has {size / 2**20:.0f} MiB",
    )
    yield Figure(
        NAME,
        f"conversations of {MESSAGES} messages imported, against bare inserts of their rows",
        rate / floor,
        "at least",
        note=f"{rate:,.0f}/s against {floor:,.0f}/s",
    )


def _export(folder: Path, count: int) -> Path:
    """An export of ChatGPT's kind with `count` conversations."""
    path = folder / f"{count}.json"
    with path.open("wb") as file:
        file.write(b"[")
        for number in range(count):
            file.write(b"," * (number > 0) + orjson.dumps(_conversation(number)))
        file.write(b"]")
    return path


def _conversation(number: int) -> dict[str, Any]:
    at = 1_700_000_000 + number * 60
    mapping: dict[str, Any] = {}
    for place in range(MESSAGES):
        role = ("user", "assistant")[place % 2]
        mapping[f"node-{place}"] = {
            "id": f"node-{place}",
            "parent": f"node-{place - 1}" if place else None,
            "children": [f"node-{place + 1}"] if place + 1 < MESSAGES else [],
            "message": {
                "id": f"{number}-{place}",
                "author": {"role": role},
                "create_time": at + place,
                "content": {
                    "content_type": "text",
                    "parts": [f"{number}.{place}: " + "What was said. " * 40],
                },
            },
        }
    return {
        "title": f"Conversation {number}",
        "conversation_id": f"{number:08}-0000-4000-8000-000000000000",
        "create_time": at,
        "update_time": at + MESSAGES,
        "current_node": f"node-{MESSAGES - 1}",
        "mapping": mapping,
    }


def _import(ground: Ground, path: Path, count: int) -> dict[str, float]:
    principal_id = ground.player().principal_id
    data_dir = ground.resources.settings.data_dir
    child = [sys.executable, "-m", "benchmarks.importing", str(data_dir), principal_id, str(path)]
    told: dict[str, float] = json.loads(subprocess.run(child, check=True, stdout=subprocess.PIPE).stdout)
    if told["imported"] != count:
        raise SystemExit(f"{told['imported']} of {count} conversations were imported")
    return told


def _floor(ground: Ground, count: int) -> float:
    """Conversations a second of bare inserts."""
    owner = ground.player()
    now = datetime.now(UTC)
    events = "INSERT INTO events (session_id, seq, id, type, payload, created_at) VALUES %s"
    session = (
        "INSERT INTO sessions (id, tenant_id, principal_id, title, created_at, updated_at, last_seq) "
        "VALUES (%s, %s, %s, %s, %s, %s, %s)"
    )
    payload = orjson.dumps({"content": "What was said. " * 40, "import": {"message_id": "1-1"}}).decode()
    connection = psycopg2.connect(ground.resources.settings.database_url.replace("+psycopg2", ""))
    began = time.perf_counter()
    for number in range(count):
        session_id = new_id()
        rows = [(session_id, seq, new_id(), "user_message", payload, now) for seq in range(1, MESSAGES + 1)]
        with connection, connection.cursor() as cursor:
            title = f"Conversation {number}"
            cursor.execute(
                session, (session_id, owner.tenant_id, owner.principal_id, title, now, now, MESSAGES)
            )
            execute_values(cursor, events, rows)
    took = time.perf_counter() - began
    connection.close()
    return count / took


def _child() -> None:
    data_dir, principal_id, path = sys.argv[1:]
    logs.configure(logging.WARNING)
    resources = open_resources(load({"ALLGONE_DATA_DIR": data_dir, "PUBLIC_URL": "http://localhost"}))
    began = time.perf_counter()
    result: Result = import_export(resources, principal_id, Path(path))
    took = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # KiB on Linux
    sys.stdout.write(json.dumps({"imported": result.imported, "seconds": took, "peak": peak}))


if __name__ == "__main__":
    _child()

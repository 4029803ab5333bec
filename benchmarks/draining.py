"""The outbox: owed files against a bare loop of unlinks over as many, and owed S3 objects in counted calls."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from math import ceil
from pathlib import Path

from sqlalchemy import text

from benchmarks.figures import Figure
from benchmarks.ground import Ground
from models.bytestore import open_store
from models.ids import new_id
from models.rules import BATCH
from tasks.outbox import drain_due
from tasks.resources import Resources
from tests.s3_server import shared

NAME = "draining"
FILES, ROUNDS = 20_000, 9
OBJECTS = 2_001

_OWE = text(
    "INSERT INTO outbox (key, session_id, next_attempt_at, created_at) "
    "SELECT key, :session, now(), now() FROM unnest(CAST(:keys AS text[])) key"
)


def run(ground: Ground) -> Iterator[Figure]:
    """Files a second against bare unlinks; DeleteObjects calls for S3 objects."""
    rates: dict[str, list[float]] = {"drained": [], "unlinked": []}
    works: dict[str, Callable[[], float]] = {
        "drained": partial(_drained, ground.resources),
        "unlinked": _unlinked,
    }
    for number in range(-1, ROUNDS):
        for name in list(works)[:: 1 if number % 2 else -1]:
            rate = works[name]()
            if number >= 0:
                rates[name].append(rate)
    ours, bare = statistics.median(rates["drained"]), statistics.median(rates["unlinked"])
    yield Figure(
        NAME,
        "files drained against a bare unlink loop",
        ours / bare,
        "at least",
        0.6,
        f"{ours:,.0f}/s against {bare:,.0f}/s",
    )
    yield Figure(
        NAME,
        f"DeleteObjects calls for {OBJECTS:,} objects",
        _calls(ground.resources),
        bound=ceil(OBJECTS / BATCH),
        note="a bucket without versions",
    )


def _drained(resources: Resources) -> float:
    """Files a second by the product's own job."""
    with tempfile.TemporaryDirectory(prefix="allgone-benchmarks-") as folder:
        held = replace(resources, store=open_store(Path(folder, "objects").as_uri()))
        keys = [new_id() for _ in range(FILES)]
        _write(Path(folder, "objects"), keys)
        _owe(held, keys)
        began = time.perf_counter()
        drained = drain_due(held)
        took = time.perf_counter() - began
        assert drained.gone == FILES, drained
        return FILES / took


def _unlinked() -> float:
    """Files a second by a loop of unlinks over files that lie alike."""
    with tempfile.TemporaryDirectory(prefix="allgone-benchmarks-") as folder:
        root = f"{folder}/objects"
        Path(root).mkdir()
        keys = [new_id() for _ in range(FILES)]
        _write(Path(root), keys)
        unlink = os.unlink  # what a store cannot do without; a plain string is the path
        began = time.perf_counter()
        for key in keys:
            unlink(f"{root}/{key[-2:]}/{key}")
        return FILES / (time.perf_counter() - began)


def _write(root: Path, keys: list[str]) -> None:
    for key in keys:
        folder = root / key[-2:]
        folder.mkdir(exist_ok=True)
        (folder / key).write_bytes(b"x" * 100)


def _owe(resources: Resources, keys: list[str]) -> None:
    with resources.engine.begin() as connection:
        connection.execute(text("TRUNCATE outbox"))
        connection.execute(_OWE, {"session": new_id(), "keys": keys})
    with resources.reader.connect() as connection:
        connection.execute(text("VACUUM ANALYZE outbox"))


def _calls(resources: Resources) -> int:
    server = shared()
    bucket = server.bucket()
    held = replace(resources, store=open_store(server.url(bucket), server.aws))
    keys = [new_id() for _ in range(OBJECTS)]
    with ThreadPoolExecutor(4) as pool:
        puts = [
            pool.submit(server.client.put_object, Bucket=bucket, Key=f"objects/{key}", Body=b"x")
            for key in keys
        ]
        for put in puts:
            put.result()
    _owe(held, keys)
    with server.counting() as seen:
        drained = drain_due(held)
    assert drained.gone == OBJECTS, drained
    assert not server.everything(bucket)
    return seen["DeleteObjects"]

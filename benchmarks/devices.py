"""A device that holds a million memories and a million deletion records: single acts, bulk, and the acts of a sync.

Each ratio is to the bare statements on the same files in the same run, `secure_delete` on. Redaction is measured apart:
what is timed here is what the store does.
"""

from __future__ import annotations

import random
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure
from benchmarks.ground import Ground
from models import rules
from models.copies import Copy
from models.memorystore import looking, verbs
from models.memorystore.opening import open_files
from models.memorystore.store import Held, Place, Store
from models.memorystore.writing import bring, row_of, words_at_once
from models.redaction import masked
from relay import effects as ask
from relay import frames
from relay.acts import Acts
from relay.manifest import EVERYTHING, ITEM, Range
from relay.sums import StoredSums

NAME = "devices"
HELD = 1_000_000
GONE = 1_000_000  # deletion records
ASKED = 500_000
BATCH = 1_000
PLACE = Place("default", "memories")
NOW = datetime(2026, 11, 30, tzinfo=UTC)
WORDS = [
    f"{a}{b}{c}" for a in ("ba", "do", "ki", "lu", "me") for b in ("ra", "so", "ti") for c in ("n", "l", "st")
]


def run(_ground: Ground) -> Iterator[Figure]:
    """All of it, on one home directory that is filled once."""
    with tempfile.TemporaryDirectory(prefix="allgone-device-") as folder:
        store = _open(Path(folder))
        yield from _filled(store)
        yield from _single(store, Path(folder))
        yield from _summary(store)
        yield from _named(store)
        yield from _asked(store)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    yield Figure(
        NAME, "peak memory of this process, MiB", peak, "at most", 300.0, "with what it keeps to compare"
    )


def _open(folder: Path) -> Store:
    return Store(
        open_files(folder).connect(), b"bench".ljust(16, b"\0"), lambda: NOW, random.Random(3).randbytes
    )


def _made(first: int, count: int, chance: random.Random) -> list[Held]:
    made = []
    for number in range(first, first + count):
        said = f"note {number}: " + " ".join(chance.choices(WORDS, k=12))
        at = NOW - timedelta(seconds=number)
        copy = Copy(at, b"bench".ljust(16, b"\0"), chance.randbytes(16), "typed", at)
        made.append(Held(PLACE, rules.key_of(said), said, copy))
    return made


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _filled(store: Store) -> Iterator[Figure]:
    chance = random.Random(1)
    ours = bare = redaction = 0.0
    names = ", ".join(row_of(store, _made(0, 1, chance)[0]))
    sql = f"INSERT INTO memories ({names}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    for batch in range(HELD // BATCH):
        made = _made(batch * BATCH, BATCH, chance)
        if batch % 10 == 0:  # a tenth of them goes in bare, spread over the whole
            rows = [_plain(store, one) for one in made]
            began = time.perf_counter()
            with store.phase("bare") as db:
                db.exec_driver_sql(sql, rows)
            bare += time.perf_counter() - began
            continue
        if batch % 50 == 1:
            redaction += _timed(lambda made=made: [masked(one.text) for one in made])  # type: ignore[misc]
        began = time.perf_counter()
        with store.phase("admitted"):
            bring(store, PLACE, made)
        ours += time.perf_counter() - began
    rate, floor = HELD * 0.9 / ours, HELD * 0.1 / bare
    note = f"{rate:,.0f}/s against {floor:,.0f}/s; redaction apart: {20_000 / redaction:,.0f}/s"
    yield Figure(
        NAME, "bulk import against the same inserts into table and index", rate / floor, "at least", 0.5, note
    )
    # Half of the records are of keys that are held and copies that are younger; half of keys that nobody holds.
    with store.phase("records") as db:
        db.exec_driver_sql(
            "INSERT INTO deletion_records SELECT principal_id, workspace, dataset, key, 1, 1 FROM memories"
            f" WHERE id % 2 = 0 LIMIT {GONE // 2}"
        )
        rows = [(b"", *PLACE, chance.randbytes(32), 1, 1) for _ in range(GONE // 2)]
        db.exec_driver_sql("INSERT INTO deletion_records VALUES (?, ?, ?, ?, ?, ?)", rows)


def _plain(store: Store, one: Held) -> tuple[Any, ...]:
    row = row_of(store, one)
    times = {name: (row[name] - rules.EARLIEST) // rules.TICK for name in ("made_at", "recorded_at")}
    return tuple({**row, **times}.values())


def _single(store: Store, folder: Path) -> Iterator[Figure]:
    def opened() -> None:
        other = _open(folder)
        other.db.close()
        other.db.engine.dispose()

    keys = [one.key for one in _some(store, 60)]
    for what, work, times in (
        ("opening, ms", opened, 11),
        ("one memory forgotten, ms", lambda: verbs.forget(store, PLACE, [keys.pop()]), 41),
        ("three words recalled, ms", lambda: looking.recall(store, "barn kitil lusost"), 21),
        (
            "one memory remembered, ms",
            lambda: verbs.remember(store, f"said {time.time_ns()}", PLACE, "typed"),
            21,
        ),
    ):
        took = 1000 * statistics.median(_timed(work) for _ in range(times))
        yield Figure(NAME, what, took, "at most", 100.0, "the median, among a million")


def _some(store: Store, count: int) -> Sequence[Held]:
    found = []
    for one in looking.memories(store, PLACE):
        found.append(one)
        if len(found) == count:
            break
    return found


def _summary(store: Store) -> Iterator[Figure]:
    first = _timed(lambda: StoredSums(store, PLACE).sums(EVERYTHING, 6))

    def summary() -> None:
        sums = StoredSums(store, PLACE)
        sums.sums(EVERYTHING, 6)
        for value in range(64):  # as a hundred differences ask: nearly each of them, two steps down
            sums.sums(Range(6, value), 6)

    def keys() -> None:
        with store.reading() as db:
            for row in db.exec_driver_sql("SELECT key FROM memories ORDER BY workspace, dataset, key"):
                row[0]

    took = {
        name: statistics.median(_cpu(work) for _ in range(5)) for name, work in (("s", summary), ("k", keys))
    }
    note = (
        f"{1000 * took['s']:.0f} ms against {1000 * took['k']:.0f} ms; made anew as a whole in {first:.1f} s"
    )
    yield Figure(
        NAME,
        "reading the summary against reading all keys in order, CPU",
        took["s"] / took["k"],
        "at most",
        0.2,
        note,
    )


def _cpu(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def _session(store: Store) -> Acts:
    acts = Acts(store, b"peer".ljust(16, b"\0"), frozenset({"default"}))
    acts.act(ask.Prepare((frames.Place(*PLACE),)))
    return acts


def _named(store: Store) -> Iterator[Figure]:
    """The other lists a million keys, half of which we deleted and do not hold."""
    acts = _session(store)
    place = frames.Place(*PLACE)
    with store.reading() as db:
        ours = [row[0] for row in db.exec_driver_sql("SELECT key FROM deletion_records")]
    chance = random.Random(5)
    items = [ITEM.pack(key, chance.randbytes(16), 0, 0) for key in ours[:HELD]]
    for at in range(0, len(items), BATCH):
        acts.act(ask.HeardOf(place, items[at : at + BATCH]))

    def bare() -> int:
        sql = (
            "SELECT r.key, r.deleted_at FROM heard h JOIN deletion_records r ON r.principal_id = x'' AND"
            " r.workspace = h.workspace AND r.dataset = h.dataset AND r.key = h.key LEFT JOIN memories m ON"
            " m.principal_id = x'' AND m.workspace = h.workspace AND m.dataset = h.dataset AND m.key = h.key"
            " WHERE m.key IS NULL"
        )
        with store.reading() as db:
            return sum(1 for _ in db.exec_driver_sql(sql))

    def named() -> int:
        return sum(len(some) for some in acts.act(ask.Name(place)))

    assert named() == bare() > GONE // 3
    took = {
        name: statistics.median(_timed(work) for _ in range(3)) for name, work in (("n", named), ("b", bare))
    }
    note = f"{took['n']:.2f} s against {took['b']:.2f} s"
    yield Figure(
        NAME,
        "naming, of a million listed keys, against the bare join",
        took["n"] / took["b"],
        "at most",
        2.0,
        note,
    )


def _asked(store: Store) -> Iterator[Figure]:
    """Half a million deletions in one sync, half of what is held; and the same done bare on a copy of the files."""
    acts = _session(store)
    place = frames.Place(*PLACE)
    with store.reading() as db:
        keys = [row[0] for row in db.exec_driver_sql(f"SELECT key FROM memories LIMIT {ASKED - 1000}")]
        at = (NOW + timedelta(minutes=1) - rules.EARLIEST) // rules.TICK
    items = [ITEM.pack(key, bytes(16), 0, 0) for key in keys]
    for first in range(0, len(items), BATCH):
        acts.act(ask.ToldOf(place, items[first : first + BATCH]))
    with tempfile.TemporaryDirectory(prefix="allgone-bare-") as folder:
        bare = _bare(store, Path(folder), keys, at)
    for first in range(0, len(keys), BATCH):
        acts.act(ask.Asked(place, [frames.Deletion(key, at) for key in keys[first : first + BATCH]]))
    took = _timed(lambda: acts.act(ask.Settle(place, None, named=True)))
    assert acts.deleted == len(keys)
    note = f"{took:.1f} s against {bare:.1f} s"
    yield Figure(
        NAME,
        "half a million deletions settled, against a bare delete and upsert",
        took / bare,
        "at most",
        1.5,
        note,
    )


def _bare(store: Store, folder: Path, keys: Sequence[bytes], at: int) -> float:
    """Seconds of one set-based upsert and one delete of these keys, on a copy of the files."""
    other = Path(folder)
    with store.reading() as db:
        for file, name in (("main", "memories.sqlite3"), ("deletions", "sync-deletions.sqlite3")):
            (path,) = [row[2] for row in db.exec_driver_sql("PRAGMA database_list") if row[1] == file]
            (other / name).write_bytes(Path(path).read_bytes())
            log = Path(f"{path}-wal")
            if log.exists():
                (other / f"{name}-wal").write_bytes(log.read_bytes())
    copied = _open(other)
    with copied.phase("asked") as db:
        db.exec_driver_sql(
            "INSERT INTO asked VALUES (?, ?, ?, x'', ?, 0)", [(*PLACE, key, at) for key in keys]
        )
    began = time.perf_counter()
    with copied.phase("recorded") as db:
        db.exec_driver_sql(
            "INSERT INTO deletion_records SELECT x'', workspace, dataset, key, deleted_at, deleted_at FROM asked"
            " WHERE true"
            " ON CONFLICT DO UPDATE SET deleted_at = max(deletion_records.deleted_at, excluded.deleted_at)"
        )
    with copied.phase("deleted") as db, words_at_once(copied, len(keys)):
        db.exec_driver_sql(
            "DELETE FROM memories WHERE principal_id = x'' AND workspace = 'default' AND dataset = 'memories'"
            " AND key IN (SELECT key FROM asked)"
        )
    took = time.perf_counter() - began
    copied.db.close()
    copied.db.engine.dispose()
    return took

"""Delete Everywhere of a large conversation, against a floor: the bare DELETE of its events, and the bare inserts
of the same deletion records and outbox rows, in one transaction.

Each round fills empty tables with one such conversation, vacuums, and makes a CHECKPOINT. So both sides start from
the same pages, and each writes a full image of a page at its first touch of it: the bytes of write-ahead log are
those of a server that has just had a checkpoint, which is the dearest moment for both.

Waits for locks are counted by PostgreSQL itself: every session of the traffic beside the deletions logs a wait
of over 10 ms, and a wait that is made on purpose shows that they do.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from sqlalchemy import Engine, event, text
from sqlalchemy.orm import Session

from benchmarks.figures import Figure
from benchmarks.ground import Ground, statements
from models import listing
from models.accounts import Owner
from models.append import Draft, append, open_conversation
from models.base import open_engine
from models.purge import delete_conversation

NAME = "deletion"
EVENTS, RUNS, TOOLS, MEMORIES, ARTIFACTS = 100_000, 1_000, 10_000, 5_000, 1_000
ROUNDS = 7
BESIDE = 3  # deletions with traffic beside them
LONG = "10ms"

_TABLES = "events, runs, tool_invocations, memories, artifacts, deletion_records, outbox"
_FILL = (
    """INSERT INTO runs (id, session_id, principal_id, status, cancel_requested, lease_seconds, lease_expires_at,
    created_at, ended_at)
    SELECT uuidv7(), :session, :owner, 'succeeded', false, 60, now(), now(), now() FROM generate_series(1, :runs)""",
    """INSERT INTO events (session_id, seq, id, run_id, type, payload, created_at)
    SELECT :session, n, uuidv7(), uuidv7(), CASE n % 2 WHEN 1 THEN 'user_message' ELSE 'assistant_message' END,
    jsonb_build_object('content', 'What was said at ' || n || ', ' || repeat('and so on ', 8)), now()
    FROM generate_series(1, :events) n""",
    """INSERT INTO tool_invocations (session_id, call_id, name, arguments, output, status, created_at)
    SELECT :session, 'call_' || n, 'search', '{"query": "something to look for"}', '{"found": "what was found"}',
    'succeeded', now() FROM generate_series(1, :tools) n""",
    """INSERT INTO memories (id, principal_id, workspace, dataset, key, logical_id, text, source, session_id, made_at,
    recorded_at, recorded_device)
    SELECT uuidv7(), :owner, 'default', 'memories', sha256((:session || n)::bytea), uuidv7(),
    'Likes the number ' || n, 'conversation', :session, now(), now(), uuidv7()
    FROM generate_series(1, :memories) n""",
    """INSERT INTO artifacts (id, session_id, principal_id, seq, name, content_type, size, sha256, created_at)
    SELECT uuidv7(), :session, :owner, n, 'file-' || n || '.png', 'image/png', 1000, sha256(n::text::bytea), now()
    FROM generate_series(1, :artifacts) n""",
)
_STAGED = (
    """CREATE TEMP TABLE staged_records AS SELECT principal_id, workspace, dataset, key, now() AS deleted_at,
    now() AS raised_at FROM memories""",
    """CREATE TEMP TABLE staged_owed AS SELECT id::text AS key, session_id, now() AS next_attempt_at,
    now() AS created_at FROM artifacts""",
)
_FLOOR = (
    "DELETE FROM events WHERE session_id = :session",
    "INSERT INTO deletion_records SELECT * FROM staged_records",
    "INSERT INTO outbox (key, session_id, next_attempt_at, created_at) SELECT * FROM staged_owed",
)


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one side in one round."""

    seconds: float
    wal: int


def run(ground: Ground) -> Iterator[Figure]:
    """Time, write-ahead log, statements, and what others had to wait."""
    owner = ground.player()
    costs: dict[str, list[Cost]] = {"verb": [], "floor": []}
    for number in range(-1, ROUNDS):
        for name, work in (("verb", _verb), ("floor", _floor))[:: 1 if number % 2 else -1]:
            cost = work(ground, owner)
            if number >= 0:
                costs[name].append(cost)
    seconds = {name: statistics.median(cost.seconds for cost in each) for name, each in costs.items()}
    wal = {name: statistics.median(cost.wal for cost in each) for name, each in costs.items()}
    yield Figure(
        NAME,
        "time against the floor",
        seconds["verb"] / seconds["floor"],
        bound=2,
        note=f"{seconds['verb'] * 1e3:,.0f} ms against {seconds['floor'] * 1e3:,.0f} ms",
    )
    yield Figure(
        NAME,
        "write-ahead log against the floor",
        wal["verb"] / wal["floor"],
        bound=1.4,
        note=f"{wal['verb'] / 2**20:.1f} MiB against {wal['floor'] / 2**20:.1f} MiB",
    )
    yield Figure(NAME, "statements", _statements(ground, owner), bound=20)
    waits, lists, appends = _waits_beside(ground, owner)
    yield Figure(
        NAME,
        "waits for a lock of over 10 ms in other principals' lists and appends",
        waits,
        bound=0,
        note=f"{lists:,} lists and {appends:,} appends beside {BESIDE} deletions",
    )


def _verb(ground: Ground, owner: Owner) -> Cost:
    session_id = _filled(ground, owner)
    engine = ground.resources.engine
    with Session(engine) as db, _metered(ground) as cost:
        delete_conversation(db, owner, session_id)
        db.commit()
    return cost()


def _floor(ground: Ground, owner: Owner) -> Cost:
    session_id = _filled(ground, owner)
    with ground.resources.engine.connect() as connection:
        for statement in _STAGED:
            connection.execute(text(statement))
        connection.commit()
        with _metered(ground) as cost:
            for statement in _FLOOR:
                connection.execute(text(statement), {"session": session_id} if ":" in statement else {})
            connection.commit()
        connection.execute(text("DROP TABLE staged_records, staged_owed"))
        connection.commit()
    return cost()


@contextmanager
def _metered(ground: Ground) -> Iterator[Callable[[], Cost]]:
    position = text("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn")
    took: list[Cost] = []
    with ground.resources.reader.connect() as connection:
        connection.execute(text("CHECKPOINT"))
        before = connection.execute(position).scalar_one()
        began = time.perf_counter()
        yield lambda: took[0]
        seconds = time.perf_counter() - began
        took.append(Cost(seconds, int(connection.execute(position).scalar_one() - before)))


def _filled(ground: Ground, owner: Owner) -> str:
    """The large conversation, alone in its tables but for its neighbours in `sessions`."""
    with Session(ground.resources.engine) as db, db.begin():
        db.execute(text(f"TRUNCATE {_TABLES}"))
        session_id = open_conversation(db, owner).id
        db.execute(
            text("INSERT INTO workspaces VALUES (:p, 'default') ON CONFLICT DO NOTHING"),
            {"p": owner.principal_id},
        )
        sizes = {"runs": RUNS, "events": EVENTS, "tools": TOOLS, "memories": MEMORIES, "artifacts": ARTIFACTS}
        for statement in _FILL:
            db.execute(text(statement), {"session": session_id, "owner": owner.principal_id, **sizes})
    with ground.resources.reader.connect() as connection:
        connection.execute(text(f"VACUUM ANALYZE {_TABLES}"))
    return session_id


def _statements(ground: Ground, owner: Owner) -> int:
    session_id = _filled(ground, owner)
    with Session(ground.resources.engine) as db, db.begin(), statements(db.connection()) as seen:
        delete_conversation(db, owner, session_id)
    return len(seen)


def _waits_beside(ground: Ground, owner: Owner) -> tuple[int, int, int]:
    """How many waits over 10 ms, and how many lists and appends there were beside the deletions."""
    engine = open_engine(ground.resources.settings.database_url, pool_size=8)
    event.listen(engine, "connect", _tell_waits)
    before = _told(ground)
    _wait_on_purpose(engine, ground)
    if _told(ground) != before + 1:
        raise SystemExit("PostgreSQL did not tell of a wait that was made on purpose")
    over, counts = threading.Event(), {"lists": 0, "appends": 0}
    others = [ground.player() for _ in range(2)]
    works = [partial(_append, engine, other) for other in others] + [partial(_list, engine, ground.one)]
    names = ["appends", "appends", "lists"]

    def traffic(name: str, work: Callable[[], None]) -> None:
        while not over.is_set():
            work()
            counts[name] += 1

    for _ in range(BESIDE):
        session_id = _filled(ground, owner)
        over.clear()
        threads = [threading.Thread(target=traffic, args=pair) for pair in zip(names, works, strict=True)]
        for thread in threads:
            thread.start()
        with Session(ground.resources.engine) as db, db.begin():
            delete_conversation(db, owner, session_id)
        over.set()
        for thread in threads:
            thread.join()
    engine.dispose()
    return _told(ground) - before - 1, counts["lists"], counts["appends"]


def _told(ground: Ground) -> int:
    log = ground.resources.settings.data_dir / "log" / "postgres.log"
    return log.read_text("utf-8", "replace").count("still waiting for")


def _append(engine: Engine, owner: Owner) -> None:
    with Session(engine) as db, db.begin():
        session_id = open_conversation(db, owner).id
        drafts = [Draft("user_message", {"content": "Hello"}), Draft("memory_formed", {"text": session_id})]
        append(db, owner, session_id, drafts)


def _list(engine: Engine, owner: Owner) -> None:
    with engine.connect() as connection:
        listing.page(connection, owner, 50)


def _wait_on_purpose(engine: Engine, ground: Ground) -> None:
    lock = text("SELECT 1 FROM list_versions WHERE principal_id = :p FOR UPDATE")
    mine = {"p": ground.one.principal_id}
    with engine.connect() as holder, engine.connect() as waiter:
        holder.execute(lock, mine)
        late = threading.Timer(0.1, holder.rollback)
        late.start()
        waiter.execute(lock, mine)
        late.join()


def _tell_waits(connection: object, _record: object) -> None:
    with connection.cursor() as cursor:  # type: ignore[attr-defined]
        cursor.execute(f"SET log_lock_waits = on; SET deadlock_timeout = '{LONG}'")
    connection.commit()  # type: ignore[attr-defined]

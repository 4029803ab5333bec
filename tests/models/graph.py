"""A conversation that fills every table of the graph, and the whole database as text to compare.

filled = fill(resources, alice, "a marker")    every table of the purge holds rows of it
before = dump(resources)                       {table: rows as text}, of every table
traces(resources, filled.session_id)           the tables in which a text is found
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import select, text
from sqlalchemy.orm import Session

from models import artifacts, import_requests, imports
from models.append import Draft, append
from models.base import database_time
from models.ids import new_id
from models.memories import Memory, form, lock_workspaces
from models.tables import metadata
from tasks.resources import Resources
from tests.cast import Player

BYTES = (b"x", b"", b"y" * 100_000)  # what the three artifacts hold, the marker in front of each


@dataclass(frozen=True)
class Filled:
    """What `fill` made; `memory_ids` are of the two formed memories and the two consolidated ones."""

    session_id: str
    run_id: str
    artifact_ids: list[str]
    memory_ids: list[str]


def fill(resources: Resources, player: Player, marker: str) -> Filled:
    """A conversation of `player` with rows in every table; each text field but a skill's holds `marker`."""
    session_id = player.converse(f"Hello {marker}", f"Answer {marker}")
    run_id = player.start_run(session_id)
    uploads = [upload(resources, session_id, marker.encode() + data) for data in BYTES]
    with Session(resources.engine) as db, db.begin():
        for uploaded in uploads:
            artifacts.claim(db, uploaded.key)
        drafts = [created(uploaded, f"{marker}.bin") for uploaded in uploads]
        append(db, player.owner, session_id, [*drafts, *_plain(marker, uploads[0].key)], run_id=run_id)
    first, second = (memory_id(resources, player, f"fact {n} {marker}") for n in (1, 2))
    drawn = {"text": f"both {marker}", "memory_ids": [first, second], "workspace": "drawn"}
    # From a memory that stays, too, so that the record of it is left to the purge and not to `forget`.
    typed = {"text": f"alone {marker}", "memory_ids": [typed_in(resources, player, "typed in")]}
    player.say(session_id, Draft("consolidated", drawn), Draft("consolidated", typed), run_id=run_id)
    player.say(session_id, Draft("run_ended", {"status": "succeeded"}), run_id=run_id)
    fail_to_import(resources, player, session_id, f"{marker} ({marker})", f"for {marker}")
    made = [memory_id(resources, player, f"{name} {marker}") for name in ("both", "alone")]
    return Filled(session_id, run_id, [uploaded.key for uploaded in uploads], [first, second, *made])


def fail_to_import(resources: Resources, player: Player, session_id: str, name: str, reason: str) -> str:
    """An import of another day that failed on this conversation, by name; returns the import's id."""
    lease = new_id()
    with Session(resources.engine) as db, db.begin():
        made = import_requests.create(db, player.id, kind="file", file_name="export.json", size=1).id
        imports.claim(db, made, lease)
        imports.save(db, made, lease, {"failed": 1}, [imports.Failure(name, reason, session_id)])
        imports.end(db, made, lease, "done")
    return made


def typed_in(resources: Resources, player: Player, wanted: str) -> str:
    """The id of a memory that no conversation formed; made at the first call."""
    with Session(resources.engine) as db, db.begin():
        lock_workspaces(db, player.owner, ["default"])
        held = db.scalars(select(Memory).filter_by(principal_id=player.id, text=wanted)).one_or_none()
        if held is not None:
            return held.id
        return form(db, player.owner, wanted, "default", source="text", now=database_time(db)).memory_id


def upload(resources: Resources, session_id: str, data: bytes) -> artifacts.Uploaded:
    """Bytes in the store under a reserved key, ready for `created`."""
    with Session(resources.engine) as db, db.begin():
        key = artifacts.reserve(db, session_id)
    stored = resources.store.put(key, [data])
    return artifacts.Uploaded(key, "a.bin", "application/octet-stream", stored.size, stored.sha256)


def created(uploaded: artifacts.Uploaded, name: str = "a.bin") -> Draft:
    """The event of an uploaded artifact; its key must be claimed in the same transaction."""
    payload = {
        "artifact_id": uploaded.key,
        "name": name,
        "content_type": uploaded.content_type,
        "size": uploaded.size,
        "sha256": uploaded.sha256.hex(),
    }
    return Draft("artifact_created", payload)


def attach(resources: Resources, player: Player, session_id: str, *contents: bytes) -> list[str]:
    """Artifacts of a conversation, bytes and rows; returns their keys."""
    uploads = [upload(resources, session_id, data) for data in contents]
    with Session(resources.engine) as db, db.begin():
        for uploaded in uploads:
            artifacts.claim(db, uploaded.key)
        append(db, player.owner, session_id, [created(uploaded) for uploaded in uploads])
    return [uploaded.key for uploaded in uploads]


def memory_id(resources: Resources, player: Player, wanted: str) -> str:
    """The id of the memory with that text."""
    found = rows(
        resources, "SELECT id FROM memories WHERE principal_id = :p AND text = :t", p=player.id, t=wanted
    )
    return str(found[0][0])


def held_texts(resources: Resources, player: Player) -> set[str]:
    """The texts of all memories of a player."""
    return {
        row[0] for row in rows(resources, "SELECT text FROM memories WHERE principal_id = :p", p=player.id)
    }


def rows(resources: Resources, statement: str, **values: Any) -> list[Any]:
    """The rows of one statement; bytes are bytes."""
    with resources.engine.connect() as connection:
        found = connection.execute(text(statement), values)
        return [tuple(bytes(v) if isinstance(v, memoryview) else v for v in row) for row in found]


def count(resources: Resources, table: str) -> int:
    """How many rows a table has."""
    return int(rows(resources, f'SELECT count(*) FROM "{table}"')[0][0])


def stored(resources: Resources) -> list[str]:
    """The keys that have bytes, sorted."""
    listing = resources.store.keys()
    return sorted(key for key, _ in listing)


def dump(resources: Resources) -> dict[str, list[str]]:
    """Every row of every table, as PostgreSQL writes it, sorted."""
    names = sorted(metadata.tables)
    union = " UNION ALL ".join(f"SELECT '{name}', t::text FROM \"{name}\" t" for name in names)
    found: dict[str, list[str]] = {name: [] for name in names}
    for name, row in rows(resources, union):
        found[name].append(row)
    return {name: sorted(lines) for name, lines in found.items()}


def traces(resources: Resources, needle: str) -> set[str]:
    """The tables in which any row holds `needle` in any column."""
    return {name for name, lines in dump(resources).items() if any(needle in line for line in lines)}


def _plain(marker: str, artifact_id: str) -> list[Draft]:
    return [
        Draft("tool_call", {"call_id": f"c-{marker}", "name": f"t {marker}", "arguments": {"q": marker}}),
        Draft("tool_result", {"call_id": f"c-{marker}", "output": [marker], "status": "ok"}),
        Draft(
            "approval_requested", {"summary": f"May I? {marker}", "tool": marker, "arguments": {"a": marker}}
        ),
        Draft("checkpoint", {"state": {"at": marker}}),
        Draft("projected", {"name": f"plan {marker}", "state": [marker]}),
        Draft("recall", {"query": f"who? {marker}", "memory_ids": []}),
        Draft("memory_formed", {"text": f"fact 1 {marker}"}),
        Draft("memory_formed", {"text": f"fact 2 {marker}", "workspace": "work"}),
        Draft("memory_rejected", {"text": f"gossip {marker}", "reason": f"unkind {marker}"}),
        Draft("knowledge_added", {"artifact_id": artifact_id, "title": marker, "chunks": [marker, "more"]}),
        Draft("skill_published", {"name": "greeting", "body": "say hello"}),
        Draft("something_else", {"text": marker}),
    ]

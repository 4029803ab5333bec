"""What an import left behind, as the tests look at it: rows, bytes, and what is owed."""

from __future__ import annotations

import dataclasses
import json
import threading
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import select, text
from sqlalchemy.orm import Session

from models.accounts import Principal
from models.artifacts import Artifact, artifacts_of
from models.bytestore import open_store
from models.history import Conversation, Event, Tombstone
from models.purge import delete_conversation
from models.rules import texts
from tasks.imports.importer import Result, import_export
from tasks.imports.parsed import Parsed
from tasks.outbox import drain_due
from tasks.resources import Resources
from tests.cast import Player
from tests.tasks.imports.exports import read_all


def put(path: Path, *conversations: Any) -> Path:
    """Writes a JSON list."""
    path.write_text(json.dumps(list(conversations)))
    return path


def run(resources: Resources, player: Player, path: Path, **options: Any) -> Result:
    """One import, whose counts add up."""
    result = import_export(resources, player.id, path, **options)
    assert result.total == result.imported + result.already_there + result.skipped + result.failed
    assert len(result.failures) == result.failed
    return result


def counts(result: Result) -> tuple[int, int, int, int]:
    """imported, already there, skipped, failed"""
    return result.imported, result.already_there, result.skipped, result.failed


def secret_of(resources: Resources, player: Player) -> bytes:
    with Session(resources.engine) as db:
        return bytes(db.get_one(Principal, player.id).import_secret)


def only(path: Path) -> Parsed:
    """The one conversation of a file."""
    (parsed,) = read_all(path)
    assert isinstance(parsed, Parsed)
    return parsed


def conversations(resources: Resources, player: Player) -> list[Conversation]:
    """Oldest first."""
    with Session(resources.engine) as db:
        mine = select(Conversation).where(Conversation.principal_id == player.id)
        return list(db.scalars(mine.order_by(Conversation.created_at, Conversation.id)))


def one(resources: Resources, player: Player) -> Conversation:
    (found,) = conversations(resources, player)
    return found


def events(resources: Resources, session_id: str) -> list[Event]:
    with Session(resources.engine) as db:
        return list(db.scalars(select(Event).where(Event.session_id == session_id).order_by(Event.seq)))


def said(resources: Resources, session_id: str) -> list[str]:
    """The texts of a conversation's messages, in order."""
    return [
        " ".join(texts(event.payload["content"]))
        for event in events(resources, session_id)
        if event.type in ("user_message", "assistant_message")
    ]


def files(resources: Resources, player: Player, session_id: str) -> list[Artifact]:
    with Session(resources.engine) as db:
        return artifacts_of(db, player.owner, session_id)


def read(resources: Resources, key: str) -> bytes:
    return b"".join(resources.store.open(key))


def delete(resources: Resources, player: Player, session_id: str) -> None:
    """Deletes a conversation, its bytes left to the outbox."""
    with Session(resources.engine) as db, db.begin():
        delete_conversation(db, player.owner, session_id)


def tombstones(resources: Resources) -> set[str]:
    with Session(resources.engine) as db:
        return set(db.scalars(select(Tombstone.session_id)))


def owed(resources: Resources) -> list[tuple[bool, bool]]:
    """(reserved, due) of each row of the outbox."""
    wanted = text("SELECT reserved, next_attempt_at <= clock_timestamp() FROM outbox")
    with Session(resources.engine) as db:
        return [(row[0], row[1]) for row in db.execute(wanted)]


def expire_reservations(resources: Resources) -> None:
    """As when six hours have passed."""
    with Session(resources.engine) as db, db.begin():
        db.execute(text("UPDATE outbox SET next_attempt_at = clock_timestamp() - interval '1 second'"))


def bytes_and_rows_agree(resources: Resources) -> None:
    """After what is due was drained, each object in the store is an artifact, and nothing is owed."""
    drain_due(resources)
    with Session(resources.engine) as db:
        named = set(db.scalars(select(Artifact.id)))
    assert {key for key, _ in iter(resources.store.keys())} == named
    assert owed(resources) == []


def every_sequence_is_dense(resources: Resources) -> None:
    wanted = text(
        "SELECT count(*) FROM sessions s WHERE last_seq <> (SELECT count(*) FROM events e WHERE e.session_id = s.id)"
    )
    with Session(resources.engine) as db:
        assert db.execute(wanted).scalar_one() == 0


def with_store(resources: Resources, url: str, aws: dict[str, str] | None = None) -> Resources:
    """The same resources over another store."""
    return dataclasses.replace(resources, store=open_store(url, aws or {}))


def together(*works: Callable[[], Any]) -> list[Any]:
    """Runs all at once; their answers, in order. What one raises is raised."""
    start = threading.Barrier(len(works))
    answers: list[Any] = [None] * len(works)
    faults: list[BaseException] = []

    def work(index: int) -> None:
        try:
            start.wait(10)
            answers[index] = works[index]()
        except BaseException as fault:  # noqa: BLE001  raised below, in the test's own thread
            faults.append(fault)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    if faults:
        raise faults[0]
    return answers


def at(stamp: str) -> datetime:
    return datetime.fromisoformat(stamp)


def block_texts(payloads: Sequence[dict[str, Any]]) -> list[str]:
    return [text for payload in payloads for text in texts(payload["content"])]

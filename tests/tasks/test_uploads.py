"""Uploads: bytes and row together or neither; whatever goes wrong, the bytes are owed a deletion at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy.orm import Session

from models.append import append
from models.artifacts import Uploaded
from models.errors import InvalidState
from tasks.outbox import drain_due
from tasks.resources import Resources
from tasks.uploads import upload
from tests.cast import Player
from tests.models.graph import count, created, rows


class Cut(Exception):
    """The other end is gone."""


def written(player: Player, session_id: str) -> Any:
    def write(db: Session, key: str, stored: Any) -> str:
        made = Uploaded(key, "a.bin", "text/plain", stored.size, stored.sha256)
        append(db, player.owner, session_id, [created(made)])
        return key

    return write


def test_bytes_and_row_are_there_together_and_nothing_is_owed(resources: Resources, alice: Player) -> None:
    session_id = alice.converse()
    key = upload(resources, session_id, [b"a", b"b"], written(alice, session_id))
    assert b"".join(resources.store.open(key)) == b"ab"
    assert (count(resources, "artifacts"), count(resources, "outbox")) == (1, 0)


@pytest.mark.parametrize("at", ["bytes", "row"])
def test_what_fails_leaves_neither_and_is_owed_at_once(resources: Resources, alice: Player, at: str) -> None:
    session_id = alice.converse()

    def chunks() -> Iterator[bytes]:
        yield b"a"
        if at == "bytes":
            raise Cut

    def refuse(_db: Session, _key: str, _stored: object) -> None:
        raise Cut

    with pytest.raises(Cut):
        upload(resources, session_id, chunks(), refuse)
    assert rows(resources, "SELECT reserved, next_attempt_at <= clock_timestamp() FROM outbox") == [
        (False, True)
    ]
    drain_due(resources)
    assert list(resources.store.keys()) == []
    assert count(resources, "outbox") == count(resources, "artifacts") == 0


def test_a_key_that_was_given_up_under_the_upload_is_told_so(resources: Resources, alice: Player) -> None:
    session_id = alice.converse()

    def chunks() -> Iterator[bytes]:
        yield b"a"
        with resources.engine.begin() as connection:
            connection.exec_driver_sql("UPDATE outbox SET next_attempt_at = now()")
        drain_due(resources)

    with pytest.raises(InvalidState) as refusal:
        upload(resources, session_id, chunks(), written(alice, session_id))
    assert refusal.value.details == {"reason": "upload_expired"}
    assert count(resources, "artifacts") == 0
    assert list(resources.store.keys()) == []

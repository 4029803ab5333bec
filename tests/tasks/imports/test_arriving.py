"""A file on its way in: whole in the store with its row, or owed a deletion at once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from models.errors import Invalid, InvalidState
from tasks.imports.arriving import arrive, shown_name
from tasks.outbox import drain_due
from tasks.resources import Resources
from tests.cast import Player
from tests.models.graph import count, rows, stored


class Cut(Exception):
    """The other end is gone."""


def test_bytes_and_row_are_there_and_the_bytes_are_owed_from_the_first_one_on(
    resources: Resources, alice: Player
) -> None:
    def chunks() -> Iterator[bytes]:
        assert rows(resources, "SELECT reserved FROM outbox") == [(True,)]
        yield b"[]"

    import_id = arrive(resources, alice.owner, "a.json", chunks())
    assert rows(resources, "SELECT id::text, state, size FROM imports") == [(import_id, "queued", 2)]
    assert rows(resources, "SELECT o.reserved FROM outbox o JOIN imports i ON i.upload::text = o.key") == [
        (True,)
    ]
    assert b"".join(resources.store.open(stored(resources)[0])) == b"[]"


@pytest.mark.parametrize("at", ["bytes", "empty"])
def test_what_fails_leaves_no_row_and_its_bytes_go(resources: Resources, alice: Player, at: str) -> None:
    def chunks() -> Iterator[bytes]:
        if at == "bytes":
            yield b"["
            raise Cut

    with pytest.raises(Cut if at == "bytes" else Invalid):
        arrive(resources, alice.owner, "a.json", chunks())
    assert rows(resources, "SELECT reserved, next_attempt_at <= clock_timestamp() FROM outbox") == [
        (False, True)
    ]
    drain_due(resources)
    assert (count(resources, "imports"), count(resources, "outbox"), stored(resources)) == (0, 0, [])


def test_a_file_that_came_too_slowly_is_told_so(resources: Resources, alice: Player) -> None:
    def chunks() -> Iterator[bytes]:
        yield b"["
        with resources.engine.begin() as connection:
            connection.exec_driver_sql("UPDATE outbox SET next_attempt_at = now()")
        drain_due(resources)

    with pytest.raises(InvalidState) as refusal:
        arrive(resources, alice.owner, "a.json", chunks())
    assert refusal.value.details == {"reason": "upload_expired"}
    assert (count(resources, "imports"), stored(resources)) == (0, [])


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("C:\\Users\\me\\chats.json", "chats.json"),
        ("../..", "file"),
        ("", "file"),
        ("a\nb\x1b[31m.json", "ab[31m.json"),
        ("x\ud800y", "x?y"),
        ("\u202egnp.exe", "gnp.exe"),
        ("日本語.zip", "日本語.zip"),
    ],
)
def test_a_name_is_shown_without_what_is_no_name(given: str, shown: str) -> None:
    assert shown_name(given) == shown

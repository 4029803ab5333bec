"""One import from beginning to end: what is counted, what a fault costs (PRODUCT.md 6; FAULTS.md S77, S78)."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session
from structlog.testing import capture_logs

from models.append import PAYLOAD_MAX
from models.base import database_time
from models.errors import Refusal
from models.rules import title_of
from models.settings import Settings
from tasks.imports import writing
from tasks.imports.identity import imported_id
from tasks.imports.importer import Result, import_export
from tasks.imports.parsed import Parsed
from tasks.imports.reading import Export
from tasks.resources import Resources
from tests.cast import Player
from tests.tasks.imports.exports import SHARED, chatgpt, claude, dumped, node, read_all, sharegpt, zipped
from tests.tasks.imports.histories import (
    at,
    bytes_and_rows_agree,
    conversations,
    counts,
    events,
    every_sequence_is_dense,
    files,
    owed,
    put,
    read,
    run,
    secret_of,
)
from tests.tasks.imports.samples import LETTERS, SAMPLES, TIMES

MARKER = "zebra-7781"


# -- the public samples ---------------------------------------------------------------------------------------


@pytest.fixture(params=list(SAMPLES))
def sample(request: pytest.FixtureRequest) -> Path:
    path = SHARED / str(request.param)
    if not path.exists():
        pytest.skip(f"the public samples are not at {SHARED}")
    return path


def test_a_public_sample_arrives_whole_and_once(
    resources: Resources, alice: Player, sample: Path, db: Session
) -> None:
    kind, roles, _, _, broken = SAMPLES[sample.name]
    expected = roles.split()
    before = database_time(db)
    result = run(resources, alice, sample)
    assert counts(result) == (len(expected), 0, 0, broken)
    assert all(each["conversation"] and each["reason"] for each in result.failures)

    secret = secret_of(resources, alice)
    held = {each.id: each for each in conversations(resources, alice)}
    parsed = [each for each in read_all(sample) if isinstance(each, Parsed)]
    assert len(held) == len(parsed)
    for letters, found in zip(expected, parsed, strict=True):
        row = held[imported_id(found, secret, 0)]
        assert row.origin == kind
        first = next(each for each in found.messages if each.type == "user_message")
        assert row.title == title_of(first.payload["content"])
        stored = [each for each in events(resources, row.id) if each.type != "artifact_created"]
        assert "".join(LETTERS[each.type] for each in stored) == letters
        assert [each.payload["import"]["message_id"] for each in stored] == [
            m.source_id for m in found.messages
        ]
        for event, message in zip(stored, found.messages, strict=True):
            assert _without_ids(event.payload) == message.payload
            assert message.created_at in (None, event.created_at)
        if found.created_at is None:
            assert before <= row.created_at <= row.updated_at
        else:
            assert row.created_at == found.created_at
        if found.source_id in TIMES:
            assert (row.created_at, row.updated_at) == tuple(map(at, TIMES[found.source_id]))
        _attachments_are_kept(resources, alice, row.id, found)

    assert counts(run(resources, alice, sample)) == (0, len(expected), 0, broken)
    assert {each.id: each.updated_at for each in conversations(resources, alice)} == {
        key: each.updated_at for key, each in held.items()
    }
    every_sequence_is_dense(resources)
    bytes_and_rows_agree(resources)


def _without_ids(payload: dict[str, Any]) -> dict[str, Any]:
    """The payload as it was parsed."""
    bare = {key: value for key, value in payload.items() if key != "import"}
    for name in ("content", "output"):
        if isinstance(bare.get(name), list):
            bare[name] = [
                {key: value for key, value in block.items() if key != "artifact_id"} for block in bare[name]
            ]
    return bare


def _attachments_are_kept(resources: Resources, player: Player, session_id: str, parsed: Parsed) -> None:
    carried = [each for message in parsed.messages for each in message.attachments if each.open is not None]
    stored = files(resources, player, session_id)
    assert [each.name for each in stored] == [each.name for each in carried]
    for artifact, attachment in zip(stored, carried, strict=True):
        assert attachment.open is not None
        assert read(resources, artifact.id) == b"".join(attachment.open())


# -- one bad conversation -------------------------------------------------------------------------------------


def test_one_broken_conversation_in_a_hundred_is_reported_by_name(
    resources: Resources, alice: Player, tmp_path: Path
) -> None:
    items: list[Any] = [chatgpt(number) for number in range(100)]
    items[41]["mapping"] = {}
    result = run(resources, alice, put(tmp_path / "f.json", *items))
    assert counts(result) == (99, 0, 0, 1)
    assert result.failures[0]["conversation"] == "title 41 (id-41)"
    assert len(conversations(resources, alice)) == 99


def test_a_payload_too_large_costs_its_conversation_alone(
    resources: Resources, alice: Player, tmp_path: Path
) -> None:
    large = chatgpt(1, node("q", None, "user", "x" * (PAYLOAD_MAX + 1)))
    result = run(resources, alice, put(tmp_path / "f.json", chatgpt(0), large, chatgpt(2)))
    assert counts(result) == (2, 0, 0, 1)
    assert result.failures == [{"conversation": "title 1 (id-1)", "reason": "message 1 has over 4 MiB"}]


def test_more_messages_than_the_bound_are_refused_by_name(
    resources: Resources, alice: Player, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks.imports.transcript.MAX_MESSAGES", 5)
    turns = [("human", f"text {n}") for n in range(6)]
    result = run(resources, alice, put(tmp_path / "f.json", sharegpt(*turns, id="s1"), sharegpt(id="s2")))
    assert counts(result) == (1, 0, 0, 1)
    assert result.failures == [{"conversation": "s1", "reason": "more than 5 messages"}]


def test_two_conversations_of_one_identity_are_counted_each(
    resources: Resources, alice: Player, tmp_path: Path
) -> None:
    archive = zipped(
        tmp_path / "export.zip",
        {
            "conversations-000.json": dumped(chatgpt(1)),
            "conversations-001.json": dumped(chatgpt(1), chatgpt(2)),
        },
    )
    assert counts(run(resources, alice, archive)) == (2, 1, 0, 0)


def test_a_character_that_cannot_be_stored_is_replaced_and_counted_once(
    resources: Resources, alice: Player, tmp_path: Path
) -> None:
    path = put(tmp_path / "f.json", chatgpt(1, node("q", None, "user", "a\0b\ud800c")))
    first, second = run(resources, alice, path), run(resources, alice, path)
    assert events(resources, conversations(resources, alice)[0].id)[0].payload["content"] == "a\ufffdb\ufffdc"
    assert (first.replaced, second.replaced) == (2, 0)


@contextmanager
def trigger(resources: Resources, body: str) -> Iterator[None]:
    """PostgreSQL itself misbehaves at each event of an import that holds the marker."""
    made = f"""
        CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.payload::text LIKE '%{MARKER}%' THEN {body} END IF; RETURN NEW; END $$;
        CREATE TRIGGER spoil BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION spoil()"""
    with resources.engine.begin() as connection:
        connection.exec_driver_sql(made.replace("%", "%%"))
    try:
        yield
    finally:
        with resources.engine.begin() as connection:
            connection.exec_driver_sql("DROP FUNCTION spoil CASCADE")


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ("22000", "PostgreSQL refused it (DataException)"),
        ("23514", "PostgreSQL refused it (CheckViolation)"),
        ("54000", "PostgreSQL refused it (ProgramLimitExceeded)"),
        ("55P03", "other work held it for too long; import the file again"),
    ],
)
def test_a_refusal_of_the_database_costs_one_conversation_and_tells_no_content(
    resources: Resources, alice: Player, tmp_path: Path, state: str, reason: str
) -> None:
    path = put(tmp_path / "f.json", chatgpt(0), chatgpt(1, node("q", None, "user", MARKER)), chatgpt(2))
    with (
        trigger(resources, f"RAISE EXCEPTION '%', NEW.payload USING ERRCODE = '{state}';"),
        capture_logs() as logs,
    ):
        result = run(resources, alice, path)
    assert counts(result) == (2, 0, 0, 1)
    assert result.failures == [{"conversation": "title 1 (id-1)", "reason": reason}]
    assert MARKER not in repr(logs)
    assert len(conversations(resources, alice)) == 2
    assert counts(run(resources, alice, path)) == (1, 2, 0, 0)


def test_a_deadlock_is_tried_again(resources: Resources, alice: Player, tmp_path: Path) -> None:
    path = put(tmp_path / "f.json", chatgpt(1, node("q", None, "user", MARKER)))
    with resources.engine.begin() as connection:
        connection.exec_driver_sql("CREATE SEQUENCE tries")
    try:
        body = "IF nextval('tries') < 3 THEN RAISE EXCEPTION 'x' USING ERRCODE = '40P01'; END IF;"
        with trigger(resources, body):
            assert counts(run(resources, alice, path)) == (1, 0, 0, 0)
    finally:
        with resources.engine.begin() as connection:
            connection.exec_driver_sql("DROP SEQUENCE tries")


def test_a_fault_that_no_one_foresaw_costs_one_conversation_and_tells_no_content(
    resources: Resources, alice: Player, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = writing.imported_id

    def faulty(parsed: Parsed, secret: bytes, n: int) -> str:
        if parsed.source_id == "id-1":
            raise ZeroDivisionError(MARKER)
        return held(parsed, secret, n)

    monkeypatch.setattr(writing, "imported_id", faulty)
    with capture_logs() as logs:
        result = run(resources, alice, put(tmp_path / "f.json", chatgpt(0), chatgpt(1), chatgpt(2)))
    assert counts(result) == (2, 0, 0, 1)
    assert result.failures[0]["reason"] == "it could not be imported (ZeroDivisionError)"
    (said,) = [line for line in logs if line["event"] == "import_failed"]
    assert said["error"] == "ZeroDivisionError"
    assert said["at"].startswith("test_importer.py:")
    assert MARKER not in repr(logs)


# -- the database goes away -----------------------------------------------------------------------------------


@contextmanager
def closed_door(settings: Settings) -> Iterator[Any]:
    """Yields what ends every connection to the database and lets no new one in, until the end."""
    door = create_engine(
        settings.database_url.replace("/allgone?", "/postgres?"), isolation_level="AUTOCOMMIT"
    )

    def close() -> None:
        with door.connect() as connection:
            connection.execute(text("ALTER DATABASE allgone ALLOW_CONNECTIONS false"))
            ours = "datname = 'allgone' AND pid <> pg_backend_pid()"
            connection.execute(text(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {ours}"))

    try:
        yield close
    finally:
        with door.connect() as connection:
            connection.execute(text("ALTER DATABASE allgone ALLOW_CONNECTIONS true"))
        door.dispose()


def test_a_database_that_goes_away_ends_the_import_with_the_counts_so_far(
    resources: Resources, settings: Settings, alice: Player, tmp_path: Path
) -> None:
    path = put(tmp_path / "f.json", *(chatgpt(n) for n in range(10)))
    with closed_door(settings) as close:

        def progress(position: int, total: int, result: Result) -> None:
            if result.imported == 4:
                close()

        result = run(resources, alice, path, progress=progress)
    assert counts(result) == (4, 0, 0, 0)
    assert result.ended_early.startswith("PostgreSQL does not answer: ")
    assert "\n" not in result.ended_early
    assert result.refused
    assert counts(run(resources, alice, path)) == (6, 4, 0, 0)


@pytest.mark.parametrize("state", ["53100", "57P01", "25006", "08006", "58030"])
def test_a_database_that_can_take_no_more_ends_it_too(
    resources: Resources, alice: Player, tmp_path: Path, state: str
) -> None:
    path = put(tmp_path / "f.json", chatgpt(0), chatgpt(1, node("q", None, "user", MARKER)), chatgpt(2))
    with trigger(resources, f"RAISE EXCEPTION 'no space left' USING ERRCODE = '{state}';"):
        result = run(resources, alice, path)
    assert counts(result) == (1, 0, 0, 0)
    assert result.ended_early == "PostgreSQL does not answer: no space left"


# -- the file -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"", "empty"),
        (b"hello", "no conversation"),
        (b"[]", "no conversation"),
        (b"\x00\xff" * 99, "no conversation"),
    ],
)
def test_a_file_of_no_known_kind_counts_as_one_failure(
    resources: Resources, alice: Player, tmp_path: Path, data: bytes, word: str
) -> None:
    path = tmp_path / "some file"
    path.write_bytes(data)
    result = run(resources, alice, path)
    assert counts(result) == (0, 0, 0, 1)
    assert result.refused
    assert result.failures[0]["conversation"] == "some file"
    assert word in result.failures[0]["reason"]


@pytest.mark.parametrize("path", ["/nowhere/at all", "/", "/tmp", "\0", "/tmp/\udcff"])
def test_what_is_no_file_counts_as_one_failure_that_json_can_say(
    resources: Resources, alice: Player, path: str
) -> None:
    result = run(resources, alice, Path(path))
    assert counts(result) == (0, 0, 0, 1)
    assert result.failures[0]["conversation"]
    json.dumps(result.document()).encode()
    result.failures[0]["conversation"].encode()


def test_the_file_is_closed_whatever_happens(
    resources: Resources, alice: Player, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = []
    held = Export.close

    def close(export: Export) -> None:
        closed.append(True)
        held(export)

    monkeypatch.setattr(Export, "close", close)
    archive = zipped(tmp_path / "export.zip", {"conversations.json": dumped(chatgpt(1), chatgpt(2))})
    run(resources, alice, archive)
    assert closed == [True]

    def stop(position: int, total: int, result: Result) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_export(resources, alice.id, archive, progress=stop)
    assert closed == [True, True]


# -- progress and memory --------------------------------------------------------------------------------------


def test_progress_goes_forward_to_the_end(resources: Resources, alice: Player, tmp_path: Path) -> None:
    heard: list[tuple[int, int, int]] = []
    path = put(tmp_path / "f.json", *(chatgpt(n) for n in range(30)), {"mapping": {}}, chatgpt(31))

    def progress(position: int, total: int, result: Result) -> None:
        heard.append((position, total, result.total))

    run(resources, alice, path, progress=progress)
    size = path.stat().st_size
    assert heard == sorted(heard)
    assert {total for _, total, _ in heard} == {size}
    assert all(0 < position <= size for position, _, _ in heard)
    assert heard[-1] == (size, size, 32)


def test_what_an_import_holds_does_not_grow_with_the_file(
    resources: Resources, alice: Player, tmp_path: Path
) -> None:
    path = put(tmp_path / "f.json", *(chatgpt(n) for n in range(400)))
    alive: list[int] = []

    def progress(position: int, total: int, result: Result) -> None:
        if result.imported in (100, 400):
            gc.collect()
            alive.append(len(gc.get_objects()))

    assert counts(run(resources, alice, path, progress=progress)) == (400, 0, 0, 0)
    # The read-ahead of the file itself may differ by a conversation or two; a leak would be more.
    assert alive[1] - alive[0] < 250


# -- odds -----------------------------------------------------------------------------------------------------


def test_the_principal_must_be_there(resources: Resources, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="No row was found") as missing:
        import_export(resources, "00000000-0000-7000-8000-000000000000", put(tmp_path / "f.json", chatgpt(1)))
    assert not isinstance(missing.value, Refusal)


def test_nothing_is_owed_after_an_import_without_files(
    resources: Resources, alice: Player, tmp_path: Path
) -> None:
    run(resources, alice, put(tmp_path / "f.json", claude()))
    assert owed(resources) == []
    (held,) = conversations(resources, alice)
    assert isinstance(held.created_at, datetime)

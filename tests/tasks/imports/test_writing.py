"""Parsed conversations into a history: whole or not at all, once, never revived (PRODUCT.md 6)."""

from __future__ import annotations

import base64
import dataclasses
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import event, text
from sqlalchemy.orm import Session

from models import runs
from models.append import BATCH_MAX, PAYLOAD_MAX, Draft, lock_conversation
from models.base import database_time, open_engine
from models.errors import InvalidState, TooLarge
from models.settings import Settings
from tasks.imports.identity import imported_id
from tasks.imports.parsed import Attachment, AttachmentUnreadable, Parsed, ParsedMessage
from tasks.imports.writing import DELETED_HERE, Written, write_conversation
from tasks.resources import Resources
from tests.cast import Player
from tests.s3_server import S3Server, shared
from tests.tasks.imports.exports import chatgpt, claude, dumped, node, openwebui, sharegpt, zipped
from tests.tasks.imports.histories import (
    at,
    bytes_and_rows_agree,
    conversations,
    counts,
    delete,
    events,
    every_sequence_is_dense,
    expire_reservations,
    files,
    one,
    only,
    owed,
    put,
    read,
    run,
    said,
    secret_of,
    together,
    tombstones,
    with_store,
)

ROOT = Path(__file__).resolve().parents[3]
PNG = b"\x89PNG" + bytes(range(256)) * 20
POINTER = "file-service://file-AbCdEfGhIjKlMnOpQrStUvWx"
SKIPPED = Written("skipped", DELETED_HERE)


def long(count: int, number: int = 1, **fields: Any) -> dict[str, Any]:
    """A ChatGPT conversation of `count` messages, one a second from 2023-11-14T22:13:20."""
    nodes, before = [], None
    for place in range(count):
        own, role = f"n{place}", "assistant" if place % 2 else "user"
        nodes.append(node(own, before, role, f"text {place}", create_time=1700000000 + place))
        before = own
    times = {"create_time": 1700000000.25, "update_time": 1700000000.5 + count}
    return chatgpt(number, *nodes, **{**times, **fields})


def with_image(number: int, count: int = 2) -> dict[str, Any]:
    item = long(count, number)
    image = {"content_type": "image_asset_pointer", "asset_pointer": POINTER, "size_bytes": len(PNG)}
    item["mapping"]["n0"]["message"]["content"] = {"content_type": "multimodal_text", "parts": [image, "See"]}
    return item


def archive(path: Path, *items: dict[str, Any], data: bytes = PNG) -> Path:
    entry = f"{POINTER.rpartition('/')[2]}-holiday.png"
    return zipped(path, {"conversations.json": dumped(*items), entry: data})


def made(*messages: ParsedMessage, **fields: Any) -> Parsed:
    messages = messages or (ParsedMessage("m1", "user_message", {"content": "Hello"}),)
    return Parsed("chatgpt", "c1", messages, **fields)


def attached(*attachments: Attachment) -> ParsedMessage:
    blocks = [{"type": "file", "name": each.name} for each in attachments]
    return ParsedMessage("m1", "user_message", {"content": blocks}, attachments=attachments)


def write(resources: Resources, player: Player, parsed: Parsed, **options: Any) -> Written:
    return write_conversation(resources, player.owner, secret_of(resources, player), parsed, **options)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "conversations.json"


@pytest.fixture(scope="session")
def s3() -> S3Server:
    return shared()


# -- once, and what is new ------------------------------------------------------------------------------------


def test_a_conversation_is_imported_once_with_its_own_order_roles_and_times(
    resources: Resources, alice: Player, file: Path
) -> None:
    put(file, long(5))
    assert counts(run(resources, alice, file)) == (1, 0, 0, 0)
    held = one(resources, alice)
    assert (held.title, held.origin) == ("text 0", "chatgpt")
    assert held.created_at == at("2023-11-14T22:13:20.25+00:00")
    assert held.updated_at == at("2023-11-14T22:13:25.5+00:00")
    stored = events(resources, held.id)
    assert [each.type for each in stored] == ["user_message", "assistant_message"] * 2 + ["user_message"]
    assert [each.created_at for each in stored] == [
        datetime.fromtimestamp(1700000000 + n, UTC) for n in range(5)
    ]
    assert stored[3].payload["import"] == {"format": "chatgpt", "message_id": "n3"}
    assert counts(run(resources, alice, file)) == (0, 1, 0, 0)
    assert one(resources, alice).updated_at == held.updated_at
    assert len(events(resources, held.id)) == 5


def test_a_longer_export_adds_only_what_is_new(resources: Resources, alice: Player, file: Path) -> None:
    run(resources, alice, put(file, long(3)))
    assert counts(run(resources, alice, put(file, long(7)))) == (1, 0, 0, 0)
    held = one(resources, alice)
    assert said(resources, held.id) == [f"text {n}" for n in range(7)]
    assert held.updated_at == at("2023-11-14T22:13:27.5+00:00")
    assert held.created_at == at("2023-11-14T22:13:20.25+00:00")
    assert counts(run(resources, alice, put(file, long(3)))) == (0, 1, 0, 0)
    assert one(resources, alice).updated_at == held.updated_at
    every_sequence_is_dense(resources)


def test_a_conversation_that_went_on_here_keeps_what_was_said_and_its_place(
    resources: Resources, alice: Player, file: Path
) -> None:
    run(resources, alice, put(file, long(2)))
    session_id = one(resources, alice).id
    alice.say(session_id, Draft("user_message", {"content": "said here"}))
    moved = one(resources, alice).updated_at
    assert counts(run(resources, alice, put(file, long(4)))) == (1, 0, 0, 0)
    assert said(resources, session_id) == ["text 0", "text 1", "said here", "text 2", "text 3"]
    assert one(resources, alice).updated_at == moved


def test_another_branch_later_is_appended_behind_what_is_held(
    resources: Resources, alice: Player, file: Path
) -> None:
    run(resources, alice, put(file, long(4)))
    other = long(2)
    other["mapping"]["b2"] = node("b2", "n1", "user", "other 2", create_time=1700000100)
    other["mapping"]["b3"] = node("b3", "b2", "assistant", "other 3", create_time=1700000101)
    other["current_node"], other["update_time"] = "b3", 1700000200
    assert counts(run(resources, alice, put(file, other))) == (1, 0, 0, 0)
    held = one(resources, alice)
    assert said(resources, held.id) == ["text 0", "text 1", "text 2", "text 3", "other 2", "other 3"]
    assert held.updated_at == datetime.fromtimestamp(1700000200, UTC)
    assert counts(run(resources, alice, put(file, other))) == (0, 1, 0, 0)


def test_a_new_message_without_a_time_takes_that_of_the_message_before_it(
    resources: Resources, alice: Player, file: Path
) -> None:
    run(resources, alice, put(file, long(3)))
    longer = long(4)
    del longer["mapping"]["n3"]["message"]["create_time"]
    run(resources, alice, put(file, longer))
    stored = events(resources, one(resources, alice).id)
    assert stored[3].created_at == stored[2].created_at == datetime.fromtimestamp(1700000002, UTC)


# -- times ----------------------------------------------------------------------------------------------------

EARLY, LATE = at("2020-01-01T00:00:00+00:00"), at("2020-06-01T00:00:00.000001+00:00")


@pytest.mark.parametrize(
    ("created", "updated", "expected"),
    [
        (EARLY, LATE, (EARLY, LATE)),
        (LATE, EARLY, (LATE, EARLY)),  # exactly the export's, even when it is odd
        (EARLY, None, (EARLY, EARLY)),
        (None, LATE, (LATE, LATE)),
        (datetime(1950, 1, 1, tzinfo=UTC), LATE, (datetime(1970, 1, 1, tzinfo=UTC), LATE)),
    ],
)
def test_times_are_the_exports(
    resources: Resources,
    alice: Player,
    created: datetime,
    updated: datetime,
    expected: tuple[datetime, datetime],
) -> None:
    write(resources, alice, made(created_at=created, updated_at=updated))
    held = one(resources, alice)
    assert (held.created_at, held.updated_at) == expected


def test_times_ahead_are_clamped_to_now(resources: Resources, alice: Player, db: Session) -> None:
    before = database_time(db)
    ahead = datetime(2999, 1, 1, tzinfo=UTC)
    message = ParsedMessage("m1", "user_message", {"content": "Hello"}, ahead)
    write(resources, alice, made(message, created_at=ahead, updated_at=ahead))
    held = one(resources, alice)
    for stamp in (held.created_at, held.updated_at, events(resources, held.id)[0].created_at):
        assert before <= stamp <= database_time(db)
    assert UUID(held.id).int >> 80 == int(ahead.timestamp()) * 1000


def test_without_times_the_time_of_import_counts_and_the_id_holds_none(
    resources: Resources, alice: Player, db: Session, file: Path
) -> None:
    before = database_time(db)
    run(resources, alice, put(file, sharegpt(id="s1")))
    held = one(resources, alice)
    assert before <= held.created_at <= held.updated_at <= database_time(db)
    assert UUID(held.id).int >> 80 == 0
    assert counts(run(resources, alice, file)) == (0, 1, 0, 0)


def test_where_only_messages_have_times_they_are_the_conversations(
    resources: Resources, alice: Player
) -> None:
    messages = [
        ParsedMessage("m1", "user_message", {"content": "a"}),
        ParsedMessage("m2", "assistant_message", {"content": "b"}, LATE),
        ParsedMessage("m3", "user_message", {"content": "c"}, EARLY),
    ]
    write(resources, alice, made(*messages))
    held = one(resources, alice)
    assert (held.created_at, held.updated_at) == (EARLY, LATE)
    assert [each.created_at for each in events(resources, held.id)] == [EARLY, LATE, EARLY]


# -- deleted here ---------------------------------------------------------------------------------------------


def test_what_was_deleted_here_is_not_revived_unless_asked_for(
    resources: Resources, alice: Player, file: Path
) -> None:
    put(file, long(2))
    secret, parsed = secret_of(resources, alice), only(file)
    run(resources, alice, file)
    delete(resources, alice, imported_id(parsed, secret, 0))
    skipped = run(resources, alice, file)
    assert counts(skipped) == (0, 0, 1, 0)
    assert skipped.skips == [{"conversation": "title 1 (id-1)", "reason": "deleted_here"}]
    assert conversations(resources, alice) == []

    assert counts(run(resources, alice, file, again=True)) == (1, 0, 0, 0)
    assert one(resources, alice).id == imported_id(parsed, secret, 1)
    assert one(resources, alice).created_at == parsed.created_at
    assert counts(run(resources, alice, file, again=True)) == (0, 1, 0, 0)
    # It is there: an import that does not ask again finds it, and a longer export goes on in it.
    assert counts(run(resources, alice, file)) == (0, 1, 0, 0)
    assert counts(run(resources, alice, put(file, long(4)))) == (1, 0, 0, 0)
    assert len(said(resources, one(resources, alice).id)) == 4

    delete(resources, alice, imported_id(parsed, secret, 1))
    assert counts(run(resources, alice, file)) == (0, 0, 1, 0)
    assert counts(run(resources, alice, file, again=True)) == (1, 0, 0, 0)
    assert one(resources, alice).id == imported_id(parsed, secret, 2)
    assert tombstones(resources) == {imported_id(parsed, secret, n) for n in (0, 1)}


def test_a_tombstone_holds_nothing_more_than_any_other(
    resources: Resources, alice: Player, file: Path
) -> None:
    run(resources, alice, put(file, long(2)))
    delete(resources, alice, one(resources, alice).id)
    with Session(resources.engine) as db:
        (row,) = db.execute(text("SELECT * FROM tombstones")).mappings()
    assert set(row) == {"session_id", "tenant_id", "principal_id", "deleted_at"}


def test_neighbours_import_one_export_without_meeting(
    resources: Resources, alice: Player, bob: Player, file: Path
) -> None:
    put(file, long(2))
    run(resources, alice, file)
    delete(resources, alice, one(resources, alice).id)
    assert counts(run(resources, bob, file)) == (1, 0, 0, 0)
    assert counts(run(resources, alice, file)) == (0, 0, 1, 0)
    assert one(resources, bob).id not in tombstones(resources)


# -- files ----------------------------------------------------------------------------------------------------


def test_an_archives_image_becomes_an_artifact_named_by_its_block(
    resources: Resources, alice: Player, tmp_path: Path
) -> None:
    path = archive(tmp_path / "export.zip", with_image(1), long(2, 2))
    assert counts(run(resources, alice, path)) == (2, 0, 0, 0)
    session_id = next(each.id for each in conversations(resources, alice) if each.title == "See")
    (artifact,) = files(resources, alice, session_id)
    stored = events(resources, session_id)
    image, words = stored[0].payload["content"]
    assert image["type"] == "image"
    assert image["artifact_id"] == artifact.id
    assert words == {"type": "text", "text": "See"}
    assert [each.type for each in stored] == ["user_message", "artifact_created", "assistant_message"]
    assert artifact.seq == 2
    assert read(resources, artifact.id) == PNG
    assert (artifact.size, artifact.content_type) == (len(PNG), "image/png")
    bytes_and_rows_agree(resources)


def test_each_block_gets_the_artifact_of_its_own_file(
    resources: Resources, alice: Player, file: Path
) -> None:
    datas = [b"first", b"third"]
    addresses = [f"data:image/png;base64,{base64.b64encode(data).decode()}" for data in datas]
    blocks = [
        {"type": "text", "text": "Look"},
        {"type": "image_url", "image_url": {"url": addresses[0]}},
        {"type": "image_url", "image_url": {"url": "https://example.com/second.png"}},
        {"type": "image_url", "image_url": {"url": addresses[1]}},
    ]
    messages = (
        {"id": "m1", "role": "user", "content": blocks},
        {"id": "m2", "role": "assistant", "content": "I see"},
    )
    run(resources, alice, put(file, openwebui(*messages)))
    session_id = one(resources, alice).id
    content = events(resources, session_id)[0].payload["content"]
    assert [block["type"] for block in content] == ["text", "image", "image", "image"]
    assert "artifact_id" not in content[2]
    assert content[2]["name"] == "second.png"
    assert [read(resources, content[place]["artifact_id"]) for place in (1, 3)] == datas
    assert len(files(resources, alice, session_id)) == 2


def test_the_text_that_claude_kept_of_a_file_becomes_its_bytes(
    resources: Resources, alice: Player, file: Path
) -> None:
    kept = {"file_name": "notes.txt", "file_type": "txt", "file_size": 9, "extracted_content": "kept text é"}
    named = {"file_name": "lost.pdf"}
    message = {"uuid": "m1", "sender": "human", "text": "Read", "attachments": [kept], "files": [named]}
    run(resources, alice, put(file, claude(message)))
    session_id = one(resources, alice).id
    (artifact,) = files(resources, alice, session_id)
    assert read(resources, artifact.id) == "kept text é".encode()
    content = events(resources, session_id)[0].payload["content"]
    assert [block.get("name") for block in content] == [None, "notes.txt", "lost.pdf"]
    assert [block.get("artifact_id") for block in content] == [None, artifact.id, None]


def test_a_tools_picture_is_found_in_its_output(resources: Resources, alice: Player) -> None:
    picture = Attachment("plot.png", "image/png", 3, lambda: iter((b"plo", b"t")))
    output = [{"type": "image", "name": "plot.png"}]
    result = {"call_id": "c", "output": output, "status": "succeeded"}
    call = ParsedMessage("m1", "tool_call", {"call_id": "c", "name": "python", "arguments": {}})
    answer = ParsedMessage("m2", "tool_result", result, attachments=(picture,))
    write(resources, alice, made(call, answer))
    session_id = one(resources, alice).id
    (artifact,) = files(resources, alice, session_id)
    assert events(resources, session_id)[1].payload["output"][0]["artifact_id"] == artifact.id
    assert read(resources, artifact.id) == b"plot"
    assert result["output"] == [{"type": "image", "name": "plot.png"}]  # what was parsed is left as it was


def test_a_damaged_file_costs_its_bytes_and_keeps_its_name(resources: Resources, alice: Player) -> None:
    def damaged() -> Iterator[bytes]:
        yield b"x" * 100_000
        raise AttachmentUnreadable("damaged")

    good = Attachment("good.bin", "application/pdf", 4, lambda: iter((b"good",)))
    bad = Attachment("bad.bin", "application/pdf", 4, damaged)
    assert write(resources, alice, made(attached(bad, good))) == Written("imported", files_left=1)
    session_id = one(resources, alice).id
    content = events(resources, session_id)[0].payload["content"]
    (artifact,) = files(resources, alice, session_id)
    assert [block["name"] for block in content] == ["bad.bin", "good.bin"]
    assert [block.get("artifact_id") for block in content] == [None, artifact.id]
    assert owed(resources) == [(False, True)]  # the damaged one's key, due now
    bytes_and_rows_agree(resources)


@pytest.mark.parametrize(
    ("said_type", "kept"),
    [
        ("image/svg+xml", "image/svg+xml"),
        ("text/plain; charset=utf-8", "text/plain"),
        ("text/html\r\nX-Evil: 1", "application/octet-stream"),
        ("", "application/octet-stream"),
        ("image", "application/octet-stream"),
        ("a/" + "b" * 300, "application/octet-stream"),
    ],
)
def test_a_content_type_is_one_or_none(
    resources: Resources, alice: Player, said_type: str, kept: str
) -> None:
    write(resources, alice, made(attached(Attachment("x", said_type, 1, lambda: iter((b"x",))))))
    (artifact,) = files(resources, alice, one(resources, alice).id)
    assert artifact.content_type == kept


def test_bytes_that_come_later_with_the_archive_do_not_double_the_conversation(
    resources: Resources, alice: Player, tmp_path: Path
) -> None:
    run(resources, alice, put(tmp_path / "conversations.json", with_image(1)))
    assert counts(run(resources, alice, archive(tmp_path / "export.zip", with_image(1)))) == (0, 1, 0, 0)


# -- a store that fails ---------------------------------------------------------------------------------------


def failing_by_name(resources: Resources, alice: Player, path: Path, word: str) -> None:
    result = run(resources, alice, path)
    assert counts(result) == (1, 0, 0, 1)
    (failure,) = result.failures
    assert failure["conversation"] == "title 1 (id-1)"
    assert failure["reason"].startswith("its files could not be stored: ")
    assert word in failure["reason"]
    assert [each.title for each in conversations(resources, alice)] == ["text 0"]
    assert owed(resources) == [(False, True)]  # whether the bytes arrived is not known


@pytest.mark.s3
@pytest.mark.parametrize("answer", ["unavailable", "denied", "cut"])
def test_a_bucket_that_fails_costs_only_conversations_with_files(
    resources: Resources, alice: Player, tmp_path: Path, s3: S3Server, answer: Any
) -> None:
    bucket = s3.bucket()
    remote = with_store(resources, s3.url(bucket), s3.aws)
    path = archive(tmp_path / "export.zip", with_image(1), long(2, 2))
    with s3.answering(answer, only={"PutObject"}):
        failing_by_name(remote, alice, path, bucket)
    assert counts(run(remote, alice, path)) == (1, 1, 0, 0)
    assert len(s3.everything(bucket)) == 1
    bytes_and_rows_agree(remote)


def test_a_store_that_is_a_plain_file_costs_only_conversations_with_files(
    resources: Resources, alice: Player, tmp_path: Path
) -> None:
    (tmp_path / "plain").write_text("no folder")
    broken = with_store(resources, (tmp_path / "plain").as_uri())
    path = archive(tmp_path / "export.zip", with_image(1), long(2, 2))
    failing_by_name(broken, alice, path, str(tmp_path / "plain"))
    assert counts(run(resources, alice, path)) == (1, 1, 0, 0)
    bytes_and_rows_agree(resources)


def test_bytes_that_were_stored_before_a_refusal_are_owed(resources: Resources, alice: Player) -> None:
    good = Attachment("good.bin", "application/pdf", 4, lambda: iter((b"good",)))
    large = ParsedMessage("m2", "user_message", {"content": "x" * (PAYLOAD_MAX + 1)})
    with pytest.raises(TooLarge) as refused:
        write(resources, alice, made(attached(good), large))
    assert refused.value.detail == "message 2 has over 4 MiB"
    assert conversations(resources, alice) == []
    assert owed(resources) == [(False, True)]
    bytes_and_rows_agree(resources)


def test_an_upload_that_outlived_its_reservation_leaves_nothing(resources: Resources, alice: Player) -> None:
    def slow() -> Iterator[bytes]:
        yield b"first"
        expire_reservations(resources)
        bytes_and_rows_agree(resources)  # the sweep takes key and bytes
        yield b"second"

    with pytest.raises(InvalidState) as refused:
        write(resources, alice, made(attached(Attachment("slow.bin", "text/plain", 11, slow))))
    assert refused.value.details["reason"] == "upload_expired"
    assert conversations(resources, alice) == []
    bytes_and_rows_agree(resources)


# -- many messages --------------------------------------------------------------------------------------------


def test_more_messages_than_one_batch_keep_their_order(
    resources: Resources, alice: Player, file: Path
) -> None:
    count = BATCH_MAX * 2 + 1
    run(resources, alice, put(file, long(count)))
    held = one(resources, alice)
    assert held.last_seq == count
    assert said(resources, held.id) == [f"text {n}" for n in range(count)]
    assert held.updated_at == datetime.fromtimestamp(1700000000.5 + count, UTC)


def test_a_refusal_in_a_later_batch_names_the_message_and_leaves_nothing(
    resources: Resources, alice: Player
) -> None:
    messages = [ParsedMessage(f"m{n}", "user_message", {"content": "x"}) for n in range(BATCH_MAX + 5)]
    messages[BATCH_MAX + 2].payload["content"] = "x" * (PAYLOAD_MAX + 1)
    with pytest.raises(TooLarge, match=f"^message {BATCH_MAX + 3} has over 4 MiB$"):
        write(resources, alice, made(*messages))
    assert conversations(resources, alice) == []


# -- an active run --------------------------------------------------------------------------------------------


def test_a_conversation_with_an_active_run_is_its_workers(
    resources: Resources, alice: Player, file: Path
) -> None:
    run(resources, alice, put(file, long(2)))
    session_id = one(resources, alice).id
    run_id = alice.start_run(session_id)
    assert counts(run(resources, alice, file)) == (0, 1, 0, 0)  # nothing new: nothing to refuse
    refused = run(resources, alice, put(file, long(4)))
    assert counts(refused) == (0, 0, 0, 1)
    assert refused.failures[0]["reason"].startswith("A run of this conversation is active.")
    assert len(events(resources, session_id)) == 2
    with Session(resources.engine) as db, db.begin():
        runs.end(db, lock_conversation(db, alice.owner, session_id), run_id, "succeeded", database_time(db))
    assert counts(run(resources, alice, file)) == (1, 0, 0, 0)
    assert len(events(resources, session_id)) == 4


def test_a_dead_workers_run_is_ended_and_locks_no_import_out(
    resources: Resources, alice: Player, file: Path, db: Session
) -> None:
    run(resources, alice, put(file, long(2)))
    run_id = alice.start_run(one(resources, alice).id)
    with db.begin():
        db.execute(text("UPDATE runs SET lease_expires_at = clock_timestamp() - interval '1 second'"))
    assert counts(run(resources, alice, put(file, long(4)))) == (1, 0, 0, 0)
    with db.begin():
        assert db.execute(text("SELECT id, status FROM runs")).one() == (run_id, "expired")


# -- races ----------------------------------------------------------------------------------------------------


def test_two_imports_at_once_make_each_conversation_once(
    resources: Resources, alice: Player, tmp_path: Path
) -> None:
    first = archive(tmp_path / "1.zip", *(with_image(n) for n in range(12)))
    longer = archive(tmp_path / "2.zip", *(with_image(n, 6) for n in range(12)))
    for path in (first, longer):
        answers = together(*[partial(run, resources, alice, path)] * 3)
        assert all(each.total == 12 and each.failed == each.skipped == 0 for each in answers)
        assert sum(each.imported for each in answers) == 12
    held = conversations(resources, alice)
    assert len(held) == 12
    assert all(len(said(resources, each.id)) == 6 for each in held)
    every_sequence_is_dense(resources)
    bytes_and_rows_agree(resources)


def test_an_import_that_meets_a_deletion_never_revives(
    resources: Resources, alice: Player, tmp_path: Path
) -> None:
    chance = random.Random(7)
    secret = secret_of(resources, alice)
    outcomes = set()
    for number in range(100):
        short = put(tmp_path / "short.json", long(1, number))
        longer = put(tmp_path / "long.json", long(3, number))
        if number % 2:
            longer = archive(tmp_path / "long.zip", with_image(number, 3))
            short = put(tmp_path / "short.json", with_image(number, 1))
        session_id = imported_id(only(short), secret, 0)
        run(resources, alice, short)

        def late(pause: float, session_id: str = session_id) -> None:
            time.sleep(pause)
            delete(resources, alice, session_id)

        pause = chance.uniform(0, 0.012)
        again = number % 4 > 1
        result, _ = together(
            lambda path=longer, again=again: run(resources, alice, path, again=again),
            lambda pause=pause: late(pause),
        )
        assert counts(result) in {(1, 0, 0, 0), (0, 0, 1, 0)}
        outcomes.add(counts(result))
        assert session_id in tombstones(resources)
        left = {each.id for each in conversations(resources, alice)}
        assert session_id not in left
        for other in left:  # the deletion came first, and the user asks for what was deleted: another id
            assert again
            delete(resources, alice, other)
    with Session(resources.engine) as db:
        assert db.execute(text("SELECT count(*) FROM events")).scalar_one() == 0
    bytes_and_rows_agree(resources)
    assert len(outcomes) == 2, "only one order of the two was ever seen"


def test_what_is_deleted_while_it_is_imported_again_stays_deleted(
    resources: Resources, alice: Player
) -> None:
    """The deletion comes between the look and the write: `again` speaks of what was deleted before."""
    write(resources, alice, made())
    session_id = one(resources, alice).id

    def meanwhile() -> Iterator[bytes]:
        if conversations(resources, alice):
            delete(resources, alice, session_id)
        yield b"x"

    more = dataclasses.replace(attached(Attachment("x", "text/plain", 1, meanwhile)), source_id="m2")
    assert write(resources, alice, made(*made().messages, more), again=True) == SKIPPED
    assert conversations(resources, alice) == []
    bytes_and_rows_agree(resources)


def test_what_is_imported_and_deleted_meanwhile_by_another_is_skipped(
    resources: Resources, alice: Player
) -> None:
    def meanwhile() -> Iterator[bytes]:
        if not tombstones(resources):
            write(resources, alice, made(attached()))
            delete(resources, alice, one(resources, alice).id)
        yield b"x"

    assert write(resources, alice, made(attached(Attachment("x", "text/plain", 1, meanwhile)))) == SKIPPED
    assert conversations(resources, alice) == []
    bytes_and_rows_agree(resources)


def test_what_another_import_adds_meanwhile_is_not_added_twice(resources: Resources, alice: Player) -> None:
    hello = made().messages
    write(resources, alice, made(*hello))
    second = ParsedMessage("m2", "assistant_message", {"content": "Hi"})

    def meanwhile() -> Iterator[bytes]:
        write(resources, alice, made(*hello, second))
        yield b"x"

    third = dataclasses.replace(attached(Attachment("x", "text/plain", 1, meanwhile)), source_id="m3")
    assert write(resources, alice, made(*hello, second, third)) == Written("imported")
    kinds = [
        each.payload.get("import", {}).get("message_id")
        for each in events(resources, one(resources, alice).id)
    ]
    assert kinds == ["m1", "m2", "m3", None]
    bytes_and_rows_agree(resources)


def _impatient(connection: Any, _record: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '100ms'")
    connection.commit()


def test_a_conversation_that_is_locked_for_long_fails_alone(
    resources: Resources, settings: Settings, alice: Player, file: Path
) -> None:
    run(resources, alice, put(file, long(2)))
    impatient = dataclasses.replace(resources, engine=open_engine(settings.database_url))
    event.listen(impatient.engine, "connect", _impatient)
    try:
        with Session(resources.engine) as db, db.begin():
            lock_conversation(db, alice.owner, one(resources, alice).id)
            result = run(impatient, alice, put(file, long(4), long(2, 2)))
    finally:
        impatient.engine.dispose()
    assert counts(result) == (1, 0, 0, 1)
    assert result.failures[0]["reason"] == "other work held it for too long; import the file again"
    assert result.ended_early == ""


# -- a process that is killed ---------------------------------------------------------------------------------

CHILD = """
import os, sys
from pathlib import Path
from models.settings import load
from tasks.imports.importer import import_export
from tasks.resources import open_resources
import_export(open_resources(load(os.environ)), sys.argv[1], Path(sys.argv[2]))
"""


def test_a_killed_import_is_completed_by_the_next(
    resources: Resources, settings: Settings, alice: Player, tmp_path: Path
) -> None:
    path = archive(tmp_path / "export.zip", *(with_image(n) for n in range(6)))
    run(resources, alice, archive(tmp_path / "first.zip", *(with_image(n) for n in range(2))))
    environment = {
        **os.environ,
        "ALLGONE_DATA_DIR": str(settings.data_dir),
        "OBJECT_STORE_URL": settings.object_store_url,
        "PYTHONPATH": str(ROOT),
    }
    with Session(resources.engine) as db, db.begin():
        # Its bytes are stored and its rows are written when it comes to the list: there it is held, and killed.
        db.execute(text("SELECT 1 FROM list_versions WHERE principal_id = :id FOR UPDATE"), {"id": alice.id})
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, alice.id, str(path)], env=environment, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 20
        waiting = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
        while not db.execute(waiting).scalar_one():
            assert time.monotonic() < deadline, "the import never came to its third conversation"
            time.sleep(0.02)  # between two looks at a condition
        child.kill()
        child.wait(10)
    assert len(conversations(resources, alice)) == 2
    assert owed(resources) == [(True, False)]
    assert len(list(iter(resources.store.keys()))) == 3
    assert counts(run(resources, alice, path)) == (4, 2, 0, 0)
    assert len(conversations(resources, alice)) == 6
    expire_reservations(resources)
    bytes_and_rows_agree(resources)
    every_sequence_is_dense(resources)


def test_every_event_of_an_import_is_json_that_can_be_served(
    resources: Resources, alice: Player, tmp_path: Path
) -> None:
    run(resources, alice, archive(tmp_path / "export.zip", with_image(1)))
    for stored in events(resources, one(resources, alice).id):
        json.dumps(stored.payload, allow_nan=False)
        assert stored.created_at - datetime.now(UTC) < timedelta(0)

"""reading: a file in, its conversations out, and what is none of these (FAULTS S77, S78, S80, S82)."""

import codecs
import json
import random
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tasks.imports.archive import BOMB
from tasks.imports.parsed import Broken, Parsed, UnknownExport
from tasks.imports.reading import read_export
from tests.tasks.imports.exports import (
    ONE_OF_EACH,
    SHARED,
    chatgpt,
    claude,
    dumped,
    node,
    oasst,
    openwebui,
    read_all,
    read_bytes,
    sharegpt,
    told,
    zipped,
)
from tests.tasks.imports.samples import LETTERS, SAMPLES, TIMES
from tests.tasks.imports.test_formats import check


@pytest.mark.parametrize("name", list(ONE_OF_EACH))
def test_each_format_is_read_as_list_object_lines_and_zip(name: str, tmp_path: Path) -> None:
    item = ONE_OF_EACH[name]
    one = json.dumps(item).encode()
    pretty = json.dumps(item, indent=1).encode()
    for data in (dumped(item), one, pretty, one + b"\n" + one, codecs.BOM_UTF8 + dumped(item)):
        found = read_bytes(tmp_path, data)
        assert {each.format for each in found if isinstance(each, Parsed)} == {name}
        assert len(found) == (2 if data == one + b"\n" + one else 1)
    assert len(read_all(zipped(tmp_path / "zip", {"data.json": dumped(item, item)}))) == 2
    assert len(read_bytes(tmp_path, json.dumps({"conversations": [item, item]}).encode())) == 2


def test_an_old_conversations_json_is_read(tmp_path: Path) -> None:
    found = read_bytes(tmp_path, dumped(*(chatgpt(n) for n in range(30))))
    assert [each.source_id for each in found if isinstance(each, Parsed)] == [f"id-{n}" for n in range(30)]


def test_a_new_zip_of_many_files_is_read_and_unrelated_documents_are_not(tmp_path: Path) -> None:
    entries = {
        "conversations-001.json": dumped(chatgpt(3), chatgpt(4)),
        "conversations-000.json": dumped(chatgpt(1), chatgpt(2)),
        "user.json": b'{"id": "user-1", "email": "someone@example.com"}',
        "message_feedback.json": b'[{"id": "f1", "rating": "thumbs_up"}]',
        "shared_conversations.json": b'[{"id": "s1", "title": "t", "conversation_id": "id-1"}]',
        "chat.html": b"<html></html>",
    }
    path = zipped(tmp_path / "x", entries)
    with read_export(path) as export:
        assert export.total > 0
        found = list(export)
        assert export.position == export.total
    assert [each.source_id for each in found if isinstance(each, Parsed)] == ["id-1", "id-2", "id-3", "id-4"]
    assert len(found) == 4


def test_a_file_of_conversations_without_one_is_reported_beside_the_others(tmp_path: Path) -> None:
    entries = {
        "conversations-000.json": b'[{"title": "lost", "x": }]',
        "conversations-001.json": dumped(chatgpt(1)),
    }
    found = read_all(zipped(tmp_path / "x", entries))
    assert [type(each) for each in found] == [Broken, Parsed]
    assert isinstance(found[0], Broken)
    assert found[0].conversation == "lost"


def test_a_hidden_context_and_missing_metadata_are_no_reason_to_fail(tmp_path: Path) -> None:
    hidden = node("h", None, "user", "secret", metadata={"is_visually_hidden_from_conversation": True})
    bare = {"id": "q", "parent": "h", "message": {"author": {"role": "user"}, "content": {"parts": ["q"]}}}
    found = read_bytes(tmp_path, dumped(chatgpt(1, hidden, bare)))
    assert [told(each) for each in found if isinstance(each, Parsed)] == [[("user_message", "q")]]


@pytest.mark.parametrize("how", ["text", "shape", "empty"])
def test_one_broken_conversation_in_a_hundred_is_named_and_ninety_nine_are_read(
    how: str, tmp_path: Path
) -> None:
    raws = [json.dumps(chatgpt(n)) for n in range(100)]
    broken = {
        "text": raws[42][:-1],
        "shape": json.dumps({"title": "title 42"}),
        "empty": json.dumps(chatgpt(42, mapping={})),
    }
    raws[42] = broken[how]
    found = read_bytes(tmp_path, f"[{','.join(raws)},]".encode())
    assert sum(isinstance(each, Parsed) for each in found) == 99
    lost = [each for each in found if isinstance(each, Broken)]
    assert len(lost) == 1
    assert lost[0].conversation.startswith("title 42")
    assert {"text": "closed", "shape": "no mapping", "empty": "no messages"}[how] in lost[0].reason


def test_a_file_that_is_cut_keeps_what_came_before(tmp_path: Path) -> None:
    data = dumped(*(chatgpt(n) for n in range(10)))
    found = read_bytes(tmp_path, data[:-100])
    assert [type(each) for each in found] == [Parsed] * 9 + [Broken]


def test_what_was_replaced_is_counted(tmp_path: Path) -> None:
    data = dumped(claude({"uuid": "m\x00", "sender": "human", "text": "a\ud83db\x00"})).replace(
        b"title", b"ti\xfftle"
    )
    found = read_bytes(tmp_path, data)[0]
    assert isinstance(found, Parsed)
    assert (found.replaced, found.title_hint) == (4, "ti�tle")
    assert found.messages[0].payload == {"content": "a�b�"}
    assert found.messages[0].source_id == "m�"


def test_conversations_without_identity_are_numbered_among_equal_ones(tmp_path: Path) -> None:
    one, other = sharegpt(), sharegpt(("human", "else"))
    ids = [
        each.source_id for each in read_bytes(tmp_path, dumped(one, other, one)) if isinstance(each, Parsed)
    ]
    assert ids[0].removesuffix("/1") == ids[2].removesuffix("/2") != ids[1].removesuffix("/1")


def test_attachments_come_with_their_bytes_where_the_zip_holds_them(tmp_path: Path) -> None:
    pointers = [{"asset_pointer": f"file-service://file-{own}"} for own in ("Here01", "Gone02")]
    said = node("q", None, "user", *pointers, "see", content=None)
    said["message"]["content"] = {"content_type": "multimodal_text", "parts": [*pointers, "see"]}
    item = chatgpt(1, said)
    entries = {"conversations.json": dumped(item), "files/file-Here01-cat.png": b"picture"}
    with read_export(zipped(tmp_path / "x", entries)) as export:
        found = next(export)
        assert isinstance(found, Parsed)
        here, gone = found.messages[0].attachments
        assert here.open is not None
        assert (b"".join(here.open()), here.name, here.size) == (b"picture", "file-Here01-cat.png", 7)
        assert (gone.open, gone.name) == (None, "file-Gone02")
    alone = read_bytes(tmp_path, dumped(item))[0]
    assert isinstance(alone, Parsed)
    assert [each.open for each in alone.messages[0].attachments] == [None, None]
    assert [each["type"] for each in alone.messages[0].payload["content"]] == ["image", "image", "text"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"hello",
        b"\x00\x01\x02" * 1000,
        b"\x89PNG\r\n",
        b"[]",
        b"{}",
        b"[1, 2, 3]",
        b'{"email": "someone@example.com"}',
        b"[" * 100_000,
        b"null",
        '[{"mapping": {}}]'.encode("utf-16"),
        b"PK\x03\x04 and then nothing",
        b"PK\x05\x06" + bytes(18),
        json.dumps([{"id": n} for n in range(1000)]).encode(),
        b'{"mapping": {"a": ',
    ],
)
def test_a_file_of_no_known_kind_is_refused_as_a_whole(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(UnknownExport) as refusal:
        read_bytes(tmp_path, data)
    assert refusal.value.details == {"field": "file"}
    assert len(refusal.value.detail) < 600


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "gone", Path("nul\x00")):
        with pytest.raises(UnknownExport):
            read_export(path)
    for entries in ({"user.json": b"{}"}, {"a.txt": b"x"}, {}):
        with pytest.raises(UnknownExport):
            read_export(zipped(tmp_path / "x", entries))


def test_a_bomb_ends_the_reading_with_a_report(tmp_path: Path) -> None:
    bomb = dumped(chatgpt(1))[:-1] + b", " + b" " * 100_000_000
    found = read_all(zipped(tmp_path / "x", {"conversations.json": bomb}))
    assert [type(each) for each in found] == [Parsed, Broken]
    assert isinstance(found[1], Broken)
    assert found[1].reason == BOMB
    with pytest.raises(UnknownExport):
        read_export(zipped(tmp_path / "x", {"conversations.json": b'[{"title": "' + b"0" * 100_000_000}))


def test_progress_goes_from_nothing_to_the_whole(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(dumped(*(chatgpt(n) for n in range(50))))
    with read_export(path) as export:
        seen = [export.position for _ in export]
        assert export.total == path.stat().st_size == export.position
    assert seen == sorted(seen)
    assert 0 < seen[10] < export.total


def test_a_big_file_is_read_in_the_memory_of_its_largest_conversation(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with path.open("wb") as out:
        out.write(b"[")
        for number in range(2500):
            out.write(json.dumps(chatgpt(number, pad="x" * 20_000)).encode() + b",\n")
        out.write(b"]")
    tracemalloc.start()
    with read_export(path) as export:
        assert sum(isinstance(each, Parsed) for each in export) == 2500
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert path.stat().st_size > 45_000_000
    assert peak < 12_000_000


@pytest.mark.parametrize("name", list(SAMPLES))
def test_public_samples_are_read_whole(name: str) -> None:
    path = SHARED / name
    if not path.is_file():
        pytest.skip(f"{name} is not beside the project; these samples of others are read where they lie")
    kind, roles, firsts, timed, broken = SAMPLES[name]
    found = read_all(path)
    whole = [each for each in found if isinstance(each, Parsed)]
    assert len(found) - len(whole) == broken
    assert {each.format for each in whole} == {kind}
    assert " ".join("".join(LETTERS[message.type] for message in each.messages) for each in whole) == roles
    spoken = [next(text for role, text in told(each) if role == "user_message") for each in whole]
    assert all(text.startswith(first) for text, first in zip(spoken, firsts, strict=False))
    assert sum(message.created_at is not None for each in whole for message in each.messages) == timed
    for each in whole:
        times = tuple(at.isoformat() if at else None for at in (each.created_at, each.updated_at))
        assert times == TIMES.get(each.source_id, (None, None))
        assert each.replaced == 0
        check(each)


MIXED = dumped(chatgpt(1), claude(), openwebui(), sharegpt(), oasst(), chatgpt(2))


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.randoms(use_true_random=False), st.booleans())
def test_a_file_with_bytes_changed_gives_conversations_and_broken_ones(
    tmp_path: Path, chance: random.Random, as_zip: bool
) -> None:
    path = tmp_path / "x"
    data = bytearray(zipped(path, {"conversations.json": MIXED}).read_bytes() if as_zip else MIXED)
    for _ in range(chance.randint(1, 8)):
        at = chance.randrange(len(data))
        data[at : at + chance.randint(0, 2)] = bytes(
            chance.choices(b'"{}[],:\\\x00\xff1a', k=chance.randint(0, 3))
        )
    path.write_bytes(data)
    try:
        found = read_all(path)
    except UnknownExport:
        return
    assert found
    for each in found:
        assert isinstance(each, Broken | Parsed)
        if isinstance(each, Parsed):
            check(each)

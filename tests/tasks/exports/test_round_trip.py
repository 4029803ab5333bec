"""What is exported can be read: by our own importer, by other programs' eyes, and whole whatever happens meanwhile."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.orm import Session

from models.append import Draft, append, open_conversation
from tasks.deletion import delete_now
from tasks.exports import chatgpt, everything, markdown, told
from tasks.exports.told import Gone, Told
from tasks.imports.importer import import_export
from tasks.resources import Resources
from tests.attachments import attach
from tests.cast import Player

AT = datetime(2026, 5, 3, 10, 20, 30, 123456, tzinfo=UTC)


def rich(player: Player, resources: Resources) -> str:
    """A conversation of everything that an export has to keep, with times of its own."""
    with Session(player.engine) as db, db.begin():
        talk = open_conversation(db, player.owner, created_at=AT, updated_at=AT).id
    key = attach(resources, player, talk, "photo.png", b"\x89PNG photo", "image/png")
    drafts = [
        Draft("user_message", {"content": "What is in here? ש\u202d"}, created_at=AT),
        Draft(
            "user_message",
            {
                "content": [
                    {"type": "text", "text": "Look:"},
                    {"type": "image", "artifact_id": key, "name": "photo.png"},
                ]
            },
        ),
        Draft("reasoning", {"content": "Let me think"}),
        Draft("tool_call", {"call_id": "a", "name": "search", "arguments": {"q": "x", "n": 1}}),
        Draft("tool_call", {"call_id": "b", "name": "read", "arguments": {"path": "/y"}}),
        Draft("tool_result", {"call_id": "a", "output": "three hits", "status": "succeeded"}),
        Draft("tool_result", {"call_id": "b", "output": "no such file", "status": "failed"}),
        Draft("checkpoint", {"state": {"big": 1}}),
        Draft("memory_formed", {"text": "Alice looks"}),
        Draft("assistant_message", {"content": "An **answer**\n\n```py\nx = 1\n```"}),
        Draft("user_message", {"content": [{"type": "file", "name": "only a name.pdf"}]}),
    ]
    with Session(player.engine) as db, db.begin():
        append(db, player.owner, talk, drafts, at=AT)
    return talk


def told_of(player: Player, session_id: str) -> list[tuple[str, Any]]:
    """The (type, payload) of a conversation's events, without what marks an import."""
    with Session(player.engine) as db:
        rows = db.execute(
            text("SELECT type, payload FROM events WHERE session_id = :s ORDER BY seq"), {"s": session_id}
        ).all()
    return [(kind, {k: v for k, v in payload.items() if k != "import"}) for kind, payload in rows]


def sessions(player: Player) -> list[Any]:
    with Session(player.engine) as db:
        return list(
            db.execute(
                text(
                    "SELECT id, title, created_at FROM sessions WHERE principal_id = :p ORDER BY created_at"
                ),
                {"p": player.id},
            )
        )


def exported(
    resources: Resources, player: Player, form: everything.Format = "json", *, files: bool = True
) -> bytes:
    return b"".join(everything.archive(resources, player.owner, form, UTC, files=files))


def test_our_own_importer_reads_it_back(
    resources: Resources, alice: Player, bob: Player, tmp_path: Path
) -> None:
    mine = rich(alice, resources)
    path = tmp_path / "all.zip"
    path.write_bytes(exported(resources, alice))
    result = import_export(resources, bob.id, path)
    assert (result.imported, result.failed, result.total) == (1, 0, 1)
    (back,) = sessions(bob)
    (first,) = sessions(alice)
    assert (back.title, back.created_at) == (first.title, first.created_at)
    kept = [(kind, payload) for kind, payload in told_of(bob, back.id) if kind != "artifact_created"]
    assert [kind for kind, _ in kept] == [
        "user_message", "user_message", "reasoning", "tool_call", "tool_call", "tool_result", "tool_result",
        "assistant_message", "user_message",
    ]  # fmt: skip
    before = [
        one
        for one in told_of(alice, mine)
        if one[0] not in {"artifact_created", "checkpoint", "memory_formed"}
    ]
    for (kind, got), (_, had) in zip(kept, before, strict=True):
        if kind in ("tool_call", "tool_result", "assistant_message", "reasoning"):
            assert {name: got[name] for name in had} == had
    assert kept[0][1] == before[0][1]
    blocks = kept[1][1]["content"]
    assert [(block["type"], block.get("text") or block["name"]) for block in blocks] == [
        ("text", "Look:"),
        ("image", "photo.png"),
    ]
    assert b"".join(resources.store.open(blocks[1]["artifact_id"])) == b"\x89PNG photo"
    assert kept[-1][1]["content"][0]["name"] == "only a name.pdf"
    with Session(alice.engine) as db:
        times = [
            db.execute(
                text("SELECT min(created_at) FROM events WHERE session_id = :s AND type = 'user_message'"),
                {"s": s},
            ).scalar()
            for s in (mine, back.id)
        ]
    assert times[0] == times[1] == AT


def test_other_programs_find_what_they_look_for(resources: Resources, alice: Player) -> None:
    rich(alice, resources)
    archive = zipfile.ZipFile(io.BytesIO(exported(resources, alice)))
    assert archive.testzip() is None
    (talk,) = json.loads(archive.read("conversations.json"))
    mapping = talk["mapping"]
    node, seen = talk["current_node"], []
    while node is not None:
        seen.append(node)
        parent = mapping[node]["parent"]
        if parent is not None:
            assert mapping[parent]["children"] == [node]
        node = parent
    assert len(seen) == len(mapping)
    assert mapping[talk["current_node"]]["children"] == []
    messages = [mapping[one]["message"] for one in reversed(seen)][1:]
    for message in messages:
        assert {"id", "author", "create_time", "content", "recipient", "metadata", "weight"} <= set(message)
        assert message["author"]["role"] in {"user", "assistant", "tool", "system"}
    hidden = [m for m in messages if m["metadata"].get("is_visually_hidden_from_conversation")]
    assert [m["metadata"]["allgone"]["type"] for m in hidden] == ["memory_formed"]
    (name,) = [name for name in archive.namelist() if name.startswith("files/")]
    assert name.endswith("-photo.png")
    assert archive.read(name) == b"\x89PNG photo"


def test_markdown_is_readable_and_links_its_files(resources: Resources, alice: Player) -> None:
    rich(alice, resources)
    archive = zipfile.ZipFile(io.BytesIO(exported(resources, alice, "markdown")))
    page = (
        archive.read("2026-05/What is in here ש.md").decode()
        if "2026-05/What is in here ש.md" in archive.namelist()
        else ""
    )
    names = [name for name in archive.namelist() if name.endswith(".md")]
    page = page or archive.read(names[0]).decode()
    assert names[0].startswith("2026-05/")
    assert page.startswith("# What is in here?")
    assert "## You · 2026-05-03 10:20 UTC" in page
    assert "**Tool: search**\n\n```json\n{\n" in page
    assert "*Remembered: Alice looks*" in page
    place = re.findall(r"\]\(<\.\./([^>]+)>\)", page)
    assert place
    assert set(place) <= set(archive.namelist())
    alone = b"".join(markdown.conversation(Told(resources, alice.owner, sessions(alice)[0].id), UTC)).decode()
    assert "*File: photo.png*" in alone


def test_a_fence_is_longer_than_any_in_it(resources: Resources, alice: Player) -> None:
    talk = alice.converse("x")
    alice.say(talk, Draft("tool_call", {"call_id": "1", "name": "t", "arguments": "````\ninner\n````"}))
    page = b"".join(markdown.conversation(Told(resources, alice.owner, talk), UTC)).decode()
    assert "`````\n````\ninner\n````\n`````" in page


def test_only_ones_own_are_in_it(resources: Resources, alice: Player, bob: Player, mallory: Player) -> None:
    alice.converse("Alice's own")
    secret = bob.converse("Bob's secret")
    for form in ("json", "markdown"):
        whole = zipfile.ZipFile(io.BytesIO(exported(resources, alice, form)))  # type: ignore[arg-type]
        assert b"Bob" not in b"".join(whole.read(name) for name in whole.namelist())
    with pytest.raises(Gone):
        Told(resources, alice.owner, secret)
    empty = zipfile.ZipFile(io.BytesIO(exported(resources, mallory)))
    assert json.loads(empty.read("conversations.json")) == []


@pytest.mark.parametrize("form", ["json", "markdown"])
def test_what_is_deleted_meanwhile_is_left_out_whole(
    resources: Resources, alice: Player, form: everything.Format, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(told, "BATCH", 2)
    talks = [alice.converse(*[f"{name} {n}" for n in range(9)]) for name in ("first", "second", "third")]
    doomed = talks[1]
    attach(resources, alice, doomed, "gone.txt", b"gone")
    attach(resources, alice, talks[0], "kept.txt", b"kept")
    original = told.reading.above

    def above(connection: Any, session_id: str, after: int, *rest: Any, **options: Any) -> Any:
        if session_id == doomed and after >= 4:  # half of it is read
            delete_now(resources, alice.owner, doomed)
        return original(connection, session_id, after, *rest, **options)

    monkeypatch.setattr(told.reading, "above", above)
    whole = zipfile.ZipFile(io.BytesIO(exported(resources, alice, form)))
    assert whole.testzip() is None
    every = b"".join(whole.read(name) for name in whole.namelist())
    assert b"second" not in every
    assert b"first 8" in every
    assert b"third 8" in every
    if form == "json":
        assert len(json.loads(whole.read("conversations.json"))) == 2
    assert [name for name in whole.namelist() if "gone" in name] == []


def test_bytes_that_are_missing_cost_their_file_alone(resources: Resources, alice: Player) -> None:
    talk = alice.converse("x")
    lost = attach(resources, alice, talk, "lost.txt", b"lost")
    attach(resources, alice, talk, "kept.txt", b"kept")
    resources.store.delete([lost])
    whole = zipfile.ZipFile(io.BytesIO(exported(resources, alice)))
    assert [name.rpartition("-")[2] for name in whole.namelist()] == ["conversations.json", "kept.txt"]
    assert "lost.txt" in whole.read("conversations.json").decode()


def test_titles_alike_become_files_apart(resources: Resources, alice: Player) -> None:
    for title in ("Same", "same", "Same", "", "../../x", "con"):
        alice.converse(title) if title else alice.converse()
    names = zipfile.ZipFile(io.BytesIO(exported(resources, alice, "markdown"))).namelist()
    assert len(names) == 6
    assert len({name.casefold() for name in names}) == 6
    assert all(re.fullmatch(r"\d{4}-\d\d/[^/\\:]+\.md", name) for name in names)


def test_a_sub_agents_words_are_not_taken_for_the_conversations(
    resources: Resources, alice: Player, bob: Player, tmp_path: Path
) -> None:
    talk = alice.converse("Q", "A")
    parent = alice.say(talk, Draft("assistant_message", {"content": "B"}))[0]
    alice.say(talk, Draft("assistant_message", {"content": "inner"}, parent_id=parent))
    path = tmp_path / "one.json"
    path.write_bytes(b"[" + b"".join(chatgpt.conversation(Told(resources, alice.owner, talk))) + b"]")
    assert b"inner" in path.read_bytes()
    assert import_export(resources, bob.id, path).imported == 1
    assert [payload["content"] for _, payload in told_of(bob, sessions(bob)[0].id)] == ["Q", "A", "B"]


Peak = Callable[[], int]


def test_memory_does_not_grow_with_the_history(resources: Resources, alice: Player) -> None:
    """The peak of what Python holds, for a history of 12 MB and of 48 MB, files of 20 MB among them."""
    import tracemalloc

    def peak() -> int:
        tracemalloc.start()
        try:
            for form in ("json", "markdown"):
                for _ in everything.archive(resources, alice.owner, form, UTC, files=True):  # type: ignore[arg-type]
                    pass
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    def fill(count: int) -> None:
        for number in range(count):
            talk = alice.converse(f"talk {number}")
            alice.say(talk, *(Draft("assistant_message", {"content": "word " * 20_000}) for _ in range(40)))
            attach(resources, alice, talk, "big.bin", b"\0" * 5_000_000, "application/octet-stream")

    fill(2)
    small = peak()
    fill(8)
    large = peak()
    assert large < small * 1.3
    assert large < 40_000_000

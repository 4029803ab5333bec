"""openwebui: the branch, files, times."""

import base64
from datetime import UTC, datetime

import pytest

from tasks.imports.openwebui import parse, recognise
from tasks.imports.parsed import Unusable
from tests.tasks.imports.exports import openwebui, told


def test_a_question_and_its_answer_come_with_roles_times_and_identities() -> None:
    item = openwebui(created_at=1700000000, updated_at=1700000010)
    assert recognise(item)
    parsed = parse(item)
    assert (parsed.format, parsed.source_id, parsed.title_hint) == ("openwebui", "chat-1", "title")
    assert told(parsed) == [("user_message", "question"), ("assistant_message", "answer")]
    assert [message.source_id for message in parsed.messages] == ["m1", "m2"]
    assert (
        parsed.messages[0].created_at == parsed.created_at == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
    )


@pytest.mark.parametrize("stamp", [1700000000, 1700000000000, 1700000000000000000])
def test_times_are_seconds_milliseconds_or_nanoseconds(stamp: int) -> None:
    parsed = parse(openwebui(created_at=stamp, updated_at=stamp))
    assert parsed.created_at == parsed.updated_at == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)


def test_only_the_active_branch_is_told() -> None:
    messages = (
        {"id": "q", "role": "user", "content": "q"},
        {"id": "a1", "parentId": "q", "role": "assistant", "content": "first"},
        {"id": "a2", "parentId": "q", "role": "assistant", "content": "second"},
    )
    assert told(parse(openwebui(*messages, current="a1")))[-1][1] == "first"
    assert told(parse(openwebui(*messages, current="gone")))[-1][1] == "second"


def test_a_list_of_messages_serves_where_there_is_no_history() -> None:
    listed = {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]}
    item = {"id": "c", "chat": {"title": "t", **listed}}
    assert recognise(item)
    assert told(parse(item)) == [("user_message", "q"), ("assistant_message", "a")]


def test_a_chat_may_come_without_its_wrapper() -> None:
    item = openwebui()["chat"]
    assert recognise(item)
    assert len(parse(item).messages) == 2


def test_files_bring_embedded_bytes_extracted_text_or_their_name() -> None:
    picture = "data:image/png;base64," + base64.b64encode(b"picture").decode()
    files = [
        {"type": "image", "url": picture},
        {
            "type": "file",
            "name": "a.pdf",
            "file": {"id": "f", "data": {"content": "words"}, "meta": {"size": 9}},
        },
        {
            "type": "file",
            "file": {"id": "g", "filename": "b.pdf", "meta": {"content_type": "application/pdf"}},
        },
        {"type": "image", "url": "/api/v1/files/123/content"},
        None,
    ]
    said = parse(openwebui({"id": "m", "role": "user", "content": "see", "files": files})).messages[0]
    assert said.payload["content"] == [
        {"type": "text", "text": "see"},
        {"type": "image", "name": "image.png"},
        {"type": "file", "name": "a.pdf"},
        {"type": "file", "name": "b.pdf"},
        {"type": "image", "name": "content"},
    ]
    held = [b"".join(each.open()) if each.open else None for each in said.attachments]
    assert held == [b"picture", b"words", None, None]


def test_blocks_of_the_chat_api_are_read_for_text_and_images() -> None:
    content = [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,QQ=="}},
    ]
    parsed = parse(openwebui({"id": "m", "role": "user", "content": content}))
    assert told(parsed)[0][1] == [{"type": "text", "text": "see"}, {"type": "image", "name": "image.png"}]


@pytest.mark.parametrize(
    "messages", [{}, {"a": None}, {"a": {"role": "user"}}, {"a": {"role": 7, "content": "x"}}]
)
def test_a_chat_without_a_message_says_so(messages: object) -> None:
    item = {"chat": {"history": {"messages": messages, "currentId": "a"}}}
    if messages == {"a": {"role": 7, "content": "x"}}:
        assert parse(item | {"chat": {"messages": [{"role": "user", "content": "q"}]}}).messages
    with pytest.raises(Unusable, match="no messages"):
        parse(item)

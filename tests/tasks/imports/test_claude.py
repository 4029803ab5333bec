"""claude: chat messages, their blocks, branches and attachments."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tasks.imports.claude import parse, recognise
from tasks.imports.parsed import Unusable
from tests.tasks.imports.exports import claude, told


def test_a_question_and_its_answer_come_with_roles_times_and_identities() -> None:
    item = claude()
    assert recognise(item)
    parsed = parse(item)
    assert (parsed.format, parsed.source_id, parsed.title_hint) == ("claude", "c1", "title")
    assert told(parsed) == [("user_message", "question"), ("assistant_message", "answer")]
    assert [message.source_id for message in parsed.messages] == ["m1", "m2"]
    assert parsed.messages[1].created_at == datetime(2024, 12, 1, 10, 1, tzinfo=UTC)
    assert (parsed.created_at, parsed.updated_at) == (datetime(2024, 12, 1, 10, tzinfo=UTC), None)


def test_blocks_become_events_in_their_order() -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "id": None, "name": "search", "input": {"q": "x"}},
        {
            "type": "tool_result",
            "tool_use_id": None,
            "name": "search",
            "content": [{"type": "text", "text": "found"}],
        },
        {"type": "tool_use", "id": "t2", "name": "run", "input": {}},
        {"type": "tool_result", "tool_use_id": "t2", "content": {"code": 1}, "is_error": True},
        {"type": "token_budget"},
        {"type": "text", "text": "Here."},
        None,
    ]
    parsed = parse(claude({"uuid": "m", "sender": "assistant", "text": "Let me look.", "content": blocks}))
    assert [(message.source_id, message.type) for message in parsed.messages] == [
        ("m", "reasoning"),
        ("m/1", "assistant_message"),
        ("m/2", "tool_call"),
        ("m/3", "tool_result"),
        ("m/4", "tool_call"),
        ("m/5", "tool_result"),
        ("m/6", "assistant_message"),
    ]
    payloads = [message.payload for message in parsed.messages]
    assert payloads[2] == {"call_id": "call-1", "name": "search", "arguments": {"q": "x"}}
    assert payloads[3] == {"call_id": "call-1", "output": "found", "status": "succeeded", "name": "search"}
    assert payloads[5] == {"call_id": "t2", "output": {"code": 1}, "status": "failed"}
    assert payloads[6] == {"content": "Here."}


def test_text_beside_an_empty_list_of_blocks_is_the_message() -> None:
    parsed = parse(claude({"uuid": "m", "sender": "human", "text": "hello", "content": []}))
    assert told(parsed) == [("user_message", "hello")]


def linked(*links: tuple[str, str | None]) -> list[dict[str, Any]]:
    return [
        {"uuid": own, "sender": "human", "text": own, "created_at": f"2024-01-0{day}T00:00:00Z"}
        | ({} if parent is None else {"parent_message_uuid": parent})
        for day, (own, parent) in enumerate(links, 1)
    ]


ROOT = "00000000-0000-4000-8000-000000000000"


@pytest.mark.parametrize(
    ("links", "leaf", "branch"),
    [
        ([("a", ROOT), ("b", "a"), ("c", "a")], "b", "ab"),
        ([("a", ROOT), ("b", "a"), ("c", "a")], None, "ac"),
        ([("a", ROOT), ("b", "a"), ("c", ROOT), ("d", "c")], "d", "cd"),
        ([("a", ROOT), ("b", "a"), ("c", None)], "c", "abc"),
        ([("a", None), ("b", None)], None, "ab"),
        ([("a", "b"), ("b", "a")], "b", "ab"),
    ],
)
def test_where_parents_are_named_the_active_branch_is_told(
    links: list[tuple[str, str | None]], leaf: str | None, branch: str
) -> None:
    parsed = parse(claude(*linked(*links), current_leaf_message_uuid=leaf))
    assert "".join(message.payload["content"] for message in parsed.messages) == branch


def test_attachments_bring_their_extracted_text_and_files_their_names() -> None:
    message = {
        "uuid": "m",
        "sender": "human",
        "text": "see these",
        "attachments": [
            {"file_name": "a/b.txt", "file_size": 5, "file_type": "txt", "extracted_content": "hello"},
            {
                "file_name": "gone.pdf",
                "file_size": 9,
                "file_type": "application/pdf",
                "extracted_content": "",
            },
        ],
        "files": [{"file_name": "cat.png", "file_kind": "image"}, {"file_name": "gone.pdf"}, None],
    }
    said = parse(claude(message)).messages[0]
    assert said.payload["content"] == [
        {"type": "text", "text": "see these"},
        {"type": "file", "name": "b.txt"},
        {"type": "file", "name": "gone.pdf"},
        {"type": "image", "name": "cat.png"},
    ]
    first = said.attachments[0]
    assert first.open is not None
    assert b"".join(first.open()) == b"hello"
    assert [each.open for each in said.attachments[1:]] == [None, None]


def test_a_message_of_attachments_alone_is_kept() -> None:
    parsed = parse(claude({"uuid": "m", "sender": "human", "text": "", "files": [{"file_name": "cat.png"}]}))
    assert told(parsed) == [("user_message", [{"type": "file", "name": "cat.png"}])]


@pytest.mark.parametrize("messages", [[], [None, 7], [{"sender": "human", "text": " "}]])
def test_a_conversation_without_a_message_says_so(messages: list[Any]) -> None:
    with pytest.raises(Unusable, match="no messages"):
        parse({"uuid": "c", "chat_messages": messages})

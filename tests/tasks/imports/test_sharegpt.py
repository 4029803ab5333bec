"""sharegpt: lists of turns."""

from typing import Any

import pytest

from tasks.imports.parsed import Unusable
from tasks.imports.sharegpt import parse, recognise
from tests.tasks.imports.exports import sharegpt, told


def test_the_words_for_each_role_are_known() -> None:
    turns = (
        ("system", "be kind"),
        ("Human", "a"),
        ("gpt", "b"),
        ("user", "c"),
        ("assistant", "d"),
        ("critic", "e"),
    )
    item = sharegpt(*turns, id="s1", title="t", created_at="2024-01-01T00:00:00Z")
    assert recognise(item)
    parsed = parse(item)
    assert (parsed.format, parsed.source_id, parsed.title_hint) == ("sharegpt", "s1", "t")
    assert told(parsed) == [
        ("system_message", "be kind"),
        ("user_message", "a"),
        ("assistant_message", "b"),
        ("user_message", "c"),
        ("assistant_message", "d"),
        ("message", "e"),
    ]
    assert parsed.created_at is not None


def test_messages_in_the_manner_of_the_chat_api_are_turns() -> None:
    item = {
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "q"}]},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "k", "function": {"name": "get", "arguments": '{"a": 1}'}}],
            },
            {"role": "tool", "tool_call_id": "k", "content": "18C"},
            {"role": "assistant", "content": "a", "reasoning_content": "hm"},
        ]
    }
    assert recognise(item)
    parsed = parse(item)
    assert [message.type for message in parsed.messages] == [
        "user_message", "tool_call", "tool_result", "reasoning", "assistant_message",
    ]  # fmt: skip
    assert parsed.messages[1].payload == {"call_id": "k", "name": "get", "arguments": {"a": 1}}
    assert parsed.messages[2].payload == {"call_id": "k", "output": "18C", "status": "succeeded"}
    assert parsed.source_id.startswith("#")


def test_function_calls_and_observations_are_a_tools() -> None:
    item = sharegpt(
        ("human", "q"), ("function_call", '{"name": "get", "arguments": {"a": 1}}'), ("observation", "18C")
    )
    payloads = [message.payload for message in parse(item).messages]
    assert payloads[1:] == [
        {"call_id": "call-1", "name": "get", "arguments": {"a": 1}},
        {"call_id": "call-1", "output": "18C", "status": "succeeded"},
    ]


@pytest.mark.parametrize(
    "other",
    [
        {},
        {"conversations": "x"},
        {"messages": [1, 2]},
        {"items": [{"from": 1, "value": 2}]},
        {"messages": []},
    ],
)
def test_other_objects_are_not_recognised(other: dict[str, Any]) -> None:
    assert not recognise(other)


def test_an_empty_conversation_says_so() -> None:
    assert recognise({"id": "x", "conversations": []})
    with pytest.raises(Unusable, match="no messages"):
        parse({"id": "x", "conversations": []})

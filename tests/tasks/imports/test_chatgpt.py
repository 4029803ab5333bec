"""chatgpt: the active branch of a mapping, hidden nodes, tools, times (FAULTS S77, S80)."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tasks.imports.chatgpt import parse, recognise
from tasks.imports.parsed import Unusable
from tests.tasks.imports.exports import chatgpt, node, told


def test_a_question_and_its_answer_come_with_roles_times_and_identities() -> None:
    item = chatgpt(1)
    assert recognise(item)
    parsed = parse(item)
    assert (parsed.format, parsed.source_id, parsed.title_hint) == ("chatgpt", "id-1", "title 1")
    assert told(parsed) == [("user_message", "question 1"), ("assistant_message", "answer 1")]
    assert [message.source_id for message in parsed.messages] == ["q", "a"]
    assert parsed.created_at == datetime(2023, 11, 14, 22, 13, 21, 500000, tzinfo=UTC)
    assert parsed.messages[0].created_at == parsed.created_at


def test_times_may_be_text_and_absurd_ones_are_none() -> None:
    parsed = parse(chatgpt(1, create_time="1699543575.5", update_time=-1))
    assert parsed.created_at == datetime(2023, 11, 9, 15, 26, 15, 500000, tzinfo=UTC)
    assert parsed.updated_at is None


def test_only_the_active_branch_is_told() -> None:
    nodes = (
        node("q", None, "user", "question", children=("a1", "a2")),
        node("a1", "q", "assistant", "first try"),
        node("a2", "q", "assistant", "second try"),
    )
    item = chatgpt(1, *nodes)
    assert told(parse(item))[1][1] == "second try"
    assert told(parse({**item, "current_node": "a1"}))[1][1] == "first try"


@pytest.mark.parametrize("current", [None, "gone", 7])
def test_without_a_current_node_the_newest_branch_is_told(current: object) -> None:
    nodes = (
        node("q", None, "user", "question", create_time=1),
        node("a1", "q", "assistant", "newer", create_time=3),
        node("a2", "q", "assistant", "older", create_time=2),
    )
    assert told(parse(chatgpt(1, *nodes, current_node=current)))[1][1] == "newer"


def test_missing_links_are_taken_from_the_other_side() -> None:
    """S80: children that no one lists, and parents that only list."""
    unlisted = (node("q", None, "user", "q"), node("a", "q", "assistant", "a"))
    listed = (node("q", None, "user", "q", children=("a", "gone")), node("a", None, "assistant", "a"))
    for nodes in (unlisted, listed):
        assert told(parse(chatgpt(1, *nodes))) == [("user_message", "q"), ("assistant_message", "a")]


def test_several_roots_leave_the_branch_that_is_active() -> None:
    nodes = (node("x", None, "user", "other"), node("q", None, "user", "q"), node("a", "q", "assistant", "a"))
    assert told(parse(chatgpt(1, *nodes))) == [("user_message", "q"), ("assistant_message", "a")]


def test_a_cycle_is_cut() -> None:
    nodes = (node("q", "a", "user", "q", children=("a",)), node("a", "q", "assistant", "a", children=("q",)))
    assert told(parse(chatgpt(1, *nodes))) == [("user_message", "q"), ("assistant_message", "a")]
    assert len(parse(chatgpt(1, node("q", "q", "user", "alone", children=("q",)))).messages) == 1


def test_a_tree_of_ten_thousand_levels_is_read_whole() -> None:
    nodes = [node("0", None, "user", "0")]
    nodes += [node(str(n), str(n - 1), "assistant" if n % 2 else "user", str(n)) for n in range(1, 10_000)]
    for current in ("9999", "gone"):
        parsed = parse(chatgpt(1, *nodes, current_node=current))
        assert [message.payload["content"] for message in parsed.messages] == [str(n) for n in range(10_000)]


@pytest.mark.parametrize(
    "hidden",
    [
        node("h", None, "user", "secret", metadata={"is_visually_hidden_from_conversation": True}),
        node("h", None, "user", content={"content_type": "user_editable_context", "user_profile": "secret"}),
        node("h", None, "assistant", content={"content_type": "model_editable_context", "parts": ["secret"]}),
        node("h", None, "system", "secret"),
        node("h", None, "assistant", "secret", weight=0),
        node("h", None, "assistant", "   "),
        {"id": "h", "parent": None, "message": None},
        {"id": "h", "parent": None, "message": {"content": {"content_type": "text", "parts": ["secret"]}}},
    ],
)
def test_hidden_nodes_are_skipped(hidden: dict[str, Any]) -> None:
    """S77: a profile that is shown to the model is no message of the user."""
    parsed = parse(chatgpt(1, hidden, node("q", "h", "user", "q"), node("a", "q", "assistant", "a")))
    assert told(parsed) == [("user_message", "q"), ("assistant_message", "a")]


def test_messages_without_metadata_author_name_or_weight_are_read() -> None:
    bare = {"id": "q", "message": {"author": {"role": "user"}, "content": {"parts": ["q"]}}}
    parsed = parse({"mapping": {"q": bare}})
    assert told(parsed) == [("user_message", "q")]
    assert parsed.messages[0].source_id == "q"
    assert parsed.source_id.startswith("#")
    assert parsed.created_at is None


def test_a_call_and_its_result_become_a_tools() -> None:
    nodes = (
        node("q", None, "user", "2+2?"),
        node(
            "c", "q", "assistant", recipient="python", content={"content_type": "code", "text": "print(2+2)"}
        ),
        node(
            "r",
            "c",
            "tool",
            author={"name": "python"},
            content={"content_type": "execution_output", "text": "4"},
        ),
        node("b", "r", "assistant", '{"query": "four"}', recipient="browser.search"),
        node(
            "e", "b", "tool", content={"content_type": "system_error", "name": "Timeout", "text": "too slow"}
        ),
        node("a", "e", "assistant", "4"),
    )
    parsed = parse(chatgpt(1, *nodes))
    assert [message.type for message in parsed.messages] == [
        "user_message", "tool_call", "tool_result", "tool_call", "tool_result", "assistant_message",
    ]  # fmt: skip
    assert [message.payload for message in parsed.messages[1:5]] == [
        {"call_id": "c", "name": "python", "arguments": "print(2+2)"},
        {"call_id": "c", "output": "4", "status": "succeeded", "name": "python"},
        {"call_id": "b", "name": "browser.search", "arguments": {"query": "four"}},
        {"call_id": "b", "output": "too slow", "status": "failed"},
    ]


def test_thoughts_are_reasoning_and_not_the_answer() -> None:
    thoughts = {"content_type": "thoughts", "thoughts": [{"summary": "Plan", "content": "Think hard"}, {}, 7]}
    nodes = (
        node("q", None, "user", "q"),
        node("t", "q", "assistant", content=thoughts),
        node("s", "t", "assistant", content={"content_type": "reasoning_recap", "content": "Thought for 3s"}),
        node("a", "s", "assistant", "a"),
    )
    assert told(parse(chatgpt(1, *nodes)))[1:] == [
        ("reasoning", "Plan\n\nThink hard"),
        ("reasoning", "Thought for 3s"),
        ("assistant_message", "a"),
    ]


@pytest.mark.parametrize("mapping", [{}, {"a": None}, {"a": {"message": {"author": [], "content": 7}}}])
def test_a_conversation_without_a_message_says_so(mapping: dict[str, Any]) -> None:
    with pytest.raises(Unusable, match="no messages"):
        parse({"mapping": mapping, "current_node": "a"})

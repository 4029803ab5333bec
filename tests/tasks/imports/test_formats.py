"""formats: whose an item is; and what no item, however odd, can do."""

import copy
import random
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tasks.imports.files import no_files
from tasks.imports.formats import FORMATS, format_of, wrapped
from tasks.imports.parsed import Parsed, Unusable
from tests.tasks.imports.exports import ONE_OF_EACH, chatgpt, claude, node, openwebui


@pytest.mark.parametrize("name", list(ONE_OF_EACH))
def test_each_format_is_recognised_as_itself_and_as_no_other(name: str) -> None:
    item = ONE_OF_EACH[name]
    assert [each.name for each in FORMATS if each.recognise(item)] == [name]
    found = format_of(item)
    assert found is not None
    assert found.parse(item, no_files).format == name


@pytest.mark.parametrize("other", [None, 7, "x", [], {}, {"id": "user", "email": "x"}, {"mapping": []}])
def test_other_values_are_nobodys(other: object) -> None:
    assert format_of(other) is None
    assert wrapped(other) is None


def test_a_list_of_conversations_within_an_object_is_found() -> None:
    assert wrapped({"conversations": [None, chatgpt()]}) == [None, chatgpt()]
    assert wrapped({"version": 1, "data": [ONE_OF_EACH["claude"]]}) is not None
    assert wrapped(ONE_OF_EACH["sharegpt"]) is None


ODD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(
        ["", "x", "user", "tool", "text", "a", "q", "data:image/png;base64,QQ==", "1e999", "�" * 3]
    ),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "text", "id", "role"]), inner)
    ),
    max_leaves=6,
)
RICH = {
    **ONE_OF_EACH,
    "rich chatgpt": chatgpt(
        1,
        node(
            "q",
            None,
            "user",
            {"asset_pointer": "sediment://file_1"},
            metadata={"attachments": [{"id": "file_1"}]},
        ),
        node("c", "q", "assistant", recipient="python", content={"content_type": "code", "text": "{}"}),
        node("t", "c", "tool", content={"content_type": "thoughts", "thoughts": [{"content": "x"}]}),
    ),
    "rich claude": claude(
        {
            "uuid": "m",
            "sender": "human",
            "content": [
                {"type": "text", "text": "x"},
                {"type": "tool_use", "id": "t", "name": "n", "input": {"a": 1}},
                {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "y"}]},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QQ=="}},
            ],
            "attachments": [{"file_name": "a", "extracted_content": "b"}],
            "files": [{"file_name": "c"}],
        }
    ),
    "rich openwebui": openwebui(
        {
            "id": "q",
            "role": "user",
            "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,QQ=="}}],
            "files": [{"type": "file", "file": {"id": "f", "meta": {"name": "x"}, "data": {"content": "c"}}}],
        },
        {
            "id": "a",
            "role": "assistant",
            "content": '<details type="tool_calls" name="x" arguments="&quot;{}&quot;" result="[1]"></details>x',
            "output": [
                {"type": "function_call", "call_id": "c", "name": "n", "arguments": "{}"},
                {
                    "type": "function_call_output",
                    "call_id": "c",
                    "output": [{"type": "input_text", "text": "t"}],
                },
            ],
        },
    ),
    "rich sharegpt": {
        "messages": [
            {
                "role": "assistant",
                "tool_calls": [{"id": "k", "function": {"name": "g", "arguments": '{"a": 1}'}}],
            },
            {"role": "tool", "tool_call_id": "k", "content": "x"},
            {"role": "user", "content": "x"},
        ]
    },
}


def mutate(value: Any, chance: random.Random, odd: list[Any]) -> Any:
    """The value with one place in it replaced, removed or doubled."""
    value = copy.deepcopy(value)
    places: list[tuple[Any, Any]] = []
    pending = [value]
    while pending:
        held = pending.pop()
        keys = list(held) if isinstance(held, dict) else range(len(held))
        for key in keys:
            places.append((held, key))
            if isinstance(held[key], dict | list):
                pending.append(held[key])
    for other in odd:
        held, key = chance.choice(places)
        if isinstance(held, dict) or key < len(held):
            held[key] = other
    return value


@settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    st.sampled_from(sorted(RICH)), st.randoms(use_true_random=False), st.lists(ODD, min_size=1, max_size=4)
)
def test_an_item_with_anything_anywhere_is_parsed_or_unusable(
    name: str, chance: random.Random, odd: list[Any]
) -> None:
    item = mutate(RICH[name], chance, odd)
    found = format_of(item)
    if found is None:
        return
    try:
        parsed = found.parse(item, no_files)
    except Unusable:
        return
    assert isinstance(parsed, Parsed)
    check(parsed)


def check(parsed: Parsed) -> None:
    """What every conversation keeps, whoever wrote it."""
    assert parsed.source_id
    assert parsed.messages
    identities = [message.source_id for message in parsed.messages]
    assert len(set(identities)) == len(identities)
    for message in parsed.messages:
        orjson.dumps(message.payload)
        held = message.payload.get("content", message.payload.get("output"))
        blocks = [each for each in held if isinstance(each, dict)] if isinstance(held, list) else []
        named = [each["name"] for each in blocks if each.get("type") in ("image", "file") and "name" in each]
        if message.attachments:
            assert named == [each.name for each in message.attachments]
        if message.type in ("user_message", "assistant_message"):
            assert held
        if message.type == "tool_call":
            assert {"call_id", "name", "arguments"} <= message.payload.keys()
        if message.type == "tool_result":
            assert {"call_id", "output", "status"} <= message.payload.keys()

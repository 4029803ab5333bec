"""openwebui_answer: output items and folded blocks become events."""

from typing import Any

from tasks.imports.openwebui import parse
from tasks.imports.parsed import ParsedMessage
from tests.tasks.imports.exports import openwebui


def answered(content: Any, output: Any = None) -> tuple[ParsedMessage, ...]:
    question = {"id": "q", "role": "user", "content": "q"}
    return parse(
        openwebui(question, {"id": "a", "role": "assistant", "content": content, "output": output})
    ).messages[1:]


def test_output_items_are_told_and_the_text_that_repeats_them_is_not() -> None:
    output = [
        {"type": "reasoning", "content": [{"type": "output_text", "text": "hm"}]},
        {"type": "function_call", "call_id": "k", "name": "get", "arguments": '{"city": "Paris"}'},
        {"type": "function_call_output", "call_id": "k", "output": [{"type": "input_text", "text": "18C"}]},
        {"type": "message", "content": [{"type": "output_text", "text": "It is 18C."}]},
        {"type": "something new"},
    ]
    found = answered('<details type="reasoning"><summary>s</summary>hm</details>It is 18C.', output)
    assert [(each.source_id, each.type) for each in found] == [
        ("a", "reasoning"),
        ("a/1", "tool_call"),
        ("a/2", "tool_result"),
        ("a/3", "assistant_message"),
    ]
    assert found[1].payload == {"call_id": "k", "name": "get", "arguments": {"city": "Paris"}}
    assert found[2].payload == {"call_id": "k", "output": "18C", "status": "succeeded"}


def test_where_output_holds_no_answer_the_text_without_its_folds_is_it() -> None:
    output = [{"type": "reasoning", "content": [{"type": "output_text", "text": "hm"}]}]
    found = answered('<details type="reasoning"><summary>s</summary>&gt; hm</details>255', output)
    assert [(each.type, each.payload["content"]) for each in found] == [
        ("reasoning", "hm"),
        ("assistant_message", "255"),
    ]


def test_folded_calls_give_call_and_result_from_their_attributes() -> None:
    text = (
        '<details type="tool_calls" done="true" id="k" name="get" arguments="&quot;{\\&quot;a\\&quot;: 1}&quot;" '
        'result="&quot;18C&quot;"><summary>Done</summary></details>It is 18C.'
    )
    found = answered(text)
    assert [each.type for each in found] == ["tool_call", "tool_result", "assistant_message"]
    assert found[0].payload == {"call_id": "k", "name": "get", "arguments": {"a": 1}}
    assert found[1].payload == {"call_id": "k", "output": "18C", "status": "succeeded"}


def test_a_folded_call_without_attributes_has_its_body_as_the_result() -> None:
    found = answered('<details type="tool_calls"><summary>Done</summary>"rain"</details>Rain.')
    assert [each.payload.get("output") for each in found] == [None, "rain", None]
    assert found[0].payload["name"] == "tool"


def test_code_that_was_run_is_a_call_with_its_output() -> None:
    found = answered(
        '<details type="code_interpreter" output="{&quot;stdout&quot;: &quot;4&quot;}">2+2</details>'
    )
    assert found[0].payload == {"call_id": "call-1", "name": "code_interpreter", "arguments": "2+2"}
    assert found[1].payload["output"] == {"stdout": "4"}


def test_reasoning_that_was_cut_off_is_not_shown_as_the_answer() -> None:
    assert [each.type for each in answered('<details type="reasoning" done="false">&gt; half')] == [
        "reasoning"
    ]

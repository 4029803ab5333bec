"""oasst: the best-ranked branch."""

from typing import Any

import pytest

from tasks.imports.oasst import parse, recognise
from tasks.imports.parsed import Unusable
from tests.tasks.imports.exports import oasst, told


def reply(text: str, *replies: dict[str, Any], role: str = "assistant", **fields: Any) -> dict[str, Any]:
    return {"message_id": text, "role": role, "text": text, "replies": list(replies), **fields}


def chosen(*replies: dict[str, Any]) -> str:
    parsed = parse(oasst(reply("q", *replies, role="prompter")))
    return "".join(message.payload["content"] for message in parsed.messages)


def test_a_prompt_and_its_reply_are_a_conversation() -> None:
    assert recognise(oasst())
    parsed = parse(oasst())
    assert (parsed.format, parsed.source_id, parsed.created_at) == ("oasst", "tree-1", None)
    assert told(parsed) == [("user_message", "question"), ("assistant_message", "answer")]


@pytest.mark.parametrize(
    ("replies", "branch"),
    [
        ([reply("b", rank=1), reply("a", rank=0)], "qa"),
        ([reply("b"), reply("a", rank=9)], "qa"),
        ([reply("b", rank=None, review_count=1), reply("a", review_count=3)], "qa"),
        ([reply("a"), reply("b")], "qa"),
        ([reply("b", rank=0, deleted=True), reply("a", rank=1)], "qa"),
        ([reply("b", rank=float("nan")), reply("a", rank=2)], "qa"),
        ([reply("b", rank=10**400), reply("a", rank="0")], "qb"),
        ([reply("a", reply("y", rank=1), reply("x", rank=0), rank=0), reply("b", rank=1)], "qax"),
        ([None, 7], "q"),
    ],
)
def test_the_best_ranked_reply_is_taken_at_each_level(replies: list[dict[str, Any]], branch: str) -> None:
    assert chosen(*replies) == branch


def test_a_tree_of_ten_thousand_levels_is_read_without_recursion() -> None:
    deepest = reply("x")
    for _ in range(10_000):
        deepest = reply("x", deepest)
    assert len(chosen(deepest)) == 10_002


def test_a_tree_without_text_says_so() -> None:
    with pytest.raises(Unusable, match="no messages"):
        parse({"message_tree_id": "t", "prompt": {}})

"""What each type of event needs; what is missing or wrong is named."""

from __future__ import annotations

from typing import Any

import pytest

from models.errors import Invalid
from models.payloads import CHECKS, check
from models.redaction import MASK

SECRET = "AKIA" + "QWERTYUIOPASDFGH"
ID = "01a22ea9-f7b8-71a9-9b42-31c7b995d72c"  # one for all processes of a run: it is in the names of tests
ARTIFACT = {"artifact_id": ID, "name": "a.txt", "content_type": "text/plain", "size": 0, "sha256": "0" * 64}
GOOD: dict[str, dict[str, Any]] = {
    "user_message": {"content": "hello"},
    "assistant_message": {
        "content": [{"type": "text", "text": ""}, {"type": "image"}, {"type": "file", "x": 1}]
    },
    "tool_call": {"call_id": "c", "name": "n", "arguments": None},
    "tool_result": {"call_id": "c", "output": None, "status": "ok"},
    "approval_requested": {"summary": "s", "tool": None, "arguments": [1]},
    "artifact_created": ARTIFACT,
    "checkpoint": {"state": None},
    "projected": {"name": "n", "state": 0},
    "recall": {"query": "q", "memory_ids": []},
    "memory_formed": {"text": "t", "workspace": None},
    "memory_rejected": {"text": "t", "reason": "r"},
    "consolidated": {"text": "t", "memory_ids": [ID], "workspace": "w"},
    "knowledge_added": {"artifact_id": ID, "title": "t", "chunks": ["a", ""]},
    "skill_published": {"name": "n", "body": "b"},
    "run_ended": {"status": "cancelled"},
}
OPTIONAL = {"tool", "workspace"}


def test_each_type_of_the_table_has_its_check() -> None:
    assert set(GOOD) == set(CHECKS)


@pytest.mark.parametrize("kind", GOOD)
def test_what_a_type_needs_is_enough_and_more_keys_are_kept(kind: str) -> None:
    assert check("p", kind, GOOD[kind]) == GOOD[kind]
    more = GOOD[kind] | {"more": {"kept": True}}
    assert check("p", kind, more) == more


@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, name) for kind, payload in GOOD.items() for name in payload if name not in OPTIONAL],
)
def test_what_is_missing_is_named(kind: str, name: str) -> None:
    if kind == "approval_requested" and name == "arguments":
        check("p", kind, {"summary": "s"})
        return
    with pytest.raises(Invalid) as refusal:
        check("p", kind, {key: value for key, value in GOOD[kind].items() if key != name})
    assert refusal.value.details == {"field": f"p.{name}"}


LONG = "x" * 201
WRONG: list[tuple[str, str, Any, str]] = [
    ("user_message", "content", None, "content"),
    ("user_message", "content", 7, "content"),
    ("user_message", "content", {"type": "text"}, "content"),
    ("user_message", "content", ["loose"], "content[0]"),
    ("user_message", "content", [{"type": "text", "text": "a"}, {"text": "b"}], "content[1]"),
    ("user_message", "content", [{"type": 1}], "content[0]"),
    ("user_message", "content", [{"type": "text"}], "content[0].text"),
    ("user_message", "content", [{"type": "text", "text": None}], "content[0].text"),
    ("tool_call", "call_id", LONG, "call_id"),
    ("tool_call", "call_id", 7, "call_id"),
    ("tool_call", "name", " ", "name"),
    ("tool_result", "status", "", "status"),
    ("approval_requested", "summary", "", "summary"),
    ("approval_requested", "tool", LONG, "tool"),
    ("artifact_created", "artifact_id", "a/../b", "artifact_id"),
    ("artifact_created", "name", "", "name"),
    ("artifact_created", "content_type", None, "content_type"),
    ("artifact_created", "size", -1, "size"),
    ("artifact_created", "size", True, "size"),
    ("artifact_created", "size", "1", "size"),
    ("artifact_created", "size", 2**63, "size"),
    ("artifact_created", "sha256", "0" * 63, "sha256"),
    ("artifact_created", "sha256", "g" * 64, "sha256"),
    ("artifact_created", "sha256", 7, "sha256"),
    ("projected", "name", LONG, "name"),
    ("recall", "query", "", "query"),
    ("recall", "memory_ids", None, "memory_ids"),
    ("recall", "memory_ids", ["nobody"], "memory_ids"),
    ("recall", "memory_ids", ID, "memory_ids"),
    ("memory_formed", "text", " \n", "text"),
    ("memory_formed", "text", ["t"], "text"),
    ("memory_formed", "workspace", "", "workspace"),
    ("memory_formed", "workspace", LONG, "workspace"),
    ("memory_rejected", "reason", 7, "reason"),
    ("consolidated", "memory_ids", [], "memory_ids"),
    ("consolidated", "memory_ids", [None], "memory_ids"),
    ("consolidated", "workspace", 7, "workspace"),
    ("knowledge_added", "artifact_id", None, "artifact_id"),
    ("knowledge_added", "title", "", "title"),
    ("knowledge_added", "chunks", "text", "chunks"),
    ("knowledge_added", "chunks", ["a", 1], "chunks"),
    ("skill_published", "body", "", "body"),
    ("run_ended", "status", "expired", "status"),
    ("run_ended", "status", "running", "status"),
    ("run_ended", "status", ["succeeded"], "status"),
    ("run_ended", "status", {}, "status"),
]


@pytest.mark.parametrize(("kind", "name", "value", "field"), WRONG)
def test_what_is_wrong_is_named(kind: str, name: str, value: Any, field: str) -> None:
    with pytest.raises(Invalid) as refusal:
        check("p", kind, GOOD[kind] | {name: value})
    assert refusal.value.details == {"field": f"p.{field}"}


@pytest.mark.parametrize("kind", ["memory_formed", "memory_rejected", "consolidated"])
def test_the_text_of_a_memory_is_masked_before_it_is_an_event(kind: str) -> None:
    given = GOOD[kind] | {"text": f"the key is {SECRET} ok"}
    assert check("p", kind, given)["text"] == f"the key is {MASK} ok"
    assert given["text"] == f"the key is {SECRET} ok"


def test_a_type_that_nobody_knows_is_kept_as_it_is() -> None:
    assert check("p", "weather", {"text": SECRET}) == {"text": SECRET}

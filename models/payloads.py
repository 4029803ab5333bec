"""What each type of event needs in its payload (PRODUCT.md 3.2, the table). PURE.

A payload that lacks what its type needs is refused before anything is written, and the batch with it. More keys
are kept; a type that is not named here is stored as it is. The texts of memories are masked here, so that no
event ever holds what a memory may not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from models.errors import Invalid
from models.ids import is_id
from models.redaction import masked
from models.rules import MEMORY_MAX, NAME_MAX, RUN_END_STATES

Payload = Mapping[str, Any]
IDS_MAX = 1_000  # memories that one event names
_SHA256 = re.compile(r"[0-9a-f]{64}").fullmatch


def check(field: str, kind: str, payload: dict[str, Any]) -> dict[str, Any]:
    """The payload as it will be stored: secrets masked where the type holds a memory's text.

    `field` is what an error names, such as "events[2].payload". Raises Invalid.
    """
    rule = CHECKS.get(kind)
    if rule is not None:
        rule(field, payload)
    for name in MASKED.get(kind, ()):
        payload = {**payload, name: masked(payload[name])}
    return payload


def _text(
    field: str, payload: Payload, name: str, *, limit: int | None = None, optional: bool = False
) -> None:
    value = payload.get(name)
    if value is None and optional:
        return
    if not isinstance(value, str) or not value.strip():
        raise Invalid(f"{field}.{name}", f"{name} must be a text that is not empty.")
    if limit is not None and len(value) > limit:
        raise Invalid(f"{field}.{name}", f"{name} has at most {limit} characters.")


def _ids(field: str, payload: Payload, name: str) -> None:
    value = payload.get(name)
    if not isinstance(value, list) or len(value) > IDS_MAX or not all(is_id(item) for item in value):
        raise Invalid(f"{field}.{name}", f"{name} must be a list of at most {IDS_MAX} ids.")


def _present(field: str, payload: Payload, name: str) -> None:
    if name not in payload:
        raise Invalid(f"{field}.{name}", f"{name} is missing.")


def _message(field: str, payload: Payload) -> None:
    content = payload.get("content")
    if isinstance(content, str):
        return
    if not isinstance(content, list):
        raise Invalid(f"{field}.content", "content must be a text or a list of blocks.")
    for at, block in enumerate(content):
        if not isinstance(block, dict) or not isinstance(block.get("type"), str):
            raise Invalid(f"{field}.content[{at}]", "A block is an object with a type.")
        if block["type"] == "text" and not isinstance(block.get("text"), str):
            raise Invalid(f"{field}.content[{at}].text", "A text block needs its text.")


def _tool_call(field: str, payload: Payload) -> None:
    _text(field, payload, "call_id", limit=NAME_MAX)
    _text(field, payload, "name", limit=NAME_MAX)
    _present(field, payload, "arguments")


def _tool_result(field: str, payload: Payload) -> None:
    _text(field, payload, "call_id", limit=NAME_MAX)
    _text(field, payload, "name", limit=NAME_MAX, optional=True)
    _present(field, payload, "output")
    _text(field, payload, "status", limit=NAME_MAX)


def _approval(field: str, payload: Payload) -> None:
    _text(field, payload, "summary")
    _text(field, payload, "tool", limit=NAME_MAX, optional=True)


def _artifact(field: str, payload: Payload) -> None:
    if not is_id(payload.get("artifact_id")):
        raise Invalid(f"{field}.artifact_id", "artifact_id must be an artifact's id.")


def _artifact_created(field: str, payload: Payload) -> None:
    _artifact(field, payload)
    _text(field, payload, "name")
    _text(field, payload, "content_type")
    size, sha256 = payload.get("size"), payload.get("sha256")
    if type(size) is not int or not 0 <= size < 2**63:
        raise Invalid(f"{field}.size", "size must be a whole number of bytes.")
    if not isinstance(sha256, str) or not _SHA256(sha256):
        raise Invalid(f"{field}.sha256", "sha256 must be 64 hexadecimal digits.")


def _projected(field: str, payload: Payload) -> None:
    _text(field, payload, "name", limit=NAME_MAX)
    _present(field, payload, "state")


def _recall(field: str, payload: Payload) -> None:
    _text(field, payload, "query")
    _ids(field, payload, "memory_ids")


def _formed(field: str, payload: Payload) -> None:
    _text(field, payload, "text", limit=MEMORY_MAX)
    _text(field, payload, "workspace", limit=NAME_MAX, optional=True)


def _rejected(field: str, payload: Payload) -> None:
    _text(field, payload, "text", limit=MEMORY_MAX)
    _text(field, payload, "reason", limit=MEMORY_MAX)


def _consolidated(field: str, payload: Payload) -> None:
    _text(field, payload, "text", limit=MEMORY_MAX)
    _text(field, payload, "workspace", limit=NAME_MAX, optional=True)
    _ids(field, payload, "memory_ids")
    if not payload["memory_ids"]:
        raise Invalid(f"{field}.memory_ids", "A consolidation needs the memories it was drawn from.")


def _knowledge(field: str, payload: Payload) -> None:
    _artifact(field, payload)
    _text(field, payload, "title")
    chunks = payload.get("chunks")
    if not isinstance(chunks, list) or not all(isinstance(chunk, str) for chunk in chunks):
        raise Invalid(f"{field}.chunks", "chunks must be a list of texts.")


def _skill(field: str, payload: Payload) -> None:
    _text(field, payload, "name", limit=NAME_MAX)
    _text(field, payload, "body")


def _run_ended(field: str, payload: Payload) -> None:
    if payload.get("status") not in RUN_END_STATES:
        raise Invalid(f"{field}.status", f"status must be one of {', '.join(RUN_END_STATES)}.")


CHECKS: dict[str, Callable[[str, Payload], None]] = {
    "user_message": _message,
    "assistant_message": _message,
    "tool_call": _tool_call,
    "tool_result": _tool_result,
    "approval_requested": _approval,
    "artifact_created": _artifact_created,
    "checkpoint": lambda field, payload: _present(field, payload, "state"),
    "projected": _projected,
    "recall": _recall,
    "memory_formed": _formed,
    "memory_rejected": _rejected,
    "consolidated": _consolidated,
    "knowledge_added": _knowledge,
    "skill_published": _skill,
    "run_ended": _run_ended,
}
MASKED = {"memory_formed": ("text",), "memory_rejected": ("text", "reason"), "consolidated": ("text",)}

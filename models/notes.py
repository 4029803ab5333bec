"""PURE: events in one line of words, and what kinds of export are called, for whoever shows or exports them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ORIGINS = {
    "chatgpt": "ChatGPT",
    "claude": "Claude",
    "openwebui": "Open WebUI",
    "oasst": "OpenAssistant",
    "example": "the example that this server has",
    "sharegpt": "a file of conversations",
}


def note(kind: str, payload: Mapping[str, Any]) -> str:
    """What an event that is neither a message nor a tool says, in one line; any payload will do."""
    match kind:
        case "approval_requested":
            return f"Asked for approval: {word(payload, 'summary')}"
        case "approval_decided":
            return "Approved" if payload.get("decision") == "approve" else "Denied"
        case "artifact_created":
            return f"File added: {word(payload, 'name')}"
        case "recall":
            found = payload.get("memory_ids")
            return f"Looked up memories: {len(found) if isinstance(found, list) else 0} found"
        case "memory_formed":
            return f"Remembered: {word(payload, 'text')}"
        case "memory_rejected":
            return f"Not remembered: {word(payload, 'reason')}"
        case "consolidated":
            return f"Memories drawn together: {word(payload, 'text')}"
        case "knowledge_added":
            return f"Knowledge added: {word(payload, 'title')}"
        case "skill_published":
            return f"Skill published: {word(payload, 'name')}"
        case "run_ended":
            return f"Run {word(payload, 'status')}"
    return kind.replace("_", " ").capitalize()


def block_name(block: Mapping[str, Any]) -> str:
    """The name that a block of a message gives itself, or ""."""
    return word(block, "name") or word(block, "file_name") or word(block, "filename")


def word(payload: Mapping[str, Any], name: str) -> str:
    """The string under that name, "" when there is none."""
    value = payload.get(name)
    return value if isinstance(value, str) else ""

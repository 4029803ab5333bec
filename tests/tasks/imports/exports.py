"""Exports as the tests need them: small ones, written here, and ways to put them into a file."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

from tasks.imports.parsed import Broken, Parsed
from tasks.imports.reading import read_export

SHARED = Path(__file__).parents[4] / "shared" / "data"


def node(
    own: str, parent: str | None, role: str, *parts: Any, children: tuple[str, ...] = (), **message: Any
) -> dict[str, Any]:
    """A node of a ChatGPT mapping."""
    content = message.pop("content", {"content_type": "text", "parts": list(parts)})
    author = {"role": role, **message.pop("author", {})}
    return {
        "id": own,
        "parent": parent,
        "children": list(children),
        "message": {"id": own, "author": author, "content": content, **message},
    }


def chatgpt(number: int = 1, *nodes: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A ChatGPT conversation; without nodes, a question and its answer."""
    nodes = nodes or (
        {"id": "root", "parent": None, "children": ["q"], "message": None},
        node("q", "root", "user", f"question {number}", children=("a",), create_time=1700000000.5 + number),
        node("a", "q", "assistant", f"answer {number}", create_time=1700000001.5 + number),
    )
    return {
        "title": f"title {number}",
        "create_time": 1700000000.5 + number,
        "update_time": 1700000009.5 + number,
        "mapping": {each["id"]: each for each in nodes},
        "current_node": nodes[-1]["id"],
        "conversation_id": f"id-{number}",
        **fields,
    }


def claude(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A Claude conversation; without messages, a question and its answer."""
    messages = messages or (
        {"uuid": "m1", "sender": "human", "text": "question", "created_at": "2024-12-01T10:00:00Z"},
        {"uuid": "m2", "sender": "assistant", "text": "answer", "created_at": "2024-12-01T10:01:00+00:00"},
    )
    return {
        "uuid": "c1",
        "name": "title",
        "created_at": "2024-12-01T10:00:00Z",
        "chat_messages": list(messages),
        **fields,
    }


def openwebui(*messages: dict[str, Any], current: str | None = None, **fields: Any) -> dict[str, Any]:
    """An Open WebUI chat whose messages follow one another unless they say otherwise."""
    messages = messages or (
        {"id": "m1", "role": "user", "content": "question", "timestamp": 1700000000},
        {"id": "m2", "role": "assistant", "content": "answer", "timestamp": 1700000010},
    )
    history: dict[str, Any] = {}
    before = None
    for message in messages:
        history[message["id"]] = {"parentId": before, "childrenIds": [], **message}
        before = message["id"]
    held = {"currentId": current or before, "messages": history}
    return {"id": "chat-1", "title": "title", "chat": {"title": "title", "history": held}, **fields}


def sharegpt(*turns: tuple[str, Any], **fields: Any) -> dict[str, Any]:
    """A ShareGPT-style conversation."""
    turns = turns or (("human", "question"), ("gpt", "answer"))
    return {"conversations": [{"from": who, "value": what} for who, what in turns], **fields}


def oasst(prompt: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """An OpenAssistant tree."""
    prompt = prompt or {
        "message_id": "p",
        "role": "prompter",
        "text": "question",
        "replies": [{"message_id": "r", "role": "assistant", "text": "answer", "rank": 0, "replies": []}],
    }
    return {"message_tree_id": "tree-1", "prompt": prompt, **fields}


ONE_OF_EACH = {
    "chatgpt": chatgpt(),
    "claude": claude(),
    "openwebui": openwebui(),
    "sharegpt": sharegpt(id="s1"),
    "oasst": oasst(),
}


def zipped(path: Path, entries: dict[str, bytes] | list[tuple[str, bytes]]) -> Path:
    """Writes a ZIP; a list may name an entry twice."""
    pairs = entries.items() if isinstance(entries, dict) else entries
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in pairs:
            archive.writestr(name, data)
    return path


def dumped(*items: Any) -> bytes:
    """A JSON list."""
    return json.dumps(list(items)).encode()


def stream(data: bytes, size: int = 1 << 20) -> Any:
    """A `read(n)` that gives at most `size` bytes at once."""
    source = io.BytesIO(data)
    return lambda wanted: source.read(min(wanted, size))


def read_all(path: Path) -> list[Parsed | Broken]:
    """Everything that a file gives."""
    with read_export(path) as export:
        return list(export)


def read_bytes(folder: Path, data: bytes) -> list[Parsed | Broken]:
    """Everything that a file of these bytes gives."""
    path = folder / "export"
    path.write_bytes(data)
    return read_all(path)


def told(parsed: Parsed) -> list[tuple[str, Any]]:
    """The types and contents of the messages, in order."""
    return [(each.type, each.payload.get("content")) for each in parsed.messages]

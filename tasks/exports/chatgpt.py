"""PURE: conversations in the shape of ChatGPT's conversations.json, which most importers read, ours among them.

| event | a node's message |
|---|---|
| a message of the user, the assistant, the system | that role; `text`, or `multimodal_text` with pointers |
| `tool_call` | the assistant's `code` to the `recipient` that is the tool |
| `tool_result` | the role `tool`, named after the tool; `system_error` when it failed |
| `reasoning` | `thoughts` |
| a file that no message names | the assistant's, empty, with the attachment |
| a sub-agent's, and anything else | hidden, so that other tools pass it over |

The nodes are one chain, so the active branch is all of it. `metadata.allgone` holds what the shape has no place for:
the type, the number, the `call_id`, and of hidden ones the payload. A file is `file-` and the 32 digits of its id.
"""

from __future__ import annotations

import mimetypes
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from models.notes import block_name, note, word
from models.reading import Read
from models.rules import texts
from tasks.exports.told import Told

ROOT = "client-created-root"
ROLES = {"user_message": "user", "assistant_message": "assistant", "system_message": "system"}
FAILED = frozenset({"failed", "error"})


def file_key(artifact_id: str) -> str:
    """What a file is called in here, and how its name in an archive begins."""
    return "file-" + artifact_id.replace("-", "")


def conversation(told: Told) -> Iterator[bytes]:
    """One conversation, piece by piece; each node names the one after it, so the last is written when that is known."""
    entry = told.entry
    head = {
        "title": entry.title,
        "create_time": entry.created_at.timestamp(),
        "update_time": entry.updated_at.timestamp(),
    }
    yield orjson.dumps(head)[:-1] + b',"mapping":{'
    held: dict[str, Any] = {"id": ROOT, "message": None, "parent": None}
    writer = _Writer(told)
    for event in told.events():
        message = writer.message(event)
        if message is not None:
            yield _node(held, message["id"]) + b","
            held = {"id": message["id"], "message": message, "parent": held["id"]}
    yield _node(held, None)
    tail = {"moderation_results": [], "current_node": held["id"], "conversation_id": entry.id, "id": entry.id}
    yield b"}," + orjson.dumps(tail)[1:]


def _node(node: dict[str, Any], following: str | None) -> bytes:
    whole = {**node, "children": [following] if following else []}
    return orjson.dumps(node["id"]) + b":" + orjson.dumps(whole)


class _Writer:
    """Events into messages; knows the tools that were called and the files that messages have named."""

    def __init__(self, told: Told) -> None:
        self._files: Mapping[str, Any] = told.files
        self._tools: dict[str, str] = {}
        self._named = told.named

    def message(self, event: Read) -> dict[str, Any] | None:
        """The message of a node; None for a file that a message has named already."""
        if event.parent_id is not None:
            return _hidden(event)
        payload = event.payload
        if event.type in ROLES or (event.type == "message" and word(payload, "role")):
            role = ROLES.get(event.type) or word(payload, "role")
            return self._with_content(_message(event, role), payload.get("content"))
        if event.type == "tool_call":
            return self._call(event)
        if event.type == "tool_result":
            return self._result(event)
        if event.type == "reasoning":
            thought = {"summary": "", "content": "\n\n".join(texts(payload.get("content")))}
            content = {"content_type": "thoughts", "thoughts": [thought]}
            return _message(event, "assistant", content=content)
        if event.type == "artifact_created":
            key = word(payload, "artifact_id")
            if key in self._named:
                return None
            block = {"type": "file", "artifact_id": key, "name": word(payload, "name")}
            return self._with_content(_message(event, "assistant"), [block])
        return _hidden(event)

    def _call(self, event: Read) -> dict[str, Any]:
        name, call_id = word(event.payload, "name") or "tool", word(event.payload, "call_id")
        self._tools[call_id] = name
        arguments = event.payload.get("arguments")
        written = arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()
        content = {"content_type": "code", "language": "unknown", "text": written}
        message = _message(event, "assistant", content=content, call_id=call_id)
        message["recipient"] = name if name != "all" else "all_"
        return message

    def _result(self, event: Read) -> dict[str, Any]:
        call_id, status = word(event.payload, "call_id"), word(event.payload, "status")
        message = _message(event, "tool", call_id=call_id, status=status)
        message["author"]["name"] = self._tools.pop(call_id, "") or word(event.payload, "name") or "tool"
        output = event.payload.get("output")
        blocks = isinstance(output, list) and all(isinstance(b, Mapping) and "type" in b for b in output)
        if not isinstance(output, str) and not blocks:
            output = orjson.dumps(output).decode()
        message = self._with_content(message, output)
        if status in FAILED:
            said = "\n\n".join(texts(output))
            message["content"] = {"content_type": "system_error", "name": "error", "text": said}
        return message

    def _with_content(self, message: dict[str, Any], content: Any) -> dict[str, Any]:
        if not isinstance(content, list):
            message["content"] = {
                "content_type": "text",
                "parts": [content if isinstance(content, str) else ""],
            }
            return message
        parts: list[Any] = []
        attachments: list[dict[str, Any]] = []
        for place, block in enumerate(content):
            if not isinstance(block, Mapping):
                continue
            if block.get("type") == "text":
                parts.append(word(block, "text"))
            elif block.get("type") in ("image", "file"):
                attachments.append(self._attachment(block, f"{message['id']}-{place}"))
                if attachments[-1]["mime_type"].startswith("image/"):
                    parts.append(_pointer(attachments[-1]))
            else:
                parts.append({"content_type": word(block, "type") or "part", **block})
        kind = "text" if all(isinstance(part, str) for part in parts) else "multimodal_text"
        message["content"] = {"content_type": kind, "parts": parts or [""]}
        if attachments:
            message["metadata"]["attachments"] = attachments
        return message

    def _attachment(self, block: Mapping[str, Any], otherwise: str) -> dict[str, Any]:
        key = word(block, "artifact_id")
        row = self._files.get(key)
        if row is not None:
            kind, size = row.content_type.partition(";")[0], {"size": row.size}
            return {"id": file_key(key), "name": row.name, "mime_type": kind, **size}
        name = block_name(block)
        guessed = mimetypes.guess_type(name)[0]
        if block.get("type") == "image":
            guessed = guessed if (guessed or "").startswith("image/") else "image/png"
        return {"id": otherwise, "name": name, "mime_type": guessed or "application/octet-stream"}


def _pointer(attachment: Mapping[str, Any]) -> dict[str, Any]:
    address = f"file-service://{attachment['id']}"
    size = {"size_bytes": attachment["size"]} if "size" in attachment else {}
    return {"content_type": "image_asset_pointer", "asset_pointer": address, **size}


def _message(event: Read, role: str, *, content: Any = None, **kept: str) -> dict[str, Any]:
    return {
        "id": event.id,
        "author": {"role": role, "name": None, "metadata": {}},
        "create_time": event.created_at.timestamp(),
        "update_time": None,
        "content": content,
        "status": "finished_successfully",
        "end_turn": None,
        "weight": 1.0,
        "metadata": {"allgone": {"type": event.type, "seq": event.seq, **kept}},
        "recipient": "all",
    }


def _hidden(event: Read) -> dict[str, Any]:
    said = note(event.type, event.payload)
    message = _message(event, "system", content={"content_type": "text", "parts": [said]})
    message["metadata"]["is_visually_hidden_from_conversation"] = True
    message["metadata"]["allgone"] |= {"parent_id": event.parent_id, "payload": event.payload}
    return message

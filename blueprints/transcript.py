"""Events as a reader reads them: messages, tool calls folded with their results, and quiet notes. PURE.

Whatever an event holds is a stranger's: texts go through `blueprints/markdown.py` or are escaped by the template,
and a payload that is not what its type promises is shown as little as it says, never as an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import orjson
from markupsafe import Markup

from blueprints.markdown import rendered, verbatim
from models.rules import texts
from models.transcript import Said

SHOWN_MAX = 20_000  # characters of a tool's arguments or output that are shown
MARKDOWN_MAX = 200_000  # characters of one page that are read as Markdown; what comes after is shown as it is
SPEAKERS = {"user_message": "You", "assistant_message": "Assistant"}
SILENT = frozenset({"checkpoint", "projected"})  # a worker's own book-keeping


@dataclass(slots=True)
class Item:
    """One thing in the transcript. `kind` is message, tool, reasoning or note; the rest is what that kind has."""

    kind: str
    seq: int
    at: datetime
    speaker: str = ""
    blocks: list[Markup | str] = field(default_factory=list)  # Markup is HTML, a str names what is not shown
    name: str = ""
    status: str = ""
    arguments: str = ""
    output: str = ""


def items(events: Sequence[Said]) -> list[Item]:
    """What to show of `events`, in their order; a tool's result is shown with its call where both are here."""
    shown: list[Item] = []
    left = MARKDOWN_MAX
    calls: dict[str, Item] = {}
    for event in events:
        payload = event.payload
        if event.type in SPEAKERS:
            message, read = _message(event, left)
            left -= read
            shown.append(message)
        elif event.type == "tool_call":
            call = Item("tool", event.seq, event.created_at, name=_word(payload, "name"), status="called")
            call.arguments = _shown(payload.get("arguments"))
            calls[_word(payload, "call_id")] = call
            shown.append(call)
        elif event.type == "tool_result":
            result = calls.pop(_word(payload, "call_id"), None)
            if result is None:  # its call is on an earlier page
                result = Item("tool", event.seq, event.created_at, name=_word(payload, "name") or "tool")
                shown.append(result)
            result.output, result.status = _shown(payload.get("output")), _word(payload, "status")
        elif event.type == "reasoning":
            shown.append(Item("reasoning", event.seq, event.created_at, output=_shown(_spoken(payload))))
        elif event.type not in SILENT:
            shown.append(Item("note", event.seq, event.created_at, blocks=[_note(event.type, payload)]))
    return shown


def _message(event: Said, left: int) -> tuple[Item, int]:
    read = 0
    spoken = event.type == "user_message"
    item = Item("message", event.seq, event.created_at, speaker=SPEAKERS[event.type])
    content = event.payload.get("content")
    for block in content if isinstance(content, list) else [{"type": "text", "text": content}]:
        if not isinstance(block, Mapping):
            continue
        text = block.get("text")
        if block.get("type") == "text" and isinstance(text, str):
            if text.strip():
                read += len(text)
                item.blocks.append(rendered(text, breaks=spoken) if read <= left else verbatim(text))
        else:
            item.blocks.append(_named(block))
    return item, read


def _named(block: Mapping[str, Any]) -> str:
    kind = _word(block, "type") or "part"
    name = _word(block, "name") or _word(block, "file_name") or _word(block, "filename")
    label = {"image": "Image", "file": "File"}.get(kind, kind[:40])
    return f"{label}: {name[:200]}" if name else label


def _note(kind: str, payload: Mapping[str, Any]) -> str:
    match kind:
        case "approval_requested":
            return f"Asked for approval: {_word(payload, 'summary')}"
        case "artifact_created":
            return f"File added: {_word(payload, 'name')}"
        case "recall":
            found = payload.get("memory_ids")
            return f"Looked up memories: {len(found) if isinstance(found, list) else 0} found"
        case "memory_formed":
            return f"Remembered: {_word(payload, 'text')}"
        case "memory_rejected":
            return f"Not remembered: {_word(payload, 'reason')}"
        case "consolidated":
            return f"Memories drawn together: {_word(payload, 'text')}"
        case "knowledge_added":
            return f"Knowledge added: {_word(payload, 'title')}"
        case "skill_published":
            return f"Skill published: {_word(payload, 'name')}"
        case "run_ended":
            return f"Run {_word(payload, 'status')}"
    return kind.replace("_", " ").capitalize()


def _spoken(payload: Mapping[str, Any]) -> str:
    return "\n\n".join(texts(payload.get("content")))


def _word(payload: Mapping[str, Any], name: str) -> str:
    value = payload.get(name)
    return value if isinstance(value, str) else ""


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    if len(text) > SHOWN_MAX:
        return f"{text[:SHOWN_MAX]}\n… {len(text) - SHOWN_MAX:,} more characters are not shown"
    return text

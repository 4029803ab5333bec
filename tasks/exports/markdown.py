"""PURE: a conversation as Markdown, for people: who said what when, tools in fences, the rest in lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, tzinfo
from typing import Any

import orjson

from models.notes import ORIGINS, block_name, note, word
from models.reading import Read
from models.rules import texts
from tasks.exports.told import Told

SPEAKERS = {"user_message": "You", "assistant_message": "Assistant", "system_message": "System"}


def conversation(told: Told, zone: tzinfo, files: Mapping[str, str] | None = None) -> Iterator[bytes]:
    """One conversation, piece by piece; times in `zone`. `files` gives where a file lies beside, by its id."""
    entry = told.entry
    title = entry.title or "Untitled"
    yield f"# {_line(title)}\n\n".encode()
    source = f", imported from {ORIGINS.get(told.origin, told.origin)}" if told.origin else ""
    yield f"*Started {_when(entry.created_at, zone)}{source}*\n".encode()
    for event in told.events():
        if event.type == "artifact_created" and word(event.payload, "artifact_id") in told.named:
            continue
        said = _told(event, zone, files or {})
        if said:
            yield f"\n{said}\n".encode("utf-8", "replace")


def _told(event: Read, zone: tzinfo, files: Mapping[str, str]) -> str:
    payload, who = event.payload, SPEAKERS.get(event.type)
    if event.type == "message":
        who = word(payload, "role") or "Message"
    inner = "Sub-agent: " if event.parent_id is not None else ""
    if who is not None:
        return f"## {_line(inner + who)} · {_when(event.created_at, zone)}\n\n{_content(payload.get('content'), files)}"
    if event.type == "tool_call":
        name = _line(word(payload, "name")) or "tool"
        return f"**{inner}Tool: {name}**\n\n{_fenced(payload.get('arguments'))}"
    if event.type == "tool_result":
        status = _line(word(payload, "status"))
        return (
            f"**{inner}Result{f' ({status})' if status else ''}**\n\n{_output(payload.get('output'), files)}"
        )
    if event.type == "reasoning":
        said = "\n\n".join(texts(payload.get("content")))
        return f"**{inner}Reasoning**\n\n" + "\n".join(f"> {line}".rstrip() for line in said.splitlines())
    if event.type == "artifact_created":
        return _file(word(payload, "artifact_id"), word(payload, "name"), files)
    return f"*{inner}{_line(note(event.type, payload))}*"


def _content(content: Any, files: Mapping[str, str]) -> str:
    if isinstance(content, str):
        return content
    parts = []
    for block in content if isinstance(content, list) else []:
        if not isinstance(block, Mapping):
            continue
        if block.get("type") == "text":
            parts.append(word(block, "text"))
        else:
            name = block_name(block) or word(block, "type") or "part"
            parts.append(_file(word(block, "artifact_id"), name, files))
    return "\n\n".join(part for part in parts if part.strip()) or "*No text*"


def _output(output: Any, files: Mapping[str, str]) -> str:
    blocks = isinstance(output, list) and any(isinstance(b, Mapping) and "artifact_id" in b for b in output)
    return _content(output, files) if blocks else _fenced(output)


def _file(artifact_id: str, name: str, files: Mapping[str, str]) -> str:
    label = re.sub(r"([\[\]\\])", r"\\\1", _line(name)) or "file"
    place = files.get(artifact_id)
    return f"[File: {label}](<{place}>)" if place else f"*File: {label}*"


def _fenced(value: Any) -> str:
    """Text or JSON between fences that are longer than any in it."""
    kind = "" if isinstance(value, str) else "json"
    text = value if isinstance(value, str) else orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{kind}\n{text}\n{fence}"


def _line(text: str) -> str:
    return " ".join(text.split())


def _when(at: datetime, zone: tzinfo) -> str:
    return f"{at.astimezone(zone):%Y-%m-%d %H:%M %Z}"

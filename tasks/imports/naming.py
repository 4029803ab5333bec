"""What a conversation is called when it must be reported: `TITLE (ID)`, one of them, or `conversation N`."""

from __future__ import annotations

import re
from typing import Any

from tasks.imports.bounds import MAX_NAME
from tasks.imports.decoding import Undecodable, decode
from tasks.imports.fields import first_text, identity, record

_STRING = rb'\s*:\s*("(?:[^"\\]|\\.){0,300}")'
_TITLE = re.compile(rb'"(?:title|name)"' + _STRING)
_IDENTITY = re.compile(rb'"(?:conversation_id|uuid|id|message_tree_id)"' + _STRING)
_HEAD = 4096


def name_of(value: Any, number: int) -> str:
    """By its decoded fields."""
    item = record(value)
    chat = record(item.get("chat"))
    title = first_text(item.get("title"), item.get("name"), chat.get("title")).strip()
    keys = ("conversation_id", "uuid", "id", "message_tree_id")
    return _named(title, identity(*(item.get(key) for key in keys)) or "", number)


def name_in(raw: bytes, number: int) -> str:
    """By what can be seen at the head of a text that is not JSON, before anything nests in it."""
    head = raw[:_HEAD]
    nested = re.search(rb"[{\[]", head[1:])
    head = head[: nested.start() + 1] if nested else head
    return _named(_seen(_TITLE, head).strip(), _seen(_IDENTITY, head), number)


def _seen(pattern: re.Pattern[bytes], head: bytes) -> str:
    found = pattern.search(head)
    try:
        return first_text(decode(found[1]).value) if found else ""
    except Undecodable:
        return ""


def _named(title: str, own_id: str, number: int) -> str:
    title = title[:MAX_NAME]
    if title and own_id:
        return f"{title} ({own_id})"
    return title or own_id or f"conversation {number}"

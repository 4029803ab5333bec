"""Which formats there are, and whose an item is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tasks.imports import chatgpt, claude, oasst, openwebui, sharegpt
from tasks.imports.files import Files
from tasks.imports.parsed import Parsed


@dataclass(frozen=True, slots=True)
class Format:
    """One format: does an item look like its conversation, what does it hold, what does an item lack that does not."""

    name: str
    recognise: Callable[[dict[str, Any]], bool]
    parse: Callable[[dict[str, Any], Files], Parsed]
    lacks: str


FORMATS = (
    Format(chatgpt.NAME, chatgpt.recognise, chatgpt.parse, "it has no mapping of messages"),
    Format(claude.NAME, claude.recognise, claude.parse, "it has no list of chat messages"),
    Format(openwebui.NAME, openwebui.recognise, openwebui.parse, "it has no chat with messages"),
    Format(oasst.NAME, oasst.recognise, oasst.parse, "it has no prompt"),
    Format(sharegpt.NAME, sharegpt.recognise, sharegpt.parse, "it has no list of turns"),
)


def format_of(value: object) -> Format | None:
    """The first format that recognises the value; None when it is no conversation of any."""
    if not isinstance(value, dict):
        return None
    return next((each for each in FORMATS if each.recognise(value)), None)


def wrapped(value: object) -> list[Any] | None:
    """The list of conversations that an object holds under one of the usual words; None when it holds none."""
    if not isinstance(value, dict) or format_of(value) is not None:
        return None
    for key in ("conversations", "chats", "data"):
        items = value.get(key)
        if isinstance(items, list) and any(format_of(item) for item in items):
            return items
    return None

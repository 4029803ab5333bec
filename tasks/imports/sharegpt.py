"""Plain ShareGPT-style conversations: a list of turns, as `{"from", "value"}` or `{"role", "content"}`.

The list is called `conversations`, `conversation`, `messages` or `items`. Turns in the manner of the OpenAI API may
carry `tool_calls`, and tool turns a `tool_call_id`; in ShareGPT's, `function_call` and `observation` are turns.
"""

from __future__ import annotations

from typing import Any

from tasks.imports.blocks import content_from, output_of
from tasks.imports.decoding import decode_inner
from tasks.imports.fields import first_text, identity, record, records, text
from tasks.imports.files import Files, no_files
from tasks.imports.moments import moment
from tasks.imports.parsed import Parsed
from tasks.imports.transcript import Transcript

NAME = "sharegpt"
LISTS = ("conversations", "messages", "conversation", "items")
ROLES = {
    **dict.fromkeys(("human", "user", "prompter"), "user"),
    **dict.fromkeys(
        ("gpt", "assistant", "chatgpt", "bing", "bard", "claude", "model", "ai", "bot"), "assistant"
    ),
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("tool", "function", "observation", "function_response", "tool_response"), "tool"),
    **dict.fromkeys(("function_call", "tool_call"), "call"),
}
CREATED = ("created_at", "create_time", "createdAt", "timestamp", "date")
UPDATED = ("updated_at", "update_time", "updatedAt")


def recognise(item: dict[str, Any]) -> bool:
    """An object with a list of turns; an empty list is one where nothing else could be meant."""
    if isinstance(item.get("conversations"), list) and not item["conversations"] and "id" in item:
        return True
    return bool(_turns(item))


def parse(item: dict[str, Any], files: Files = no_files) -> Parsed:
    """One conversation. Raises `Unusable`."""
    transcript = Transcript()
    for turn in _turns(item):
        _tell(transcript, turn)
    return transcript.finish(
        NAME,
        identity(item.get("id"), item.get("conversation_id"), item.get("uuid")),
        first_text(item.get("title"), item.get("name")),
        moment(*(item.get(key) for key in CREATED)),
        moment(*(item.get(key) for key in UPDATED)),
    )


def _turns(item: dict[str, Any]) -> list[dict[str, Any]]:
    for key in LISTS:
        turns = records(item.get(key))
        if any(_is_turn(turn) for turn in turns):
            return turns
    return []


def _is_turn(turn: dict[str, Any]) -> bool:
    by_name = isinstance(turn.get("from"), str) and "value" in turn
    by_role = isinstance(turn.get("role"), str) and ("content" in turn or "tool_calls" in turn)
    return by_name or by_role


def _tell(transcript: Transcript, turn: dict[str, Any]) -> None:
    if not _is_turn(turn):
        return
    written = first_text(turn.get("from"), turn.get("role")).strip().lower()
    role = ROLES.get(written, written)
    value = turn["value"] if "value" in turn else turn.get("content")
    transcript.begin(identity(turn.get("id")), moment(*(turn.get(key) for key in CREATED)))
    if role == "tool":
        output, other = output_of(value)
        transcript.result(turn.get("tool_call_id"), output, text(turn.get("name")), value=other)
        return
    if role == "call":
        inner = decode_inner(text(value))
        called = record(inner.value if inner else None)
        arguments = called.get("arguments") if "arguments" in called else value
        transcript.replaced += inner.replaced if inner else 0
        transcript.call(turn.get("id"), text(called.get("name")), arguments)
        return
    transcript.think(first_text(turn.get("reasoning_content"), turn.get("reasoning")))
    transcript.say(role, content_from(value))
    for call in records(turn.get("tool_calls")):
        function = record(call.get("function")) or call
        transcript.call(call.get("id"), text(function.get("name")), function.get("arguments"))

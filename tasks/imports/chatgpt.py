"""ChatGPT's conversations.json: a mapping of nodes, each with a message, a parent and (often) children.

The active branch runs from `current_node` up. Hidden on it: nodes without a message or an author, the system's,
those marked `is_visually_hidden_from_conversation`, the context a user wrote once for all conversations, weight 0.
An assistant's text or code to a `recipient` other than `all` is a tool call; the tool's message is its result.
"""

from __future__ import annotations

from typing import Any

from tasks.imports.chatgpt_content import content_of, reasoning_of
from tasks.imports.fields import identity, listing, record, text
from tasks.imports.files import Files, no_files
from tasks.imports.moments import moment
from tasks.imports.parsed import Parsed
from tasks.imports.transcript import Content, Transcript
from tasks.imports.tree import active_branch

NAME = "chatgpt"
CONTEXT = frozenset({"user_editable_context", "model_editable_context"})
CALLING = frozenset({"code", "text", "multimodal_text", ""})
"""What a call to a tool is written as; any other content that names a recipient is shown as a message."""


def recognise(item: dict[str, Any]) -> bool:
    """An object with a mapping of nodes."""
    return isinstance(item.get("mapping"), dict)


def parse(item: dict[str, Any], files: Files = no_files) -> Parsed:
    """One conversation. Raises `Unusable`."""
    mapping = record(item.get("mapping"))
    messages = {node: record(record(entry).get("message")) for node, entry in mapping.items()}
    branch = active_branch(
        _parents(mapping),
        item.get("current_node"),
        lambda node: _visible(messages[node]),
        lambda node: moment(messages[node].get("create_time")),
    )
    transcript = Transcript()
    for node in branch:
        if _visible(messages[node]):
            _tell(transcript, node, messages[node], files)
    return transcript.finish(
        NAME,
        identity(item.get("conversation_id"), item.get("id")),
        item.get("title"),
        moment(item.get("create_time")),
        moment(item.get("update_time")),
    )


def _parents(mapping: dict[str, Any]) -> dict[str, str | None]:
    """Each node's parent, from its own link, or from the node that lists it as a child."""
    parents: dict[str, str | None] = {}
    for node, entry in mapping.items():
        parent = record(entry).get("parent")
        known = isinstance(parent, str) and parent in mapping and parent != node
        parents[node] = parent if known else None
    for node, entry in mapping.items():
        for child in listing(record(entry).get("children")):
            if isinstance(child, str) and child != node and parents.get(child, "") is None:
                parents[child] = node
    return parents


def _visible(message: dict[str, Any]) -> bool:
    role = text(record(message.get("author")).get("role"))
    hidden = record(message.get("metadata")).get("is_visually_hidden_from_conversation")
    weight = message.get("weight")
    return (
        role not in ("", "system")
        and hidden is not True
        and text(record(message.get("content")).get("content_type")) not in CONTEXT
        and (weight is None or isinstance(weight, bool) or weight != 0)
    )


def _tell(transcript: Transcript, node: str, message: dict[str, Any], files: Files) -> None:
    author = record(message.get("author"))
    role = text(author.get("role"))
    recipient = text(message.get("recipient")) or "all"
    kind = text(record(message.get("content")).get("content_type"))
    transcript.begin(identity(message.get("id"), node), moment(message.get("create_time")))
    reasoning = reasoning_of(message)
    if reasoning is not None:
        transcript.think(reasoning)
        return
    calls = role == "assistant" and recipient != "all" and kind in CALLING
    content = content_of(message, files, fenced=not calls and role != "tool")
    if calls:
        transcript.call(_call_id(message) or identity(message.get("id"), node), recipient, content.text())
        _pictures(transcript, content)
    elif role == "tool":
        failed = kind == "system_error"
        transcript.result(_call_id(message), content, text(author.get("name")), failed=failed)
    else:
        transcript.say(role, content)


def _call_id(message: dict[str, Any]) -> str | None:
    """What joins a call and its result in an export of our own (tasks/exports/chatgpt.py)."""
    return identity(record(record(message.get("metadata")).get("allgone")).get("call_id"))


def _pictures(transcript: Transcript, content: Content) -> None:
    """What a call carried besides its text: a call has no place for it, so it is said beside the call."""
    beside = Content()
    for attachment in content.attachments:
        beside.attach(attachment)
    transcript.say("assistant", beside)

"""Open WebUI's chat export: a tree of messages under `chat.history`, or a plain list under `chat.messages`.

The active branch runs from `history.currentId` up. An answer is told by its `output` items where it has them
(reasoning, function calls and their outputs, messages), else by its text with the folded blocks taken apart.
Times are seconds for messages, and seconds, milliseconds or nanoseconds for chats, by the release that wrote them.
"""

from __future__ import annotations

from typing import Any

from tasks.imports.blocks import content_from, from_address
from tasks.imports.details import pieces
from tasks.imports.fields import count, first_text, identity, record, records, text
from tasks.imports.files import Files, carried, embedded, extracted, no_files
from tasks.imports.moments import moment
from tasks.imports.openwebui_answer import tell_folded, tell_output
from tasks.imports.parsed import Parsed
from tasks.imports.transcript import Content, Transcript
from tasks.imports.tree import active_branch

NAME = "openwebui"


def recognise(item: dict[str, Any]) -> bool:
    """An object that holds a chat, or is one, with a history or a list of messages."""
    chat = item.get("chat")
    if isinstance(chat, dict):
        return isinstance(chat.get("history"), dict) or isinstance(chat.get("messages"), list)
    return isinstance(record(item.get("history")).get("messages"), dict)


def parse(item: dict[str, Any], files: Files = no_files) -> Parsed:
    """One conversation. Raises `Unusable`."""
    chat = record(item.get("chat")) or item
    transcript = Transcript()
    for own_id, message in _branch(chat):
        _tell(transcript, own_id, message, files)
    return transcript.finish(
        NAME,
        identity(item.get("id"), chat.get("id")),
        first_text(item.get("title"), chat.get("title")),
        moment(item.get("created_at"), chat.get("timestamp")),
        moment(item.get("updated_at"), chat.get("timestamp")),
    )


def _branch(chat: dict[str, Any]) -> list[tuple[str | None, dict[str, Any]]]:
    history = record(chat.get("history"))
    nodes = {key: value for key, value in record(history.get("messages")).items() if isinstance(value, dict)}
    if not nodes:
        listed = records(chat.get("messages"))
        return [(identity(message.get("id")), message) for message in listed]
    parents: dict[str, str | None] = {}
    for key, node in nodes.items():
        parent = node.get("parentId")
        parents[key] = parent if isinstance(parent, str) and parent in nodes and parent != key else None
    for key, node in nodes.items():
        children = node.get("childrenIds")
        for child in children if isinstance(children, list) else []:
            if isinstance(child, str) and child != key and parents.get(child, "") is None:
                parents[child] = key
    path = active_branch(
        parents,
        history.get("currentId"),
        lambda key: bool(text(nodes[key].get("role"))),
        lambda key: moment(nodes[key].get("timestamp")),
    )
    return [(identity(nodes[key].get("id"), key), nodes[key]) for key in path]


def _tell(transcript: Transcript, own_id: str | None, message: dict[str, Any], files: Files) -> None:
    role = text(message.get("role")) or "unknown"
    transcript.begin(own_id, moment(message.get("timestamp"), message.get("created_at")))
    if role == "tool":
        transcript.result(
            message.get("tool_call_id"), content_from(message.get("content")), text(message.get("name"))
        )
        return
    beside = Content()
    _attach(beside, message, files)
    if role == "assistant":
        spoken = tell_output(transcript, records(message.get("output")))
        if not spoken:
            content = message.get("content")
            if isinstance(content, str):
                # Reasoning and calls that `output` has told already are not told twice.
                tell_folded(transcript, pieces(content), aloud_only=bool(records(message.get("output"))))
            else:
                transcript.say(role, content_from(content))
        transcript.say(role, beside)
        return
    said = content_from(message.get("content"))
    for attachment in beside.attachments:
        said.attach(attachment)
    transcript.say(role, said)


def _attach(content: Content, message: dict[str, Any], files: Files) -> None:
    for each in records(message.get("files")):
        inner = record(each.get("file"))
        meta = record(inner.get("meta"))
        name = first_text(each.get("name"), meta.get("name"), inner.get("filename"), inner.get("name"))
        kind = first_text(each.get("content_type"), meta.get("content_type"))
        if not kind and each.get("type") == "image":
            kind = "image/png"
        address = first_text(each.get("url"), inner.get("url"))
        size = count(each.get("size"))
        size = count(meta.get("size")) if size is None else size
        kept = text(record(inner.get("data")).get("content"))
        held = embedded(address, name)
        if held is not None:
            content.attach(held)
        elif kept and not kind.startswith("image/"):
            content.attach(extracted(kept, name or "file.txt"))
        elif name or not address:
            content.attach(carried(files, identity(each.get("id"), inner.get("id")) or "", name, kind, size))
        else:
            content.attach(from_address(address, name, kind or "application/octet-stream"))

"""Claude's conversations.json: a list of chat messages, each a list of content blocks, sometimes a tree.

Blocks become events in their order: texts a message, `thinking` reasoning, `tool_use` a call, `tool_result` its
result. Where messages name their parents, the branch of `current_leaf_message_uuid` is the active one; else the
list is the conversation. Attachments hold the text that was extracted of them, files only their names.
"""

from __future__ import annotations

from typing import Any

from tasks.imports.blocks import image_of, output_of
from tasks.imports.fields import count, first_text, identity, records, text
from tasks.imports.files import Files, carried, extracted, no_files
from tasks.imports.moments import moment
from tasks.imports.parsed import Parsed
from tasks.imports.transcript import Content, Transcript
from tasks.imports.tree import active_branch

NAME = "claude"
ROLES = {"human": "user", "user": "user", "assistant": "assistant", "system": "system"}


def recognise(item: dict[str, Any]) -> bool:
    """An object with a list of chat messages."""
    return isinstance(item.get("chat_messages"), list)


def parse(item: dict[str, Any], files: Files = no_files) -> Parsed:
    """One conversation. Raises `Unusable`."""
    transcript = Transcript()
    for message in _branch(records(item.get("chat_messages")), item.get("current_leaf_message_uuid")):
        _tell(transcript, message, files)
    return transcript.finish(
        NAME,
        identity(item.get("uuid"), item.get("id"), item.get("conversation_id")),
        item.get("name"),
        moment(item.get("created_at")),
        moment(item.get("updated_at")),
    )


def _branch(messages: list[dict[str, Any]], leaf: object) -> list[dict[str, Any]]:
    named = {text(message.get("uuid")): message for message in messages if text(message.get("uuid"))}
    linked = any(text(message.get("parent_message_uuid")) in named for message in messages)
    if not linked or len(named) != len(messages):
        return messages
    parents: dict[str, str | None] = {}
    before: str | None = None
    for uuid, message in named.items():
        parent = message.get("parent_message_uuid")
        # A parent that is not there is the sentinel above every root; no parent at all follows on.
        known = parent if isinstance(parent, str) and parent in named else None
        parents[uuid] = known if isinstance(parent, str) else before
        before = uuid
    path = active_branch(parents, leaf, lambda _: True, lambda uuid: moment(named[uuid].get("created_at")))
    return [named[uuid] for uuid in path]


def _tell(transcript: Transcript, message: dict[str, Any], files: Files) -> None:
    sender = text(message.get("sender"))
    role = ROLES.get(sender, sender or "unknown")
    transcript.begin(identity(message.get("uuid")), moment(message.get("created_at")))
    spoken = Content()
    blocks = records(message.get("content"))
    if not any(first_text(block.get("text")) for block in blocks):
        # Older exports have the text beside an empty list of blocks.
        spoken.write(first_text(message.get("text"), message.get("content")))
    if role != "assistant":
        _attach(spoken, message, files)
    for block in blocks:
        kind = block.get("type")
        if kind in ("thinking", "tool_use", "tool_result"):
            transcript.say(role, spoken)
            spoken = Content()
        if kind == "thinking":
            transcript.think(text(block.get("thinking")))
        elif kind == "tool_use":
            transcript.call(block.get("id"), text(block.get("name")), block.get("input"))
        elif kind == "tool_result":
            output, value = output_of(block.get("content"))
            failed = block.get("is_error") is True
            transcript.result(
                block.get("tool_use_id"), output, text(block.get("name")), failed=failed, value=value
            )
        elif (image := image_of(block)) is not None:
            spoken.attach(image)
        else:
            spoken.write(block.get("text"))
    if role == "assistant":
        _attach(spoken, message, files)
    transcript.say(role, spoken)


def _attach(content: Content, message: dict[str, Any], files: Files) -> None:
    shown: set[str] = set()
    for each in records(message.get("attachments")):
        name = first_text(each.get("file_name"), each.get("id"), "attachment.txt")
        shown.add(name)
        kept = text(each.get("extracted_content"))
        kind = first_text(each.get("file_type"))
        # A file's type may be written as its bare extension.
        kind = kind if "/" in kind else ""
        size = count(each.get("file_size"))
        content.attach(
            extracted(kept, name) if kept else carried(files, text(each.get("id")), name, kind, size)
        )
    listed = records(message.get("files")) or records(message.get("files_v2"))
    for each in listed:
        name = first_text(each.get("file_name"), each.get("file_uuid"), "file")
        if name in shown:
            continue
        kind = "image/png" if each.get("file_kind") == "image" else ""
        found = identity(each.get("file_uuid")) or ""
        content.attach(carried(files, found, name, kind, count(each.get("file_size"))))

"""Collects what the formats find into a `Parsed`: identities, tool calls and their results, what a content is.

One message of an export may be several events (text, a call, its result, text again). The first takes the
message's own identity, the next ones `ID/1`, `ID/2`; a message without identity is `INDEX:DIGEST` of its role and
text; an identity that came before gets `+2`. So a later, longer export names the same events the same.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from datetime import datetime
from typing import Any

from tasks.imports.bounds import MAX_MESSAGES, MAX_NAME
from tasks.imports.decoding import decode_inner
from tasks.imports.fields import digest, identity, plain, text
from tasks.imports.parsed import Attachment, Parsed, ParsedMessage, Unusable

SAID = {"user": "user_message", "assistant": "assistant_message", "system": "system_message"}
SPOKEN = frozenset({"user_message", "assistant_message", "tool_call", "tool_result"})
"""At least one of these makes a conversation."""


class Content:
    """The text and files of one message, in order."""

    def __init__(self, *texts: str) -> None:
        self.blocks: list[dict[str, str]] = []
        self.attachments: list[Attachment] = []
        for piece in texts:
            self.write(piece)

    def write(self, piece: object) -> None:
        """Adds text; nothing but white space adds nothing."""
        if isinstance(piece, str) and piece.strip():
            self.blocks.append({"type": "text", "text": piece})

    def attach(self, attachment: Attachment) -> None:
        """Adds a file, as the block that its content type asks for."""
        kind = "image" if attachment.content_type.startswith("image/") else "file"
        self.blocks.append({"type": kind, "name": attachment.name})
        self.attachments.append(attachment)

    def value(self) -> str | list[dict[str, str]]:
        """What a payload holds: a string where all is text, else the blocks."""
        if all(block["type"] == "text" for block in self.blocks):
            return self.text()
        return self.blocks

    def text(self) -> str:
        """The text alone, its pieces parted by an empty line."""
        return "\n\n".join(block["text"] for block in self.blocks if block["type"] == "text")


class Transcript:
    """The messages of one conversation, in the order in which they are added."""

    def __init__(self) -> None:
        self._messages: list[ParsedMessage] = []
        self._seen: Counter[str] = Counter()
        self._calls: Counter[str] = Counter()
        self._open: dict[str, str] = {}
        self._index = -1
        self._own: str | None = None
        self._part = 0
        self._at: datetime | None = None
        self.replaced = 0

    def begin(self, own_id: str | None, at: datetime | None) -> None:
        """The next message of the export; what is added belongs to it until the next."""
        self._index += 1
        self._own, self._at, self._part = own_id, at, 0

    def say(self, role: str, content: Content) -> None:
        """A message of `user`, `assistant`, `system`, or of a role that is kept by name. Empty: nothing."""
        if not content.blocks:
            return
        payload: dict[str, Any] = {"content": content.value()}
        if role not in SAID:
            payload["role"] = role
        self._add(role, SAID.get(role, "message"), payload, content)

    def think(self, reasoning: str) -> None:
        """What the assistant thought, which is not its answer."""
        if reasoning.strip():
            self._add("reasoning", "reasoning", {"content": reasoning}, Content(reasoning))

    def call(self, call_id: object, name: str, arguments: object) -> None:
        """A tool is called. Arguments that an export wrapped into a string are unwrapped."""
        if isinstance(arguments, str) and (inner := decode_inner(arguments)) is not None:
            self.replaced += inner.replaced
            arguments = inner.value
        exported = identity(call_id)
        given = exported or f"call-{sum(self._calls.values()) + 1}"
        self._calls[given] += 1
        # The database joins call and result by this word, so a second call of the name takes another.
        ours = given if self._calls[given] == 1 else f"{given}+{self._calls[given]}"
        self._open[given] = ours
        self._open[""] = ours
        payload = {"call_id": ours, "name": name.strip()[:MAX_NAME] or "tool", "arguments": plain(arguments)}
        self._add("tool", "tool_call", payload, Content(ours))

    def result(
        self, call_id: object, output: Content, name: str = "", *, failed: bool = False, value: object = None
    ) -> None:
        """What a tool answered: `output`, or a `value` that is neither text nor files.

        Without a call of that identity it belongs to the latest call; without any call it stands alone.
        """
        exported = identity(call_id)
        ours = (self._open.get(exported) or exported) if exported else self._open.get("")
        payload: dict[str, Any] = {
            "call_id": ours or f"result-{self._index + 1}",
            "output": output.value() if value is None else plain(value),
            "status": "failed" if failed else "succeeded",
        }
        if name.strip():
            payload["name"] = name.strip()[:MAX_NAME]
        self._add("tool", "tool_result", payload, output)

    def _add(self, role: str, kind: str, payload: dict[str, Any], content: Content) -> None:
        if len(self._messages) >= MAX_MESSAGES:
            raise Unusable(f"more than {MAX_MESSAGES:,} messages")
        own = self._own or f"{self._index}:{digest([role + content.text()])[:16]}"
        source_id = f"{own}/{self._part}" if self._own and self._part else own
        self._part += 1
        self._seen[source_id] += 1
        if self._seen[source_id] > 1:
            source_id = f"{source_id}+{self._seen[source_id]}"
        attachments = tuple(content.attachments)
        self._messages.append(ParsedMessage(source_id, kind, payload, self._at, attachments))

    def finish(
        self,
        format_name: str,
        source_id: str | None,
        title: object,
        created_at: datetime | None,
        updated_at: datetime | None,
    ) -> Parsed:
        """The conversation. Raises `Unusable` when nothing was said in it.

        Without `source_id` it gets `#DIGEST` of its first exchange; the reader of the file adds `/N`.
        """
        if not any(message.type in SPOKEN for message in self._messages):
            raise Unusable("no messages")
        return Parsed(
            format=format_name,
            source_id=source_id or f"#{self._first_exchange()}",
            messages=tuple(self._messages),
            title_hint=text(title).strip()[:MAX_NAME] or None,
            created_at=created_at,
            updated_at=updated_at,
            replaced=self.replaced,
        )

    def _first_exchange(self) -> str:
        firsts = {message.type: message for message in reversed(self._messages)}
        exchange = [firsts.get("user_message"), firsts.get("assistant_message")]
        return digest(repr(message.payload["content"]) if message else "" for message in exchange)[:32]


def numbered(parsed: Parsed, occurrence: int, replaced: int) -> Parsed:
    """The conversation as its file knows it: `occurrence` among equal ones without identity, and `replaced` more."""
    source_id = f"{parsed.source_id}/{occurrence}" if occurrence else parsed.source_id
    return dataclasses.replace(parsed, source_id=source_id, replaced=parsed.replaced + replaced)

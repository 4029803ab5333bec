"""Events as a reader reads them: messages, tool calls folded with their results, approvals, and quiet notes. PURE.

| event | becomes |
|---|---|
| a message | a message, its blocks in order |
| `tool_call` with its `tool_result` | one tool, at the call's place; the result may lie on another page |
| `approval_requested` | a card that waits for a decision, or says which was made |
| a run of events with a `parent_id` | one fold: what a sub-agent did |
| anything else | a line |

Whatever an event holds is a stranger's: texts go through `blueprints/markdown.py` or are escaped by the template,
and a payload that is not what its type promises is shown as little as it says, never as an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from typing import Any
from urllib.parse import unquote

import orjson
from markupsafe import Markup

from blueprints.markdown import Own, rendered, verbatim
from models.ids import is_id
from models.notes import block_name, note, word
from models.preview import kind_of
from models.rules import texts
from models.transcript import SILENT, Called, Said

SHOWN_MAX = 20_000  # characters of a tool's arguments or output that are shown at once
MARKDOWN_MAX = 200_000  # characters of one page that are read as Markdown; what comes after is shown as it is
SPEAKERS = {"user_message": "You", "assistant_message": "Assistant"}


@dataclass(frozen=True, slots=True)
class Beside:
    """What a page's events became, by id: the halves of tools that lie on other pages, the approvals, the files."""

    calls: Mapping[str, Called] = field(default_factory=dict)
    approvals: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, Any] = field(default_factory=dict)
    place: str = ""  # the address below which files are

    def attached(self, artifact_id: str) -> Attached | None:
        """The file of that id, as it is shown; None when the conversation has none."""
        row = self.files.get(artifact_id)
        if row is None:
            return None
        kind = kind_of(row.name, row.content_type, row.size)
        return Attached(f"{self.place}/{row.id}", row.name, row.size, kind)

    def find(self, address: str) -> Own | None:
        """The file that an address in a message means: by the id in it, else by a name that one file has."""
        tail = unquote(address).rstrip("/")
        for part in reversed(re.split(r"[/:?#]", tail)):
            found = self.attached(part) if is_id(part) else None
            if found is not None:
                return Own(found.href, found.kind == "image")
        name = re.split(r"[/:]", tail)[-1]
        named_so = [row.id for row in self.files.values() if row.name == name]
        found = self.attached(named_so[0]) if len(named_so) == 1 else None
        return None if found is None else Own(found.href, found.kind == "image")


@dataclass(frozen=True, slots=True)
class Attached:
    """A file as it is shown: where it is, what it is called, its bytes' number, how it may be looked at."""

    href: str
    name: str
    size: int
    kind: str


@dataclass(slots=True)
class Item:
    """One thing in the transcript. `kind` is message, tool, reasoning, approval, nested or note; the rest is what
    that kind has. `cut` says that there is more than is shown."""

    kind: str
    seq: int
    at: datetime
    speaker: str = ""
    blocks: list[Markup | Attached | str] = field(default_factory=list)  # HTML, a file, or what is not shown
    name: str = ""
    status: str = ""
    arguments: str = ""
    output: str = ""
    cut: bool = False
    seconds: float | None = None  # that a tool took, where it is known
    key: str = ""  # of a tool: its call_id; of an approval: its id
    decided_at: datetime | None = None
    inner: list[Item] = field(default_factory=list)


def halves(events: Sequence[Said]) -> list[str]:
    """The `call_id`s of which these events hold the call or the result alone."""
    called = {word(event.payload, "call_id") for event in events if event.type == "tool_call"}
    answered = {word(event.payload, "call_id") for event in events if event.type == "tool_result"}
    return sorted(called ^ answered)


def asked(events: Sequence[Said]) -> list[str]:
    """The ids of the approvals that these events ask for or decide."""
    ids = [event.id for event in events if event.type == "approval_requested"]
    decided = (event for event in events if event.type == "approval_decided")
    return ids + [word(event.payload, "approval_id") for event in decided]


def named(events: Sequence[Said]) -> list[str]:
    """The ids of the artifacts that these events name."""
    found = {word(event.payload, "artifact_id") for event in events if event.type == "artifact_created"}
    for event in events:
        content = event.payload.get("content")
        for block in content if isinstance(content, list) else []:
            if isinstance(block, Mapping):
                found.add(word(block, "artifact_id"))
    return sorted(one for one in found if is_id(one))


def items(events: Sequence[Said], beside: Beside = Beside()) -> list[Item]:
    """What to show of `events`, in their order; a result whose call is on another page is shown there."""
    shown: list[Item] = []
    page = _Page(beside)
    for nested, group in groupby(events, key=lambda event: event.parent_id is not None):
        inner = page.items(list(group))
        if nested and inner:
            shown.append(Item("nested", inner[0].seq, inner[0].at, inner=inner))
        else:
            shown.extend(inner)
    return shown


def updates(events: Sequence[Said], beside: Beside) -> list[Item]:
    """What changed on earlier pages by `events`: tools that got their result, approvals that were decided."""
    here = {event.id for event in events}
    calls = {word(event.payload, "call_id") for event in events if event.type == "tool_call"}
    changed: list[Item] = []
    for event in events:
        key = word(event.payload, "call_id")
        if event.type == "tool_result" and key not in calls and key in beside.calls:
            half = beside.calls[key]
            if half.called:
                changed.append(
                    _finished(Item("tool", 0, event.created_at, name=half.name or "", key=key), half)
                )
        approval_id = word(event.payload, "approval_id")
        if event.type == "approval_decided" and approval_id not in here and approval_id in beside.approvals:
            changed.append(approval(beside.approvals[approval_id]))
    return changed


def approval(row: Any) -> Item:
    """The card of one approval, from its row."""
    card = Item("approval", row.seq, row.created_at, key=row.id, name=row.tool or "", output=row.summary)
    if row.arguments is not None:
        card.arguments, card.cut = _shown(row.arguments)
    card.status, card.decided_at = row.decision or "pending", row.decided_at
    return card


class _Page:
    """One page while it is told: how much Markdown is left, and the calls that wait for their results."""

    def __init__(self, beside: Beside) -> None:
        self._beside = beside
        self._left = MARKDOWN_MAX
        self._calls: dict[str, Item] = {}
        self._shown: set[str] = set()  # the addresses of files that a message of this page shows

    def items(self, events: Sequence[Said]) -> list[Item]:
        found = (self._item(event) for event in events if event.type not in SILENT)
        return [item for item in found if item is not None]

    def _item(self, event: Said) -> Item | None:
        payload = event.payload
        if event.type in SPEAKERS:
            return self._message(event)
        if event.type == "tool_call":
            return self._call(event)
        if event.type == "tool_result":
            return self._result(event)
        if event.type == "approval_requested" and event.id in self._beside.approvals:
            return approval(self._beside.approvals[event.id])
        if event.type == "reasoning":
            said = "\n\n".join(texts(payload.get("content")))
            text, cut = _shown(said)
            return Item("reasoning", event.seq, event.created_at, output=text, cut=cut)
        if event.type == "artifact_created":
            file = self._beside.attached(word(payload, "artifact_id"))
            if file is not None and file.href not in self._shown:
                return Item("file", event.seq, event.created_at, blocks=[file])
            if file is not None:
                return None  # the message before it showed it
        return Item("note", event.seq, event.created_at, blocks=[note(event.type, payload)])

    def _message(self, event: Said) -> Item:
        spoken = event.type == "user_message"
        item = Item("message", event.seq, event.created_at, speaker=SPEAKERS[event.type])
        content = event.payload.get("content")
        for block in content if isinstance(content, list) else [{"type": "text", "text": content}]:
            if not isinstance(block, Mapping):
                continue
            text = block.get("text")
            if block.get("type") == "text" and isinstance(text, str):
                if text.strip():
                    self._left -= len(text)
                    item.blocks.append(self._rendered(text, spoken, f"{event.seq}-{len(item.blocks)}"))
            else:
                file = self._beside.attached(word(block, "artifact_id"))
                if file is not None:
                    self._shown.add(file.href)
                item.blocks.append(file or _named(block))
        return item

    def _rendered(self, text: str, spoken: bool, mark: str) -> Markup:
        if self._left < 0:
            return verbatim(text)
        return rendered(text, breaks=spoken, mark=mark, own=self._beside.find)

    def _call(self, event: Said) -> Item:
        key = word(event.payload, "call_id")
        call = Item("tool", event.seq, event.created_at, name=word(event.payload, "name"), key=key)
        call.status = "called"
        call.arguments, call.cut = _shown(event.payload.get("arguments"))
        self._calls[key] = call
        half = self._beside.calls.get(key)
        return call if half is None else _finished(call, half)

    def _result(self, event: Said) -> Item | None:
        key = word(event.payload, "call_id")
        tool = self._calls.pop(key, None)
        alone = tool is None
        if tool is None:
            half = self._beside.calls.get(key)
            if half is not None and half.called:
                return None  # told with its call, on an earlier page
            name = word(event.payload, "name") or "tool"
            tool = Item("tool", event.seq, event.created_at, name=name, key=key)
        else:
            tool.seconds = max(0.0, (event.created_at - tool.at).total_seconds()) or None
        tool.output, cut = _shown(event.payload.get("output"))
        tool.cut, tool.status = tool.cut or cut, word(event.payload, "status")
        return tool if alone else None


def _finished(tool: Item, half: Called) -> Item:
    """A tool with what is known of it elsewhere."""
    if half.output is not None:
        tool.output, tool.cut, tool.status = half.output, tool.cut or not half.whole, half.status
    return tool


def _named(block: Mapping[str, Any]) -> str:
    kind = word(block, "type") or "part"
    name = block_name(block)
    label = {"image": "Image", "file": "File"}.get(kind, kind[:40])
    return f"{label}: {name[:200]}" if name else label


def _shown(value: Any) -> tuple[str, bool]:
    """A value as text, and whether it was cut."""
    text = value if isinstance(value, str) else orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    return text[:SHOWN_MAX], len(text) > SHOWN_MAX

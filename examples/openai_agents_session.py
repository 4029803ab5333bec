"""The OpenAI Agents SDK's `Session` over Allgone's `/v1`: what an agent says is an Allgone conversation.

    session = AllgoneSession(Allgone("http://127.0.0.1:8000", token))
    result = await Runner.run(agent, "Where is my parcel?", session=session)
    keep(session.session_id)                                   # and go on with AllgoneSession(client, kept_id)

| the SDK's | here |
|---|---|
| a session | a session; `session_id` is Allgone's, and "" until the first use makes one |
| a user's item that begins a turn | the message of a new run |
| an assistant's message, a tool's call, its output | `assistant_message`, `tool_call`, `tool_result` of that run |
| any other item | an `agent_item` event |
| the turn's last message | ends the run |
| `pop_item` | an `agent_item_popped` event: it hides the item from the agent, and the item stays in the record |
| `clear_session` | DELETE: Delete Everywhere; the next use makes a session of another id |

Beside what Allgone's own pages show, each event keeps the SDK's item as it was, so `get_items` gives back exactly
what was added. Messages that another client wrote into the conversation are given too, as plain messages.

Between a user's item and the answer the run is active: others see that, and cannot delete the conversation
until it has ended or its lease is over. Scopes: session.read, session.write, run.write.
docs/integrations.md says what `/v1` makes harder than it could be.
"""

from __future__ import annotations

import asyncio
import threading
import uuid
from typing import Any, cast

import httpx
from agents import SessionSettings, TResponseInputItem
from agents.memory.session_settings import resolve_session_limit
from allgone_client import Allgone, AllgoneError, Content, Event, NewEvent, event, patiently

Item = dict[str, Any]

LEASE = 120  # seconds that a model and its tools may take between two saves
TRIES = 3
ITEM, POPPED = "agent_item", "agent_item_popped"
CALL_MAX = 200  # characters of a tool's name and of a call's id


class AllgoneSession:
    """One conversation. Its methods may be called from several tasks, threads and event loops."""

    session_settings: SessionSettings | None

    def __init__(
        self,
        client: Allgone,
        session_id: str = "",
        *,
        session_settings: SessionSettings | None = None,
        lease_s: int = LEASE,
    ) -> None:
        self.session_id = session_id
        self.session_settings = session_settings or SessionSettings()
        self._client = client
        self._lease_s = lease_s
        self._lock = threading.Lock()
        self._start_afresh(session_id)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The items in order; the latest `limit` of them when it is given."""
        most = resolve_session_limit(limit, self.session_settings)
        return cast("list[TResponseInputItem]", await asyncio.to_thread(self._get, most))

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Adds items. A turn that was added whole is one request, or two when it begins with the user."""
        await asyncio.to_thread(self._add, cast("list[Item]", items))

    async def pop_item(self) -> TResponseInputItem | None:
        """Takes the newest item out of what `get_items` gives."""
        return cast("TResponseInputItem | None", await asyncio.to_thread(self._pop))

    async def clear_session(self) -> None:
        """Deletes the conversation everywhere, at once and for good."""
        await asyncio.to_thread(self._clear)

    # -- the same, one at a time

    def _get(self, limit: int | None) -> list[Item]:
        with self._lock:
            self._read_on()
            items = list(self._items.values())
        if limit is None or limit < 0:
            return items
        return items[len(items) - limit :] if limit < len(items) else items

    def _add(self, items: list[Item]) -> None:
        if not items:
            return
        with self._lock:
            rest = list(items)
            if _speaks(rest[0]) == "user":
                if self._run_id:  # its turn ended without a last message
                    self._append([event("run_ended", status="cancelled")])
                self._start(_blocks(rest.pop(0)))
            self._save([_said(item) for item in rest], ends=_speaks(items[-1]) == "assistant")

    def _pop(self) -> Item | None:
        with self._lock:
            self._read_on()
            if not self._items:
                return None
            seq = max(self._items)
            ends = not self._run_id
            self._save([event(POPPED, seq=seq)], ends=ends)
            return self._items.pop(seq)

    def _clear(self) -> None:
        with self._lock:
            if not self.session_id:
                return
            if self._run_id:
                self._append([event("run_ended", status="cancelled")])
            try:
                patiently(lambda: self._client.delete_session(self.session_id), self._lease_s + 5)
            except AllgoneError as refused:
                if refused.code != "not_found":
                    raise
            self._start_afresh("")

    def _start_afresh(self, session_id: str) -> None:
        self.session_id = session_id
        self._run_id = ""
        self._seq = 0
        self._items: dict[int, Item] = {}  # by seq

    # -- writing

    def _save(self, events: list[NewEvent], *, ends: bool) -> None:
        """Appends in the turn's run, or in one of their own when there is none."""
        if not events:
            return
        batch = [*events, event("run_ended", status="succeeded")] if ends else events
        for last in (False, True):
            if not self._run_id:
                self._start([{"type": "agent", "name": "went on"}])  # a run cannot be without a message
            try:
                self._append(batch)
                return
            except AllgoneError as refused:
                if last or refused.reason != "run_ended":  # its lease was over
                    raise
                self._run_id = ""

    def _start(self, content: Content) -> None:
        if not self.session_id:
            self.session_id = self._client.create_session(str(uuid.uuid4()))["id"]
        mark = uuid.uuid4().hex
        named = [{**block, "write_id": mark} for block in content if isinstance(block, dict)]
        for tries in range(TRIES):
            try:
                run = patiently(
                    lambda: self._client.start_run(self.session_id, named, lease_s=self._lease_s),
                    self._lease_s + 5,
                )
                self._run_id = run["id"]
                return
            except httpx.TransportError:
                stored = self._stored(mark)
                if stored is not None and stored["run_id"]:  # the answer was lost, not the message
                    self._run_id = stored["run_id"]
                    return
                if tries + 1 == TRIES:
                    raise

    def _append(self, events: list[NewEvent]) -> None:
        mark = uuid.uuid4().hex
        events[0]["payload"]["write_id"] = mark
        for tries in range(TRIES):
            try:
                self._client.append(self._run_id, events)
                break
            except httpx.TransportError:
                if self._stored(mark) is not None:
                    break
                if tries + 1 == TRIES:
                    raise
        if events[-1]["type"] == "run_ended":
            self._run_id = ""

    def _stored(self, mark: str) -> Event | None:
        for one in self._client.events(self.session_id, self._seq):
            content = one["payload"].get("content")
            blocks = content if isinstance(content, list) else []
            if mark in (one["payload"].get("write_id"), *(block.get("write_id") for block in blocks)):
                return one
        return None

    # -- reading

    def _read_on(self) -> None:
        if not self.session_id:
            return
        for one in self._client.events(self.session_id, self._seq):
            self._take(one)
            self._seq = one["seq"]

    def _take(self, one: Event) -> None:
        if one["type"] == POPPED:
            self._items.pop(one["payload"]["seq"], None)
            return
        item = _item(one)
        if item is not None:
            self._items[one["seq"]] = item


def _speaks(item: Item) -> str | None:
    """Whose message an item is: `user`, `assistant`, another role, or None when it is no message."""
    role: str | None = item.get("role") if item.get("type", "message") == "message" else None
    return role


def _blocks(item: Item) -> list[dict[str, Any]]:
    """A user's item as the content of a message: its text for people, and the item itself beside it."""
    return [{"type": "text", "text": _text(item), ITEM: item}]


def _said(item: Item) -> NewEvent:
    speaks, kind = _speaks(item), item.get("type")
    if speaks == "user":
        return event("user_message", content=_blocks(item))
    if speaks == "assistant":
        return event("assistant_message", content=_text(item), **{ITEM: item})
    called = item.get("call_id")
    if isinstance(called, str) and 0 < len(called) <= CALL_MAX and called.strip():
        name = item.get("name")
        if kind == "function_call" and isinstance(name, str) and 0 < len(name) <= CALL_MAX and name.strip():
            arguments = item.get("arguments")
            return event("tool_call", call_id=called, name=name, arguments=arguments, **{ITEM: item})
        if kind == "function_call_output":
            output = item.get("output")
            return event("tool_result", call_id=called, output=output, status="done", **{ITEM: item})
    return event(ITEM, **{ITEM: item})


def _item(one: Event) -> Item | None:
    """The item of an event; of another client's message a plain one; None of anything else."""
    payload = one["payload"]
    content = payload.get("content")
    found = payload.get(ITEM)
    if found is None and isinstance(content, list):
        found = next((block[ITEM] for block in content if ITEM in block), None)
    if isinstance(found, dict):
        return found
    role = {"user_message": "user", "assistant_message": "assistant"}.get(one["type"])
    text = _text({"content": content})
    return {"role": role, "content": text} if role and text and one["parent_id"] is None else None


def _text(item: Item) -> str:
    content = item.get("content")
    if isinstance(content, str):
        return content
    parts = [part for part in content or [] if isinstance(part, dict)]
    texts = [part.get("text") or part.get("refusal") or "" for part in parts]
    return "\n".join(text for text in texts if isinstance(text, str) and text)

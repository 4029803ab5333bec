"""A LangGraph checkpointer whose threads are Allgone conversations, over `/v1` alone.

    saver = AllgoneSaver(Allgone("http://127.0.0.1:8000", token))
    graph = builder.compile(checkpointer=saver)
    graph.invoke(…, {"configurable": {"thread_id": "42"}})

| LangGraph's | here |
|---|---|
| a thread | a session whose title begins with a hash of the thread's name |
| a checkpoint, a task's writes | `checkpoint` events, appended in one short run each |
| a channel's value | inside its event; bytes beyond 256 KiB as an artifact, which goes with the session |
| `delete_thread` | DELETE of the session: Delete Everywhere |
| `prune`, `delete_for_runs` | what is kept is copied to a new session, and the old one is deleted |

What a session says: `{"langgraph": "thread"}` makes it the thread's, and names the session that it replaces; a copy
says it last, so one that died half way is nobody's. `{"langgraph": "moved"}` ends the old one's use: a writer who
comes late sees that its event's `seq` is not the one it expected, reads on, and writes again in the new place.

A thread that someone deletes, here or in the browser, while a graph runs stays deleted: that graph's next write
raises ThreadGone. Scopes: session.read, session.write, run.write, artifact.read, artifact.write.
docs/integrations.md says what `/v1` makes harder than it could be.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import random
import threading
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any, cast

import httpx
from allgone_client import PAGE, Allgone, AllgoneError, Content, NewEvent, event, patiently
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    get_checkpoint_metadata,
    writes_sort_key,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

State = dict[str, Any]  # what a `checkpoint` event holds
Blob = dict[str, str]  # {"type", "data"} in base64, {"type", "artifact_id"}, or {"type": "empty"}
Key = tuple[str, str]  # namespace, checkpoint id
Pack = Callable[[tuple[str, bytes]], Blob]  # serialized bytes to what an event holds of them
# Names for what a class with a method called `list` cannot write.
States = list[State]
Batch = list[NewEvent]

TITLE = "LangGraph "  # and 26 characters of hash, and the thread's own name as far as a title goes
SPILL = 256 * 1024  # bytes of one value that go into an artifact
EVENT_BYTES = (
    2 * 1024 * 1024
)  # of the values inside one event; the server takes 4 MiB with base64 around them
BATCH_BYTES, BATCH_EVENTS = 8 * 1024 * 1024, 500
WRITE_LEASE, COPY_LEASE = 5, 60  # seconds
PATIENCE = 75.0  # seconds that one waits for another's run: longer than either lease
LATE = timedelta(seconds=10)  # how far behind its `updated_at` a session may appear in the index
AGAIN = timedelta(seconds=1)  # the same, when one has looked a moment ago
THREADS_HELD = 64
EMPTY: Blob = {"type": "empty"}


class ThreadGone(Exception):
    """The thread that a running graph writes to was deleted meanwhile. Nothing was written."""


@dataclass
class Stored:
    """One checkpoint as it lies in the session, still serialized."""

    checkpoint: Blob
    metadata: Blob
    parent: str | None
    versions: ChannelVersions
    values: dict[str, Blob]


@dataclass
class Thread:
    """What is known of one session, up to `seq`."""

    session_id: str
    seq: int = 0
    name: str | None = None
    replaces: set[str] = field(default_factory=set)
    moved: bool = False
    checkpoints: dict[Key, Stored] = field(default_factory=dict)
    blobs: dict[tuple[str, str, str | int | float], Blob] = field(default_factory=dict)
    writes: dict[Key, dict[tuple[str, int], tuple[str, Blob, str]]] = field(default_factory=dict)

    def take(self, state: State) -> None:
        """Adds what one event says. Saying it twice changes nothing."""
        kind = state.get("langgraph")
        if kind == "thread":
            self.name = state["thread_id"]
            self.replaces |= set(state["replaces"])
        elif kind == "moved":
            self.moved = True
        elif kind == "checkpoint":
            ns, values = state["ns"], {}
            for channel, blob in state["values"].items():
                self.blobs[ns, channel, state["versions"][channel]] = blob
            for channel, version in state["versions"].items():
                blob = state["values"].get(channel) or self.blobs.get((ns, channel, version), EMPTY)
                if blob["type"] != "empty":
                    values[channel] = blob
            self.checkpoints[ns, state["id"]] = Stored(
                state["checkpoint"], state["metadata"], state["parent"], state["versions"], values
            )
        elif kind == "writes":
            held = self.writes.setdefault((state["ns"], state["id"]), {})
            for index, channel, blob in state["writes"]:
                if index < 0 or (state["task_id"], index) not in held:  # a special write replaces its former
                    held[state["task_id"], index] = (channel, blob, state["task_path"])

    def ordered_writes(self, key: Key) -> list[tuple[str, str, Blob]]:
        """A checkpoint's writes, in the order in which live execution applied them."""
        held = self.writes.get(key, {})
        order = sorted(held, key=lambda one: writes_sort_key(held[one][2], *one))
        return [(task_id, held[task_id, index][0], held[task_id, index][1]) for task_id, index in order]

    def latest(self, ns: str) -> Key | None:
        """The newest checkpoint of a namespace."""
        return max((key for key in self.checkpoints if key[0] == ns), default=None)


class Index:
    """Finds sessions by the hash in their title. `/v1` lists by activity and has no search, so this looks
    through the whole list once, and after that only through what was active since."""

    def __init__(self, client: Allgone) -> None:
        self._client = client
        self._found: dict[str, set[str]] = {}
        self._newest: datetime | None = None
        self._lock = threading.Lock()

    def of(self, mark: str) -> set[str]:
        """The sessions of one thread: in doubt also those that are gone."""
        with self._lock:
            self._look()
            return set(self._found.get(mark, ()))

    def all(self) -> dict[str, set[str]]:
        """Every thread's sessions by mark."""
        with self._lock:
            self._look()
            return {mark: set(ids) for mark, ids in self._found.items()}

    def forget(self, session_id: str) -> None:
        """Drops a session that is gone."""
        with self._lock:
            for ids in self._found.values():
                ids.discard(session_id)

    def _look(self) -> None:
        # A session that becomes active while we read goes to the head, which we have passed: so look there again,
        # until a look is one page. That one is a single query, which nothing moves about in.
        behind = LATE
        for _ in range(10):
            end = self._newest - behind if self._newest else None
            newest, seen = None, 0
            for session in self._client.sessions():
                at = datetime.fromisoformat(session["updated_at"])
                newest, seen = newest or at, seen + 1
                if end and at < end:
                    break
                if session["title"].startswith(TITLE):
                    mark = session["title"].removeprefix(TITLE)[:26]
                    self._found.setdefault(mark, set()).add(session["id"])
            self._newest, behind = newest or self._newest, AGAIN
            if seen <= PAGE:
                break


class AllgoneSaver(BaseCheckpointSaver[str]):
    """The checkpointer. One may be used by several threads and event loops, and several over one account."""

    def __init__(self, client: Allgone, *, serde: SerializerProtocol | None = None) -> None:
        super().__init__(serde=serde)
        self._client = client
        self._index = Index(client)
        self._held: OrderedDict[str, Thread] = OrderedDict()
        self._guard = threading.Lock()
        self._locks = [threading.RLock() for _ in range(64)]

    # -- what LangGraph calls

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that `config` names, or the newest of its namespace."""
        name, ns = _thread_of(config), _ns_of(config)
        with self._lock(name):
            thread = self._current(name)
            if thread is None:
                return None
            wanted = get_checkpoint_id(config)
            key = (ns, wanted) if wanted else thread.latest(ns)
            return self._tuple(name, thread, key) if key in thread.checkpoints else None

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002  LangGraph's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Checkpoints, newest first; of all threads without a config, which reads every one of them."""
        below = get_checkpoint_id(before) if before else None
        for name in self._names() if config is None else [_thread_of(config)]:
            with self._lock(name):
                thread = self._current(name)
                if thread is None:
                    continue
                found = []
                for key in sorted(thread.checkpoints, key=lambda key: key[1], reverse=True):
                    if limit is not None and limit <= 0:
                        break
                    if (config and not _names(config, key)) or (below and key[1] >= below):
                        continue
                    if filter:
                        metadata = self._load(thread.checkpoints[key].metadata)
                        if any(metadata.get(one) != value for one, value in filter.items()):
                            continue
                    limit = None if limit is None else limit - 1
                    found.append(self._tuple(name, thread, key))
            yield from found

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Stores a checkpoint with the values that are new in it. Raises ThreadGone."""
        name, ns, parent = _thread_of(config), _ns_of(config), get_checkpoint_id(config)
        bare: dict[str, Any] = {**checkpoint}
        values = bare.pop("channel_values")

        def states(pack: Pack) -> States:
            new = {
                channel: pack(self.serde.dumps_typed(values[channel])) if channel in values else EMPTY
                for channel in new_versions
            }
            state: State = {
                "langgraph": "checkpoint",
                "ns": ns,
                "id": checkpoint["id"],
                "parent": parent,
                "checkpoint": pack(self.serde.dumps_typed(bare)),
                "metadata": pack(self.serde.dumps_typed(get_checkpoint_metadata(config, metadata))),
                "versions": {**checkpoint["channel_versions"], **new_versions},
                "values": new,
            }
            return [state]

        self._write(name, f"step {metadata.get('step')}", states, goes_on=parent is not None)
        return _config(name, ns, checkpoint["id"])

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Stores what one task wrote. Raises ThreadGone."""
        name = _thread_of(config)

        def states(pack: Pack) -> States:
            packed = [
                [WRITES_IDX_MAP.get(channel, index), channel, pack(self.serde.dumps_typed(value))]
                for index, (channel, value) in enumerate(writes)
            ]
            place = {"ns": _ns_of(config), "id": config["configurable"]["checkpoint_id"]}
            task = {"task_id": task_id, "task_path": task_path, "writes": packed}
            return [{"langgraph": "writes", **place, **task}]

        self._write(name, "writes", states, goes_on=True)

    def delete_thread(self, thread_id: str) -> None:
        """Delete Everywhere. A thread that is not there is no error."""
        with self._lock(thread_id):
            self._forget(thread_id)
            for session_id in self._index.of(_mark(thread_id)):
                self._delete(session_id)

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Deletes the checkpoints of LangGraph's runs, in whichever threads they are: it reads every one."""
        gone = set(run_ids)

        def keep(thread: Thread) -> set[Key]:
            return {
                key
                for key, one in thread.checkpoints.items()
                if self._load(one.metadata).get("run_id") not in gone
            }

        for name in self._names() if gone else ():
            self._keep(name, keep)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copies everything of one thread into another. A source that is not there is no error."""
        with self._lock(source_thread_id):
            source = self._current(source_thread_id)
        if source is None:
            return
        with self._lock(target_thread_id):
            if self._current(target_thread_id) is None:
                session_id = self._client.create_session()["id"]
                self._copy(target_thread_id, source, set(source.checkpoints), session_id, ())
                return
        for make in self._copied(source, set(source.checkpoints)):
            self._write(target_thread_id, "copy", partial(_one, make), goes_on=False)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """`keep_latest` keeps the newest checkpoint of each namespace, and the ancestors from which its
        DeltaChannels are rebuilt; `delete` deletes the threads."""
        if strategy not in ("keep_latest", "delete"):
            raise ValueError(f"There is no strategy {strategy!r}.")
        for name in thread_ids:
            if strategy == "delete":
                self.delete_thread(name)
            else:
                self._keep(name, self._newest)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """`get_tuple` beside the event loop."""
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002  LangGraph's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """`list` beside the event loop."""
        rows = self.list(config, filter=filter, before=before, limit=limit)
        while (row := await asyncio.to_thread(next, rows, None)) is not None:
            yield row

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """`put` beside the event loop."""
        return await asyncio.to_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """`put_writes` beside the event loop."""
        await asyncio.to_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """`delete_thread` beside the event loop."""
        await asyncio.to_thread(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """`delete_for_runs` beside the event loop."""
        await asyncio.to_thread(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """`copy_thread` beside the event loop."""
        await asyncio.to_thread(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """`prune` beside the event loop."""
        await asyncio.to_thread(lambda: self.prune(thread_ids, strategy=strategy))

    def get_next_version(self, current: str | None, channel: None) -> str:
        """Versions that differ between two forks of one checkpoint, as each has its own value."""
        number = int(str(current).split(".")[0]) + 1 if current is not None else 1
        return f"{number:032}.{random.random():016}"  # noqa: S311

    # -- finding and reading a thread

    def _lock(self, name: str) -> threading.RLock:
        return self._locks[hash(name) % len(self._locks)]

    def _current(self, name: str) -> Thread | None:
        """The thread as it is now, or None when there is none."""
        with self._guard:
            held = self._held.get(name)
        if held is not None and self._read_on(held) and not held.moved:
            return held
        self._forget(name)
        found = self._settled(self._index.of(_mark(name)))
        if found is not None:
            self._hold(name, found)
        return found

    def _settled(self, session_ids: Collection[str]) -> Thread | None:
        read = [thread for session_id in session_ids if self._read_on(thread := Thread(session_id))]
        threads = [thread for thread in read if thread.name is not None]
        replaced = {session_id for thread in threads for session_id in thread.replaces}
        for thread in threads:
            if thread.session_id in replaced:  # whoever copied it died before deleting it
                self._delete(thread.session_id)
        left = [thread for thread in threads if thread.session_id not in replaced]
        return min(left, key=lambda thread: thread.session_id, default=None)

    def _read_on(self, thread: Thread) -> bool:
        """Takes in what is new. False when the session is gone."""
        try:
            for one in self._client.events(thread.session_id, thread.seq):
                if one["type"] == "checkpoint" and isinstance(one["payload"]["state"], dict):
                    thread.take(one["payload"]["state"])
                thread.seq = one["seq"]
        except AllgoneError as refused:
            if refused.code != "not_found":
                raise
            self._index.forget(thread.session_id)
            return False
        return True

    def _names(self) -> Iterator[str]:
        for session_ids in self._index.all().values():
            thread = self._settled(session_ids)
            if thread is not None and thread.name is not None:
                self._hold(thread.name, thread)
                yield thread.name

    def _hold(self, name: str, thread: Thread) -> None:
        with self._guard:
            self._held[name] = thread
            self._held.move_to_end(name)
            while len(self._held) > THREADS_HELD:
                self._held.popitem(last=False)

    def _forget(self, name: str) -> None:
        with self._guard:
            self._held.pop(name, None)

    def _tuple(self, name: str, thread: Thread, key: Key) -> CheckpointTuple:
        one = thread.checkpoints[key]
        bare = self._load(one.checkpoint)
        values = {channel: self._load(blob) for channel, blob in one.values.items()}
        return CheckpointTuple(
            config=_config(name, *key),
            checkpoint=cast("Checkpoint", {**bare, "channel_values": values}),
            metadata=self._load(one.metadata),
            parent_config=_config(name, key[0], one.parent) if one.parent else None,
            pending_writes=[
                (task_id, channel, self._load(blob)) for task_id, channel, blob in thread.ordered_writes(key)
            ],
        )

    # -- writing

    def _write(
        self,
        name: str,
        about: str,
        states: Callable[[Pack], States],
        *,
        goes_on: bool,
    ) -> None:
        """Appends states in a run of their own. One that `goes_on` never opens a thread: it raises ThreadGone."""
        with self._lock(name):
            for last in (False, False, False, True):
                with self._guard:
                    thread = self._held.get(name)
                thread = thread or self._current(name) or (None if goes_on else self._opened(name))
                if thread is None:
                    raise ThreadGone(name)
                try:
                    if self._written(name, thread, about, states):
                        return
                except AllgoneError as refused:
                    if refused.code != "not_found" and refused.reason != "run_ended":
                        raise
                except httpx.TransportError:  # written or not: writing it again changes nothing
                    if last:
                        raise
                self._forget(name)
            raise ThreadGone(name)

    def _written(
        self,
        name: str,
        thread: Thread,
        about: str,
        states: Callable[[Pack], States],
    ) -> bool:
        opens = thread.name is None
        content = [{"type": "text", "text": _title(name)} if opens else {"type": "langgraph", "name": about}]
        run_id = self._start(thread.session_id, content, WRITE_LEASE)
        said = states(self._packer(thread.session_id, run_id))
        if opens:
            said = [{"langgraph": "thread", "thread_id": name, "replaces": []}, *said]
        batch = [event("checkpoint", state=state) for state in said]
        stored = self._client.append(run_id, [*batch, event("run_ended", status="succeeded")])
        if stored[0]["seq"] == thread.seq + 2:  # the run's message is the one between
            for state in said:
                thread.take(state)
            thread.seq = stored[-1]["seq"]
        elif not self._read_on(thread) or thread.moved:
            return False
        self._hold(name, thread)
        return True

    def _opened(self, name: str) -> Thread:
        """A session that will be the thread's; two who open one thread at once get the same."""
        number = 0
        while True:
            try:
                return Thread(self._client.create_session(f"langgraph-{_mark(name)}-{number}")["id"])
            except AllgoneError as refused:
                if refused.reason != "session_deleted":  # of this thread's former life, in the last 24 hours
                    raise
                number += 1

    def _start(self, session_id: str, content: Content, lease_s: int) -> str:
        return patiently(lambda: self._client.start_run(session_id, content, lease_s=lease_s)["id"], PATIENCE)

    def _delete(self, session_id: str) -> None:
        try:
            patiently(lambda: self._client.delete_session(session_id), PATIENCE)
        except AllgoneError as refused:
            if refused.code != "not_found":
                raise
        self._index.forget(session_id)

    def _packer(self, session_id: str, run_id: str) -> Pack:
        left = EVENT_BYTES

        def pack(typed: tuple[str, bytes]) -> Blob:
            nonlocal left
            kind, data = typed
            if len(data) <= min(SPILL, left):
                left -= len(data)
                return {"type": kind, "data": base64.b64encode(data).decode()}
            stored = self._client.upload(session_id, data, name="langgraph-value", run_id=run_id)
            return {"type": kind, "artifact_id": stored["id"]}

        return pack

    def _bytes(self, blob: Blob) -> tuple[str, bytes]:
        if "artifact_id" in blob:
            return blob["type"], self._client.read_artifact(blob["artifact_id"])
        return blob["type"], base64.b64decode(blob["data"])

    def _load(self, blob: Blob) -> Any:
        return self.serde.loads_typed(self._bytes(blob))

    # -- keeping a part

    def _newest(self, thread: Thread) -> set[Key]:
        kept: set[Key] = set()
        for ns in {key[0] for key in thread.checkpoints}:
            key = thread.latest(ns)
            delta: set[str] | None = None
            while key in thread.checkpoints:
                kept.add(key)
                one = thread.checkpoints[key]
                if delta is None:
                    delta = set(self._load(one.metadata).get("counters_since_delta_snapshot") or ())
                delta -= set(one.values)
                if not delta or one.parent is None:
                    break
                key = (ns, one.parent)
        return kept

    def _keep(self, name: str, chosen: Callable[[Thread], set[Key]]) -> None:
        """Leaves of a thread only what `chosen` gives; nothing of the rest is left anywhere."""
        with self._lock(name):
            thread = self._current(name)
            if thread is None or chosen(thread) == set(thread.checkpoints):
                return
            message = [{"type": "langgraph", "name": "prune"}]
            run_id = self._start(thread.session_id, message, COPY_LEASE)
            moved: Batch = []
            session_id = self._client.create_session()["id"]
            end = "failed"
            try:
                # While our run is active nobody else writes here.
                self._read_on(thread)
                kept = chosen(thread)
                if kept and not thread.moved:
                    self._copy(name, thread, kept, session_id, (run_id,))
                    moved = [event("checkpoint", state={"langgraph": "moved", "to": session_id})]
                end = "succeeded"
            finally:
                self._client.append(run_id, [*moved, event("run_ended", status=end)])
                if not moved:
                    self._delete(session_id)
                    self._forget(name)
            if thread.moved:  # somebody else was before us
                self._keep(name, chosen)
            else:
                self._delete(thread.session_id)

    def _copy(
        self, name: str, source: Thread, keys: set[Key], session_id: str, renewing: Sequence[str]
    ) -> None:
        """Makes an empty session the thread, with these checkpoints of the source. Renews other runs' leases."""
        copy = Thread(session_id)
        run_id = self._start(session_id, [{"type": "text", "text": _title(name)}], COPY_LEASE)
        batch: Batch = []
        size = 0

        def flush() -> None:
            nonlocal batch, size
            for other in renewing:
                self._client.append(other, [event("checkpoint", state={"langgraph": "copying"})])
            copy.seq = self._client.append(run_id, batch)[-1]["seq"]
            batch, size = [], 0

        for make in self._copied(source, keys):
            state = make(self._packer(session_id, run_id))
            copy.take(state)
            batch.append(event("checkpoint", state=state))
            size += _size(state)
            if size > BATCH_BYTES or len(batch) >= BATCH_EVENTS:
                flush()
        replaces = [source.session_id] if source.name == name else []
        opening: State = {"langgraph": "thread", "thread_id": name, "replaces": replaces}
        copy.take(opening)
        batch += [event("checkpoint", state=opening), event("run_ended", status="succeeded")]
        flush()
        self._hold(name, copy)

    def _copied(self, source: Thread, keys: set[Key]) -> Iterator[Callable[[Pack], State]]:
        """How to write each of these checkpoints and its writes again, oldest first, each value once."""
        said: dict[tuple[str, str, str | int | float], Blob] = {}
        for ns, checkpoint_id in sorted(keys, key=lambda key: key[1]):
            one = source.checkpoints[ns, checkpoint_id]
            fresh: dict[str, Blob] = {}
            for channel, version in one.versions.items():
                blob = one.values.get(channel, EMPTY)
                if said.get((ns, channel, version)) != blob:
                    said[ns, channel, version] = fresh[channel] = blob

            def again(
                pack: Pack,
                ns: str = ns,
                checkpoint_id: str = checkpoint_id,
                one: Stored = one,
                fresh: dict[str, Blob] = fresh,
            ) -> State:
                return {
                    "langgraph": "checkpoint",
                    "ns": ns,
                    "id": checkpoint_id,
                    "parent": one.parent,
                    "checkpoint": pack(self._bytes(one.checkpoint)),
                    "metadata": pack(self._bytes(one.metadata)),
                    "versions": one.versions,
                    "values": {
                        channel: blob if blob["type"] == "empty" else pack(self._bytes(blob))
                        for channel, blob in fresh.items()
                    },
                }

            yield again
            held = source.writes.get((ns, checkpoint_id), {})
            for (task_id, index), (channel, blob, task_path) in held.items():

                def write(
                    pack: Pack,
                    place: State = {"ns": ns, "id": checkpoint_id},  # noqa: B006  never changed
                    task: State = {"task_id": task_id, "task_path": task_path},  # noqa: B006
                    index: int = index,
                    channel: str = channel,
                    blob: Blob = blob,
                ) -> State:
                    packed = [index, channel, pack(self._bytes(blob))]
                    return {"langgraph": "writes", **place, **task, "writes": [packed]}

                yield write


def _one(make: Callable[[Pack], State], pack: Pack) -> States:
    return [make(pack)]


def _thread_of(config: RunnableConfig) -> str:
    return str(config["configurable"]["thread_id"])


def _ns_of(config: RunnableConfig) -> str:
    ns: str = config["configurable"].get("checkpoint_ns", "")
    return ns


def _names(config: RunnableConfig, key: Key) -> bool:
    asked = config["configurable"]
    ns, wanted = asked.get("checkpoint_ns"), get_checkpoint_id(config)
    return (ns is None or ns == key[0]) and (not wanted or wanted == key[1])


def _config(name: str, ns: str, checkpoint_id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": name, "checkpoint_ns": ns, "checkpoint_id": checkpoint_id}}


def _mark(name: str) -> str:
    digest = hashlib.sha256(name.encode()).digest()[:16]
    return base64.b32encode(digest).decode().rstrip("=").lower()


def _title(name: str) -> str:
    return f"{TITLE}{_mark(name)} {name}"


def _size(state: State) -> int:
    blobs = [*state.get("values", {}).values(), *(one[2] for one in state.get("writes", ()))]
    return sum(len(blob.get("data", "")) for blob in blobs) + 1000

"""Live streams: one thread a process writes to every open stream, so that an idle one costs a socket and no thread.

    request → admitted by its route → its socket is taken from the server → the hub
    append, decision, deletion → tasks/news.py (Redis, a hint) → every process's hub → PostgreSQL (the truth) → sockets

| moment | what the hub does |
|---|---|
| a conversation has news | reads its events above what each of its streams has, and writes them |
| once a second | asks PostgreSQL for the last `seq` of all watched conversations: Redis may lose every hint |
| every 15 s | a heartbeat; streams whose token ended are closed |
| the conversation is gone | `session_deleted`, and the stream ends |
| a reader that does not read 1 MiB | its stream is closed; it resumes from `Last-Event-ID` |

`seq` is dense and events are immutable, so nothing is lost or doubled across reconnects and processes: a stream is
only ever "everything above seq N, in order".
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
import structlog
from flask import Response, current_app, g, request
from redis.exceptions import RedisError
from sqlalchemy import ARRAY, LargeBinary, any_, func, literal, or_, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from blueprints.api import views
from blueprints.api.wire import time_text
from models.accounts import Owner, Token
from models.base import Id
from models.errors import RateLimited, Refusal
from models.history import Conversation, Event, Tombstone
from tasks.news import CHANNEL
from tasks.resources import Resources

HEARTBEAT_SECONDS = 15.0
LOOK_SECONDS = 1.0
RETRY_MILLISECONDS = 2000
UNREAD_MAX = 1024 * 1024  # bytes kept for a reader that does not read
BATCH = 200  # events of one read
STREAMS_MAX = 4000  # of one process
MINE_MAX = 200  # of one principal in one process

HEAD = (
    b"HTTP/1.1 200 OK\r\n"
    b"Content-Type: text/event-stream; charset=utf-8\r\n"
    b"Cache-Control: no-store\r\n"
    b"X-Content-Type-Options: nosniff\r\n"
    b"X-Accel-Buffering: no\r\n"
    b"Connection: close\r\n"
    b"\r\n"
)

log = structlog.get_logger()


@dataclass(eq=False)
class Stream:
    """One reader: its socket, what it watches, the `seq` it has, and what it has not read yet."""

    sock: socket.socket
    owner: Owner
    token: bytes
    session_id: str
    after: int
    unread: bytearray = field(default_factory=bytearray)
    ending: bool = False


def open_stream(owner: Owner, session_id: str, after: int) -> Response:
    """Takes this request's socket over and streams from above `after`. The route has admitted the reader.

    Raises RateLimited when this process or this principal has too many.
    """
    taken = request.environ.get("gunicorn.socket")
    if taken is None:
        raise Refusal("Live streams need the product's own server; read the events page by page here.")
    hub = hub_of(current_app.extensions["allgone"])
    hub.refuse_too_many(owner)
    hub.add(Stream(_detached(taken), owner, g.token_hash, session_id, after))
    return _Taken()


class _Taken(Response):
    """What a view answers whose socket was taken: gunicorn reads StopIteration as "nothing more to say"."""

    def __call__(self, *_: Any, **__: Any) -> Iterable[bytes]:
        raise StopIteration


def _detached(taken: socket.socket) -> socket.socket:
    sock = socket.socket(fileno=taken.detach())
    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


_hubs: dict[int, Hub] = {}
_making = threading.Lock()


def hub_of(resources: Resources) -> Hub:
    """The hub of these resources, started at the first stream."""
    with _making:
        held = _hubs.get(id(resources))
        if held is None:
            held = _hubs[id(resources)] = Hub(resources)
            held.start()
        return held


class Hub:
    """The one thread. Other threads only put a stream or a name into its inbox and ring."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._streams: set[Stream] = set()
        self._held: Counter[str] = Counter()  # streams by principal
        self._inbox: list[Stream | str] = []
        self._lock = threading.Lock()
        self._selector = selectors.DefaultSelector()
        self._heard, self._ring = socket.socketpair()
        for end in (self._heard, self._ring):
            end.setblocking(False)
        self._selector.register(self._heard, selectors.EVENT_READ)

    def start(self) -> None:
        """Starts the hub's thread and the one that listens to Redis."""
        threading.Thread(target=self._run, name="streams", daemon=True).start()
        threading.Thread(target=self._listen, name="streams-wake", daemon=True).start()

    def refuse_too_many(self, owner: Owner) -> None:
        """Raises RateLimited when one more stream would be too many."""
        if len(self._streams) >= STREAMS_MAX or self._held[owner.principal_id] >= MINE_MAX:
            raise RateLimited("Too many live streams are open. Close one, or try again.", retry_after=5)

    def add(self, stream: Stream) -> None:
        """Hands a stream to the hub."""
        self._put(stream)

    def _put(self, item: Stream | str) -> None:
        with self._lock:
            self._inbox.append(item)
        with contextlib.suppress(BlockingIOError):  # it is rung already
            self._ring.send(b"!")

    def _listen(self) -> None:
        while True:
            try:
                listening: Any = self._resources.redis.pubsub(ignore_subscribe_messages=True)  # type: ignore[no-untyped-call]
                with listening as heard:
                    heard.subscribe(CHANNEL)
                    for message in heard.listen():
                        self._put(message["data"].decode())
            except (RedisError, OSError):
                time.sleep(LOOK_SECONDS)  # Redis is away; the look each second covers for it

    def _run(self) -> None:
        look_at = beat_at = 0.0
        while True:
            now = time.monotonic()
            for key, mask in self._selector.select(max(0.0, min(look_at, beat_at) - now)):
                if key.fileobj is self._heard:
                    with contextlib.suppress(BlockingIOError):
                        self._heard.recv(4096)
                elif isinstance(key.data, Stream):
                    self._serve(key.data, mask)
            named = self._take_inbox()
            now = time.monotonic()
            try:
                if now >= look_at:
                    look_at = now + LOOK_SECONDS
                    named |= self._changed()
                if named:
                    self._feed(named)
                if now >= beat_at:
                    beat_at = now + HEARTBEAT_SECONDS
                    self._beat()
            except SQLAlchemyError as fault:
                log.warning("streams_wait", error=type(fault).__name__)
                look_at = time.monotonic() + LOOK_SECONDS

    def _take_inbox(self) -> set[str]:
        with self._lock:
            items, self._inbox = self._inbox, []
        named: set[str] = set()
        watched = {stream.session_id for stream in self._streams}
        for item in items:
            if isinstance(item, Stream):
                self._streams.add(item)
                self._held[item.owner.principal_id] += 1
                self._selector.register(item.sock, selectors.EVENT_READ, item)
                self._write(item, HEAD + f"retry: {RETRY_MILLISECONDS}\n\n".encode())
                watched.add(item.session_id)
                named.add(item.session_id)
            elif item in watched:
                named.add(item)
        return named

    def _changed(self) -> set[str]:
        """The watched conversations that have more than some stream of theirs, or are gone."""
        if not self._streams:
            return set()
        lowest: dict[str, int] = {}
        for stream in self._streams:
            lowest[stream.session_id] = min(stream.after, lowest.get(stream.session_id, stream.after))
        named = Conversation.id == any_(literal(list(lowest), ARRAY(Id())))
        with self._resources.reader.connect() as connection:
            rows = connection.execute(select(Conversation.id, Conversation.last_seq).where(named)).all()
        last = {row[0]: row[1] for row in rows}
        return {one for one, after in lowest.items() if last.get(one, -1) != after}

    def _feed(self, named: set[str]) -> None:
        for session_id in named:
            behind = [one for one in self._streams if one.session_id == session_id and not one.ending]
            while behind:
                after = min(one.after for one in behind)
                with Session(self._resources.engine) as db:
                    rows = self._above(db, session_id, after)
                    gone = not rows and db.get(Conversation, session_id) is None
                    stone = db.get(Tombstone, session_id) if gone else None
                if gone:
                    self._say_gone(behind, session_id, stone)
                for row in rows:
                    text = _framed(row)
                    for stream in behind:
                        if row.seq > stream.after:
                            stream.after = row.seq
                            self._write(stream, text)
                behind = [one for one in behind if one in self._streams] if len(rows) == BATCH else []

    def _above(self, db: Session, session_id: str, after: int) -> Sequence[Event]:
        wanted = select(Event).where(Event.session_id == session_id, Event.seq > after)
        return db.scalars(wanted.order_by(Event.seq).limit(BATCH)).all()

    def _say_gone(self, streams: Iterable[Stream], session_id: str, stone: Tombstone | None) -> None:
        at = None if stone is None else time_text(stone.deleted_at)
        word = orjson.dumps({"session_id": session_id, "deleted_at": at})
        for stream in streams:
            stream.ending = True
            self._write(stream, b"event: session_deleted\ndata: " + word + b"\n\n")

    def _beat(self) -> None:
        if not self._streams:
            return
        tokens = {stream.token for stream in self._streams}
        live = (
            Token.hash == any_(literal(list(tokens), ARRAY(LargeBinary()))),
            Token.revoked_at.is_(None),
            or_(Token.expires_at.is_(None), Token.expires_at > func.now()),
        )
        with self._resources.reader.connect() as connection:
            good = {bytes(row[0]) for row in connection.execute(select(Token.hash).where(*live))}
        for stream in list(self._streams):
            if stream.token in good:
                self._write(stream, b": heartbeat\n\n")
            else:
                self._drop(stream)

    def _serve(self, stream: Stream, mask: int) -> None:
        if mask & selectors.EVENT_READ:
            try:
                if not stream.sock.recv(4096):  # a reader has nothing to say; what it says is dropped
                    self._drop(stream)
                    return
            except BlockingIOError:
                pass
            except OSError:
                self._drop(stream)
                return
        if mask & selectors.EVENT_WRITE:
            self._flush(stream)

    def _write(self, stream: Stream, text: bytes) -> None:
        stream.unread += text
        if len(stream.unread) > UNREAD_MAX:
            self._drop(stream)
        else:
            self._flush(stream)

    def _flush(self, stream: Stream) -> None:
        try:
            while stream.unread:
                del stream.unread[: stream.sock.send(stream.unread)]
        except BlockingIOError:
            pass
        except OSError:
            self._drop(stream)
            return
        if stream.ending and not stream.unread:
            self._drop(stream)
            return
        if stream in self._streams:
            wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if stream.unread else 0)
            self._selector.modify(stream.sock, wanted, stream)

    def _drop(self, stream: Stream) -> None:
        if stream in self._streams:
            self._streams.discard(stream)
            self._held[stream.owner.principal_id] -= 1
            self._selector.unregister(stream.sock)
            with contextlib.suppress(OSError):
                stream.sock.shutdown(socket.SHUT_RDWR)
            stream.sock.close()


def _framed(row: Event) -> bytes:
    data = orjson.dumps(views.event(row, row.session_id, row.parent_id))
    # A type may hold no line break (models/append.py), so it is one line here.
    return f"id: {row.seq}\nevent: {row.type}\ndata: ".encode() + data + b"\n\n"

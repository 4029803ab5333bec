"""The hub of live streams: one thread a process writes to every open one, so that an idle stream costs a socket.

    request → admitted by its route → its socket is taken from the server → the hub
    append, decision, deletion → tasks/news.py (Redis, a hint) → every process's hub → PostgreSQL (the truth) → sockets

| moment | what the hub does |
|---|---|
| a conversation has news | reads a batch of its events and queues them to each reader that takes more |
| a reader has taken all | reads on for it, when it is behind |
| it has news, and an open page watches it | tells the page that there is news, and nothing of it |
| once a second | asks PostgreSQL what changed in all watched conversations: Redis may lose every hint |
| the same second | ends the streams of tokens that are revoked or expired, and of sign-ins that are over |
| every 15 s | a heartbeat to those who wait |
| the conversation is gone | `session_deleted`, and the stream ends |
| a reader takes nothing for 30 s | its stream is closed; it resumes from `Last-Event-ID` |

`seq` is dense and events are immutable, so nothing is lost or doubled across reconnects and processes: a stream is
only ever "everything above seq N, in order". A fault costs a second, and never the thread.
"""

from __future__ import annotations

import contextlib
import resource
import selectors
import socket
import threading
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import structlog
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from blueprints.api import looks
from blueprints.api.readers import Reader, Watcher
from models import reading, transcript
from models.accounts import Owner
from models.errors import RateLimited
from tasks.news import CHANNEL
from tasks.resources import Resources

HEARTBEAT_SECONDS = 15.0
LOOK_SECONDS = 1.0
STALLED_SECONDS = 30.0
BATCH, BATCH_BYTES = 200, 1024 * 1024  # events of one read, and bytes of their payloads
STREAMS_MAX = 4000  # of one process
MINE_MAX = 200  # of one principal in one process

log = structlog.get_logger()


class Hub:
    """The one thread. Other threads only put a reader or a name into its inbox and ring."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._readers: set[Reader] = set()
        self._news: set[str] = set()  # conversations that may have more than a reader that takes more
        self._held: Counter[str] = Counter()  # readers by principal, those in the inbox too
        self._inbox: list[Reader | str] = []
        self._lock = threading.Lock()  # of the two above
        self._selector = selectors.DefaultSelector()
        self._look_at = self._beat_at = 0.0
        self._stopped = threading.Event()
        # Half of the descriptors that this process may have are left to requests, the database and files.
        self._most = min(STREAMS_MAX, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)
        self._heard, self._ring = socket.socketpair()
        for end in (self._heard, self._ring):
            end.setblocking(False)
        self._selector.register(self._heard, selectors.EVENT_READ)

    def start(self) -> None:
        """Starts the hub's thread and the one that listens to Redis."""
        threading.Thread(target=self._run, name="streams", daemon=True).start()
        threading.Thread(target=self._listen, name="streams-wake", daemon=True).start()

    def stop(self) -> None:
        """Ends both threads within a second or two; open streams stay as they are."""
        self._stopped.set()

    def admit(self, owner: Owner) -> None:
        """Keeps a place for one more reader, who must be `add`ed. Raises RateLimited when that is too many."""
        with self._lock:
            if self._held.total() >= self._most or self._held[owner.principal_id] >= MINE_MAX:
                raise RateLimited("Too many live streams are open. Close one, or try again.", retry_after=5)
            self._held[owner.principal_id] += 1

    def add(self, reader: Reader) -> None:
        """Hands an admitted reader to the hub."""
        self._put(reader)

    def _put(self, item: Reader | str) -> None:
        with self._lock:
            self._inbox.append(item)
        with contextlib.suppress(BlockingIOError):  # it is rung already
            self._ring.send(b"!")

    def _listen(self) -> None:
        away = ""
        while not self._stopped.is_set():
            try:
                listening: Any = self._resources.redis.pubsub(ignore_subscribe_messages=True)  # type: ignore[no-untyped-call]
                with listening as heard:
                    heard.subscribe(CHANNEL)
                    away = ""
                    while not self._stopped.is_set():
                        # Not `listen`, which takes a quiet socket for a dead one.
                        message = heard.get_message(timeout=LOOK_SECONDS)
                        if message is not None:
                            self._put(message["data"].decode(errors="replace"))
            except Exception as fault:  # noqa: BLE001  Redis is away, or said what nobody foresaw: the look covers for it
                if away != (away := type(fault).__name__):
                    log.warning("streams_deaf", error=away)
                time.sleep(LOOK_SECONDS)

    def _run(self) -> None:
        away = ""
        while not self._stopped.is_set():
            try:
                self._turn()
                away = ""
            except Exception as fault:  # a fault of one turn must not end every stream of the process
                if away != (away := type(fault).__name__):
                    log.warning("streams_wait", error=away, exc_info=not isinstance(fault, SQLAlchemyError))
                self._news.clear()  # the next look finds them again
                self._look_at = time.monotonic() + LOOK_SECONDS
                time.sleep(0.02)

    def _turn(self) -> None:
        now = time.monotonic()
        pause = 0.0 if self._news else max(0.0, min(self._look_at, self._beat_at) - now)
        for key, mask in self._selector.select(pause):
            if key.fileobj is self._heard:
                with contextlib.suppress(BlockingIOError):
                    self._heard.recv(4096)
            else:
                self._serve(key.data, mask)
        self._take_inbox()
        now = time.monotonic()
        if now >= self._beat_at:
            self._beat_at = now + HEARTBEAT_SECONDS
            for reader in [one for one in self._readers if not (one.waiting or one.ending)]:
                self._say(reader, reader.beat)
        if now >= self._look_at:
            self._look_at = now + LOOK_SECONDS
            self._drop_stalled(now)
            self._look()
        news, self._news = self._news, set()
        for session_id in news:
            self._feed(session_id)

    def _take_inbox(self) -> None:
        with self._lock:
            items, self._inbox = self._inbox, []
        for item in items:
            if isinstance(item, Reader):
                self._readers.add(item)
                with contextlib.suppress(ValueError, OSError):  # it is closed already: the flush drops it
                    self._selector.register(item.sock, selectors.EVENT_READ, item)
                self._flush(item)
        watched = {reader.session_id for reader in self._readers}
        self._news |= watched & {item if isinstance(item, str) else item.session_id for item in items}

    def _look(self) -> None:
        """Ends streams whose token or sign-in ended; notes conversations that changed for some reader, or are gone."""
        if not self._readers:
            return
        with self._resources.reader.connect() as connection:
            tokens = {one.token for one in self._readers if not isinstance(one, Watcher)}
            sign_ins = {one.sign_in_id for one in self._readers if isinstance(one, Watcher)}
            good = looks.live_tokens(connection, tokens) | looks.live_sign_ins(connection, sign_ins)
            for reader in [one for one in self._readers if one.admitted_by not in good]:
                self._drop(reader)
            stamps = transcript.stamps(connection, list({reader.session_id for reader in self._readers}))
        for reader in self._readers:
            stamp = stamps.get(reader.session_id)
            if reader.takes_more and (stamp is None or reader.lacks(stamp)):
                self._news.add(reader.session_id)

    def _drop_stalled(self, now: float) -> None:
        for reader in [one for one in self._readers if one.waiting and now - one.moved_at > STALLED_SECONDS]:
            self._drop(reader)

    def _feed(self, session_id: str) -> None:
        """Queues one batch to the conversation's readers that take more; the next one comes after other work."""
        hungry = [one for one in self._readers if one.session_id == session_id and one.takes_more]
        if not hungry:
            return
        watchers = [one for one in hungry if isinstance(one, Watcher)]
        readers = [one for one in hungry if not isinstance(one, Watcher)]
        with self._resources.reader.connect() as connection:
            self._hint(connection, session_id, watchers)
            if not readers:
                return
            lowest = min(one.after for one in readers)
            page = reading.above(connection, session_id, lowest, BATCH, most_bytes=BATCH_BYTES)
            if not page.events and looks.gone(connection, session_id):
                self._end(connection, session_id, readers)
                return
        for row in page.events:
            frame = looks.told(row, session_id)
            for reader in readers:
                # Dense: whoever had no room for the one before is not given this one either.
                if row.seq == reader.after + 1 and reader.takes_more:
                    reader.after = row.seq
                    self._say(reader, frame)
        if page.more:
            self._news.add(session_id)  # for the next turn: whoever came meanwhile is served in between

    def _hint(self, connection: Connection, session_id: str, watchers: list[Watcher]) -> None:
        """Tells open pages that their conversation changed, and each of them once of each change."""
        if not watchers:
            return
        stamp = transcript.stamps(connection, [session_id]).get(session_id)
        if stamp is None:
            self._end(connection, session_id, watchers)
            return
        for watcher in watchers:
            if watcher.lacks(stamp):
                watcher.seen = str(stamp)
                self._say(watcher, looks.hint(stamp))

    def _end(self, connection: Connection, session_id: str, readers: Sequence[Reader]) -> None:
        word = looks.last_word(connection, session_id)
        for reader in readers:
            reader.ending = True
            self._say(reader, word)

    def _serve(self, reader: Reader, mask: int) -> None:
        try:
            if mask & selectors.EVENT_READ and reader.hung_up():
                self._drop(reader)
                return
        except OSError:
            self._drop(reader)
            return
        if mask & selectors.EVENT_WRITE:
            self._flush(reader)

    def _say(self, reader: Reader, frame: bytes) -> None:
        if reader in self._readers:
            reader.queue(frame, time.monotonic())
            self._flush(reader)

    def _flush(self, reader: Reader) -> None:
        full = not reader.takes_more
        try:
            reader.flush(time.monotonic())
        except OSError:
            self._drop(reader)
            return
        if reader.ending and not reader.waiting:
            self._drop(reader)
            return
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if reader.waiting else 0)
        try:
            self._selector.modify(reader.sock, wanted, reader)
        except (KeyError, ValueError, OSError):
            self._drop(reader)
            return
        if full and reader.takes_more:
            self._news.add(reader.session_id)

    def _drop(self, reader: Reader) -> None:
        if reader not in self._readers:
            return
        self._readers.discard(reader)
        with self._lock:
            self._held[reader.principal_id] -= 1
            if not self._held[reader.principal_id]:
                del self._held[reader.principal_id]
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(reader.sock)
        with contextlib.suppress(OSError):
            reader.sock.shutdown(socket.SHUT_RDWR)
        reader.sock.close()

"""One reader of a live stream: its socket, what it has of which conversation, and what it has not taken yet.

A `Reader` came with a token and is given the events themselves; a `Watcher` is a browser's page, which came with a
sign-in, is only told that there is news, and asks for it as HTML.
"""

from __future__ import annotations

import socket
from collections import deque
from dataclasses import dataclass, field

from models.transcript import Stamp

FULL = 256 * 1024  # bytes not taken yet, from which a reader is given no more


@dataclass(eq=False)
class Reader:
    """A non-blocking socket and a queue in front of it.

    Frames are shared with the other readers of the conversation, so what waits costs its bytes once. `after` is the
    `seq` up to which all was queued; `moved_at` is when the reader last took something, or had nothing to take.
    """

    sock: socket.socket
    principal_id: str
    token: bytes
    session_id: str
    after: int
    moved_at: float = 0.0
    ending: bool = False
    _frames: deque[memoryview] = field(default_factory=deque)
    _waiting: int = 0

    @property
    def admitted_by(self) -> bytes | str:
        """The hash of the token, or the sign-in, without which this stream ends."""
        return self.token

    @property
    def beat(self) -> bytes:
        """What is sent while there is nothing to say."""
        return b": heartbeat\n\n"

    def lacks(self, stamp: Stamp) -> bool:
        """Whether a conversation of that stamp holds something that this reader was not given."""
        return stamp.last_seq > self.after

    @property
    def waiting(self) -> int:
        """Bytes that were queued and not taken yet."""
        return self._waiting

    @property
    def takes_more(self) -> bool:
        """Whether an event may be queued: there is room, and the last word has not been said."""
        return not self.ending and self._waiting < FULL

    def queue(self, frame: bytes, now: float) -> None:
        """Puts a frame behind the others."""
        if not self._waiting:
            self.moved_at = now
        self._frames.append(memoryview(frame))
        self._waiting += len(frame)

    def flush(self, now: float) -> None:
        """Sends what the socket takes. Raises OSError when it is broken."""
        while self._frames:
            try:
                sent = self.sock.send(self._frames[0])
            except BlockingIOError:
                return
            self._waiting -= sent
            self.moved_at = now
            if sent == len(self._frames[0]):
                self._frames.popleft()
            else:
                self._frames[0] = self._frames[0][sent:]

    def hung_up(self) -> bool:
        """Takes what the reader sent, which is nothing to us; True when it has closed. Raises OSError."""
        try:
            return not self.sock.recv(4096)
        except BlockingIOError:
            return False


@dataclass(eq=False)
class Watcher(Reader):
    """A page that shows a conversation; `seen` is the stamp that it shows, or was last told of."""

    sign_in_id: str = ""
    seen: str = ""

    @property
    def admitted_by(self) -> bytes | str:
        """The sign-in."""
        return self.sign_in_id

    @property
    def beat(self) -> bytes:
        """An event and no comment: scripts see only these, and so notice a connection that died in silence."""
        return b"event: beat\ndata:\n\n"

    def lacks(self, stamp: Stamp) -> bool:
        """Whether the page shows another state than this."""
        return str(stamp) != self.seen

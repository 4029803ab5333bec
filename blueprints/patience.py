"""A web worker that gives no thread to a request before it has come, and says when it ends a connection.

gunicorn's threaded worker hands a connection to a thread at its first byte, or before it, and that thread then waits
for the rest: three dozen clients that send half a header stop everybody else. Here a thread takes a connection when
its header is whole; until then it lies in the worker's poller, which costs nothing, for HEAD_SECONDS at most. A body
that stops coming, and an answer that nobody takes, hold a thread no longer than STALLED_SECONDS.

A request that is refused before its body was read leaves the rest of it on the wire. Such an answer says
`Connection: close`, so that no client sends its next request after it (RFC 9112, 9.3 and 9.6).
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from typing import Any

from gunicorn.workers import gthread

HEAD_SECONDS = 15.0  # from a header's first byte to its last
STALLED_SECONDS = 20  # without one byte in or out, within a request
PEEKED = 64 * 1024  # bytes: a header longer than this is gunicorn's to refuse

_END = b"\r\n\r\n"
_serving = threading.local()


class PatientWorker(gthread.ThreadWorker):  # type: ignore[misc]  # gunicorn ships no types
    """gunicorn's threaded worker, with the manners above."""

    def init_process(self) -> None:
        """Called once in each worker process."""
        limit = struct.pack("@ll", STALLED_SECONDS, 0)
        for listener in self.sockets:
            for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):  # what it accepts inherits them
                listener.setsockopt(socket.SOL_SOCKET, option, limit)
        super().init_process()

    def handle(self, conn: Any) -> Any:
        """One request of a connection, on a thread; or back to the poller while it is not whole."""
        if not self.cfg.is_ssl and not (conn.parser and conn.parser.unreader.buf.getvalue()):
            head = _peek(conn.sock)
            if head is not None and _END not in head and len(head) < PEEKED:
                return self._later(conn, len(head))
            conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
        conn.data_ready, conn.head_since = True, None
        return super().handle(conn)

    def handle_request(self, req: Any, conn: Any) -> Any:
        """As gunicorn does, with the request at hand for `close_after`."""
        _serving.request = req
        try:
            return super().handle_request(req, conn)
        finally:
            _serving.request = None

    def _later(self, conn: Any, come: int) -> Any:
        if come:
            since = getattr(conn, "head_since", None) or time.monotonic()
            conn.head_since = since
            if time.monotonic() - since > HEAD_SECONDS:
                return False
        # The poller shall wake when there is more than what has come, and not because of that.
        conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, come + 1)
        return gthread._DEFER


def close_after() -> None:
    """Makes the answer to the request of this thread the last one on its connection, and say so."""
    request = getattr(_serving, "request", None)
    if request is not None:
        request.must_close = True


def _peek(connection: socket.socket) -> bytes | None:
    """What has come and is not read yet; None when the other end is done or gone."""
    try:
        return connection.recv(PEEKED, socket.MSG_PEEK | socket.MSG_DONTWAIT) or None
    except BlockingIOError:
        return b""
    except OSError:
        return None

"""Opening a live stream: its route has admitted the reader; here its socket leaves the server for the hub (hub.py)."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from flask import Response, current_app, g, request

from blueprints.api.hub import Hub
from blueprints.api.readers import Reader, Watcher
from models.accounts import Owner
from models.errors import Refusal
from tasks.resources import Resources

RETRY_MILLISECONDS = 2000
EVENT_STREAM = "text/event-stream"
HEAD = (
    "HTTP/1.1 200 OK\r\n"
    "Content-Type: text/event-stream; charset=utf-8\r\n"
    "Cache-Control: no-store\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "X-Accel-Buffering: no\r\n"
    "X-Request-Id: {request_id}\r\n"
    "Connection: close\r\n"
    "\r\n"
    "retry: {retry}\n\n"
)


def open_stream(owner: Owner, session_id: str, after: int) -> Response:
    """Takes this request's socket over and streams from above `after`. The route has admitted the reader.

    Raises RateLimited when this process or this principal has too many.
    """
    if "gunicorn.socket" not in request.environ:
        raise Refusal("Live streams need the product's own server; read the events page by page here.")
    return _opened(owner, lambda sock: Reader(sock, owner.principal_id, g.token_hash, session_id, after))


def open_watch(owner: Owner, session_id: str, sign_in_id: str, seen: str) -> Response | None:
    """Like `open_stream`, for a page that shows the conversation at the stamp `seen`.

    None where no socket can be taken: a server that is not the product's own. Counted among the principal's
    streams. Raises RateLimited when there are too many.
    """
    if "gunicorn.socket" not in request.environ:
        return None

    def watcher(sock: socket.socket) -> Watcher:
        return Watcher(sock, owner.principal_id, b"", session_id, 0, sign_in_id=sign_in_id, seen=seen)

    return _opened(owner, watcher)


def _opened(owner: Owner, make: Callable[[socket.socket], Reader]) -> Response:
    hub = hub_of(current_app.extensions["allgone"])
    hub.admit(owner)
    reader = make(_detached(request.environ["gunicorn.socket"]))
    head = HEAD.format(request_id=g.request_id, retry=RETRY_MILLISECONDS)
    reader.queue(head.encode(), time.monotonic())
    hub.add(reader)
    return _Taken()


class _Taken(Response):
    """What a view answers whose socket was taken: gunicorn reads StopIteration as "nothing more to say"."""

    def __call__(self, *_: Any, **__: Any) -> Iterable[bytes]:
        raise StopIteration


def _detached(taken: socket.socket) -> socket.socket:
    sock = socket.socket(fileno=taken.detach())
    sock.setblocking(False)
    with contextlib.suppress(OSError):  # a Unix socket has no such option
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

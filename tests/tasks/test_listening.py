"""HOST and PORT: free, taken, nonsense; and whether a web process answers."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from models.errors import Misconfigured
from tasks.listening import answers, check_port_free


class _Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/readyz" else 503)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def web() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def test_a_free_port_stays_free() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    check_port_free("127.0.0.1", port)
    check_port_free("127.0.0.1", port)


def test_a_taken_port_and_an_address_of_another_machine_are_named(web: int) -> None:
    with pytest.raises(Misconfigured, match=rf"^PORT: {web} on 127\.0\.0\.1 is in use"):
        check_port_free("127.0.0.1", web)
    with pytest.raises(Misconfigured, match=r"^HOST: '192\.0\.2\.1' cannot be listened on"):
        check_port_free("192.0.2.1", web)
    with pytest.raises(Misconfigured, match=r"^HOST: 'no host' is no address of this machine$"):
        check_port_free("no host", web)


def test_only_200_is_an_answer_and_a_wildcard_is_asked_on_loopback(web: int) -> None:
    assert answers("127.0.0.1", web, "/readyz")
    assert answers("0.0.0.0", web, "/readyz")
    assert not answers("127.0.0.1", web, "/elsewhere")
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        assert not answers("127.0.0.1", silent.getsockname()[1], "/readyz", 0.1)
    assert not answers("127.0.0.1", 1, "/readyz")

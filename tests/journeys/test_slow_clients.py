"""Clients that are slow, silent or refused early take no thread from anybody (FAULTS.md D52; RFC 9112, 9.3)."""

from __future__ import annotations

import http.client
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from blueprints import patience
from models.settings import Settings
from tasks.resources import Resources
from tests.cast import Player
from tests.served import Served

CROWD = 40  # connections; the server of these tests has 8 threads
HEAD = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Filler: "


@pytest.fixture
def served(settings: Settings, resources: Resources, tmp_path: Path) -> Iterator[Served]:
    one = Served(settings, tmp_path).start()
    yield one
    one.stop()


@pytest.fixture
def crowd(served: Served) -> Iterator[list[socket.socket]]:
    with ExitStack() as open_ones:
        yield [
            open_ones.enter_context(socket.create_connection(("127.0.0.1", served.port)))
            for _ in range(CROWD)
        ]


def answers(served: Served) -> None:
    """Several requests in a row are answered while the crowd is there; a stalled one fails by its time-out."""
    for _ in range(10):
        connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=4)
        connection.request("GET", "/healthz")
        assert connection.getresponse().status == 200
        connection.close()


@pytest.mark.parametrize("sent", [b"", b"G", HEAD], ids=["nothing", "a byte", "half a header"])
def test_headers_that_do_not_come_hold_nobody_up(
    served: Served, crowd: list[socket.socket], sent: bytes
) -> None:
    for one in crowd:
        one.sendall(sent)
    answers(served)
    for one in crowd[:10]:
        one.sendall((HEAD if not sent else HEAD[len(sent) :] if sent == b"G" else b"") + b"x\r\n\r\n")
        one.settimeout(10)
        assert one.recv(64).startswith(b"HTTP/1.1 200")


def test_a_header_that_comes_byte_by_byte_is_answered_and_holds_nobody_up(
    served: Served, crowd: list[socket.socket]
) -> None:
    for number in range(len(HEAD)):
        for one in crowd[:10]:
            one.sendall(HEAD[number : number + 1])
    answers(served)
    for one in crowd[:10]:
        one.sendall(b"\r\n\r\n")
        one.settimeout(10)
        assert one.recv(64).startswith(b"HTTP/1.1 200")


def test_who_drips_a_header_for_ever_is_let_go(served: Served) -> None:
    with socket.create_connection(("127.0.0.1", served.port)) as one:
        one.sendall(HEAD)
        one.settimeout(0.5)
        deadline = time.monotonic() + patience.HEAD_SECONDS + 20
        ended = False
        while not ended and time.monotonic() < deadline:
            try:
                one.sendall(b"x")
                ended = one.recv(1) == b""
            except TimeoutError:
                continue
            except OSError:
                ended = True
        assert ended


def test_two_requests_sent_at_once_are_both_answered(served: Served) -> None:
    request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with socket.create_connection(("127.0.0.1", served.port)) as one:
        one.settimeout(10)
        one.sendall(request + request[:10])
        assert one.recv(4096).startswith(b"HTTP/1.1 200")
        one.sendall(request[10:])
        assert one.recv(4096).startswith(b"HTTP/1.1 200")
        one.sendall(request * 2)
        got = b""
        while got.count(b"HTTP/1.1 200") < 2 and (more := one.recv(4096)):
            got += more
        assert got.count(b"HTTP/1.1 200") == 2


@pytest.mark.parametrize(
    ("path", "size", "good", "status"),
    [
        ("/v1/sessions", 2_000_000, True, 413),
        ("/v1/sessions", 500_000, False, 401),
        ("/v1/sessions/0192f0c1-2345-7000-8000-000000000000/artifacts", 500_000, True, 404),
    ],
)
def test_a_refusal_before_the_body_was_read_says_that_the_connection_ends(
    served: Served, alice: Player, path: str, size: int, good: bool, status: int
) -> None:
    headers = {
        **(alice.token() if good else {}),
        "Content-Length": str(size),
        "Content-Type": "application/json",
    }
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=10)
    connection.putrequest("POST", path)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders(b"x" * 1_000)  # the rest stays away: the refusal needs none of it
    answer = connection.getresponse()
    assert (answer.status, answer.getheader("Connection")) == (status, "close")
    assert answer.read()


def test_a_refusal_after_the_body_was_read_keeps_the_connection(served: Served, alice: Player) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=10)
    for _ in range(3):
        headers = {**alice.token(), "Content-Type": "application/json"}
        connection.request("POST", "/v1/sessions", b'{"nobody": 1}', headers)
        answer = connection.getresponse()
        assert (answer.status, answer.getheader("Connection")) == (400, "keep-alive")
        answer.read()

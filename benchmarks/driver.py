"""The load: a process of its own that asks a server over connections it keeps, and counts the answers.

    python -m benchmarks.driver PORT CONNECTIONS SECONDS ROUNDS   plan on standard input, JSON
    plan: {"works": {NAME: [path, {header: value}]}}              answer: {NAME: [answers a second, per round]}

Each round runs the works in turn for SECONDS each, over the same connections, so that all meet the same workers.
A connection has one request under way. An answer of another status or length than the first of its work ends
the run: a fast error is no figure.
"""

from __future__ import annotations

import json
import select
import socket
import sys
import time

Look = tuple[bytes, int]
"""What an answer looks like: its status line to the code, and the length of its body."""


class Connection:
    """One kept connection with at most one request under way."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""

    def fileno(self) -> int:
        return self.socket.fileno()

    def ask(self, request: bytes) -> None:
        """Sends a request."""
        self.buffer = b""
        self.socket.sendall(request)

    def answered(self) -> Look | None:
        """The status line and the body's length once the answer is whole; call when readable."""
        part = self.socket.recv(1 << 18)
        if not part:
            raise ConnectionError("the server closed a connection")
        self.buffer += part
        head, ends, body = self.buffer.partition(b"\r\n\r\n")
        if not ends:
            return None
        status = head[:12]
        if status.endswith(b"204"):
            return status, 0
        at = head.lower().index(b"content-length:") + 15
        length = int(head[at : (head + b"\r").index(b"\r", at)])
        return (status, length) if len(body) >= length else None


def drive(
    connections: list[Connection], request: bytes, seconds: float, like: Look | None
) -> tuple[float, Look]:
    """Keeps every connection busy for `seconds`; the answers a second, and what they look like."""
    poll = select.epoll()
    by_number = {connection.fileno(): connection for connection in connections}
    for number in by_number:
        poll.register(number, select.EPOLLIN)
    began = time.perf_counter()
    until = began + seconds
    for connection in connections:
        connection.ask(request)
    busy, count, now = len(connections), 0, began
    while busy:
        for number, _ in poll.poll():
            connection = by_number[number]
            answer = connection.answered()
            if answer is None:
                continue
            like = like or answer
            if answer != like:
                raise SystemExit(f"{request.split()[1].decode()} answered {answer}, not {like}")
            count += 1
            now = time.perf_counter()
            if now < until:
                connection.ask(request)
            else:
                busy -= 1
    poll.close()
    assert like is not None
    return count / (now - began), like


def _request(path: str, headers: dict[str, str]) -> bytes:
    lines = [
        f"GET {path} HTTP/1.1",
        "Host: localhost",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def main() -> None:
    """Runs the plan of standard input."""
    port, count, seconds, rounds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
    works = {name: _request(*work) for name, work in json.load(sys.stdin)["works"].items()}
    connections = [Connection(port) for _ in range(count)]
    looks: dict[str, Look] = {}
    rates: dict[str, list[float]] = {name: [] for name in works}
    for number in range(-1, rounds):
        for name in list(works)[:: 1 if number % 2 else -1]:
            rate, looks[name] = drive(connections, works[name], seconds, looks.get(name))
            if number >= 0:
                rates[name].append(rate)
    json.dump(rates, sys.stdout)


if __name__ == "__main__":
    main()

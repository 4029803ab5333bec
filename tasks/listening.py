"""Who listens on HOST and PORT: nobody yet, or a web process that answers."""

from __future__ import annotations

import errno
import http.client
import socket

from models.errors import Misconfigured


def check_port_free(host: str, port: int) -> None:
    """Return when we could listen there; raises Misconfigured, naming HOST or PORT, when not."""
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError:
        raise Misconfigured(f"HOST: {host!r} is no address of this machine") from None
    family, kind, protocol, _, address = addresses[0]
    with socket.socket(family, kind, protocol) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(address)
            tried.listen(1)
        except OSError as fault:
            if fault.errno == errno.EADDRINUSE:
                raise Misconfigured(f"PORT: {port} on {host} is in use; set PORT to a free one") from None
            if fault.errno in {errno.EACCES, errno.EPERM}:
                raise Misconfigured(
                    f"PORT: {port} is not allowed to this user; set PORT to 1024 or more"
                ) from None
            raise Misconfigured(f"HOST: {host!r} cannot be listened on: {fault.strerror}") from None


def answers(host: str, port: int, path: str, seconds: float = 1.0) -> bool:
    """True when GET `path` gives 200 within `seconds`; a wildcard HOST is asked on loopback."""
    asked = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  names a wildcard, binds nothing
    connection = http.client.HTTPConnection(asked, port, timeout=seconds)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()

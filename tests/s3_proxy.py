"""A reverse proxy before an S3 API server that spoils answers on demand and counts requests by operation.

What the answers are: `tests/s3_server.py`, which starts it. Bodies pass in small pieces, both ways.
"""

from __future__ import annotations

import http.client
import re
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit
from xml.etree import ElementTree

Answer = Literal["healthy", "unavailable", "denied", "half", "cut"]

NAMED_BY_QUERY = (
    ("POST", "delete", "DeleteObjects"),
    ("GET", "versioning", "GetBucketVersioning"),
    ("GET", "versions", "ListObjectVersions"),
    ("GET", "list-type", "ListObjectsV2"),
    ("GET", "uploads", "ListMultipartUploads"),
    ("POST", "uploads", "CreateMultipartUpload"),
    ("POST", "uploadId", "CompleteMultipartUpload"),
    ("PUT", "partNumber", "UploadPart"),
    ("DELETE", "uploadId", "AbortMultipartUpload"),
)
PIECE = 64 * 1024
HOP_BY_HOP = {"connection", "expect", "host", "keep-alive", "transfer-encoding"}


@dataclass
class Spoiling:
    """What the proxy does from now on, and what it saw; changed while it runs."""

    port: int
    answer: Answer = "healthy"
    only: Collection[str] = ()
    half_failed: list[str] = field(default_factory=list)
    requests: Counter[str] = field(default_factory=Counter)


def operation(method: str, target: str) -> str:
    """The name that the S3 API gives to a request."""
    parts = urlsplit(target)
    query = parse_qs(parts.query, keep_blank_values=True)
    for verb, parameter, name in NAMED_BY_QUERY:
        if method == verb and parameter in query:
            return name
    kind = "Object" if parts.path.strip("/").count("/") else "Bucket"
    return f"{method.capitalize()}{kind}"


def _error(code: str) -> bytes:
    return f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>spoiled</Message></Error>".encode()


def proxy_of(spoiling: Spoiling) -> type[BaseHTTPRequestHandler]:
    """The request handler of a proxy that spoils answers as `spoiling` says."""

    class Proxy(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def proxied(self) -> None:
            name = operation(self.command, self.path)
            spoiling.requests[name] += 1
            answer = spoiling.answer if not spoiling.only or name in spoiling.only else "healthy"
            length = int(self.headers.get("Content-Length") or 0)
            if answer in {"unavailable", "denied", "cut"}:
                self._drop(length)
            if answer == "unavailable":
                self._send(503, _error("SlowDown"))
            elif answer == "denied":
                self._send(403, _error("AccessDenied"))
            elif answer == "cut":
                self.close_connection = True
            elif answer == "half" and name == "DeleteObjects":
                self._half(self.rfile.read(length))
            else:
                self._pass_on(length)

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = proxied

        def log_message(self, *_: Any) -> None:
            """Says nothing: a test's output is its own."""

        def _drop(self, length: int) -> None:
            while length > 0:
                length -= len(self.rfile.read(min(length, PIECE))) or length

        def _send(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/xml")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def _half(self, body: bytes) -> None:
            tree = ElementTree.fromstring(body)  # noqa: S314  our own client wrote it
            space = (re.match(r"\{.*\}", tree.tag) or [""])[0]
            ElementTree.register_namespace("", space.strip("{}"))  # moto reads no prefixes
            objects = tree.findall(f"{space}Object")
            keys = list(dict.fromkeys(entry.findtext(f"{space}Key", "") for entry in objects))
            failed = set(keys[1::2])
            for entry in objects:
                if entry.findtext(f"{space}Key") in failed:
                    tree.remove(entry)
            spoiling.half_failed += [key for key in keys if key in failed]
            reply = self._ask(ElementTree.tostring(tree))
            errors = "".join(f"<Error><Key>{key}</Key><Code>InternalError</Code></Error>" for key in failed)
            self._send(200, reply.replace(b"</DeleteResult>", errors.encode() + b"</DeleteResult>"))

        def _ask(self, body: bytes) -> bytes:
            connection = http.client.HTTPConnection("127.0.0.1", spoiling.port, timeout=30)
            connection.request(self.command, self.path, body=body, headers=self._headers(len(body)))
            reply = connection.getresponse().read()
            connection.close()
            return reply

        def _headers(self, length: int) -> dict[str, str]:
            kept = {
                name: value
                for name, value in self.headers.items()
                if name.lower() not in HOP_BY_HOP and not name.lower().startswith("x-amz-checksum")
            }
            return kept | {"Content-Length": str(length)}

        def _pass_on(self, length: int) -> None:
            connection = http.client.HTTPConnection("127.0.0.1", spoiling.port, timeout=30)
            try:
                connection.putrequest(self.command, self.path, skip_accept_encoding=True)
                for name, value in self._headers(length).items():
                    connection.putheader(name, value)
                connection.endheaders()
                while length > 0:
                    piece = self.rfile.read(min(length, PIECE))
                    if not piece:
                        self.close_connection = True
                        return
                    connection.send(piece)
                    length -= len(piece)
                self._return(connection.getresponse())
            finally:
                connection.close()

        def _return(self, reply: http.client.HTTPResponse) -> None:
            self.send_response_only(reply.status)
            for name, value in reply.getheaders():
                if name.lower() not in HOP_BY_HOP | {"content-length"}:
                    self.send_header(name, value)
            length = reply.getheader("Content-Length")
            chunked = length is None and self.command != "HEAD" and reply.status not in {204, 304}
            self.send_header("Transfer-Encoding", "chunked") if chunked else None
            self.send_header("Content-Length", length) if length is not None else None
            self.end_headers()
            while piece := reply.read(PIECE):
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
            if chunked:
                self.wfile.write(b"0\r\n\r\n")

    return Proxy

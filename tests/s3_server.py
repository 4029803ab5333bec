"""A real S3 API server for tests (moto's, a process of its own) behind a proxy that can spoil its answers.

    shared()                                the one server of this test process, started at the first call
    server.bucket(versioning="Enabled")     a new, empty bucket
    server.url(bucket), server.aws          what `open_store` needs; through the proxy
    server.direct_aws                       the same without the proxy (nothing spoiled, nothing counted)
    with server.answering("unavailable"):   spoils what comes; `only={"UploadPart"}` spoils these operations
    with server.counting() as seen:         seen["DeleteObjects"] is the number of requests

| answer | what the client meets |
|---|---|
| healthy | moto's own answers |
| unavailable | 503 SlowDown |
| denied | 403 AccessDenied |
| half | every other key of a DeleteObjects stays, an InternalError inside a 200; `half_failed` lists them |
| cut | the connection ends without an answer |
"""

from __future__ import annotations

import atexit
import http.client
import itertools
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import cache
from http.server import ThreadingHTTPServer
from typing import Literal

import boto3

from tests.s3_proxy import Answer, Spoiling, proxy_of

# Ends with the test process, however that ends: standard input is a pipe that only the test process holds.
CHILD = """
import os, sys, threading
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
from moto.server import main
main(["-H", "127.0.0.1", "-p", sys.argv[1]])
"""


class S3Server:
    """One moto process and the proxy in front of it. Not for two tests at a time."""

    def __init__(self) -> None:
        self.port, self._moto = _start_moto()
        self.spoiling = Spoiling(self.port)
        self._proxy = ThreadingHTTPServer(("127.0.0.1", 0), proxy_of(self.spoiling))
        self._proxy.daemon_threads = True
        threading.Thread(target=self._proxy.serve_forever, args=(0.05,), daemon=True).start()
        self._names = (f"bucket-{number}" for number in itertools.count(1))
        self.client = boto3.client(
            "s3",
            endpoint_url=self.direct_aws["AWS_ENDPOINT_URL"],
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )

    @property
    def aws(self) -> dict[str, str]:
        """The AWS_* settings of a client that goes through the proxy."""
        return _settings(self._proxy.server_address[1])

    @property
    def direct_aws(self) -> dict[str, str]:
        """The AWS_* settings of a client that speaks with moto itself."""
        return _settings(self.port)

    def bucket(self, versioning: Literal["Enabled", "Suspended"] | None = None) -> str:
        """The name of a new bucket."""
        name = next(self._names)
        self.client.create_bucket(Bucket=name)
        if versioning:
            self.set_versioning(name, versioning)
        return name

    def set_versioning(self, bucket: str, status: Literal["Enabled", "Suspended"]) -> None:
        """What the bucket's owner may do at any time."""
        self.client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": status})

    def url(self, bucket: str, prefix: str = "objects") -> str:
        """The OBJECT_STORE_URL of a prefix in a bucket."""
        return f"s3://{bucket}/{prefix}"

    def everything(self, bucket: str) -> list[str]:
        """Every version, marker and unfinished upload in the bucket, one text each."""
        found = []
        for page in self.client.get_paginator("list_object_versions").paginate(Bucket=bucket):
            for kind in ("Versions", "DeleteMarkers"):
                found += [f"{kind} {entry['Key']} {entry['VersionId']}" for entry in page.get(kind, ())]
        uploads = self.client.list_multipart_uploads(Bucket=bucket).get("Uploads", ())
        return sorted(found + [f"Uploads {entry['Key']} {entry['UploadId']}" for entry in uploads])

    @contextmanager
    def answering(self, answer: Answer, only: Collection[str] = ()) -> Iterator[None]:
        """Spoils the answers (to the operations `only`, or to all) as long as the block runs."""
        self.spoiling.answer, self.spoiling.only, self.spoiling.half_failed = answer, only, []
        try:
            yield
        finally:
            self.spoiling.answer, self.spoiling.only = "healthy", ()

    @contextmanager
    def counting(self) -> Iterator[Counter[str]]:
        """The requests of each operation that come while the block runs."""
        seen: Counter[str] = Counter()
        self.spoiling.requests = seen
        yield seen
        self.spoiling.requests = Counter()

    @property
    def half_failed(self) -> list[str]:
        """The names of the objects that the answer "half" left, in the order they were asked for."""
        return self.spoiling.half_failed

    def stop(self) -> None:
        """Ends both; the buckets are gone with them."""
        self._proxy.shutdown()
        self._proxy.server_close()
        self._moto.kill()
        self._moto.wait()


@cache
def shared() -> S3Server:
    """The one server of this test process; it ends with it."""
    server = S3Server()
    atexit.register(server.stop)
    return server


def free_port() -> int:
    """A loopback port on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _settings(port: int) -> dict[str, str]:
    return {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
    }


def _start_moto() -> tuple[int, subprocess.Popen[bytes]]:
    for _ in range(3):  # someone else may take the port between the look and the start
        port = free_port()
        process = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 30
        while process.poll() is None and time.monotonic() < deadline:
            try:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
                connection.request("GET", "/moto-api/")
                if connection.getresponse().status == 200:
                    return port, process
            except OSError:
                time.sleep(0.05)
            finally:
                connection.close()
        process.kill()
        process.wait()
    raise RuntimeError("moto did not start")

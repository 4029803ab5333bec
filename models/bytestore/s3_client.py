"""One bucket behind a boto3 client: made at the first call, once for each process, impatient on purpose.

The outbox is what tries again, with its own back-off; a client that waits and retries would only hold up
the reader who pressed Delete. So: 3 s to connect, 10 s for an answer, two attempts.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import boto3
from botocore.config import Config

CONFIG = Config(
    connect_timeout=3,
    read_timeout=10,
    retries={"total_max_attempts": 2, "mode": "standard"},
    max_pool_connections=32,
    # Checksums that AWS does not ask for come as trailers, which several servers of this API refuse.
    request_checksum_calculation="when_required",
    response_checksum_validation="when_required",
)


class Bucket:
    """Calls on the bucket `name`. What goes wrong comes as one of `s3_faults.ERRORS`.

    Threads share the client, as boto3 allows. A forked child makes its own: sockets are not to be shared.
    """

    def __init__(self, name: str, aws: Mapping[str, str]) -> None:
        self.name = name
        self._aws = aws
        self._client: tuple[int, Any] | None = None

    def call(self, operation: str, **arguments: Any) -> dict[str, Any]:
        """The answer to one request, as boto3 parses it."""
        answer: dict[str, Any] = getattr(self._made(), operation)(Bucket=self.name, **arguments)
        return answer

    def pages(self, operation: str, **arguments: Any) -> Iterator[dict[str, Any]]:
        """The answers to a listing, one request each, until there is no more."""
        yield from self._made().get_paginator(operation).paginate(Bucket=self.name, **arguments)

    def _made(self) -> Any:
        held = self._client
        if held is None or held[0] != os.getpid():
            # No lock: two threads may both make one at the start, and the later one stays. A lock could be
            # held by another thread at the moment of a fork, and the child would wait for ever.
            held = self._client = os.getpid(), _client(self._aws)
        return held[1]


def _client(aws: Mapping[str, str]) -> Any:
    session = boto3.session.Session(
        aws_access_key_id=aws.get("AWS_ACCESS_KEY_ID") or None,
        aws_secret_access_key=aws.get("AWS_SECRET_ACCESS_KEY") or None,
        aws_session_token=aws.get("AWS_SESSION_TOKEN") or None,
        region_name=aws.get("AWS_REGION") or aws.get("AWS_DEFAULT_REGION") or None,
        profile_name=aws.get("AWS_PROFILE") or None,
    )
    endpoint = aws.get("AWS_ENDPOINT_URL_S3") or aws.get("AWS_ENDPOINT_URL") or None
    # Servers of one's own rarely have a DNS name for each bucket.
    addressing = Config(s3={"addressing_style": "path" if endpoint else "auto"})
    return session.client(
        "s3",
        region_name=session.region_name or ("us-east-1" if endpoint else None),
        endpoint_url=endpoint,
        verify=aws.get("AWS_CA_BUNDLE") or None,
        config=CONFIG.merge(addressing),
    )

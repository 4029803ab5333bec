"""What every store of bytes promises, in what words it fails, and what a key looks like.

A fault is one of four words, which the outbox keeps and acts on:

| word | means | the outbox |
|---|---|---|
| unavailable | out of reach, overloaded, full, an I/O error: it may pass by itself | backs off |
| credentials | the store refuses who we are | shows it as blocked, keeps the row |
| misconfigured | no such bucket, no folder where the store was | shows it as blocked, keeps the row |
| unknown | an answer that nobody foresaw; never taken for success | backs off |
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

Fault = Literal["unavailable", "credentials", "misconfigured", "unknown"]

CHUNK = 256 * 1024  # bytes that one step of `open` yields at most

# A key is the id of an artifact. No other text ever becomes part of a path or an object's name.
is_key = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").fullmatch


@dataclass(frozen=True)
class Stored:
    """What `put` took: the number of bytes and their SHA-256 (32 raw bytes)."""

    size: int
    sha256: bytes


class Missing(LookupError):
    """The store answers, and it has no such object (or a deletion took it away while it was written)."""


class StoreFault(Exception):
    """The store could not do it. `fault` is one of the four words, `sentence` is for the operator.

    The sentence names the store and what to look at; it never holds a secret.
    """

    def __init__(self, fault: Fault, sentence: str) -> None:
        super().__init__(sentence)
        self.fault = fault
        self.sentence = sentence


class ByteStore(Protocol):
    """Bytes under keys. A key is lower-case UUID text; any other key is a ValueError before anything is done.

    Safe to share between threads, and by a process and its forks.
    """

    def put(self, key: str, chunks: Iterable[bytes]) -> Stored:
        """Stores the whole stream under `key`, or nothing; what was there before is replaced.

        Constant memory, however long the stream. What `chunks` raises comes through as it is. Raises Missing
        when `key` was deleted meanwhile, StoreFault when the store fails. A process that is killed in here
        may leave a part: `keys` lists it under its key, and `delete` of that key removes it.
        """

    def open(self, key: str, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """The bytes [start, end) in pieces of at most CHUNK; what lies beyond the last byte is cut off.

        Raises at the call, not at the first piece: Missing, StoreFault, and ValueError for 0 > start or
        start > end. A store that fails half-way raises StoreFault from the iterator.
        """

    def size(self, key: str) -> int:
        """The number of bytes under `key`. Raises Missing, StoreFault."""

    def delete(self, keys: Sequence[str]) -> dict[str, Fault]:
        """Deletes every byte of each key: all versions, markers and unfinished parts.

        Answers the keys that are NOT gone, each with its fault; empty means that all are gone. What was gone
        before counts as deleted. Raises nothing for a fault of the store. Thousands of keys are one call.
        """

    def keys(self) -> Iterator[tuple[str, datetime]]:
        """Each key that has bytes, once, in no order, with the (UTC) time it was last written.

        Old versions, markers and unfinished parts count. What is not named like ours is left out. Raises
        StoreFault, also half-way. Costs a walk over the whole store.
        """

    def check(self) -> None:
        """Returns when the store can be used, else raises StoreFault. Cheap, writes nothing."""


def checked(keys: Sequence[str]) -> list[str]:
    """The distinct `keys` in their order. Raises ValueError when one is not lower-case UUID text."""
    for key in keys:
        if not is_key(key):
            raise ValueError(f"{key[:60]!r} is not the key of an object")
    return list(dict.fromkeys(keys))


def check_range(start: int, end: int | None) -> None:
    """Raises ValueError unless 0 <= start <= end."""
    if start < 0 or (end is not None and end < start):
        raise ValueError(f"[{start}, {end}) is not a range of bytes")

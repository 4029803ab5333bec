"""Bytes in a dictionary of this process: for tests and trials; other processes see none of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from threading import Lock

from models.bytestore.contract import CHUNK, Fault, Missing, Stored, check_range, checked


class MemoryStore:
    """A ByteStore that is always well. Its memory is not constant: it is what it stores."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._objects: dict[str, tuple[bytes, datetime]] = {}

    def put(self, key: str, chunks: Iterable[bytes]) -> Stored:
        checked([key])
        data = b"".join(chunks)
        with self._lock:
            self._objects[key] = data, datetime.now(UTC)
        return Stored(len(data), sha256(data).digest())

    def open(self, key: str, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        check_range(start, end)
        data = self._bytes(key)
        stop = len(data) if end is None else min(end, len(data))
        return (data[at : min(at + CHUNK, stop)] for at in range(start, stop, CHUNK))

    def size(self, key: str) -> int:
        return len(self._bytes(key))

    def delete(self, keys: Sequence[str]) -> dict[str, Fault]:
        wanted = checked(keys)
        with self._lock:
            for key in wanted:
                self._objects.pop(key, None)
        return {}

    def keys(self) -> Iterator[tuple[str, datetime]]:
        with self._lock:
            found = [(key, modified) for key, (_, modified) in self._objects.items()]
        return iter(found)

    def check(self) -> None:
        return None

    def _bytes(self, key: str) -> bytes:
        checked([key])
        with self._lock:
            if key not in self._objects:
                raise Missing(key)
            return self._objects[key][0]

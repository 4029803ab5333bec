"""Reading a msgpack array field by field, strictly: each with its type and its bounds. PURE.

Whatever a peer sends gives a value or one of FAULTS, and a reader holds little more than what came in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgpack

BLOB = 60_000  # bytes of a list in one frame, so that the rest of the frame has room
NAME_BYTES, LIST_MAX = 800, 1_000  # of a workspace's name; of any array
T = TypeVar("T")
LATEST = 253_402_300_799_999_999  # microseconds since 1970: the end of the year 9999
FAULTS = (ValueError, TypeError, RecursionError, msgpack.UnpackException)  # what reading may raise


def pack(fields: object) -> bytes:
    """The bytes of an array of ours."""
    packed: bytes = msgpack.packb(fields, use_bin_type=True)
    return packed


class Fields:
    """One array, read from its bytes field by field; nothing is held but what was asked for.

    Every method may raise one of FAULTS.
    """

    def __init__(self, raw: bytes | memoryview) -> None:
        # An array is entered by its header alone: what is read as a value can be none, so nothing nests.
        size = max(len(raw), 1)
        self._unpacker = msgpack.Unpacker(
            read_size=size, max_buffer_size=size, max_array_len=0, max_map_len=0, max_ext_len=0
        )
        self._unpacker.feed(raw)
        self._size = len(raw)
        self._left = [self._unpacker.read_array_header()]

    def end(self) -> None:
        """That the array, and with the outermost one the bytes, ends here."""
        if self._left.pop() or (not self._left and self._unpacker.tell() != self._size):
            raise ValueError("something is left")

    def number(self, most: int) -> int:
        value = self._next(int)
        if not 0 <= value <= most:
            raise ValueError("a number out of its bounds")
        return int(value)

    def time(self) -> int:
        return self.number(LATEST)

    def truth(self) -> bool:
        return bool(self._next(bool))

    def blob(self, most: int = BLOB, *, each: int = 1) -> bytes:
        value: bytes = self._next(bytes)
        if len(value) > most or len(value) % each:
            raise ValueError("bytes that do not fit")
        return value

    def exactly(self, size: int) -> bytes:
        value: bytes = self._next(bytes)
        if len(value) != size:
            raise ValueError("bytes that do not fit")
        return value

    def words(self, most: int = NAME_BYTES, *, empty: bool = False) -> str:
        value: str = self._next(str)
        if not (value or empty) or len(value.encode()) > most or "\0" in value:
            raise ValueError("a name that does not fit")
        return value

    def each(self, read: Callable[[Fields], T]) -> tuple[T, ...]:
        """A list of arrays, each read by `read` to its end."""
        out = []
        for _ in self._enter():
            self._enter()
            out.append(read(self))
            self.end()
        self._left.pop()
        return tuple(out)

    def names(self) -> tuple[str, ...]:
        """A list of names."""
        out = tuple(self.words() for _ in self._enter())
        self.end()
        return out

    def _enter(self) -> range:
        self._count()
        size = self._unpacker.read_array_header()
        if size > LIST_MAX:
            raise ValueError("a list that is too long")
        self._left.append(size)
        return range(size)

    def _next(self, kind: type) -> Any:
        self._count()
        value = self._unpacker.unpack()
        if type(value) is not kind:
            raise ValueError("a field of another type")
        return value

    def _count(self) -> None:
        if not self._left[-1]:
            raise ValueError("too few fields")
        self._left[-1] -= 1

"""Memories as one stream of bytes that is cut into frames wherever it comes, and back. PURE."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import NamedTuple

from relay.fields import BLOB, FAULTS, NAME_BYTES, Fields, pack
from relay.frames import BadFrame

TEXT_MAX = 16 * 1024 * 1024  # bytes of one memory's text
_LENGTH = Struct(">I")  # before each memory


class Body(NamedTuple):
    """One memory in a stream of data."""

    key: bytes
    logical_id: bytes
    device: bytes
    made_at: int
    recorded_at: int
    source: str
    text: str


def streamed(bodies: Iterable[Body]) -> Iterator[bytes]:
    """The parts of a stream, at most BLOB bytes each; at least one, which may be empty.

    Memories over TEXT_MAX are the caller's to leave out.
    """
    waiting = bytearray()
    for body in bodies:
        packed = pack(tuple(body))
        waiting += _LENGTH.pack(len(packed)) + packed
        at = 0
        while len(waiting) - at >= BLOB:
            yield bytes(waiting[at : at + BLOB])
            at += BLOB
        del waiting[:at]
    yield bytes(waiting)


class Stream:
    """The other end of `streamed`: parts in, memories out. Holds one memory at most beside what it is given."""

    def __init__(self) -> None:
        self._waiting = bytearray()

    def take(self, part: bytes, *, last: bool) -> list[Body]:
        """The memories that end in `part`. Raises BadFrame, also when the last part ends within a memory."""
        self._waiting += part
        bodies = []
        at = 0
        while len(self._waiting) - at >= _LENGTH.size:
            (size,) = _LENGTH.unpack_from(self._waiting, at)
            if size > TEXT_MAX + BLOB:
                raise BadFrame("too_large")
            end = at + _LENGTH.size + size
            if end > len(self._waiting):
                break
            bodies.append(_body(bytes(self._waiting[at + _LENGTH.size : end])))
            at = end
        del self._waiting[:at]
        if last and self._waiting:
            raise BadFrame("malformed")
        return bodies


def _body(raw: bytes) -> Body:
    try:
        fields = Fields(raw)
        body = Body(
            key=fields.exactly(32),
            logical_id=fields.exactly(16),
            device=fields.exactly(16),
            made_at=fields.time(),
            recorded_at=fields.time(),
            source=fields.words(4 * NAME_BYTES),
            text=fields.words(TEXT_MAX),
        )
        fields.end()
    except FAULTS:
        raise BadFrame("malformed") from None
    return body

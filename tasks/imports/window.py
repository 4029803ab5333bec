"""A window that slides over a stream of bytes, and a scanner that finds where a JSON value in it ends.

The scanner knows strings, escapes and brackets, nothing else of JSON: so a value whose inside is broken still has
an end, and costs only itself. It can stop at any byte and go on when more was read, so each byte is seen once.

| scan | means |
|---|---|
| `complete` | the value ends at `position` |
| `cut` | the stream ended within it |
| `large` | it is longer than the limit |
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

from tasks.imports.bounds import CHUNK, MAX_ITEM

Scan = Literal["complete", "cut", "large"]

_STRUCTURE = re.compile(rb'["{}\[\]]')
_IN_STRING = re.compile(rb'[^"\\]*(?:\\.[^"\\]*){0,500}', re.DOTALL)
_QUOTE, _BACKSLASH = b'"'[0], b"\\"[0]
_OPENING = b"{["


class Damaged(Exception):
    """The stream cannot be read on; the sentence says why."""


class Window:
    """Bytes read and not yet passed, as `data`; `passed` counts those before them.

    `read(n)` gives at most n bytes, none at the end; when it raises `Damaged`, the stream ends there and
    `fault` holds the reason.
    """

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read
        self._ended = False
        self.data = bytearray()
        self.passed = 0
        self.fault: str | None = None

    def more(self) -> bool:
        """Reads on; False at the end."""
        if self._ended:
            return False
        try:
            chunk = self._read(CHUNK)
        except Damaged as error:
            self.fault = str(error)
            chunk = b""
        if not chunk:
            self._ended = True
            return False
        self.data += chunk
        return True

    def drop(self, count: int) -> None:
        """Passes `count` bytes. Cheap: a bytearray moves its start, not its bytes."""
        del self.data[:count]
        self.passed += count

    def byte(self) -> int | None:
        """The first byte in view; None at the end."""
        return self.data[0] if self.data or self.more() else None


class Scanner:
    """Finds the end of the value that starts at `position` with a bracket or a quotation mark."""

    def __init__(self, position: int = 0) -> None:
        self.start = position
        self.position = position
        self.deepest = 0
        self.steps = 0
        self._depth = 0
        self._quoted = False

    def run(self, window: Window, limit: int = MAX_ITEM) -> Scan:
        """Scans within the window, reading on as needed, up to `limit` bytes."""
        while not self._step(window.data):
            if self.position - self.start > limit:
                return "large"
            if not window.more():
                return "cut"
        return "complete"

    def skip(self, window: Window) -> bool:
        """Goes on to the value's end, keeping nothing, and leaves the window behind it; False when cut."""
        while not self._step(window.data):
            # An escape may have stepped one byte beyond what was read.
            beyond = self.position - len(window.data)
            window.drop(len(window.data))
            self.position = beyond
            if not window.more():
                return False
        window.drop(self.position)
        return True

    def _step(self, data: bytearray) -> bool:
        """Scans to the end of the value, or of the data; whether it was the value's."""
        position, depth, deepest, quoted = self.position, self._depth, self.deepest, self._quoted
        steps, ended = self.steps, False
        while not ended:
            steps += 1
            if quoted:
                at = _run(data, position)
                if at >= len(data):
                    position = at
                    break
                quoted = data[at] != _QUOTE
                # A backslash here ends a run of escapes that was as long as one match may be.
                position = at if quoted else at + 1
                ended = not quoted and depth == 0
                continue
            found = _STRUCTURE.search(data, position)
            if found is None:
                position = len(data)
                break
            byte = data[found.start()]
            position = found.end()
            if byte == _QUOTE:
                quoted = True
            elif byte in _OPENING:
                depth += 1
                deepest = max(deepest, depth)
            else:
                depth -= 1
                ended = depth <= 0
        self.position, self._depth, self.deepest, self._quoted = position, depth, deepest, quoted
        self.steps = steps
        return ended


def _run(data: bytearray, position: int) -> int:
    """Where text and its escapes stop: at a quotation mark, at a backslash, or behind what was read.

    An escape whose second byte is not there yet counts as read: the place is then one beyond the data.
    """
    if position >= len(data):
        return position
    found = _IN_STRING.match(data, position)
    at = found.end() if found else position
    return at + 2 if at == len(data) - 1 and data[at] == _BACKSLASH else at

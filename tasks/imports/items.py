"""One stream of JSON to its conversations: a list, one object, objects in a row, or one object a line.

What is broken costs only itself:

| in a list | is |
|---|---|
| a value with a broken inside, or a trailing comma | that value; its brackets still show where it ends |
| a bracket or quotation mark too few | that value: the next one is found by the key that values begin with |
| words that are no value | reported once, and passed up to the next conversation |
| a bracket too many | skipped, with the fields that it cut off |
| the end of the file, within a value or between two | what came before is kept, the rest is reported |
| a value over a bound | reported and passed over, without being held |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tasks.imports.bounds import MAX_ITEM, MAX_NESTING, MAX_RECOVERY
from tasks.imports.decoding import Decoded, Undecodable, decode
from tasks.imports.naming import name_in
from tasks.imports.parsed import Broken
from tasks.imports.window import Scan, Scanner, Window

CUT = "the file ends in the middle of this conversation"
LARGE = f"it is larger than {MAX_ITEM >> 20} MiB"
DEEP = f"it is nested deeper than {MAX_NESTING} levels"

_QUOTE = b'"'[0]
_FIRST_KEY = re.compile(rb'\{\s*("(?:[^"\\]|\\.){1,100}")\s*:')
_BETWEEN = re.compile(rb"[\s,}\]]*")
_SEARCHED = 64
"""Bytes that a search passes in the time of one step."""
_WORD = re.compile(rb'[^,{}\[\]"]*')
_VALUE = re.compile(rb"(?:null|true|false|-?\d[\d.eE+-]*)\s*[,\]]")
_SPACES = re.compile(rb"[\s,]*")


@dataclass(frozen=True, slots=True)
class Item:
    """A value of the stream, the how-maniest of the export, and what was replaced in it."""

    number: int
    value: Any
    replaced: int


class Items:
    """The values of one stream; `numbers` goes on from stream to stream, `fits` knows a conversation."""

    def __init__(self, window: Window, numbers: Iterator[int], fits: Callable[[Any], bool]) -> None:
        self._window = window
        self._numbers = numbers
        self._fits = fits
        self._opening: bytes | None = None
        self._budget = MAX_RECOVERY

    def __iter__(self) -> Iterator[Item | Broken]:
        window = self._window
        while len(window.data) < 3 and window.more():
            pass
        if window.data.startswith(b"\xef\xbb\xbf"):
            window.drop(3)
        self._pass(_SPACES)
        first = window.byte()
        if first == b"["[0]:
            window.drop(1)
            yield from self._list(closes=True)
        elif first == b"{"[0]:
            yield from self._lines() if self._is_lines() else self._list(closes=False)
        if window.fault:
            yield Broken("the rest of the file", window.fault)

    # -- a list, or objects in a row ---------------------------------------------------------------------

    def _list(self, *, closes: bool) -> Iterator[Item | Broken]:
        window = self._window
        closed, broken, junk = not closes, False, False
        while True:
            closed = self._pass(_BETWEEN, closed)
            first = window.byte()
            if first is None:
                # A broken value may have swallowed the end of the list: one report is enough.
                if not closed and not broken and not window.fault:
                    yield Broken("the end of the file", "the file ends before its list does")
                return
            if first not in b"{[":
                if first == _QUOTE and self._torn():
                    continue
                value = self._is_value()
                if value or not junk:
                    yield Broken(f"conversation {next(self._numbers)}", "it is not an object")
                resumed = None if value or junk else self._recover(None)
                junk = broken = True
                if resumed is None:
                    self._pass_word()
                else:
                    window.drop(resumed)
                continue
            found, going = self._value(next(self._numbers))
            yield found
            broken, junk = isinstance(found, Broken), False
            if not going:
                return

    def _value(self, number: int) -> tuple[Item | Broken, bool]:
        """The value at the head of the window, which is left behind it; and whether anything can follow."""
        window = self._window
        scanner = Scanner()
        scan = scanner.run(window)
        if scan != "complete":
            name = name_in(bytes(window.data[:4096]), number)
            # Each broken value may be read to the end of the file: many of them would cost its square.
            self._budget -= scanner.steps
            resumed = self._recover(len(window.data))
            if resumed is not None:
                window.drop(resumed)
                return Broken(name, "it is not valid JSON: it is never closed"), True
            return Broken(name, CUT if scan == "cut" else LARGE), scanner.skip(window)
        raw = bytes(window.data[: scanner.position])
        try:
            decoded = _decoded(raw, scanner.deepest)
        except Undecodable as error:
            window.drop(self._recover(len(raw)) or len(raw))
            return Broken(name_in(raw, number), str(error)), True
        found = _FIRST_KEY.match(raw)
        self._opening = found[1] if found else self._opening
        window.drop(len(raw))
        return Item(number, decoded.value, decoded.replaced), True

    def _recover(self, stop: int | None) -> int | None:
        """Where a whole conversation begins behind the start of a broken one, before `stop`; None where none does.

        Without `stop` it reads on, as far as a conversation may be long.
        """
        window = self._window
        own = _FIRST_KEY.match(window.data)
        opening = _FIRST_KEY
        # Until one was read whole, nothing tells by which key conversations begin.
        if self._opening:
            keys = {self._opening, own[1] if own else self._opening}
            opening = re.compile(rb"\{\s*(?:" + b"|".join(re.escape(key) for key in keys) + rb")\s*:")
        position = 1
        while self._budget > 0:
            end = len(window.data) if stop is None else stop
            found = opening.search(window.data, position, end)
            self._budget -= ((found.start() if found else end) - position) // _SEARCHED + 1
            if found is None:
                if stop is not None or len(window.data) > MAX_ITEM or not window.more():
                    return None
                # An opening may lie across what was read before and what was read now.
                position = max(position, end - 200)
                continue
            position = found.start()
            scanner = Scanner(position)
            scan = scanner.run(window)
            self._budget -= scanner.steps
            if scan == "complete":
                try:
                    if self._fits(
                        _decoded(bytes(window.data[position : scanner.position]), scanner.deepest).value
                    ):
                        return position
                except Undecodable:
                    pass
            position += 1
        return None

    def _torn(self) -> bool:
        """Passes `"key": value` between values: fields that a bracket too many cut off the value before."""
        window = self._window
        scanner = Scanner()
        if scanner.run(window) != "complete":
            return False
        end = scanner.position
        while (found := re.match(rb"\s*(\S)", window.data[end : end + 64])) is None and window.more():
            pass
        if found is None or found[1] != b":":
            return False
        window.drop(end + found.end())
        self._pass(_SPACES)
        first = window.byte()
        if first is not None and first in b'{["':
            Scanner().skip(window)
        else:
            self._pass_word()
        return True

    def _is_value(self) -> bool:
        """Whether a number, true, false or null stands here, which is JSON, though no conversation."""
        window = self._window
        while len(window.data) < 32 and window.more():
            pass
        return _VALUE.match(window.data) is not None

    def _pass_word(self) -> None:
        """Passes a string, a bare word or a stray colon."""
        window = self._window
        if window.byte() == _QUOTE:
            Scanner().skip(window)
        else:
            self._pass(_WORD)

    def _pass(self, between: re.Pattern[bytes], closed: bool = False) -> bool:
        """Passes what `between` matches; whether the last bracket in it, if any, closed the list."""
        window = self._window
        while window.byte() is not None:
            found = between.match(window.data)
            end = found.end() if found else 0
            closed = closed or b"]" in window.data[:end]
            window.drop(end)
            if window.data:
                break
        return closed

    # -- one object a line -------------------------------------------------------------------------------

    def _is_lines(self) -> bool:
        """Whether the objects come one a line, judged by the first two."""
        window = self._window
        scanner = Scanner()
        scan = scanner.run(window)
        if scan == "complete" and b"\n" not in window.data[: scanner.position]:
            while (
                b"\n" not in window.data[scanner.position :] and len(window.data) < MAX_ITEM and window.more()
            ):
                pass
            behind = window.data[scanner.position :].partition(b"\n")[0]
            return not behind.strip(b" \t\r,")
        # A first line that is broken runs into the second, which is then whole by itself.
        second = bytes(window.data).split(b"\n", 2)[1:2]
        try:
            return bool(second) and isinstance(_decoded(second[0], _depth(second[0])).value, dict)
        except Undecodable:
            return False

    def _lines(self) -> Iterator[Item | Broken]:
        while (line := self._line()) is not None:
            whole, ended = line
            text = whole.strip().rstrip(b",").strip()
            if text in (b"", b"[", b"]"):
                continue
            number = next(self._numbers)
            if len(whole) > MAX_ITEM:
                yield Broken(name_in(text, number), LARGE)
                continue
            try:
                decoded = _decoded(text, _depth(text))
                yield Item(number, decoded.value, decoded.replaced)
            except Undecodable as error:
                cut = not ended and _scanned(text)[0] == "cut"
                yield Broken(name_in(text, number), CUT if cut else str(error))

    def _line(self) -> tuple[bytes, bool] | None:
        """The next line and whether a line feed ended it; of a line over the bound, its first bytes."""
        window = self._window
        searched = 0
        while (end := window.data.find(b"\n", searched)) < 0:
            searched = len(window.data)
            if searched > MAX_ITEM:
                head = bytes(window.data)
                while b"\n" not in window.data:
                    window.drop(len(window.data))
                    if not window.more():
                        return head, False
                window.drop(window.data.find(b"\n") + 1)
                return head, True
            if not window.more():
                rest = bytes(window.data)
                window.drop(len(rest))
                return (rest, False) if rest else None
        line = bytes(window.data[:end])
        window.drop(end + 1)
        return line, True


def _decoded(raw: bytes, deepest: int) -> Decoded:
    if deepest > MAX_NESTING:
        raise Undecodable(DEEP)
    return decode(raw)


def _depth(raw: bytes) -> int:
    """An upper bound of the levels of one document; exact where it could matter."""
    brackets = raw.count(b"{") + raw.count(b"[")
    return brackets if brackets <= MAX_NESTING else _scanned(raw)[1]


def _scanned(raw: bytes) -> tuple[Scan, int]:
    pending = iter((raw,))
    scanner = Scanner()
    return scanner.run(Window(lambda _: next(pending, b""))), scanner.deepest

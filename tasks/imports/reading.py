"""The door: `read_export(path)` gives the conversations of an export file, one after the other.

What a file is, its content tells, never its name: a ZIP by its first bytes, JSON by its first bracket, and whose
export by the first conversation in it. Documents of an archive that hold no conversation (user.json and its like)
are passed over.

    with read_export(path) as export:
        for found in export:            # Parsed | Broken, lazily
            ...                         # export.position of export.total bytes; attachments can be opened here

| the file | gives |
|---|---|
| a conversation of a known format | `Parsed` |
| one that cannot be used, or is cut off | `Broken`, and the next ones |
| no conversation at all | `UnknownExport` from `read_export` itself |
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tasks.imports.archive import MAGIC, Archive
from tasks.imports.bounds import MAX_SCOUTED
from tasks.imports.files import Files, no_files
from tasks.imports.formats import Format, format_of, wrapped
from tasks.imports.items import Item, Items
from tasks.imports.naming import name_of
from tasks.imports.parsed import Broken, Parsed, UnknownExport, Unusable
from tasks.imports.transcript import numbered
from tasks.imports.window import Damaged, Window

UNKNOWN = (
    "it holds no conversation of a known kind: ChatGPT, Claude, Open WebUI, ShareGPT-style or OpenAssistant, "
    "as JSON, JSON-lines or a ZIP around them"
)
_NAMELESS = re.compile(r"#[0-9a-f]{32}")


def read_export(path: Path) -> Export:
    """The conversations of the file at `path`. Raises `UnknownExport` when it is none that can be imported."""
    try:
        if not path.is_file():
            if path.exists() and not path.is_dir():
                raise UnknownExport("it is no regular file; save it as one first")
            raise UnknownExport("it is a folder, not a file" if path.is_dir() else "there is no such file")
        return Export(path)
    except OSError as error:
        raise UnknownExport(f"the file cannot be read: {error.strerror or 'an input error'}") from error
    except ValueError as error:  # a NUL in the path
        raise UnknownExport("there is no such file") from error


@dataclass(frozen=True, slots=True)
class _Source:
    """One stream of JSON: its name, its bytes' number, how to read it, whether it must hold conversations."""

    name: str
    size: int
    open: Callable[[], Callable[[int], bytes]]
    expected: bool


class Export:
    """An export that is being read: an iterator of `Parsed | Broken`. Close it, or use it in a `with`."""

    def __init__(self, path: Path) -> None:
        self._closers: list[Callable[[], None]] = []
        self._files: Files = no_files
        self._numbers = itertools.count(1)
        self._nameless: Counter[str] = Counter()
        self._window: Window | None = None
        self._before = 0
        try:
            self._sources = self._open(path)
            self.total = sum(source.size for source in self._sources)
            self._found = self._conversations()
            # A file is known by its first conversation, so that one is looked for at once.
            self._first: Parsed | Broken | None = next(self._found)
        except BaseException:
            self.close()
            raise

    @property
    def position(self) -> int:
        """Bytes read of `total`: of a ZIP, unpacked bytes of its documents."""
        return min(self.total, self._before + (self._window.passed if self._window else 0))

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Parsed | Broken:
        first, self._first = self._first, None
        return next(self._found) if first is None else first

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file; attachments cannot be opened any more."""
        while self._closers:
            self._closers.pop()()

    def _open(self, path: Path) -> list[_Source]:
        handle = path.open("rb")
        self._closers.append(handle.close)
        head = handle.read(4)
        handle.seek(0)
        if not head:
            raise UnknownExport("the file is empty")
        if head not in MAGIC:
            if head.startswith((b"\xff\xfe", b"\xfe\xff")):
                raise UnknownExport("it is written in UTF-16; save it as UTF-8")
            return [_Source(path.name, path.stat().st_size, lambda: _reader(handle.read), expected=True)]
        archive = Archive(path)
        self._closers.append(archive.close)
        self._files = archive.find
        return [
            _Source(
                entry.filename,
                entry.file_size,
                partial(archive.reader, entry),
                Path(entry.filename).name.startswith("conversations"),
            )
            for entry in archive.documents()
        ]

    def _conversations(self) -> Iterator[Parsed | Broken]:
        known: Format | None = None
        held: list[Broken] = []
        for source in self._sources:
            for found in self._source(source):
                if known is None and isinstance(found, Format):
                    known = found
                    yield from held
                elif known is None and isinstance(found, Broken):
                    held.append(found)
                elif not isinstance(found, Format):
                    yield found
            self._before += source.size
            self._window = None
        if known is None:
            raise UnknownExport(f"{UNKNOWN} ({held[0].conversation}: {held[0].reason})" if held else UNKNOWN)

    def _source(self, source: _Source) -> Iterator[Parsed | Broken | Format]:
        """One stream: its format, once that is known, before the first of its conversations."""
        try:
            self._window = Window(source.open())
        except Damaged as error:
            yield Broken(source.name, str(error))
            return
        known: Format | None = None
        held: list[Broken] = []
        for item in self._items(self._window):
            if known is None:
                known = format_of(item.value) if isinstance(item, Item) else None
                if known is None:
                    held.append(item if isinstance(item, Broken) else _foreign(item, None))
                    if len(held) >= MAX_SCOUTED:
                        break
                    continue
                yield known
                yield from held
            yield item if isinstance(item, Broken) else self._parsed(item, known)
        if known is None and source.expected:
            yield from held

    def _items(self, window: Window) -> Iterator[Item | Broken]:
        for item in Items(window, self._numbers, lambda value: format_of(value) is not None):
            inner = wrapped(item.value) if isinstance(item, Item) else None
            if inner is None or isinstance(item, Broken):
                yield item
                continue
            for place, value in enumerate(inner):
                number = item.number if place == 0 else next(self._numbers)
                yield Item(number, value, item.replaced if place == 0 else 0)

    def _parsed(self, item: Item, known: Format) -> Parsed | Broken:
        found = format_of(item.value)
        if found is None:
            return _foreign(item, known)
        try:
            parsed = found.parse(item.value, self._files)
        except Unusable as error:
            return Broken(name_of(item.value, item.number), str(error))
        except Exception as error:  # noqa: BLE001 - one conversation that no one foresaw never costs the rest
            return Broken(name_of(item.value, item.number), f"it could not be read ({type(error).__name__})")
        occurrence = 0
        if _NAMELESS.fullmatch(parsed.source_id):
            self._nameless[parsed.source_id] += 1
            occurrence = self._nameless[parsed.source_id]
        return numbered(parsed, occurrence, item.replaced)


def _foreign(item: Item, known: Format | None) -> Broken:
    if not isinstance(item.value, dict):
        return Broken(name_of(item.value, item.number), "it is not an object")
    return Broken(
        name_of(item.value, item.number), known.lacks if known else "it is no conversation of a known kind"
    )


def _reader(read: Callable[[int], Any]) -> Callable[[int], bytes]:
    def checked(size: int) -> bytes:
        try:
            return bytes(read(size))
        except OSError as error:
            raise Damaged(f"the file cannot be read on: {error.strerror or 'an input error'}") from error

    return checked

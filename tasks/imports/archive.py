"""The ZIP around an export, read as streams only: no entry's name ever touches the file system.

Headers are claims. What is trusted is what was counted: the bytes unpacked, against the packed bytes and the size
of the archive, so a bomb is refused wherever it hides (overlapping entries too). Stored and deflated entries are
read, since these unpack piece by piece; encrypted ones are not.

Attachments are found by the identity that begins an entry's base name (`file-ID-photo.png`, `file_ID.dat`), in
whatever folder, else by a base name that is there once.
"""

from __future__ import annotations

import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO

from tasks.imports.bounds import CHUNK, FREE_UNPACKED, MAX_DIRECTORY, MAX_ENTRIES, MAX_RATIO, MAX_UNPACKED
from tasks.imports.fields import base_name
from tasks.imports.files import Found
from tasks.imports.parsed import AttachmentUnreadable, UnknownExport
from tasks.imports.window import Damaged

MAGIC = (b"PK\x03\x04", b"PK\x05\x06")
ENCRYPTED = "it is encrypted"
BOMB = "the archive unpacks to far more than an export does"
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_TAIL = 22 + 0xFFFF + 20
_IDENTITY = re.compile(r"(?:file[-_])?[0-9A-Za-z]{6,}")


class Archive:
    """An open archive. Raises `UnknownExport` when it is damaged or over a bound before it is read."""

    def __init__(self, path: Path) -> None:
        self._size = path.stat().st_size
        self._unpacked = 0
        with path.open("rb") as handle:
            if _directory_size(handle, self._size) > MAX_DIRECTORY:
                raise UnknownExport("the archive has too many entries")
        try:
            self._zip = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, struct.error) as error:
            raise UnknownExport("the ZIP archive is damaged") from error
        self.entries = [entry for entry in self._zip.infolist() if not entry.is_dir()]
        if len(self.entries) > MAX_ENTRIES:
            self.close()
            raise UnknownExport("the archive has too many entries")
        self._named: dict[str, list[zipfile.ZipInfo]] | None = None

    def documents(self) -> list[zipfile.ZipInfo]:
        """The entries that begin as JSON does, in the order of their names."""
        return sorted(
            (entry for entry in self.entries if self._is_json(entry)), key=lambda entry: entry.filename
        )

    def reader(self, entry: zipfile.ZipInfo) -> Callable[[int], bytes]:
        """A `read(n)` over the unpacked entry, which raises `Damaged`."""
        if entry.flag_bits & 1:
            raise Damaged(ENCRYPTED)
        if entry.compress_type not in _METHODS:
            raise Damaged("it is compressed by a method that is not read")
        stream: IO[bytes] | None = None
        counted = 0

        def read(size: int) -> bytes:
            nonlocal stream, counted
            try:
                if stream is None:
                    stream = self._zip.open(entry)
                data = stream.read(size)
            except (
                zipfile.BadZipFile,
                zlib.error,
                EOFError,
                OSError,
                ValueError,
                RuntimeError,
                struct.error,
            ):
                raise Damaged("the archive is damaged here") from None
            counted += len(data)
            self._unpacked += len(data)
            if (
                self._unpacked > MAX_UNPACKED
                or self._unpacked > FREE_UNPACKED + MAX_RATIO * self._size
                or counted > FREE_UNPACKED + MAX_RATIO * entry.compress_size
            ):
                raise Damaged(BOMB)
            return data

        return read

    def find(self, identity: str, name: str) -> Found | None:
        """`Files` of this archive."""
        if self._named is None:
            self._named = self._index()
        for key in (identity, name):
            held = self._named.get(base_name(key), []) if key else []
            # Two files of one name: which was meant is not known.
            if held and (key == identity or len(held) == 1):
                entry = held[0]
                return Found(base_name(entry.filename), entry.file_size, partial(self._chunks, entry))
        return None

    def close(self) -> None:
        """Ends the reading, attachments' too."""
        self._zip.close()

    def _is_json(self, entry: zipfile.ZipInfo) -> bool:
        if entry.flag_bits & 1:
            return entry.filename.lower().endswith((".json", ".jsonl"))
        try:
            head = self.reader(entry)(512)
        except Damaged:
            return entry.filename.lower().endswith((".json", ".jsonl"))
        return head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"[", b"{")

    def _index(self) -> dict[str, list[zipfile.ZipInfo]]:
        named: dict[str, list[zipfile.ZipInfo]] = {}
        for entry in self.entries:
            if entry.flag_bits & 1 or entry.compress_type not in _METHODS:
                continue
            base = base_name(entry.filename)
            keys = {base, base.rpartition(".")[0]}
            if begins := _IDENTITY.match(base):
                keys.add(begins[0])
            for key in keys - {""}:
                named.setdefault(key, []).append(entry)
        return named

    def _chunks(self, entry: zipfile.ZipInfo) -> Iterator[bytes]:
        try:
            read = self.reader(entry)
            while chunk := read(CHUNK):
                yield chunk
        except Damaged as error:
            raise AttachmentUnreadable(str(error)) from None


def _directory_size(handle: IO[bytes], size: int) -> int:
    """Bytes of the central directory, by the archive's last record (APPNOTE 4.3.14 to 4.3.16)."""
    start = max(0, size - _TAIL)
    handle.seek(start)
    tail = handle.read(_TAIL)
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) - at < 22:
        raise UnknownExport("the ZIP archive is damaged: its end is missing")
    length: int = struct.unpack_from("<L", tail, at + 12)[0]
    locator = tail[max(0, at - 20) : at]
    if not locator.startswith(b"PK\x06\x07"):
        return length
    handle.seek(min(struct.unpack_from("<Q", locator, 8)[0], size))
    record = handle.read(56)
    if len(record) < 56 or not record.startswith(b"PK\x06\x06"):
        raise UnknownExport("the ZIP archive is damaged: its end is missing")
    return int(struct.unpack_from("<Q", record, 40)[0])

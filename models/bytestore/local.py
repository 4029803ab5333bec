"""Bytes as files of a local directory.

    <root>/.allgone-store          the marker: this folder is a store; made with it, checked by each verb
    <root>/.incoming/<key>.<hex>   an upload under way, or what a killed process left of one
    <root>/<last 2 hex of key>/<key>

Folders are 0700, files 0600. The 256 fan-out folders stay for good and none is named after a session, so a
late write brings nobody's directory back. Without the marker nothing is read, written or taken for deleted:
an unmounted disk looks just like a folder from which everything is gone. A file is written in `.incoming`,
synced and renamed; a deletion takes the upload under way first, so that its rename fails.
"""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from hashlib import sha256
from typing import BinaryIO

from models.bytestore import local_files as files
from models.bytestore.contract import CHUNK, Fault, Missing, Stored, StoreFault, check_range, checked, is_key
from models.bytestore.local_faults import fault_of, store_fault

MARKER = ".allgone-store"
INCOMING = ".incoming"
# What a new file system holds before anyone stored anything.
UNUSED = {"lost+found"}


class LocalStore:
    """The ByteStore of one folder. A deletion costs one unlink a key and one listing of `.incoming`."""

    def __init__(self, root: str, *, make: bool = True) -> None:
        """`root` is an absolute path. With `make`, a root that is absent or empty becomes a store."""
        self._root = root.rstrip("/")
        if make:
            self._make()

    def put(self, key: str, chunks: Iterable[bytes]) -> Stored:
        checked([key])
        self.check()
        folder = f"{self._root}/{key[-2:]}"
        temporary = f"{self._root}/{INCOMING}/{key}.{secrets.token_hex(4)}"
        with self._faults_told():
            # Only these two: a missing root is never made again here.
            files.ensure_folder(f"{self._root}/{INCOMING}")
            files.ensure_folder(folder)
            descriptor = os.open(temporary, files.NEW_FILE, 0o600)
        try:
            try:
                stored = self._write(descriptor, chunks)
            finally:
                os.close(descriptor)
            self._publish(temporary, folder, key)
        except BaseException:
            files.discard(temporary)
            raise
        return stored

    def open(self, key: str, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        check_range(start, end)
        path = self._path(key)
        try:
            file = open(path, "rb", buffering=0)  # noqa: SIM115, PTH123  the iterator closes it
            file.seek(start)
        except OSError as error:
            raise self._absent_or_fault(key, error) from error
        return self._pieces(file, None if end is None else end - start)

    def size(self, key: str) -> int:
        try:
            return os.stat(self._path(key)).st_size  # noqa: PTH116  a plain string is the path
        except OSError as error:
            raise self._absent_or_fault(key, error) from error

    def delete(self, keys: Sequence[str]) -> dict[str, Fault]:
        wanted = checked(keys)
        try:
            self.check()
            uploads = self._incoming()
        except StoreFault as error:
            return dict.fromkeys(wanted, error.fault)
        left: dict[str, Fault] = {}
        absent = []
        root, unlink = self._root, os.unlink
        for key in wanted:
            try:
                for upload in uploads.get(key, ()):
                    with suppress(FileNotFoundError):
                        unlink(upload)
                unlink(f"{root}/{key[-2:]}/{key}")
            except FileNotFoundError:
                absent.append(key)
            except OSError as error:
                left[key] = fault_of(error)
        if absent:
            # The disk may have gone between the first look and the last file.
            try:
                self.check()
            except StoreFault as error:
                left.update(dict.fromkeys(absent, error.fault))
        return left

    def keys(self) -> Iterator[tuple[str, datetime]]:
        self.check()
        uploads: dict[str, datetime] = {}
        with self._faults_told():
            with suppress(FileNotFoundError):  # nothing was ever written
                for name, time in files.names_and_times(f"{self._root}/{INCOMING}"):
                    if is_key(key := name[:36]):
                        uploads[key] = max(time, uploads.get(key, time))
            yield from uploads.items()
            for folder in os.listdir(self._root):  # noqa: PTH208
                for name, time in files.names_and_times(f"{self._root}/{folder}") if len(folder) == 2 else ():
                    if is_key(name) and name[-2:] == folder and name not in uploads:
                        yield name, time

    def check(self) -> None:
        with self._faults_told():
            os.stat(f"{self._root}/{MARKER}")  # noqa: PTH116  a plain string is the path

    def _make(self) -> None:
        # What fails here is told by check(): a process starts, and says what is wrong when it is asked.
        try:
            os.makedirs(self._root, mode=0o700, exist_ok=True)  # noqa: PTH103
            if set(os.listdir(self._root)) <= UNUSED:  # noqa: PTH208
                os.close(os.open(f"{self._root}/{MARKER}", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except OSError:
            return

    def _path(self, key: str) -> str:
        checked([key])
        return f"{self._root}/{key[-2:]}/{key}"

    def _write(self, descriptor: int, chunks: Iterable[bytes]) -> Stored:
        digest, size = sha256(), 0
        for chunk in chunks:  # what the source raises is the caller's, and passes
            digest.update(chunk)
            size += len(chunk)
            with self._faults_told():
                files.write_all(descriptor, chunk)
        with self._faults_told():
            os.fsync(descriptor)
        return Stored(size, digest.digest())

    def _publish(self, temporary: str, folder: str, key: str) -> None:
        try:
            os.rename(temporary, f"{folder}/{key}")  # noqa: PTH104
        except OSError as error:
            raise self._absent_or_fault(key, error) from error
        try:
            files.sync_folder(folder)
        except OSError as error:
            files.discard(f"{folder}/{key}")
            raise store_fault(self._root, error) from error

    def _incoming(self) -> dict[str, list[str]]:
        folder = f"{self._root}/{INCOMING}"
        uploads: dict[str, list[str]] = {}
        try:
            for name in os.listdir(folder):  # noqa: PTH208
                if is_key(name[:36]):
                    uploads.setdefault(name[:36], []).append(f"{folder}/{name}")
        except FileNotFoundError:
            return {}  # nothing was ever written
        except OSError as error:
            raise store_fault(self._root, error) from error
        return uploads

    def _pieces(self, file: BinaryIO, left: int | None) -> Iterator[bytes]:
        with file:
            while left is None or left > 0:
                with self._faults_told():
                    piece = file.read(CHUNK if left is None else min(CHUNK, left))
                if not piece:
                    return
                left = None if left is None else left - len(piece)
                yield piece

    def _absent_or_fault(self, key: str, error: OSError) -> Exception:
        if error.errno != errno.ENOENT:
            return store_fault(self._root, error)
        try:
            self.check()
        except StoreFault as fault:
            return fault
        return Missing(key)

    @contextmanager
    def _faults_told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise store_fault(self._root, error) from error

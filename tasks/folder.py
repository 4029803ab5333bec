"""The data folder on disk: for its owner alone, and used by one set of engines at a time.

| file | what it does |
|---|---|
| `allgone.lock` | flock held by whoever runs the engines; holds "PID product" or "PID command" |
| `riders.lock` | flock shared by commands that use another command's engines, which waits for them |

Nothing here ever loosens a mode, and no parent of the data folder is touched.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from models.errors import Misconfigured

Use = Literal["product", "command"]


class Busy(Misconfigured):
    """The data folder is in use; `use` says by what, `pid` by whom (0: not known)."""

    def __init__(self, data_dir: Path, pid: int, use: str) -> None:
        self.pid, self.use = pid, use
        who = f"process {pid or 'unknown'}"
        super().__init__(
            f"a command of Allgone is using {data_dir} ({who}); start again when it has ended"
            if use == "command"
            else f"Allgone is already running on {data_dir} ({who})"
        )


@contextmanager
def hold(data_dir: Path, use: Use) -> Iterator[None]:
    """Hold the data folder, its owner's alone. Raises Busy; Misconfigured when it cannot be written."""
    with _faults(data_dir):
        lock = os.open(data_dir / "allgone.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _busy(data_dir, lock) from None
        with _faults(data_dir):
            os.ftruncate(lock, 0)
            os.pwrite(lock, f"{os.getpid()} {use}\n".encode(), 0)
            _owner_only(data_dir)
        yield
    finally:
        os.close(lock)


@contextmanager
def riders(data_dir: Path) -> Iterator[int]:
    """The descriptor of `riders.lock`: flock it shared to ride, alone to wait until nobody rides."""
    with _faults(data_dir):
        lock = os.open(data_dir / "riders.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        yield lock
    finally:
        os.close(lock)


def private_folder(path: Path, also: int | None = None) -> None:
    """Make `path` a folder that its owner alone can enter: us, or the uid `also`.

    Raises Misconfigured when it is someone else's, or no folder but a link: where others write too, such as
    in /tmp, a stranger may have put something there first.
    """
    with _faults(path):
        with suppress(FileExistsError):
            path.mkdir(mode=0o700)
        found = path.lstat()
        if not stat.S_ISDIR(found.st_mode):
            raise Misconfigured(f"ALLGONE_DATA_DIR: {path} is not a folder; remove it")
        if found.st_uid not in {os.geteuid(), also}:
            owner = f"another user (uid {found.st_uid})"
            raise Misconfigured(f"ALLGONE_DATA_DIR: {path} belongs to {owner}; remove it")
        _owner_only(path)


@contextmanager
def _faults(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as fault:
        raise Misconfigured(f"ALLGONE_DATA_DIR: {path} cannot be used: {fault.strerror}") from None


def _owner_only(path: Path) -> None:
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        path.chmod(mode & 0o700)


def _busy(data_dir: Path, lock: int) -> Busy:
    for _ in range(20):  # the holder may not have written its line yet
        pid, _, use = os.pread(lock, 64, 0).decode("ascii", "replace").strip().partition(" ")
        if pid.isdigit():
            return Busy(data_dir, int(pid), use)
        time.sleep(0.02)
    return Busy(data_dir, 0, "product")

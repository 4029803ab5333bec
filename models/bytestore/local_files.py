"""The few steps on files that the local store is made of. All raise OSError as it comes, but `discard`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime

NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


def ensure_folder(path: str) -> None:
    """Makes the folder (0700) when it is absent, and its name durable. Its parent must be there."""
    try:
        os.mkdir(path, 0o700)  # noqa: PTH102
    except FileExistsError:
        return
    sync_folder(os.path.dirname(path))  # noqa: PTH120


def sync_folder(path: str) -> None:
    """Makes the names in a folder durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_all(descriptor: int, data: bytes) -> None:
    """Writes all of `data`, however little the system takes at a time."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def discard(path: str) -> None:
    """Removes a file of ours on the way out of a failure; a second failure there hides nothing."""
    with suppress(OSError):
        os.unlink(path)  # noqa: PTH108


def names_and_times(folder: str) -> Iterator[tuple[str, datetime]]:
    """Each name in a folder with the time it was last written; what goes meanwhile is left out."""
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                yield entry.name, datetime.fromtimestamp(entry.stat(follow_symlinks=False).st_mtime, UTC)

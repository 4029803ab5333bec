"""Acting as a user without powers, and as another one than the owner, for the tests that need it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

STRANGER = 12345


def as_another_user(act: Callable[[], object], *, owning: Path | None = None, mode: int | None = None) -> str:
    """What `act` raises, as "TYPE: MESSAGE", or "none", when a user without powers does it.

    That is uid 12345 when we are root, else ourselves. `owning` is given to that user with all in it, then its
    `mode` set.
    """
    root = os.geteuid() == 0
    if owning is not None:
        for path in (owning, *owning.rglob("*")):
            if root:
                os.chown(path, STRANGER, STRANGER, follow_symlinks=False)
    if owning is not None and mode is not None:
        owning.chmod(mode)
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        said = "none"
        try:
            if root:
                os.setgroups([])
                os.setgid(STRANGER)
                os.setuid(STRANGER)
            act()
        except BaseException as fault:  # noqa: BLE001  told to the parent
            said = f"{type(fault).__name__}: {fault}"
        finally:
            os.write(writing, said.encode())
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as told:
        os.waitpid(child, 0)
        return told.read()

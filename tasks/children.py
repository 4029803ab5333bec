"""Processes that are ours: started apart from the terminal, logged, and ended with all they made.

| step | what happens |
|---|---|
| start | own session (the terminal's Ctrl-C reaches only the parent), umask 077, output appended to one log |
| parent dies | on Linux the kernel sends the first stop signal (PR_SET_PDEATHSIG; survives `unshare`) |
| end | the stop signals in turn, each with its grace; then SIGKILL to all of its session and below it |

A process is ended only by an id that was ours: psutil compares the time of its start, so that a number given
to a stranger meanwhile is left alone. PDEATHSIG is bound to the thread that starts the child: start from the
main thread.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from models.errors import Misconfigured

Stop = tuple[tuple[int, float], ...]
Pause = Callable[[float], None]
LOG_BYTES = 10 * 1024 * 1024
_STEP = 0.02
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Command:
    """What to run, and how to end it: `stop` is (signal, seconds of grace) in turn; SIGKILL always follows.

    `environ` is laid over ours; `user` is (uid, gid) to run as; `stdin` an open descriptor, else nothing.
    `outlives_us` is for the guardian alone: the kernel does not end it with its parent.
    """

    name: str
    argv: tuple[str, ...]
    environ: Mapping[str, str] | None = None
    cwd: Path | None = None
    stop: Stop = ((signal.SIGTERM, 2.0),)
    user: tuple[int, int] | None = None
    stdin: int | None = None
    outlives_us: bool = False


class Child:
    """One running command. Raises Misconfigured, in one line, when it cannot be started at all."""

    def __init__(self, command: Command, log_folder: Path) -> None:
        self.command = command
        self.log = log_folder / f"{command.name}.log"
        try:
            bound_log(self.log)
            out = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
            try:
                self._logged_before = os.fstat(out).st_size
                self._process = self._start(out)
            finally:
                os.close(out)
        except (OSError, subprocess.SubprocessError) as fault:
            raise Misconfigured(f"{command.name} cannot be started: {fault}") from None
        self.process = psutil.Process(self._process.pid)

    def _start(self, out: int) -> subprocess.Popen[bytes]:
        command = self.command
        uid, gid = command.user or (None, None)
        return subprocess.Popen(
            command.argv,
            stdin=subprocess.DEVNULL if command.stdin is None else command.stdin,
            stdout=out,
            stderr=out,
            cwd=command.cwd,
            env={**os.environ, **(command.environ or {})},
            start_new_session=True,
            umask=0o077,
            user=uid,
            group=gid,
            extra_groups=None if uid is None else [],
            preexec_fn=None if command.outlives_us else _dies_with(os.getpid(), command.stop[0][0]),
        )

    def ended(self) -> int | None:
        """None while it runs, else its exit code (negative: the signal that ended it). Reaps it."""
        return self._process.poll()

    def end(self) -> None:
        """End it and everything below it; returns when nothing is left, at most its graces and 1 s later."""
        end(self.process, self.command.stop, lambda: self.ended() is not None)

    def last_words(self) -> str:
        """The line of its log, since this start, that says best why it ended; at most 300 characters."""
        try:
            with self.log.open("rb") as file:
                file.seek(max(self._logged_before, file.seek(0, os.SEEK_END) - 64 * 1024))
                lines = [line.strip() for line in file.read().decode("utf-8", "replace").splitlines()]
        except OSError as fault:
            return f"its log cannot be read: {fault.strerror}"
        telling = [line for line in lines if any(word in line for word in _TELLING)]
        return next(reversed(telling or [line for line in lines if line]), "it said nothing")[:300]


_TELLING = ("FATAL", "PANIC", "error:", "Error", "No space left", "Permission denied", "Fatal")


def end(process: psutil.Process, stop: Stop, gone: Callable[[], bool]) -> None:
    """Send each stop signal until `gone()`; then SIGKILL it, its session and its descendants."""
    below = _below(process)
    for number, grace in stop:
        if gone():
            break
        with suppress(psutil.Error):
            process.send_signal(number)
        _await(gone, grace)
    left = {*below, *_below(process)}
    for one in (process, *left):
        with suppress(psutil.Error):
            one.kill()
    _await(lambda: gone() and all(vanished(one) for one in left), 1.0)


def vanished(process: psutil.Process) -> bool:
    """True when it has ended, whether or not its parent has asked for its exit code."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.Error:
        return True


def bound_log(path: Path, most: int = LOG_BYTES) -> None:
    """Keep a log under `most` bytes: its end moves to NAME.1 and it starts again, its writer undisturbed."""
    with suppress(FileNotFoundError):
        if path.stat().st_size <= most:
            return
        # The writer appends by descriptor, so the file itself stays and is cut (a rename would follow it).
        with path.open("r+b") as file:
            file.seek(-most, os.SEEK_END)
            older = path.with_name(f"{path.name}.1")
            with suppress(OSError), open(older, "wb", opener=owner_only) as kept:
                kept.write(file.read())
            file.truncate(0)


def owner_only(path: str, flags: int) -> int:
    """An opener for `open`: mode 0600, and no link is followed."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


def _below(process: psutil.Process) -> Iterable[psutil.Process]:
    """Descendants, and whoever shares the session: what outlived its parent still does."""
    found: set[psutil.Process] = set()
    alive = False
    with suppress(psutil.Error):
        alive = process.is_running()
        found.update(process.children(recursive=True))
    if not alive and psutil.pid_exists(process.pid):
        return found  # the number belongs to a stranger by now, and so does its session
    for pid in psutil.pids():
        with suppress(OSError, psutil.Error):
            if pid != process.pid and os.getsid(pid) == process.pid:
                found.add(psutil.Process(pid))
    return found


def _await(condition: Callable[[], bool], seconds: float) -> None:
    until = time.monotonic() + seconds
    while not condition() and time.monotonic() < until:
        time.sleep(_STEP)


def _dies_with(parent: int, number: int) -> Callable[[], None] | None:
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl

    def ask_kernel() -> None:
        prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
        if os.getppid() != parent:  # it died before we could ask
            os._exit(1)

    return ask_kernel

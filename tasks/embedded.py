"""The engines of one machine, and the ways to have them running.

| who | asks for |
|---|---|
| the product (`tasks/processes.py`) | `engines` and `start_engines`, and watches each itself |
| a command of the CLI | `reach_engines`: the product's, another command's, or its own meanwhile |
| a test | `running_engines` in a folder of its own |

DATABASE_URL or REDIS_URL set means that engine is somebody else's, and none of this touches it.
"""

from __future__ import annotations

import fcntl
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn, Protocol

from models.errors import Misconfigured
from models.settings import Settings, socket_folder
from tasks.children import Child, Command, Pause
from tasks.folder import Busy, hold, private_folder, riders
from tasks.postgres import Postgres
from tasks.valkey import Valkey

READY_SECONDS = 120.0  # recovery after a kill reads the write-ahead log again
_TRIES = 3


class Engine(Protocol):
    """What both engines are; `prepare` may take seconds and calls `pause` while it waits."""

    name: str
    title: str

    def prepare(self, pause: Pause) -> None: ...
    def command(self) -> Command: ...
    def ready(self) -> bool: ...


Spawn = Callable[[Engine], Child]


def engines(settings: Settings, parameters: Mapping[str, str] | None = None) -> list[Engine]:
    """The embedded engines of these settings, in the order of their start; `parameters` are PostgreSQL's."""
    chosen: list[Engine] = []
    if settings.embedded_database:
        chosen.append(Postgres(settings, parameters))
    if settings.embedded_redis:
        chosen.append(Valkey(settings))
    return chosen


def log_folder(data_dir: Path) -> Path:
    """The folder of all logs, made when there is none."""
    folder = data_dir / "log"
    private_folder(folder)
    return folder


def start_engines(chosen: Sequence[Engine], spawn: Spawn, pause: Pause) -> None:
    """Start all with `spawn` (prepares, starts, and keeps the child to end it); wait until each answers.

    Raises Misconfigured with an engine's last words when it ends three times, or does not answer in 120 s.
    """
    children = {engine.name: spawn(engine) for engine in chosen}
    until = time.monotonic() + READY_SECONDS
    for engine in chosen:
        tries = 1
        while not engine.ready():
            child = children[engine.name]
            if child.ended() is not None:
                # A first try may meet the last breath of processes that were killed outright.
                if tries == _TRIES:
                    raise Misconfigured(f"{engine.title} did not start: {child.last_words()}")
                tries += 1
                pause(0.5)
                children[engine.name] = spawn(engine)
            elif time.monotonic() > until:
                raise Misconfigured(f"{engine.title} does not answer; see {child.log}")
            pause(0.02)


@contextmanager
def running_engines(settings: Settings, parameters: Mapping[str, str] | None = None) -> Iterator[None]:
    """Hold the data folder and run the engines. Raises Busy when it is in use, else Misconfigured."""
    with hold(settings.data_dir, "command"), _running(settings, engines(settings, parameters)):
        yield


@contextmanager
def reach_engines(settings: Settings) -> Iterator[None]:
    """Have the engines answering for the duration of a command, whoever runs them.

    A product or another command that runs on the data folder already lends its own; else they run for us, and
    stop at the end, but not before the commands that they were lent to have ended. Raises Misconfigured.
    """
    chosen = engines(settings)
    if not chosen:
        yield
        return
    with riders(settings.data_dir) as gate, ExitStack() as stack:
        if _ours_to_run(stack, settings.data_dir, gate, chosen):
            stack.enter_context(_signals_unwind())
            stack.enter_context(_running(settings, chosen))
            # Closed after the data folder is free again: a late rider finds it free, not engines that stop.
            stack.callback(fcntl.flock, gate, fcntl.LOCK_EX)
        yield


def _ours_to_run(stack: ExitStack, data_dir: Path, gate: int, chosen: Sequence[Engine]) -> bool:
    """True when we hold the data folder now (on `stack`), False when its holder's engines answer."""
    until = time.monotonic() + READY_SECONDS
    while True:
        with suppress(Busy):
            stack.enter_context(hold(data_dir, "command"))
            fcntl.flock(gate, fcntl.LOCK_UN)
            return True
        fcntl.flock(gate, fcntl.LOCK_SH)  # blocks while a command stops its engines
        if all(engine.ready() for engine in chosen):
            return False
        if time.monotonic() > until:
            raise Misconfigured(f"the engines running on {data_dir} do not answer")
        time.sleep(0.05)


@contextmanager
def _running(settings: Settings, chosen: Sequence[Engine]) -> Iterator[None]:
    logs = log_folder(settings.data_dir)
    children: list[Child] = []

    def spawn(engine: Engine) -> Child:
        engine.prepare(time.sleep)
        children.append(Child(engine.command(), logs))
        return children[-1]

    try:
        start_engines(chosen, spawn, time.sleep)
        yield
    finally:
        for child in reversed(children):
            child.end()
        remove_sockets(settings.data_dir)


def remove_sockets(data_dir: Path) -> None:
    """After the engines: leave no empty folder of sockets outside the data folder."""
    sockets = socket_folder(data_dir)
    if sockets.parent != data_dir:
        with suppress(OSError):
            sockets.rmdir()


@contextmanager
def _signals_unwind() -> Iterator[None]:
    """SIGTERM and SIGHUP leave through every `finally`, as Ctrl-C does, so that the engines are stopped."""

    def leave(number: int, _frame: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    changed = []
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, leave)
                changed.append(number)
    try:
        yield
    finally:
        for number in changed:
            signal.signal(number, signal.SIG_DFL)

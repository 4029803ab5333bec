"""Keeps a list of processes running, and ends them in the opposite order.

A signal only leaves a note; the main thread looks at it wherever it waits (`pause`) and raises Stopped there,
so that no step is cut in the middle and no process is started without being on the list. The guardian is
first on it, so it ends last.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread
from types import FrameType
from typing import Any, TypeVar

import orjson

from models.errors import Misconfigured
from models.settings import Settings
from tasks.children import Child, Command, bound_log, owner_only
from tasks.embedded import Engine, log_folder, remove_sockets, start_engines
from tasks.folder import Busy, hold
from tasks.guardian import ward
from tasks.listening import check_port_free

ROOT = Path(__file__).resolve().parent.parent
GUARDIAN = Command("guardian", (sys.executable, "-m", "tasks.guardian"), cwd=ROOT, outlives_us=True)
DEATHS, WITHIN_SECONDS = 5, 60.0
FIRST_BACK_OFF, LONGEST_BACK_OFF = 0.2, 5.0
READY_SECONDS = 60.0
COMMAND_SECONDS = 10.0
LOG = "supervisor.log"
WRONG = ("died", "not_ended")
_STEP = 0.1
_LOGS_EVERY = 5.0
T = TypeVar("T")


class Stopped(BaseException):
    """A signal asked for the end; raised where the main thread waits, never inside a step."""


@dataclass
class Watched:
    """A process that must run: how to make it anew, and what became of it. Times are monotonic seconds."""

    name: str
    make: Callable[[], Command]
    child: Child | None = None
    again_at: float | None = None
    deaths: deque[float] = field(default_factory=lambda: deque(maxlen=DEATHS))


class Supervisor:
    """Of one data folder. `asked` is the signal that asked for the end, None until then."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.watched: list[Watched] = []
        self.asked: int | None = None  # the signal that asked for the end
        self._logs = settings.data_dir / "log"
        self._guardian_pipe: int | None = None
        self._logs_at = 0.0

    def event(self, event: str, **details: Any) -> None:
        """One line of JSON in `log/supervisor.log`; also on standard error when something is wrong.

        So a start that goes well prints its one line, and a failed one its reason.
        """
        now = datetime.now(UTC).isoformat()
        made = {"event": event, **details, "supervisor": os.getpid(), "timestamp": now}
        line = orjson.dumps(made).decode() + "\n"
        # A full disk or a closed terminal is no reason to stop half-way.
        with (
            suppress(OSError, ValueError),
            open(self._logs / LOG, "a", encoding="utf-8", opener=owner_only) as file,
        ):
            file.write(line)
        with suppress(OSError, ValueError):
            if event in WRONG:
                sys.stderr.write(line)
                sys.stderr.flush()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Signals only leave a note: each wait looks at it, so that no step is cut in the middle."""

        def note(number: int, _frame: FrameType | None) -> None:
            self.asked = self.asked or number

        numbers = [signal.SIGINT, signal.SIGTERM]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # started with nohup: it stays
            numbers.append(signal.SIGHUP)
        before = {number: signal.signal(number, note) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Hold the data folder; a command that has it is given ten seconds to end, a product none."""
        until = time.monotonic() + COMMAND_SECONDS
        with ExitStack() as stack:
            held = False
            while not held:
                try:
                    stack.enter_context(hold(self.settings.data_dir, "product"))
                    held = True
                except Busy as busy:
                    if busy.use != "command" or time.monotonic() > until:
                        raise
                    self.pause(_STEP)
            yield

    def pause(self, seconds: float) -> None:
        """Sleep, or raise Stopped within a tenth of a second of a signal."""
        until = time.monotonic() + seconds
        while self.asked is None and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, _STEP))
        if self.asked is not None:
            raise Stopped

    def beside(self, call: Callable[[], T]) -> T:
        """Its result, while this thread stays awake for signals; a stop ends the engines under it."""
        future: Future[T] = Future()
        context = copy_context()

        def run() -> None:
            try:
                future.set_result(context.run(call))
            except BaseException as fault:  # noqa: BLE001  raised again in the main thread
                future.set_exception(fault)

        Thread(target=run, daemon=True).start()
        while not future.done():
            self.pause(0.02)
        return future.result()

    def start(
        self,
        chosen: Sequence[Engine],
        migrate: Callable[[], None],
        commands: Sequence[Command],
        ready: Callable[[], bool],
    ) -> None:
        """Start all in order, until `ready` says so. Raises Misconfigured, or what `migrate` raises."""
        check_port_free(self.settings.host, self.settings.port)
        log_folder(self.settings.data_dir)
        self._keep(Watched(GUARDIAN.name, lambda: GUARDIAN))
        start_engines(chosen, self._spawn_engine, self.pause)
        self.beside(migrate)
        check_port_free(self.settings.host, self.settings.port)  # making a database took a while
        for command in commands:
            self._keep(Watched(command.name, lambda command=command: command))  # type: ignore[misc]
        until = time.monotonic() + READY_SECONDS
        while not ready():
            self._look()
            if time.monotonic() > until:
                raise Misconfigured(f"Allgone was not ready within {READY_SECONDS:.0f} s; see {self._logs}")
            self.pause(_STEP)

    def watch(self) -> None:
        """Look after everything until a signal comes. Raises Misconfigured when one process keeps ending."""
        while True:
            self._look()
            self.pause(_STEP)

    def stop(self) -> None:
        """End everything, the last started first, the guardian last; never raises half-way."""
        self.event("stopping", signal=self.asked and signal.Signals(self.asked).name)
        for one in reversed(self.watched):
            if one.name == GUARDIAN.name and self._guardian_pipe is not None:
                os.close(self._guardian_pipe)
            if one.child is not None:
                try:
                    one.child.end()
                except Exception as fault:  # noqa: BLE001  the others must end all the same
                    self.event("not_ended", name=one.name, fault=type(fault).__name__)
        remove_sockets(self.settings.data_dir)
        self.event("stopped")

    def _look(self) -> None:
        now = time.monotonic()
        for one in self.watched:
            if one.again_at is not None and now >= one.again_at:
                one.again_at = None
                self._spawn(one)
            elif one.again_at is None and one.child is not None and (code := one.child.ended()) is not None:
                self._died(one, one.child, code, now)
        if now >= self._logs_at:
            self._logs_at = now + _LOGS_EVERY
            for name in (LOG, *(f"{one.name}.log" for one in self.watched)):
                with suppress(OSError):  # a full disk is no reason to stop; what needs it will say so
                    bound_log(self._logs / name)

    def _died(self, one: Watched, child: Child, code: int, now: float) -> None:
        child.end()  # what it left behind: its own children must not work beside its successor's
        one.deaths.append(now)
        if len(one.deaths) == DEATHS and now - one.deaths[0] <= WITHIN_SECONDS:
            often = f"{one.name} ended {DEATHS} times within {WITHIN_SECONDS:.0f} s"
            raise Misconfigured(f"{often}, so Allgone was stopped: {child.last_words()} (see {child.log})")
        lately = sum(now - death <= WITHIN_SECONDS for death in one.deaths)
        wait = min(FIRST_BACK_OFF * 2 ** (lately - 1), LONGEST_BACK_OFF)
        self.event("died", name=one.name, pid=child.process.pid, code=code, again_in_s=wait)
        one.again_at = now + wait

    def _spawn_engine(self, engine: Engine) -> Child:
        """The child of `engine`, watched from now on; called again when its first try failed."""

        def make() -> Command:
            engine.prepare(self.pause)
            return engine.command()

        for one in self.watched:
            if one.name == engine.name:
                return self._spawn(one)
        return self._keep(Watched(engine.name, make))

    def _keep(self, one: Watched) -> Child:
        self.watched.append(one)
        return self._spawn(one)

    def _spawn(self, one: Watched) -> Child:
        command = one.make()
        guards = one.name == GUARDIAN.name
        reading = self._new_pipe() if guards else None
        try:
            one.child = Child(replace(command, stdin=reading), self._logs)
        finally:
            if reading is not None:
                os.close(reading)
        self.event("started", name=one.name, pid=one.child.process.pid)
        for told in self.watched if guards else [one]:
            if told.child is not None and told.name != GUARDIAN.name:
                self._tell(told.child)
        return one.child

    def _new_pipe(self) -> int:
        """The end to read of a pipe whose other end only we hold, so that it closes when we die."""
        if self._guardian_pipe is not None:
            os.close(self._guardian_pipe)
        reading, self._guardian_pipe = os.pipe()
        return reading

    def _tell(self, child: Child) -> None:
        if self._guardian_pipe is not None:
            with suppress(BrokenPipeError):  # a new guardian will be told of all
                os.write(self._guardian_pipe, ward(child.process, child.command.stop))

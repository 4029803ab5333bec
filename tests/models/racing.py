"""Doing things at the same moment, and waiting for something that others bring about."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import text

from tasks.resources import Resources


def at_once(acts: Sequence[Callable[[], Any]]) -> list[Any]:
    """Runs all at the same moment; what each returned, or the exception it raised, in their order."""
    barrier = threading.Barrier(len(acts))
    outcomes: list[Any] = [TimeoutError("it did not end")] * len(acts)

    def run(number: int) -> None:
        try:
            barrier.wait(10)
            outcomes[number] = acts[number]()
        except Exception as fault:  # noqa: BLE001  the outcome is for the caller to judge
            outcomes[number] = fault

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(len(acts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return outcomes


def all_well(outcomes: Sequence[Any]) -> None:
    """Raises the first exception among the outcomes."""
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome


def wait_for(condition: Callable[[], bool], seconds: float = 20) -> None:
    """Returns once the condition holds; fails when it does not within `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


def blocked(resources: Resources) -> bool:
    """Whether somebody waits for a lock of the database."""
    with resources.engine.connect() as connection:
        waiting = text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
        return bool(connection.execute(waiting).scalar_one())

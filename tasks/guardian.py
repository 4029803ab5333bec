"""Ends what the product started when the product itself was killed outright.

    python -m tasks.guardian < one JSON line for each process: {"pid", "born", "stop": [[signal, seconds], …]}

It does nothing but read until its standard input ends, which happens when the supervisor has gone, however
that went. Then each process that is still the same one (by the time of its birth) is ended with everything
below it, the last told first. After an orderly stop there is none left, and it goes at once.
"""

from __future__ import annotations

import json
import signal
import sys
from typing import Any

import psutil

from tasks.children import end, vanished


def ward(child: psutil.Process, stop: tuple[tuple[int, float], ...]) -> bytes:
    """The line that puts `child` into the guardian's care."""
    line = {"pid": child.pid, "born": child.create_time(), "stop": [[int(n), grace] for n, grace in stop]}
    return json.dumps(line).encode() + b"\n"


def main() -> None:
    """Wait for the end of standard input, then end the wards."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    wards: list[tuple[psutil.Process, dict[str, Any]]] = []
    for line in sys.stdin:
        told = json.loads(line)
        try:
            wards.append((psutil.Process(told["pid"]), told))
        except psutil.NoSuchProcess:
            continue
        wards = [(process, told) for process, told in wards if not vanished(process)]
    for process, told in reversed(wards):
        if abs(process.create_time() - told["born"]) < 0.01:
            stop = tuple((int(number), float(grace)) for number, grace in told["stop"])
            end(process, stop, lambda one=process: vanished(one))  # type: ignore[misc]


if __name__ == "__main__":
    main()

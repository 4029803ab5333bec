"""`python -m benchmarks [NAME…]`: runs all benchmarks, or those named, and prints a table of their figures.

A run of all writes docs/benchmarks.md (between its markers) as well. Ends with 1 when a bound is missed.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import (
    appending,
    browsing,
    deletion,
    devices,
    draining,
    history,
    importing,
    reconciling,
    report,
    searching,
    serving,
    streaming,
)
from benchmarks.ground import ground
from tasks import logs

ALL = {
    module.NAME: module
    for module in (
        history,
        searching,
        serving,
        browsing,
        streaming,
        appending,
        deletion,
        draining,
        importing,
        reconciling,
        devices,
    )
}


def main() -> int:
    """Runs what the command line names."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(ALL)}; none means all")
    parser.add_argument("--data", type=Path, help="keep the engines' data in this folder, for the next run")
    given = parser.parse_args()
    unknown = set(given.names) - set(ALL)
    if unknown:
        parser.error(f"there is no benchmark {sorted(unknown)[0]}")
    logs.configure(logging.WARNING)
    figures = []
    with (
        tempfile.TemporaryDirectory(prefix="allgone-benchmarks-") as temporary,
        ground(given.data or Path(temporary)) as ready,
    ):
        for name in given.names or ALL:
            began = time.monotonic()
            for figure in ALL[name].run(ready):
                figures.append(figure)
                print(report.line(figure), flush=True)
            print(f"  ({name}: {time.monotonic() - began:.0f} s)", file=sys.stderr)
    if not given.names:
        report.publish(figures)
    return 0 if all(figure.met for figure in figures) else 1


sys.exit(main())

"""The figures as a person reads them: a line each on the terminal, and a table in docs/benchmarks.md."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.figures import Figure

PAGE = Path(__file__).resolve().parent.parent / "docs" / "benchmarks.md"
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"


def line(figure: Figure) -> str:
    """One line of the terminal."""
    what, value, target, verdict, note = figure.row()
    return f"{figure.benchmark:10} {what:58} {value:>9}  {target:16} {verdict.strip('*'):7} {note}".rstrip()


def publish(figures: Sequence[Figure]) -> None:
    """Writes the table between the markers of the page."""
    text = PAGE.read_text("utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n{_table(figures)}\n{END}{after}", "utf-8")


def _table(figures: Sequence[Figure]) -> str:
    machine = f"{os.cpu_count()} shared cores, {platform.machine()}, Python {platform.python_version()}"
    rows = [
        f"Taken on {datetime.now(UTC):%Y-%m-%d} on {machine}; its load (5 minutes) was {os.getloadavg()[1]:.1f}.",
        "",
        "| benchmark | what | figure | target | met | made of |",
        "|---|---|---|---|---|---|",
    ]
    rows += [f"| {figure.benchmark} | {' | '.join(figure.row())} |" for figure in figures]
    return "\n".join(rows)

"""A figure and the bound that it is held against. PURE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number. `note` says what it was made of, in absolute terms; `bound` None is for information."""

    benchmark: str
    what: str
    value: float
    sense: Literal["at most", "at least"] = "at most"
    bound: float | None = None
    note: str = ""

    @property
    def met(self) -> bool:
        """Whether the bound holds, at the two decimals that are shown."""
        if self.bound is None:
            return True
        shown = round(self.value, 2)
        return shown <= self.bound if self.sense == "at most" else shown >= self.bound

    def row(self) -> tuple[str, str, str, str, str]:
        """What, value, target, met, note: the cells of a table."""
        target = "" if self.bound is None else f"{self.sense} {_number(self.bound)}"
        verdict = "" if self.bound is None else ("yes" if self.met else "**missed**")
        return self.what, _number(self.value), target, verdict, self.note


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) or abs(value) >= 100 else f"{value:.2f}"

"""Rounds that take turns: A, B, A, B, … and the medians of what each took."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping

Work = Callable[[], object]


def taking_turns(works: Mapping[str, Work], rounds: int, warm: int = 1) -> dict[str, float]:
    """The median seconds of each work over `rounds` rounds, after `warm` rounds that are not counted.

    Every other round runs in the opposite order, so that what a work leaves behind in a cache or a queue weighs
    on none of them alone.
    """
    took: dict[str, list[float]] = {name: [] for name in works}
    for number in range(-warm, rounds):
        names = list(works)[:: 1 if number % 2 else -1]
        for name in names:
            began = time.perf_counter()
            works[name]()
            if number >= 0:
                took[name].append(time.perf_counter() - began)
    return {name: statistics.median(times) for name, times in took.items()}

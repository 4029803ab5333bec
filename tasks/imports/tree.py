"""Which branch of a tree of messages is the active one, from parent links alone.

Exports omit child links, name a current node that is not there, hold several roots, and once in a while a cycle.
So: walk up by parents, never recursing, and cut a cycle where it closes. Where the named leaf is missing, or has
nothing usable above it, the branch with the newest usable message is taken, then the longest, then the last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from tasks.imports.moments import EPOCH

Rank = tuple[datetime, int, int]
"""Of the path to a node: its newest usable message, the usable ones, all of them."""


def active_branch(
    parents: Mapping[str, str | None],
    current: object,
    usable: Callable[[str], bool],
    moment_of: Callable[[str], datetime | None],
) -> list[str]:
    """The nodes from a root to the active leaf. Cost: linear in the nodes."""
    if isinstance(current, str) and current in parents:
        path = _path(parents, current)
        if any(usable(node) for node in path):
            return path
    ranks = _ranks(parents, usable, moment_of)
    best = max(enumerate(ranks), key=lambda each: (ranks[each[1]], each[0]), default=None)
    return _path(parents, best[1]) if best else []


def _path(parents: Mapping[str, str | None], leaf: str) -> list[str]:
    path: dict[str, None] = {}
    node: str | None = leaf
    while node is not None and node in parents and node not in path:
        path[node] = None
        node = parents[node]
    return list(reversed(path))


def _ranks(
    parents: Mapping[str, str | None],
    usable: Callable[[str], bool],
    moment_of: Callable[[str], datetime | None],
) -> dict[str, Rank]:
    ranks: dict[str, Rank] = {}
    for start in parents:
        walk: dict[str, None] = {}
        node: str | None = start
        while node is not None and node in parents and node not in ranks and node not in walk:
            walk[node] = None
            node = parents[node]
        newest, used, depth = ranks.get(node or "", (EPOCH, 0, 0))
        for step in reversed(walk):
            depth += 1
            if usable(step):
                used += 1
                newest = max(newest, moment_of(step) or EPOCH)
            ranks[step] = (newest, used, depth)
    # Reported in the order of the export, so that "the last" means the same at every run.
    return {node: ranks[node] for node in parents}

"""PURE: names of files that Windows, macOS and Linux take, whatever a title or an attachment is called.

Source of what Windows refuses: Microsoft, "Naming Files, Paths, and Namespaces".
"""

from __future__ import annotations

import unicodedata

LONGEST = 80  # characters of a name, its ending aside; well under 255 bytes of UTF-8 on any file system
_REFUSED = set('<>:"/\\|?*')
_DEVICES = {"con", "prn", "aux", "nul", *(f"{kind}{n}" for kind in ("com", "lpt") for n in "0123456789¹²³")}


def safe(name: str, fallback: str, ending: str = "") -> str:
    """`name` without whatever a file's name may not hold: no folder, no control or bidi character, no device.

    Gives `fallback` where nothing is left. `ending` is added, and counts as the extension.
    """
    text = unicodedata.normalize("NFC", name)
    kept = ("_" if c in _REFUSED else " " if c.isspace() else c for c in text if not _unseen(c))
    clean = " ".join("".join(kept).split())
    if not ending and "." in clean[1:]:
        stem, _, tail = clean.rpartition(".")
        if tail.isalnum() and len(tail) <= 16:
            clean, ending = stem, f".{tail}"
    clean = _cut(clean).strip(" .")
    if not clean.strip("_ "):
        clean = fallback
    if clean.partition(".")[0].rstrip().casefold() in _DEVICES:
        clean = f"_{clean}"
    return (clean + ending).rstrip(" .") or fallback


class Unique:
    """Gives each name once, however systems fold their case: the second of a name gets " (2)"."""

    def __init__(self) -> None:
        self._given: set[int] = set()
        self._next: dict[int, int] = {}

    def name(self, stem: str, ending: str = "") -> str:
        """`stem` + `ending`, with a number between where that was given before."""
        first = hash(_folded(stem + ending))
        number, wanted = self._next.get(first, 1), stem + ending
        if first in self._given:
            number += 1
            wanted = f"{stem} ({number}){ending}"
            while hash(_folded(wanted)) in self._given:
                number += 1
                wanted = f"{stem} ({number}){ending}"
            self._next[first] = number
        self._given.add(hash(_folded(wanted)))
        return wanted


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold()


def _unseen(character: str) -> bool:
    # White space is kept for a moment and becomes a blank. Cf holds the bidi controls, Cs lone surrogates.
    return unicodedata.category(character) in {"Cc", "Cf", "Cs", "Co"} and not character.isspace()


def _cut(name: str) -> str:
    cut = name[:LONGEST]
    while len(cut.encode("utf-8", "replace")) > 200:
        cut = cut[:-1]
    return cut

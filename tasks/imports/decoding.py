"""Bytes of one conversation to JSON values whose strings can be stored.

NUL and lone surrogates become U+FFFD in every string, keys and names included, and bytes that are no UTF-8 do too;
each is counted. Raw control characters within strings, which strict JSON forbids, are let through.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from tasks.imports.bounds import MAX_NESTING

REPLACEMENT = "\ufffd"
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
# Whether a text needs the walk at all: a raw NUL, or an escape that can decode to NUL or to half a pair.
_SUSPECT = re.compile(r"\x00|\\u0000|\\u[dD][89a-fA-F]")


@dataclass(frozen=True, slots=True)
class Decoded:
    """A JSON value, and how many characters of it were replaced."""

    value: Any
    replaced: int


class Undecodable(Exception):
    """Not JSON, or nested beyond what is taken; the sentence holds none of the text."""


def decode(raw: bytes) -> Decoded:
    """One JSON document of UTF-8 bytes, whose nesting the caller has bounded. Raises `Undecodable`."""
    # Python decodes a three-byte surrogate as three bad bytes, so nothing but escapes can bring one in.
    written = raw.decode("utf-8", "replace")
    replaced = written.count(REPLACEMENT) - raw.count(b"\xef\xbf\xbd")
    inner = decode_text(written)
    return Decoded(inner.value, inner.replaced + replaced)


def decode_text(written: str) -> Decoded:
    """One JSON document. Raises `Undecodable`."""
    try:
        value = json.loads(written, strict=False)
    except json.JSONDecodeError as error:
        raise Undecodable(f"it is not valid JSON: {error.msg} at character {error.pos}") from None
    except RecursionError:
        raise Undecodable(f"it is nested deeper than {MAX_NESTING} levels") from None
    except ValueError:  # an integer of more digits than Python converts
        raise Undecodable("it holds a number that is too long") from None
    if not _SUSPECT.search(written):
        return Decoded(value, 0)
    counter = _Cleaner()
    return Decoded(counter.clean(value), counter.replaced)


def decode_inner(written: str) -> Decoded | None:
    """A JSON object or array that an export wrapped into a string; None when the text is not one."""
    if not written.lstrip().startswith(("{", "[")) or written.count("{") + written.count("[") > MAX_NESTING:
        return None
    try:
        return decode_text(written)
    except Undecodable:
        return None


class _Cleaner:
    """Replaces what cannot be stored, and counts."""

    def __init__(self) -> None:
        self.replaced = 0

    def clean(self, value: Any) -> Any:
        if isinstance(value, str):
            cleaned, times = _UNSTORABLE.subn(REPLACEMENT, value)
            self.replaced += times
            return cleaned
        if isinstance(value, dict):
            return {self.clean(key): self.clean(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.clean(item) for item in value]
        return value

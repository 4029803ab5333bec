"""Looks into JSON that a stranger wrote: each function gives what was asked for or its empty value, never an error.

A wrong type is a missing value. `plain` makes any decoded JSON storable: integers beyond 64 bits become their
digits, NaN and the infinities become null.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from typing import Any

from tasks.imports.bounds import MAX_ID, MAX_NAME


def record(value: object) -> dict[str, Any]:
    """The value, when it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def listing(value: object) -> list[Any]:
    """The value, when it is an array, else an empty one."""
    return value if isinstance(value, list) else []


def records(value: object) -> list[dict[str, Any]]:
    """The objects among an array's items."""
    return [item for item in listing(value) if isinstance(item, dict)]


def text(value: object) -> str:
    """The value, when it is a string, else the empty one."""
    return value if isinstance(value, str) else ""


def first_text(*values: object) -> str:
    """The first value that is a string with more than white space in it, else the empty string."""
    return next((value for value in values if isinstance(value, str) and value.strip()), "")


def count(value: object) -> int | None:
    """A size in bytes, when it can be one."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 63:
        return None
    return value


def identity(*values: object) -> str | None:
    """The first value that can name something, as at most `MAX_ID` characters; a longer one as its digest."""
    for value in values:
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63:
            return str(value)
        if isinstance(value, str) and value.strip():
            return value if len(value) <= MAX_ID else f"sha256:{digest([value])}"
    return None


def digest(parts: Iterable[str]) -> str:
    """SHA-256, in hex, over strings that cannot be shifted from one into the next."""
    whole = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "replace")
        whole.update(b"%d:" % len(data))
        whole.update(data)
    return whole.hexdigest()


def base_name(*values: object) -> str:
    """The first value's last path component, as a file name: no folders, at most `MAX_NAME` characters.

    A `../`, an absolute or a Windows path keeps only what follows its last separator; where nothing is left,
    the next value is asked, and at last it is `file`.
    """
    for value in values:
        name = text(value).replace("\\", "/").rstrip("/").rpartition("/")[2].strip()
        if name and name not in (".", ".."):
            return cut(name)
    return "file"


def cut(name: str) -> str:
    """At most `MAX_NAME` characters of a file name, with its extension."""
    if len(name) <= MAX_NAME:
        return name
    stem, dot, extension = name.rpartition(".")
    tail = dot + extension if stem and len(extension) <= 16 else ""
    return name[: MAX_NAME - len(tail)] + tail


def plain(value: Any) -> Any:
    """A copy that PostgreSQL's jsonb and orjson take."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, int) and not isinstance(value, bool) and not -(1 << 63) <= value < 1 << 63:
        # 4,300 digits is where Python itself refuses, and decoding has refused them before.
        return str(value)
    return value

"""Reading a JSON body: bounded, whole, and only what JSON means one thing by.

Refused with a sentence: a body cut off, another Content-Type, bytes that are not UTF-8, a name given twice in one
object, NaN, the infinities and what rounds to one, nesting beyond reason, and characters that cannot be stored
(NUL, lone surrogates), named by place.
"""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from flask import g, request
from gunicorn.http.errors import ParseException
from werkzeug.exceptions import ClientDisconnected, RequestEntityTooLarge, UnsupportedMediaType

from models.errors import Invalid
from models.storable import refuse_unstorable

# What reading a body raises when it ends too early, or when its chunks are none (the web server's own words).
CUT_OFF = (ClientDisconnected, OSError, ParseException)


class _Infinite(ValueError):
    """A number that would be stored as something else."""


class _Twice(ValueError):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def json_body(limit: int | None) -> Any:
    """The request's body as JSON; `{}` when there is none. Raises Invalid, or Werkzeug's 413 and 415.

    `limit` is in bytes; the request's own bound must lie above it.
    """
    refuse_encoded()
    try:
        raw = request.get_data(cache=False)
    except CUT_OFF:
        raise cut_off() from None
    if limit is not None and len(raw) > limit:
        raise RequestEntityTooLarge
    check_whole(len(raw))
    if not raw:
        return {}
    if request.mimetype != "application/json":
        raise UnsupportedMediaType
    try:
        value = json.loads(
            raw.decode("utf-8"), object_pairs_hook=_object, parse_constant=_constant, parse_float=_number
        )
    except UnicodeDecodeError:
        raise Invalid("body", "The body is not UTF-8.") from None
    except RecursionError:
        raise Invalid("body", "The body is nested too deeply.") from None
    except _Infinite as fault:
        raise Invalid("body", f"The number {str(fault)[:40]} is beyond what a number can hold.") from None
    except _Twice as fault:
        raise Invalid("body", f"The name {fault.name[:100]!r} is given twice in one object.") from None
    except ValueError:
        raise Invalid("body", "The body is not JSON.") from None
    if b"\\u" in raw or b"\\U" in raw or b"\0" in raw:
        refuse_unstorable("", value)
    return value


def refuse_encoded() -> None:
    """Raises Werkzeug's 415 for a compressed body, which would be taken for what it is not."""
    if request.headers.get("Content-Encoding", "identity").strip().lower() not in ("", "identity"):
        raise UnsupportedMediaType


def check_whole(read: int) -> None:
    """Raises Invalid when fewer bytes came than were announced, which gunicorn passes over in silence."""
    announced = request.content_length
    if announced is not None and read < announced:
        raise cut_off()
    g.body_read = True


def cut_off() -> Invalid:
    """What a caller is told whose body broke off."""
    return Invalid("body", "The body ended before it was whole, or was framed wrongly. Nothing was stored.")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        raise _Twice(next(name for name, _ in pairs if name in seen or seen.add(name)))  # type: ignore[func-returns-value]
    return made


def _number(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise _Infinite(text)
    return value


def _constant(name: str) -> NoReturn:
    raise ValueError(name)

"""What every command of a device shares: the home it means, refusals as one line, JSON or words for what is printed."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import click
from sqlalchemy.exc import DBAPIError

from models.errors import Refusal
from models.memorystore.store import Held
from relay.device.home import Device, open_device

P = ParamSpec("P")
R = TypeVar("R")
TEXT_BYTES = 1_000_000  # of a text from standard input


@dataclass(frozen=True, slots=True)
class Asked:
    """What was said before the command: which home, and whether a program reads the answer."""

    home: Path
    as_json: bool


def asked() -> Asked:
    """Of the command that runs."""
    found: Asked = click.get_current_context().obj
    return found


@contextmanager
def opened() -> Iterator[Device]:
    """The device that the command means."""
    with open_device(asked().home) as device:
        yield device


def refusing(view: Callable[P, R]) -> Callable[P, R]:
    """Turns what can be foreseen to go wrong into one line on standard error and exit code 1."""

    @wraps(view)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return view(*args, **kwargs)
        except Refusal as refusal:
            raise click.ClickException(refusal.detail) from None
        except DBAPIError as fault:
            raise click.ClickException(f"{_reason(fault)} Nothing of this was done.") from None
        except OSError as fault:
            raise click.ClickException(f"{fault.filename or asked().home}: {fault.strerror}.") from None

    return guarded


def _reason(fault: DBAPIError) -> str:
    said = str(fault.orig)
    if "locked" in said:
        return "Another process is busy with this home; try again in a moment."
    if "full" in said:
        return "The disk is full."
    if "not a database" in said or "malformed" in said:
        return "The memories' file is damaged; bring it back from a backup."
    return f"The memories' file cannot be used ({said})."


def say(document: Any, *lines: str) -> None:
    """Prints the document as JSON, or the lines for a person."""
    if asked().as_json:
        click.echo(json.dumps(document, ensure_ascii=True))
    else:
        for line in lines:
            click.echo(line)


def text_of(given: str) -> str:
    """A text of the command line, or of standard input for "-"."""
    if given != "-":
        try:
            given.encode()
        except UnicodeEncodeError:
            raise click.UsageError("This text is not UTF-8.") from None
        return given
    data = sys.stdin.buffer.read(TEXT_BYTES + 1)
    if len(data) > TEXT_BYTES:
        raise click.ClickException("This text is too long; a memory's text has at most 100,000 characters.")
    try:
        return data.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise click.ClickException("Standard input is not UTF-8 text.") from None


def key_of(given: str) -> bytes:
    """A key of the command line: 64 hex digits. Raises a usage error."""
    try:
        key = bytes.fromhex(given)
    except ValueError:
        key = b""
    if len(key) != 32:
        raise click.UsageError(f"{given[:70]!r} is no key: a key has 64 hex digits, as `memories` shows it.")
    return key


def time_text(at: datetime) -> str:
    """RFC 3339 in UTC, with microseconds."""
    return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def told(one: Held) -> dict[str, str]:
    """A memory as JSON shows it (PRODUCT.md 4.5)."""
    return {
        "key": one.key.hex(),
        "text": one.text,
        "workspace": one.place.workspace,
        "dataset": one.place.dataset,
        "logical_id": one.copy.logical_id.hex(),
        "source": one.copy.source,
        "recorded_at": time_text(one.copy.recorded_at),
        "recorded_device": one.copy.device.hex(),
    }


def line(one: Held) -> str:
    """A memory in one line, for a person."""
    words = " ".join(one.text.split())
    return f"{one.key.hex()}  {one.place.workspace}  {words[:100]}{'…' if len(words) > 100 else ''}"

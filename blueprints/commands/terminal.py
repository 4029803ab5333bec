"""What every command shares: engines that answer, one line for a refusal, JSON or words for what is printed."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import click
import orjson
from flask import current_app
from flask.cli import with_appcontext
from redis.exceptions import RedisError
from sqlalchemy.exc import OperationalError, ProgrammingError

from models.errors import Misconfigured, Refusal
from models.migrations import at_head
from tasks.embedded import reach_engines
from tasks.logs import configure as configure_logs
from tasks.resources import Resources

P = ParamSpec("P")
R = TypeVar("R")

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


def held() -> Resources:
    """The resources of the app that the command runs in."""
    found: Resources = current_app.extensions["allgone"]
    return found


def command(view: Callable[P, R]) -> Callable[P, R]:
    """A command that needs the database at this release's schema; refusals become one line and exit 1."""
    return with_appcontext(_quiet(refusing(_on_engines(view))))


def _quiet(view: Callable[P, R]) -> Callable[P, R]:
    @wraps(view)
    def without_events(*args: P.args, **kwargs: P.kwargs) -> R:
        # Who typed the command reads its answer; the events of a server are for its log.
        configure_logs(logging.WARNING)
        return view(*args, **kwargs)

    return without_events


def refusing(view: Callable[P, R]) -> Callable[P, R]:
    """Turns what can be foreseen to go wrong into one line on standard error and exit code 1."""

    @wraps(view)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return view(*args, **kwargs)
        except Refusal as refusal:
            raise click.ClickException(refusal.detail) from None
        except Misconfigured as fault:
            raise click.ClickException(str(fault)) from None
        except OperationalError as fault:
            reason = str(fault.orig).strip().splitlines()[0] if fault.orig else "no answer"
            raise click.ClickException(f"PostgreSQL does not answer: {reason}") from None
        except RedisError as fault:
            raise click.ClickException(f"Redis does not answer: {type(fault).__name__}") from None

    return guarded


def say(as_json: bool, document: Any, *lines: str) -> None:
    """Prints the document as JSON, or the lines for a person."""
    if as_json:
        click.echo(orjson.dumps(document, option=orjson.OPT_UTC_Z))
    else:
        for line in lines:
            click.echo(line)


def _on_engines(view: Callable[P, R]) -> Callable[P, R]:
    @wraps(view)
    def with_engines(*args: P.args, **kwargs: P.kwargs) -> R:
        with reach_engines(held().settings):
            try:
                migrated = at_head(held().engine)
            except ProgrammingError:
                migrated = False
            if not migrated:
                raise click.ClickException(
                    f"Nothing of this release was started on {held().settings.data_dir} yet, or its database is of "
                    "another one. Run: make run, or flask --app app db upgrade; ALLGONE_DATA_DIR and PORT say which "
                    "installation a command means."
                )
            try:
                return view(*args, **kwargs)
            finally:
                held().engine.dispose()
                held().reader.dispose()

    return with_engines

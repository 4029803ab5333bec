"""An unchanged poll is answered on the doorstep, before Flask begins.

Every open page asks every 30 seconds, and nearly always nothing has changed; what Flask does for any request costs
more than the one look-up that this needs. So a poll that is unchanged beyond doubt gets its 204 here. Whatever else
it is (changed, signed out, odd, a fault of the database) goes on to `sidebar.poll`, which decides it by the same
probe: nothing is refused here, and no rule lives here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs

from flask import Flask
from sqlalchemy.exc import SQLAlchemyError
from werkzeug.http import parse_cookie

from blueprints import access, days
from models import listing
from tasks.resources import Resources

POLL = "/history/poll"
HEADERS = [("Cache-Control", "no-store"), ("Vary", "HX-Request, Cookie")]

Environ = Mapping[str, Any]
Start = Callable[[str, list[tuple[str, str]]], Any]


class Doorstep:
    """WSGI middleware around the app."""

    def __init__(self, app: Flask) -> None:
        self._app = app
        self._inside = app.wsgi_app
        self._sign_in_of = access.cookie_reader(app)

    def __call__(self, environ: Environ, start: Start) -> Iterable[bytes]:
        if (
            environ.get("PATH_INFO") == POLL
            and environ["REQUEST_METHOD"] == "GET"
            and self._unchanged(environ)
        ):
            start("204 No Content", HEADERS[:])
            return ()
        return self._inside(environ, start)  # type: ignore[arg-type]

    def _unchanged(self, environ: Environ) -> bool:
        cookies = parse_cookie(environ.get("HTTP_COOKIE", ""))
        shown = parse_qs(environ.get("QUERY_STRING", ""), max_num_fields=10)
        today = days.stamp(datetime.now(UTC), days.zone_named(cookies.get(days.COOKIE)))
        if shown.get("day") != [today]:
            return False
        sign_in = self._sign_in_of(cookies.get(self._app.config["SESSION_COOKIE_NAME"], ""))
        if not sign_in:
            return False
        held: Resources = self._app.extensions["allgone"]
        try:
            with held.reader.connect() as connection:
                version = listing.probe(connection, sign_in)
        except SQLAlchemyError:
            return False
        return version is not None and shown.get("version") == [str(version)]

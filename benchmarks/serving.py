"""What answers cost under the production server, each against a no-op route that returns the same bytes.

Server and driver are processes of their own; the server is the product's own command with `benchmarks/server.py`
in the place of `app.py`, so that the no-op routes pass the same middleware, cookie and headers.
"""

from __future__ import annotations

import http.client
import json
import re
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlencode

from sqlalchemy import text
from sqlalchemy.orm import Session

from benchmarks.figures import Figure
from benchmarks.ground import Ground
from benchmarks.server import FOLDER
from models import accounts, sign_ins
from models.accounts import Owner
from tasks.children import Child
from tasks.listening import answers
from tasks.processes import product_processes
from tests.s3_server import free_port

NAME = "serving"
SETTLED = 11.0  # seconds after which an idle PostgreSQL backend has told its counts
CONNECTIONS, SECONDS, ROUNDS = 8, 0.4, 31
POLL = "/history/poll"
_SCANS = text("SELECT seq_scan + coalesce(idx_scan, 0) FROM pg_stat_user_tables WHERE relname = 'sessions'")

Headers = dict[str, str]


def run(ground: Ground) -> Iterator[Figure]:
    """The API's list and point read, the sidebar's partial, and an unchanged poll."""
    with tempfile.TemporaryDirectory() as folder, server(ground, Path(folder)) as port:
        token = bearer(ground, ground.one)
        cookie = {"Cookie": _cookie(ground, port)}
        yield from _against_noop(port, Path(folder), "GET /v1/sessions", "/v1/sessions", token, 0.40)
        point = f"/v1/sessions/{_newest(port, token)}"
        yield from _against_noop(port, Path(folder), "GET /v1/sessions/{id}", point, token, 0.45)
        unchanged = _unchanged(port, cookie)
        changed = unchanged.replace("version=", "version=0")
        yield from _against_noop(port, Path(folder), "the sidebar's list", changed, cookie, 0.30)
        before = _session_scans(ground)
        yield from _against_noop(port, Path(folder), "an unchanged poll", unchanged, cookie, 0.80)
        yield Figure(NAME, "scans of sessions by all those polls", _session_scans(ground) - before, bound=0)


def _against_noop(
    port: int, folder: Path, what: str, path: str, headers: Headers, bound: float
) -> Iterator[Figure]:
    name = re.sub(r"\W+", "-", what)
    status, kind, body = _get(port, path, headers)
    (folder / name).write_bytes(body)
    (folder / f"{name}.head").write_text(f"{status}\n{kind}", "ascii")
    asked = path.partition("?")[1:]  # the no-op route is sent the same query
    rates = _drive(port, {"noop": (f"/noop/{name}{''.join(asked)}", headers), "asked": (path, headers)})
    ours, noop = statistics.median(rates["asked"]), statistics.median(rates["noop"])
    note = f"{ours:,.0f}/s against {noop:,.0f}/s, {len(body):,} bytes"
    yield Figure(NAME, f"{what} against its no-op route", ours / noop, "at least", bound, note)


def _drive(port: int, works: dict[str, tuple[str, Headers]]) -> dict[str, list[float]]:
    driver = [sys.executable, "-m", "benchmarks.driver", *map(str, (port, CONNECTIONS, SECONDS, ROUNDS))]
    done = subprocess.run(
        driver, input=json.dumps({"works": works}), stdout=subprocess.PIPE, text=True, check=True
    )
    rates: dict[str, list[float]] = json.loads(done.stdout)
    return rates


@contextmanager
def server(ground: Ground, folder: Path) -> Iterator[int]:
    """The port of the product's web processes, with no-op routes that answer what lies in `folder`."""
    settings = replace(ground.resources.settings, port=free_port(), host="127.0.0.1")
    web = product_processes(settings)[0]
    argv = tuple("benchmarks.server:create()" if part == "app:create_app()" else part for part in web.argv)
    environ = {**(web.environ or {}), FOLDER: str(folder)}
    child = Child(replace(web, argv=argv, environ=environ), settings.data_dir / "log")
    try:
        until = time.monotonic() + 30
        while not answers(settings.host, settings.port, "/healthz"):
            if child.ended() is not None or time.monotonic() > until:
                raise SystemExit(f"the server did not start: {child.last_words()}")
            time.sleep(0.1)
        yield settings.port
    finally:
        child.end()


def _get(port: int, path: str, headers: Headers) -> tuple[int, str, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", path, headers=headers)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    if response.status >= 300:
        raise SystemExit(f"{path} answered {response.status}")
    return response.status, response.headers.get("Content-Type", ""), body


def _newest(port: int, token: Headers) -> str:
    session_id: str = json.loads(_get(port, "/v1/sessions?limit=1", token)[2])["data"][0]["id"]
    return session_id


def _unchanged(port: int, cookie: Headers) -> str:
    """The poll of a browser that shows the list as it is."""
    page = _get(port, POLL, cookie)[2].decode()
    shown = {name: re.findall(f'data-{name}="([^"]*)"', page)[0] for name in ("version", "day", "until")}
    return f"{POLL}?{urlencode(shown)}"


def _session_scans(ground: Ground) -> int:
    time.sleep(SETTLED)
    with ground.resources.reader.connect() as connection:
        scans: int = connection.execute(_SCANS).scalar_one()
        return scans


def bearer(ground: Ground, owner: Owner) -> Headers:
    """The header of a new token of `owner`."""
    secret = accounts.TOKEN_PREFIX + secrets.token_urlsafe(32)
    with Session(ground.resources.engine) as db, db.begin():
        principal = db.get_one(accounts.Principal, owner.principal_id)
        accounts.create_token(db, principal, secret, accounts.SCOPES)
    return {"Authorization": f"Bearer {secret}"}


def sign_in_link(ground: Ground, base: str) -> str:
    """The address of a new one-time link of the one principal."""
    secret = secrets.token_urlsafe(32)
    with Session(ground.resources.engine) as db, db.begin():
        sign_ins.create_link(db, db.get_one(accounts.Principal, ground.one.principal_id), secret)
    return f"{base}/sign-in/{secret}"


def _cookie(ground: Ground, port: int) -> str:
    """Signs in by a one-time link, as a browser does."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", sign_in_link(ground, ""))
    response = connection.getresponse()
    return response.headers["Set-Cookie"].split(";")[0]

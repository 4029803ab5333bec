"""The doorstep answers what is unchanged beyond doubt, and decides nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from flask import Flask
from flask.testing import FlaskClient

from tests.cast import Player

SignIn = Callable[[FlaskClient, Player], None]


@contextmanager
def begun(app: Flask) -> Iterator[list[str]]:
    """The paths of requests that reached Flask."""
    seen: list[str] = []

    def note() -> None:
        from flask import request

        seen.append(request.path)

    app.before_request_funcs.setdefault(None, []).insert(0, note)
    yield seen
    app.before_request_funcs[None].remove(note)


def shown(client: FlaskClient) -> dict[str, str]:
    """What the open page would send with its poll."""
    page = client.get("/").get_data(as_text=True)
    return {name: re.search(rf'{name}="?([^">]*)"', page).group(1) for name in ("data-version", "data-day")}  # type: ignore[union-attr]


def poll(client: FlaskClient, version: str, day: str) -> int:
    return client.get("/history/poll", query_string={"version": version, "day": day}).status_code


def test_an_unchanged_poll_never_reaches_flask(
    app: Flask, client: FlaskClient, alice: Player, sign_in: SignIn
) -> None:
    alice.converse("Hello")
    sign_in(client, alice)
    page = shown(client)
    with begun(app) as seen:
        assert poll(client, page["data-version"], page["data-day"]) == 204
        assert seen == []


def test_whatever_is_not_unchanged_goes_on_to_flask(
    app: Flask, client: FlaskClient, alice: Player, sign_in: SignIn
) -> None:
    alice.converse("Hello")
    sign_in(client, alice)
    page = shown(client)
    with begun(app) as seen:
        assert poll(client, "0", page["data-day"]) == 200
        assert poll(client, page["data-version"], "2001-01-01 UTC") == 200
        assert client.post("/history/poll").status_code in (400, 403, 405)
        assert len(seen) == 3
    alice.converse("News")
    assert poll(client, page["data-version"], page["data-day"]) == 200


@pytest.mark.parametrize("cookie", ["", "x", "a.b.c", '{"sign_in":"x"}', "\x7f"])
def test_a_spoilt_cookie_is_sent_to_sign_in_by_flask(app: Flask, cookie: str) -> None:
    client = app.test_client()
    client.set_cookie("allgone", cookie)
    with begun(app) as seen:
        assert poll(client, "1", "2026-11-30 UTC") == 303
        assert seen == ["/history/poll"]


def test_a_sign_in_that_ended_is_not_let_pass(
    app: Flask, client: FlaskClient, alice: Player, sign_in: SignIn
) -> None:
    alice.converse("Hello")
    sign_in(client, alice)
    page = shown(client)
    kept = client.get_cookie("allgone")
    assert kept is not None
    app.config["WTF_CSRF_ENABLED"] = False
    assert client.post("/sign-out").status_code == 303
    client.set_cookie("allgone", kept.value)
    assert poll(client, page["data-version"], page["data-day"]) == 303

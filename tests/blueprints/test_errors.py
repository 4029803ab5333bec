"""Errors: one code, one status, one of three shapes; what nobody foresaw is never shown (PRODUCT.md 9)."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
import structlog
from flask import Flask, abort
from flask.testing import FlaskClient
from sqlalchemy import text

from blueprints.errors import HTTP_CODES, STATUS, TITLES
from models import errors
from models.errors import Refusal
from tests.cast import Player

HTMX = {"HX-Request": "true"}
SECRET = "the words of somebody"


def refusals() -> list[type[Refusal]]:
    return [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, Refusal)]


def raising(app: Flask, fault: Callable[[], BaseException]) -> FlaskClient:
    """A client of the app with two more routes, /v1/trial and /trial, that raise."""

    def view() -> str:
        local = SECRET  # what a careless log of a frame's variables would show
        raise fault() from ValueError(local)

    for path in ("/v1/trial", "/trial"):
        app.add_url_rule(path, endpoint=path, view_func=view)
    return app.test_client()


def test_each_code_has_a_status_and_a_title_and_each_refusal_a_code() -> None:
    assert set(STATUS) == set(TITLES)
    assert {one.code for one in refusals()} == set(STATUS)
    assert set(HTTP_CODES.values()) <= set(STATUS)


@pytest.mark.parametrize("kind", refusals(), ids=lambda kind: kind.__name__)
def test_a_refusal_is_problem_json_to_a_client_and_words_to_a_browser(
    app: Flask, kind: type[Refusal]
) -> None:
    def fault() -> Refusal:
        words = "field" if kind.__name__ == "Invalid" else "reason"
        return kind(words, "It is so.") if kind.__name__ in ("Invalid", "InvalidState") else kind("It is so.")  # type: ignore[call-arg, arg-type]

    client = raising(app, fault)
    answer = client.get("/v1/trial")
    status = STATUS[kind.code]
    assert (answer.status_code, answer.content_type) == (status, "application/problem+json")
    assert answer.json is not None
    assert set(answer.json) == {"status", "title", "detail", "code", "details"}
    assert (answer.json["status"], answer.json["code"], answer.json["detail"]) == (
        status,
        kind.code,
        "It is so.",
    )
    assert ("WWW-Authenticate" in answer.headers) == (status == 401)
    for headers in ({}, HTMX):
        page = client.get("/trial", headers=headers)
        assert page.status_code == status
        assert page.content_type.startswith("text/html")
        assert "It is so." in page.text
        assert ("<html" in page.text) == (headers == {})
    assert len(client.get("/trial", headers=HTMX).data) < 2000


class Unforeseen(Exception):
    """Nobody catches this."""


@pytest.mark.parametrize("path", ["/v1/trial", "/trial"])
def test_what_nobody_foresaw_is_internal_and_shows_nothing_of_itself(app: Flask, path: str) -> None:
    lines = StringIO()
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(lines))
    client = raising(app, lambda: Unforeseen(f"[parameters: {SECRET}]"))
    for headers in ({}, HTMX):
        answer = client.get(path, headers=headers)
        assert answer.status_code == 500
        for told in ("Traceback", "Unforeseen", "File ", "line ", SECRET, "raising"):
            assert told not in answer.text
    logged = lines.getvalue()
    assert "Unforeseen" in logged  # an operator finds it
    assert "test_errors.py" in logged
    assert SECRET not in logged  # and reads nobody's words


def test_an_internal_error_has_the_id_of_its_request(app: Flask) -> None:
    client = raising(app, lambda: Unforeseen("x"))
    answer = client.get("/v1/trial", headers={"X-Request-Id": "abc-123"})
    assert answer.headers["X-Request-Id"] == "abc-123"
    assert answer.json is not None
    assert answer.json["code"] == "internal"


def test_what_is_not_there_is_problem_json_under_v1(client: FlaskClient, alice: Player) -> None:
    headers = alice.token()
    for path in ("/v1", "/v1/", "/v1/nothing", "/v1/sessions/a/b", "/v1/../v1", "/v1/%00"):
        for method in ("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "BREW"):
            answer = client.open(path, method=method, headers=headers)
            assert answer.status_code in (404, 405), (method, path)
            assert answer.content_type == "application/problem+json", (method, path)


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "invalid"),
        (404, "not_found"),
        (413, "too_large"),
        (415, "invalid"),
        (418, "invalid"),
        (503, "internal"),
    ],
)
def test_what_flask_refuses_is_in_our_words(app: Flask, status: int, code: str) -> None:
    def view() -> Any:
        abort(status, description=SECRET)

    app.add_url_rule("/v1/trial", view_func=view)
    answer = app.test_client().get("/v1/trial")
    assert answer.status_code == status
    assert answer.json is not None
    assert (answer.json["code"], answer.json["status"]) == (code, status)
    assert SECRET not in answer.text


def test_no_redirect_believes_the_host_header(client: FlaskClient) -> None:
    for path in ("/conversations//x", "/static//allgone.js", "/v1//sessions", "/operations"):
        answer = client.get(path, headers={"Host": "evil.example"})
        assert "evil" not in answer.headers.get("Location", ""), path


def test_a_database_that_is_away_is_503_and_says_to_come_again(app: Flask, alice: Player) -> None:
    headers, client = alice.token(), app.test_client()
    assert client.get("/v1/sessions", headers=headers).status_code == 200
    held = app.extensions["allgone"]
    with held.engine.connect() as connection:
        # Every other connection of this database is ended under whoever uses it next.
        ended = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
        connection.execute(text(f"{ended} AND datname = current_database()"))
    answer = client.get("/v1/sessions", headers=headers)
    assert answer.status_code in (200, 503)
    if answer.status_code == 503:
        assert answer.json is not None
        assert answer.json["code"] == "internal"
        assert answer.headers["Retry-After"] == "2"
    assert client.get("/v1/sessions", headers=headers).status_code == 200

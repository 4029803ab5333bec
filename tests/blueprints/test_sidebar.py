"""The history page, its poll and its pages, as a client without a browser sees them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import event, text
from sqlalchemy.orm import Session

from tests.cast import Player

SignIn = Callable[[FlaskClient, Player], None]
HTMX = {"HX-Request": "true"}


def state(html: str) -> dict[str, str]:
    """What a list says that it shows."""
    return {name: re.findall(f'data-{name}="([^"]*)"', html)[0] for name in ("version", "day", "until")}


@contextmanager
def statements(app: Flask) -> Iterator[list[str]]:
    """Every SQL statement that the app sends meanwhile."""
    sent: list[str] = []
    held = app.extensions["allgone"]

    def note(_c: object, _cursor: object, statement: str, *_: object) -> None:
        sent.append(statement)

    for engine in (held.engine, held.reader):
        event.listen(engine, "before_cursor_execute", note)
    yield sent
    for engine in (held.engine, held.reader):
        event.remove(engine, "before_cursor_execute", note)


def test_the_first_page_has_fifty_rows_under_40_kilobytes(
    client: FlaskClient, sign_in: SignIn, alice: Player
) -> None:
    for number in range(60):
        alice.converse(f"Talk {number} " + "x" * 60)
    sign_in(client, alice)
    html = client.get("/history/poll").text
    assert html.count("<li ") == 50
    assert len(html.encode()) < 40_000
    assert client.get("/").text.count("<li id=") == 50


def test_an_unchanged_poll_is_204_by_at_most_one_statement(
    app: Flask, client: FlaskClient, sign_in: SignIn, alice: Player
) -> None:
    alice.converse("Hello")
    sign_in(client, alice)
    shown = state(client.get("/").text)
    with statements(app) as sent:
        answer = client.get("/history/poll", query_string=shown, headers=HTMX)
    assert (answer.status_code, answer.data) == (204, b"")
    assert len(sent) <= 1
    assert not any("sessions" in one for one in sent)
    assert "Set-Cookie" not in answer.headers
    assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    "change", [{"version": "0"}, {"version": "x"}, {"day": "2020-01-01 UTC"}, {"day": ""}], ids=str
)
def test_a_poll_that_shows_something_else_gets_the_list(
    client: FlaskClient, sign_in: SignIn, alice: Player, change: dict[str, str]
) -> None:
    alice.converse("Hello")
    sign_in(client, alice)
    shown = state(client.get("/").text)
    answer = client.get("/history/poll", query_string=shown | change, headers=HTMX)
    assert answer.status_code == 200
    assert state(answer.text) == shown
    assert answer.headers["Allgone-List-Version"] == shown["version"]


def test_a_change_of_zone_is_a_change(client: FlaskClient, sign_in: SignIn, alice: Player) -> None:
    alice.converse("Hello")
    sign_in(client, alice)
    shown = state(client.get("/").text)
    client.set_cookie("tz", "Pacific/Kiritimati")
    answer = client.get("/history/poll", query_string=shown, headers=HTMX)
    assert state(answer.text)["day"].endswith("Pacific/Kiritimati")


def test_a_poll_answers_with_all_that_was_loaded(client: FlaskClient, sign_in: SignIn, alice: Player) -> None:
    for number in range(130):
        alice.converse(f"Talk {number}")
    sign_in(client, alice)
    first = client.get("/").text
    second = client.get("/history/older", query_string={"cursor": state(first)["until"]}).text
    alice.converse("New")
    answer = client.get("/history/poll", query_string=state(second) | {"version": "0"}, headers=HTMX)
    assert answer.text.count("<li id=") == 101
    assert state(answer.text)["until"] == state(second)["until"]


def test_pages_follow_one_another_to_the_end(client: FlaskClient, sign_in: SignIn, alice: Player) -> None:
    made = [alice.converse(f"Talk {number}") for number in range(120)]
    sign_in(client, alice)
    html, seen = client.get("/history/poll").text, []
    while True:
        seen += re.findall(r'<li id="c-([0-9a-f-]+)"', html)
        if 'id="older"' not in html:
            break
        html = client.get("/history/older", query_string={"cursor": state(html)["until"]}).text
    assert seen == made[::-1]


def test_nobody_sees_anothers_list(
    client: FlaskClient, sign_in: SignIn, alice: Player, bob: Player, mallory: Player
) -> None:
    alice.converse("Alice's own")
    for other in (bob, mallory):
        stranger = client.application.test_client()
        sign_in(stranger, other)
        assert "Alice" not in stranger.get("/").text
        assert "Alice" not in stranger.get("/history/poll").text


def test_anothers_cursor_is_refused(client: FlaskClient, sign_in: SignIn, alice: Player, bob: Player) -> None:
    alice.converse("Hello")
    sign_in(client, alice)
    cursor = state(client.get("/").text)["until"]
    other = client.application.test_client()
    sign_in(other, bob)
    for path, name in (("/history/older", "cursor"), ("/history/poll", "until"), ("/", "cursor")):
        for value in (cursor, cursor[:-1], "x" * 10_000, "é"):
            answer = other.get(path, query_string={name: value}, headers=HTMX)
            assert answer.status_code == 400
            assert "<html" not in answer.text
    assert client.get("/history/older").status_code == 400


def test_who_is_not_signed_in_is_sent_to_sign_in(client: FlaskClient, alice: Player) -> None:
    for path in ("/history/poll", "/history/older"):
        answer = client.get(path, headers=HTMX)
        assert (answer.status_code, answer.data) == (200, b"")
        assert answer.headers["HX-Redirect"] == "/sign-in"
    answer = client.get("/")
    assert (answer.status_code, answer.headers["Location"]) == (303, "/sign-in")


def test_a_revoked_sign_in_is_over_at_the_next_poll(
    client: FlaskClient, sign_in: SignIn, alice: Player
) -> None:
    alice.converse("Hello")
    sign_in(client, alice)
    shown = state(client.get("/").text)
    with Session(alice.engine) as db, db.begin():
        db.execute(text("UPDATE sign_ins SET revoked_at = now()"))
    answer = client.get("/history/poll", query_string=shown, headers=HTMX)
    assert answer.headers["HX-Redirect"] == "/sign-in"


def test_titles_are_escaped_once(client: FlaskClient, sign_in: SignIn, alice: Player) -> None:
    alice.converse("""<b>"fish" & 'chips'</b>""")
    sign_in(client, alice)
    html = client.get("/history/poll").text
    assert "<b>" not in html
    assert 'aria-label="Delete conversation &lt;b&gt;&#34;fish&#34; &amp; &#39;chips&#39;&lt;/b&gt;"' in html


def test_a_page_brings_its_style_and_script_from_here_and_lets_them_be_kept(
    client: FlaskClient, sign_in: SignIn, alice: Player
) -> None:
    sign_in(client, alice)
    html = client.get("/").text
    assert not re.search(r"<script(?![^>]* src=)|<style| style=| on\w+=|hx-on", html)
    for address in re.findall(r'(?:src|href)="(/static/[^"]+)"', html):
        answer = client.get(address)
        assert answer.status_code == 200
        assert "immutable" in answer.headers["Cache-Control"]
    assert "immutable" not in (client.get("/static/allgone.css").headers["Cache-Control"] or "")
    assert b'version="4.0.1"' in client.get("/static/htmx-4.0.1.min.js").data


def test_the_operators_link_is_for_operators(
    client: FlaskClient, sign_in: SignIn, alice: Player, olivia: Player
) -> None:
    sign_in(client, alice)
    assert "/operations/" not in client.get("/").text
    other = client.application.test_client()
    sign_in(other, olivia)
    assert "/operations/" in other.get("/").text
    assert other.get("/operations/").status_code == 200

"""Many deletions at once, their progress and their page, as a client without a browser sees them."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from flask.testing import FlaskClient
from sqlalchemy import text
from sqlalchemy.orm import Session

from models.append import open_conversation
from models.ids import new_id, uuid7
from tasks import deletion
from tasks.deletion import delete_many, delete_now
from tasks.resources import Resources
from tests.attachments import attach
from tests.cast import Player
from tests.models.graph import count, rows

SignIn = Callable[[FlaskClient, Player], None]
HTMX = {"HX-Request": "true"}


@pytest.fixture
def token(client: FlaskClient, sign_in: SignIn, alice: Player) -> str:
    """Signs alice in; her CSRF token."""
    sign_in(client, alice)
    found = re.search(r'name="csrf_token" value="([^"]+)"', client.get("/").text)
    assert found
    return found[1]


def test_the_question_counts_names_a_few_and_says_what_stays(
    client: FlaskClient, token: str, alice: Player, bob: Player, resources: Resources
) -> None:
    made = [alice.converse(f"Talk {number}", "x") for number in range(5)]
    attach(resources, alice, made[4], "a.txt", b"x" * 1234)
    busy = alice.converse("Busy <b>")
    alice.start_run(busy)
    form = {"csrf_token": token, "id": [*made, busy, bob.converse("Bob's"), new_id(), "x"]}
    html = client.post("/deletions/question", data=form, headers=HTMX).text
    assert "Delete 5 conversations everywhere?" in html
    assert re.findall(r'<li><bdi dir="auto">(.*?)</bdi>', html) == ["Talk 4", "Talk 3", "Talk 2"]
    for said in (
        "and 2 more",
        "<strong>10</strong> messages",
        "1</strong> file (1.2 kB)",
        "0</strong> memories",
    ):
        assert said in html
    assert 'One stays, because a run is active in it: <bdi dir="auto">Busy &lt;b&gt;</bdi>' in html
    assert "Bob" not in html


def test_nothing_left_to_delete_is_said(client: FlaskClient, token: str) -> None:
    html = client.post("/deletions/question", data={"csrf_token": token, "id": new_id()}, headers=HTMX).text
    assert "deleted elsewhere" in html
    assert "many-confirm" not in html


def test_each_goes_by_itself_and_what_is_kept_has_its_reason(
    client: FlaskClient, token: str, alice: Player, bob: Player, resources: Resources
) -> None:
    goes, twice, busy, theirs = (
        alice.converse("a"),
        alice.converse("b"),
        alice.converse("c"),
        bob.converse("d"),
    )
    stays = alice.converse("stays")
    alice.start_run(busy)
    delete_now(resources, alice.owner, twice)
    answer = client.post("/deletions", data={"csrf_token": token, "id": [goes, twice, busy, theirs, "x"]})
    told = answer.json
    assert told["gone"] == [
        goes,
        twice,
        theirs,
        "x",
    ]  # what is not there, or not theirs, is gone for who asks
    assert told["kept"] == {busy: "active_run_exists"}
    assert (told["left"], told["owed"]) == ([], 0)
    left = {row[0] for row in rows(resources, "SELECT id FROM sessions")}
    assert left == {busy, theirs, stays}
    assert (
        told["version"]
        == rows(resources, "SELECT version FROM list_versions WHERE principal_id = :p", p=alice.id)[0][0]
    )


def test_files_that_are_still_owed_are_counted_until_none_is(
    client: FlaskClient, token: str, alice: Player, resources: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [alice.converse("a"), alice.converse("b")]
    for session_id in made:
        attach(resources, alice, session_id, "a.txt", b"x")
    monkeypatch.setattr(deletion, "drain_soon", lambda *_: False)
    told = client.post("/deletions", data={"csrf_token": token, "id": made}).json
    assert told["owed"] == 2
    progress = {"since": told["since"]}
    assert client.get("/deletions/progress", query_string=progress).json == {"owed": 2, "blocked": 0}
    with resources.engine.begin() as connection:
        connection.execute(
            text("UPDATE outbox SET error = 'misconfigured' WHERE session_id = :s"), {"s": made[0]}
        )
    assert client.get("/deletions/progress", query_string=progress).json == {"owed": 2, "blocked": 1}
    html = client.get("/deletions").text
    assert "1 still being erased" in html
    assert "1 blocked: an operator must act" in html
    assert 'hx-trigger="every 3s"' in html
    with resources.engine.begin() as connection:
        connection.execute(text("DELETE FROM outbox"))
    assert client.get("/deletions/progress", query_string=progress).json == {"owed": 0, "blocked": 0}
    html = client.get("/deletions").text
    assert html.count("None left") == 2
    assert 'hx-trigger="every 3s"' not in html


@pytest.mark.parametrize(
    "since", ["", "x", "2026-01-01", "9999-99-99T00:00:00Z", "0001-01-01T00:00:00+23:59", "\0"]
)
def test_progress_needs_a_time(client: FlaskClient, token: str, since: str) -> None:
    answer = client.get("/deletions/progress", query_string={"since": since}, headers=HTMX)
    assert answer.status_code == 400
    assert "<html" not in answer.text


@pytest.mark.parametrize("path", ["/deletions", "/deletions/question"])
def test_a_request_is_bounded_and_needs_its_token(
    client: FlaskClient, token: str, alice: Player, resources: Resources, path: str
) -> None:
    session_id = alice.converse("stays")
    for ids in ([], ["x"] * 6000):
        answer = client.post(path, data={"csrf_token": token, "id": ids}, headers=HTMX)
        assert answer.status_code in {400, 413}
    for wrong in ({}, {"csrf_token": "x"}):
        answer = client.post(path, data={**wrong, "id": session_id}, headers=HTMX)
        assert answer.status_code == 403
    assert count(resources, "sessions") == 1


def test_who_is_not_signed_in_is_sent_to_sign_in(client: FlaskClient) -> None:
    for path in ("/deletions", "/deletions/progress"):
        assert client.get(path, headers=HTMX).headers["HX-Redirect"] == "/sign-in"
        assert client.get(path).status_code == 303


def test_nobody_is_shown_anothers_deletions(
    client: FlaskClient, token: str, alice: Player, bob: Player, resources: Resources
) -> None:
    theirs = bob.converse("secret title")
    delete_now(resources, bob.owner, theirs)
    html = client.get("/deletions").text
    assert "Nothing was deleted" in html
    assert theirs not in html


def test_no_title_is_shown_and_pages_follow(
    client: FlaskClient, token: str, alice: Player, resources: Resources
) -> None:
    made = [alice.converse(f"secret title {number}") for number in range(60)]
    delete_many(resources, alice.owner, made, seconds=60)
    html, seen = client.get("/deletions").text, []
    while True:
        assert "secret title" not in html
        seen += re.findall(r'<tr id="d-([0-9a-f-]+)"', html)
        older = re.search(r'href="(/deletions\?cursor=[\w-]+)"', html)
        if older is None:
            break
        html = client.get(older[1]).text
    assert seen == made[::-1]
    assert client.get("/deletions?cursor=nonsense", headers=HTMX).status_code == 400
    assert "<html" not in client.get("/deletions", headers=HTMX).text


def test_a_conversation_from_an_export_without_times_is_not_said_to_have_begun_in_1970(
    client: FlaskClient, token: str, alice: Player, resources: Resources
) -> None:
    """Its id holds the time 0, so that the next import finds it again; that is no date to show."""
    timeless = uuid7(0, bytes(10))
    with Session(resources.engine) as db, db.begin():
        open_conversation(db, alice.owner, session_id=timeless)
    delete_now(resources, alice.owner, timeless)
    page = client.get("/deletions").text
    assert f'id="d-{timeless}"' in page
    assert "1970" not in page
    assert "Not known" in page

"""A conversation's page, its files and its deletion, as a client without a browser sees them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from flask.testing import FlaskClient
from sqlalchemy import text
from sqlalchemy.orm import Session

from blueprints.conversation import REACHED
from models.append import Draft
from models.ids import new_id
from models.runs import Run
from tasks.resources import Resources
from tests.attachments import attach
from tests.cast import Player

SignIn = Callable[[FlaskClient, Player], None]
HTMX = {"HX-Request": "true"}


@pytest.fixture
def reader(client: FlaskClient, sign_in: SignIn, alice: Player) -> FlaskClient:
    """Alice at a browser."""
    sign_in(client, alice)
    return client


@pytest.fixture
def strangers(client: FlaskClient, sign_in: SignIn, bob: Player, mallory: Player) -> list[FlaskClient]:
    """Bob and Mallory at theirs."""
    clients = []
    for player in (bob, mallory):
        clients.append(client.application.test_client())
        sign_in(clients[-1], player)
    return clients


def token(client: FlaskClient) -> dict[str, str]:
    """The CSRF token of this client's forms."""
    return {"csrf_token": re.findall(r'name="csrf_token" value="([^"]+)"', client.get("/").text)[0]}


def main(html: str) -> str:
    return html.partition("<main")[2].partition("</main>")[0]


def test_the_transcript_is_in_order_and_rendered(reader: FlaskClient, alice: Player) -> None:
    talk = alice.converse("A *question*", "An **answer**")
    parent = alice.say(
        talk, Draft("tool_call", {"call_id": "1", "name": "search", "arguments": {"q": "<x>"}})
    )[0]
    alice.say(
        talk,
        Draft("tool_result", {"call_id": "1", "output": "three hits", "status": "ok"}),
        Draft("assistant_message", {"content": "a sub-agent's"}, parent_id=parent),
        Draft("memory_formed", {"text": "Alice asks"}),
        Draft("checkpoint", {"state": {}}),
        Draft("something_new", {"x": 1}),
    )
    page = main(reader.get(f"/conversations/{talk}").text)
    order = [
        "<em>question</em>",
        "<strong>answer</strong>",
        "search",
        "&lt;x&gt;",
        "three hits",
        "Remembered: Alice asks",
        "Something new",
    ]
    at = [page.index(part) for part in order]
    assert at == sorted(at)
    assert page.count('<details class="tool"') == 1
    folded = page.partition('<details class="nested"')[2].partition("</details>")[0]
    assert "a sub-agent's" in folded
    assert page.count("a sub-agent's") == 1
    assert "1 memory formed here" in page


def test_blocks_that_are_not_text_are_named(reader: FlaskClient, alice: Player) -> None:
    blocks = [
        {"type": "image", "url": "https://x.example/a.png"},
        {"type": "file", "name": "<b>.pdf"},
        {"type": "text", "text": "look"},
        {"type": "odd"},
    ]
    talk = alice.converse()
    alice.say(talk, Draft("user_message", {"content": blocks}))
    page = main(reader.get(f"/conversations/{talk}").text)
    for part in ("Image", "File: &lt;b&gt;.pdf", "look", "odd"):
        assert part in page
    assert "x.example" not in page


def test_a_long_transcript_comes_in_parts(reader: FlaskClient, alice: Player) -> None:
    talk = alice.converse(*[f"word{number}." for number in range(250)])
    page, seen = f"/conversations/{talk}", []
    while page:
        html = main(reader.get(page).text)
        seen.insert(0, re.findall(r"<p>word(\d+)\.", html))
        earlier = re.findall(r'href="(\?before=\d+)"', html)
        page = f"/conversations/{talk}{earlier[0]}" if earlier else ""
    assert [len(part) for part in seen] == [50, 100, 100]
    assert [int(number) for part in seen for number in part] == list(range(250))
    for odd in ("nonsense", "-1", "0", "9" * 40, "%00"):
        assert "word249." in main(reader.get(f"/conversations/{talk}?before={odd}").text)


def test_the_list_beside_it_marks_it(reader: FlaskClient, alice: Player) -> None:
    talk = alice.converse("Old one")
    for number in range(70):
        alice.converse(f"Newer {number}")
    html = reader.get(f"/conversations/{talk}").text
    assert f'<a href="/conversations/{talk}" aria-current="page">' in html
    assert html.count('aria-current="page"') == 1


@pytest.mark.parametrize("what", ["", "/standing", "/delete"])
def test_a_foreign_conversation_cannot_be_told_from_none(
    strangers: list[FlaskClient], alice: Player, what: str
) -> None:
    talk = alice.converse("Secret plan")
    for stranger in strangers:
        foreign, missing, malformed = (
            stranger.get(f"/conversations/{name}{what}") for name in (talk, new_id(), "nonsense")
        )
        assert foreign.status_code == missing.status_code == malformed.status_code
        assert main(foreign.text) == main(missing.text) == main(malformed.text)
        assert "Secret" not in foreign.text


def test_a_deleted_conversation_says_when_to_who_deleted_it(
    reader: FlaskClient, strangers: list[FlaskClient], alice: Player
) -> None:
    talk = alice.converse("Goes")
    assert reader.get(f"/conversations/{talk}/standing").status_code == 204
    assert reader.post(f"/conversations/{talk}/delete", data=token(reader)).status_code == 303
    with Session(alice.engine) as db, db.begin():
        db.execute(text("UPDATE tombstones SET deleted_at = '2026-07-01 22:30+00'"))
    reader.set_cookie("tz", "Europe/Oslo")
    said = "This conversation was deleted on 2 July 2026 at 00:30."
    page = reader.get(f"/conversations/{talk}")
    assert page.status_code == 404
    assert said in page.text
    standing = reader.get(f"/conversations/{talk}/standing", headers=HTMX)
    assert standing.status_code == 200
    assert said in standing.text
    assert "<html" not in standing.text
    for stranger in strangers:
        assert "was deleted on" not in stranger.get(f"/conversations/{talk}").text


def test_a_file_comes_as_an_attachment_that_can_do_nothing(
    reader: FlaskClient, alice: Player, resources: Resources
) -> None:
    talk = alice.converse("With a page")
    data = b"<script>alert(1)</script>" * 100_000
    key = attach(resources, alice, talk, 'a "wild"\r\nname/../é.html', data, "text/html")
    answer = reader.get(f"/conversations/{talk}/artifacts/{key}")
    assert answer.data == data
    headers = answer.headers
    assert headers["Content-Disposition"].startswith("attachment; filename=")
    assert "\r" not in headers["Content-Disposition"]
    assert headers["Content-Disposition"].endswith("%C3%A9.html")
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in headers["Content-Security-Policy"]
    assert headers["Cache-Control"] == "no-store"
    assert int(headers["Content-Length"]) == len(data)
    page = main(reader.get(f"/conversations/{talk}").text)
    assert "2.5 MB" in page
    assert "&#34;wild&#34;" in page


def test_a_files_type_is_no_way_into_the_headers(
    reader: FlaskClient, alice: Player, resources: Resources
) -> None:
    talk = alice.converse("x")
    key = attach(resources, alice, talk, "x", b"x", "text/html\r\nSet-Cookie: a=b")
    answer = reader.get(f"/conversations/{talk}/artifacts/{key}")
    assert answer.headers["Content-Type"] == "application/octet-stream"


def test_a_file_is_its_owners_and_its_conversations_alone(
    reader: FlaskClient, strangers: list[FlaskClient], alice: Player, resources: Resources
) -> None:
    talk, other = alice.converse("One"), alice.converse("Two")
    key = attach(resources, alice, talk, "a", b"x")
    for client, path in [
        (strangers[0], f"/conversations/{talk}/artifacts/{key}"),
        (strangers[1], f"/conversations/{talk}/artifacts/{key}"),
        (reader, f"/conversations/{other}/artifacts/{key}"),
        (reader, f"/conversations/{talk}/artifacts/{new_id()}"),
        (reader, f"/conversations/{talk}/artifacts/nonsense"),
    ]:
        assert client.get(path).status_code == 404
    resources.store.delete([key])
    assert reader.get(f"/conversations/{talk}/artifacts/{key}").status_code == 404


def test_deleting_answers_200_with_what_happened(reader: FlaskClient, alice: Player) -> None:
    talk = alice.converse("Goes")
    answer = reader.post(f"/conversations/{talk}/delete", data=token(reader), headers=HTMX)
    assert answer.status_code == 200
    told = json.loads(answer.headers["HX-Trigger"])["allgone:deleted"]
    assert told["id"] == talk
    assert told["said"] == f"Conversation deleted: {REACHED}"
    assert str(told["version"]) == answer.headers["Allgone-List-Version"]
    assert reader.get(f"/conversations/{talk}").status_code == 404
    again = reader.post(f"/conversations/{talk}/delete", data=token(reader), headers=HTMX)
    assert again.status_code == 200
    assert "before" in again.headers["HX-Trigger"]


def test_nobody_deletes_or_stops_anothers(strangers: list[FlaskClient], alice: Player) -> None:
    talk = alice.converse("Mine")
    run_id = alice.start_run(talk)
    for stranger in strangers:
        for what in ("delete", "stop"):
            answer = stranger.post(f"/conversations/{talk}/{what}", data=token(stranger), headers=HTMX)
            assert answer.status_code == 404
            assert "<html" not in answer.text
    with Session(alice.engine) as db:
        assert not db.get_one(Run, run_id).cancel_requested


@pytest.mark.parametrize("what", ["delete", "stop"])
def test_a_form_of_another_site_is_refused(reader: FlaskClient, alice: Player, what: str) -> None:
    talk = alice.converse("Mine")
    for data in ({}, {"csrf_token": "forged"}):
        answer = reader.post(f"/conversations/{talk}/{what}", data=data, headers=HTMX)
        assert answer.status_code == 403
        assert "<html" not in answer.text
    assert reader.get(f"/conversations/{talk}").status_code == 200
    reader.delete_cookie("allgone")
    gone = reader.post(f"/conversations/{talk}/{what}", headers=HTMX)
    assert gone.headers["HX-Redirect"] == "/sign-in"


def test_while_a_run_is_active_the_question_is_another(reader: FlaskClient, alice: Player) -> None:
    talk = alice.converse("Busy")
    run_id = alice.start_run(talk, lease_seconds=60)
    question = reader.get(f"/conversations/{talk}/delete", headers=HTMX).text
    assert "Stop the run" in question
    assert "Delete everywhere" not in question
    assert reader.get(f"/conversations/{talk}/delete?seen=running", headers=HTMX).status_code == 204
    refused = reader.post(f"/conversations/{talk}/delete", data=token(reader), headers=HTMX)
    assert refused.status_code == 409
    assert "Stop the run" in refused.text
    stopped = reader.post(f"/conversations/{talk}/stop", data=token(reader), headers=HTMX)
    assert "asked to stop" in stopped.text
    # Its worker is dead: the lease is over, and nobody has to come by to end it.
    with Session(alice.engine) as db, db.begin():
        db.execute(text("UPDATE runs SET lease_expires_at = now() - interval '1 second'"))
    assert "Delete everywhere" in reader.get(f"/conversations/{talk}/delete?seen=stopping", headers=HTMX).text
    assert reader.post(f"/conversations/{talk}/delete", data=token(reader), headers=HTMX).status_code == 200
    assert run_id


def test_stopping_what_does_not_run_is_no_error(reader: FlaskClient, alice: Player) -> None:
    talk = alice.converse("Idle")
    answer = reader.post(f"/conversations/{talk}/stop", data=token(reader), headers=HTMX)
    assert answer.status_code == 200
    assert "Delete everywhere" in answer.text
    assert reader.post(f"/conversations/{talk}/stop", data=token(reader)).status_code == 303


def test_pages_of_a_conversation_are_kept_by_nobody(reader: FlaskClient, alice: Player) -> None:
    talk = alice.converse("Secret")
    for path in ("", "/standing", "/delete"):
        assert reader.get(f"/conversations/{talk}{path}").headers["Cache-Control"] == "no-store"

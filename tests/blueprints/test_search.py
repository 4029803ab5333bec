"""The search as a client without a browser sees it: its parts, its pages, and what it refuses to say."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from flask.testing import FlaskClient
from sqlalchemy import text
from structlog.testing import capture_logs

from blueprints.search import finder
from models.append import Draft
from models.search import RESULTS
from tasks.deletion import delete_now
from tasks.resources import Resources
from tests.cast import Player
from tests.journeys.window import converse_at

SignIn = Callable[[FlaskClient, Player], None]
HTMX = {"HX-Request": "true"}
SEARCH = "/history/search"


def ids(html: str) -> list[str]:
    return re.findall(r'<li id="f-([0-9a-f-]+)"', html)


def ask(client: FlaskClient, query: str, **more: str) -> str:
    answer = client.get(SEARCH, query_string={"q": query, **more}, headers=HTMX)
    assert answer.status_code == 200
    return answer.text


def test_a_result_names_its_conversation_shows_the_words_and_leads_to_them(
    client: FlaskClient, sign_in: SignIn, alice: Player
) -> None:
    session_id = alice.converse("Norway in June", "Take the <b>tent</b> & a stove")
    sign_in(client, alice)
    html = ask(client, "tent")
    assert ids(html) == [session_id]
    assert f'href="/conversations/{session_id}?at=2&amp;q=tent#e-2"' in html
    assert "Take the &lt;b&gt;<mark>tent</mark>&lt;/b&gt; &amp; a stove" in html
    assert 'aria-label="Delete conversation Norway in June"' in html
    assert "1 conversation<" in html
    assert "<mark>Norway</mark> in June" in ask(client, "norway")


def test_nobody_is_shown_anothers_conversations(
    client: FlaskClient, sign_in: SignIn, alice: Player, bob: Player, mallory: Player
) -> None:
    alice.converse("Norway")
    for other in (bob, mallory):
        stranger = client.application.test_client()
        sign_in(stranger, other)
        assert "Norway" not in ask(stranger, "norway").replace('data-q="norway"', "")
        assert "No conversation holds these words." in stranger.get("/?q=norway").text


def test_who_is_not_signed_in_is_sent_to_sign_in(client: FlaskClient) -> None:
    answer = client.get(SEARCH, query_string={"q": "x"}, headers=HTMX)
    assert (answer.data, answer.headers["HX-Redirect"]) == (b"", "/sign-in")
    assert client.get("/?q=x").status_code == 303


def test_further_pages_follow_to_the_end_and_each_shows_others(
    client: FlaskClient, sign_in: SignIn, alice: Player
) -> None:
    now = datetime.now(UTC)
    made = [converse_at(alice, now - timedelta(hours=n), f"tea {n}") for n in range(RESULTS * 2 + 5)]
    sign_in(client, alice)
    html, seen = ask(client, "tea"), []
    assert f"The newest {RESULTS} conversations<" in html
    while True:
        seen += ids(html)
        more = re.search(r'id="found-more" href="/\?([^"]+)"', html)
        if more is None:
            break
        html = client.get(f"{SEARCH}?{more[1].replace('&amp;', '&')}", headers=HTMX).text
        assert "<section id=" not in html
    assert seen == made


def test_what_holds_the_words_in_different_messages_comes_after_and_goes_on(
    client: FlaskClient, sign_in: SignIn, alice: Player
) -> None:
    now = datetime.now(UTC)
    together = converse_at(alice, now - timedelta(days=99), "tea with milk")
    made = [converse_at(alice, now - timedelta(hours=n), "tea", f"milk {n}") for n in range(RESULTS + 5)]
    sign_in(client, alice)
    html = ask(client, "tea milk")
    assert ids(html) == [together, *made[:RESULTS]]
    assert f"The first {RESULTS + 1} conversations<" in html
    assert html.index(together) < html.index("All words, in different messages<") < html.index(made[0])
    assert f'href="/conversations/{made[0]}?at=2&amp;q=tea+milk#e-2"' in html
    more = re.search(r'id="found-more" href="/\?([^"]+)"', html)
    assert more is not None
    query = more[1].replace("&amp;", "&")
    assert ids(client.get(f"{SEARCH}?{query}", headers=HTMX).text) == made[RESULTS:]
    whole = client.get(f"/?{query}").text
    assert ids(whole) == made[RESULTS:]
    assert "Further conversations" in whole


def test_a_place_among_the_others_is_no_place_among_these(
    client: FlaskClient, sign_in: SignIn, alice: Player
) -> None:
    for number in range(RESULTS + 1):
        alice.converse(f"tea with milk {number}")
    sign_in(client, alice)
    cursor = re.findall(r"cursor=([\w-]+)", ask(client, "tea milk"))[0]
    answer = client.get(SEARCH, query_string={"q": "tea milk", "apart": cursor}, headers=HTMX)
    assert answer.status_code == 400


@pytest.mark.parametrize("cursor", ["x", "x" * 10_000, "é", "A" * 56])
def test_a_cursor_that_is_not_ours_is_refused(
    client: FlaskClient, sign_in: SignIn, alice: Player, cursor: str
) -> None:
    sign_in(client, alice)
    answer = client.get(SEARCH, query_string={"q": "tea", "cursor": cursor}, headers=HTMX)
    assert answer.status_code == 400
    assert "<html" not in answer.text


def test_a_cursor_of_the_list_or_of_another_reader_is_refused(
    client: FlaskClient, sign_in: SignIn, alice: Player, bob: Player
) -> None:
    for number in range(RESULTS + 1):
        alice.converse(f"tea {number}")
    sign_in(client, alice)
    cursor = re.findall(r"cursor=([\w-]+)", ask(client, "tea"))[0]
    until = re.findall(r'data-until="([^"]*)"', client.get("/").text)[0]
    other = client.application.test_client()
    sign_in(other, bob)
    for who, given in ((other, cursor), (client, until)):
        answer = who.get(SEARCH, query_string={"q": "tea", "cursor": given}, headers=HTMX)
        assert answer.status_code == 400


@pytest.mark.parametrize(
    "query",
    [
        "?!",
        "👍",
        "' & | ! <-> :* ( ) \\ \"",
        "\0",
        "%00",
        "a\0b",
        "x" * 10_000,
        "tea " * 3_000,
        "\ufffd",
        "💩" * 5_000,
    ],
)
def test_any_query_is_answered(client: FlaskClient, sign_in: SignIn, alice: Player, query: str) -> None:
    alice.converse("Norway")
    sign_in(client, alice)
    assert ids(ask(client, query)) == []
    assert client.get("/", query_string={"q": query}).status_code == 200


def test_bytes_that_are_no_text_are_answered(client: FlaskClient, sign_in: SignIn, alice: Player) -> None:
    sign_in(client, alice)
    for raw in ("%ff%fe", "%ed%a0%80", "%00"):
        assert client.get(f"{SEARCH}?q={raw}", headers=HTMX).status_code == 200
        assert client.get(f"/?q={raw}").status_code == 200


def test_without_a_word_it_says_so_and_without_a_query_it_shows_the_list(
    client: FlaskClient, sign_in: SignIn, alice: Player
) -> None:
    alice.converse("Norway")
    sign_in(client, alice)
    assert "There is no word in this to search for." in ask(client, "?!")
    for query in ("", "   "):
        assert 'id="results"' not in client.get("/", query_string={"q": query}).text


def test_without_a_script_the_page_shows_what_was_found(
    client: FlaskClient, sign_in: SignIn, alice: Player
) -> None:
    session_id = alice.converse("Norway")
    sign_in(client, alice)
    answer = client.get(SEARCH, query_string={"q": 'nor "way'})
    assert (answer.status_code, answer.headers["Location"]) == (303, "/?q=nor+%22way")
    html = client.get("/", query_string={"q": "nor"}).text
    assert ids(html) == [session_id]
    assert 'value="nor"' in html
    assert 'id="history"' in html
    html = client.get(f"/conversations/{session_id}", query_string={"at": "1", "q": "nor"}).text
    assert re.search(rf'<li id="f-{session_id}"><a [^>]*aria-current="page"', html)


def test_what_was_searched_for_is_escaped(client: FlaskClient, sign_in: SignIn, alice: Player) -> None:
    alice.converse("Norway")
    sign_in(client, alice)
    query = '"><script>alert(1)</script>'
    for html in (ask(client, query), client.get("/", query_string={"q": query}).text):
        assert "<script>alert" not in html


def test_what_was_searched_for_is_not_logged(
    client: FlaskClient, sign_in: SignIn, alice: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign_in(client, alice)

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("sesame")

    monkeypatch.setattr("blueprints.search.search", broken)
    with capture_logs() as lines:
        assert client.get(SEARCH, query_string={"q": "sesame"}, headers=HTMX).status_code == 500
    assert [line["event"] for line in lines] == ["request_failed", "request"]
    assert "sesame" not in str(lines)


def test_what_is_not_indexed_yet_is_said(
    client: FlaskClient, sign_in: SignIn, alice: Player, resources: Resources
) -> None:
    alice.converse("Norway")
    sign_in(client, alice)
    assert "Still indexing" not in ask(client, "norway")
    with resources.engine.begin() as connection:
        connection.execute(text("UPDATE sessions SET searched_from = 9"))
    assert "Still indexing 1 older conversation, so more may be found later." in ask(client, "norway")


def test_what_was_deleted_is_found_no_more(
    client: FlaskClient, sign_in: SignIn, alice: Player, resources: Resources
) -> None:
    session_id = alice.converse("Norway")
    sign_in(client, alice)
    delete_now(resources, alice.owner, session_id)
    html = ask(client, "norway")
    assert ids(html) == []
    assert "No conversation holds these words." in html


def test_a_conversation_opens_at_the_message_that_was_found(
    client: FlaskClient, sign_in: SignIn, alice: Player
) -> None:
    session_id = alice.converse(*(f"message number {n}" for n in range(1, 301)))
    alice.say(session_id, Draft("assistant_message", {"content": "the last"}))
    sign_in(client, alice)
    for at in (1, 50, 150, 301):
        html = client.get(f"/conversations/{session_id}", query_string={"at": at}).text
        assert f'id="e-{at}"' in html, at
    for odd in ("0", "-1", "x", "9" * 30, "302"):
        assert 'id="e-301"' in client.get(f"/conversations/{session_id}", query_string={"at": odd}).text


def test_the_search_is_a_route_of_the_browser_alone(client: FlaskClient) -> None:
    rules = [
        rule
        for rule in client.application.url_map.iter_rules()
        if rule.endpoint.startswith(f"{finder.name}.")
    ]
    assert [(rule.rule, rule.methods) for rule in rules] == [(SEARCH, {"GET", "HEAD", "OPTIONS"})]

"""A conversation's page, its parts, its approvals and its hints, as a client without a browser sees them."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from flask.testing import FlaskClient
from sqlalchemy import text
from sqlalchemy.orm import Session

from models import approvals
from models.append import Draft, open_conversation
from models.history import Approval
from models.ids import new_id
from tests.blueprints.test_conversation import HTMX, main, token
from tests.cast import Player

SignIn = Callable[[FlaskClient, Player], None]


@pytest.fixture
def reader(client: FlaskClient, sign_in: SignIn, alice: Player) -> FlaskClient:
    """Alice at a browser."""
    sign_in(client, alice)
    return client


@pytest.fixture
def stranger(client: FlaskClient, sign_in: SignIn, mallory: Player) -> FlaskClient:
    """Mallory at hers."""
    other = client.application.test_client()
    sign_in(other, mallory)
    return other


def ask_leave(player: Player, talk: str, summary: str = "May I?") -> str:
    return player.say(
        talk, Draft("approval_requested", {"summary": summary, "tool": "rm", "arguments": {"path": "<x>"}})
    )[0]


def shown(html: str) -> list[int]:
    return [int(seq) for seq in re.findall(r'id="e-(\d+)"', html)]


# -- parts ---------------------------------------------------------------------------------------------------


def test_a_part_is_what_the_page_lacks_and_how_things_stand(reader: FlaskClient, alice: Player) -> None:
    talk = alice.converse(*[f"word{n}." for n in range(250)])
    page = reader.get(f"/conversations/{talk}").text
    assert shown(page) == list(range(151, 251))
    assert 'data-last="250"' in page
    above = reader.get(f"/conversations/{talk}/part?before=151", headers=HTMX).text
    assert shown(above) == list(range(51, 151))
    assert 'data-before="51"' in above
    assert "<html" not in above
    alice.say(talk, Draft("assistant_message", {"content": "new"}))
    news = reader.get(f"/conversations/{talk}/part?after=250", headers=HTMX).text
    assert shown(news) == [251]
    assert 'data-last="251"' in news
    assert shown(reader.get(f"/conversations/{talk}/part?after=251", headers=HTMX).text) == []


def test_news_of_many_come_in_parts(reader: FlaskClient, alice: Player) -> None:
    talk = alice.converse("one")
    alice.say(talk, *(Draft("assistant_message", {"content": str(n)}) for n in range(150)))
    first = reader.get(f"/conversations/{talk}/part?after=1").text
    assert shown(first) == list(range(2, 102))
    assert 'data-after="101"' in first


def test_the_page_of_an_event_marks_it_and_leads_both_ways(reader: FlaskClient, alice: Player) -> None:
    talk = alice.converse(*[f"word{n}." for n in range(250)])
    page = main(reader.get(f"/conversations/{talk}?at=100").text)
    assert re.findall(r'id="e-(\d+)" data-marked', page) == ["100"]
    assert shown(page) == list(range(51, 151))
    assert 'href="?before=51"' in page
    assert 'href="?after=150"' in page
    for odd in ("0", "-1", "x", "9" * 40):
        assert shown(main(reader.get(f"/conversations/{talk}?at={odd}").text))[-1] == 250
    assert "data-marked" in reader.get(f"/conversations/{talk}?at=9999").text


def test_an_event_that_is_told_within_another_marks_that(reader: FlaskClient, alice: Player) -> None:
    talk = alice.converse("Q", "A")
    alice.say(
        talk,
        Draft("tool_call", {"call_id": "1", "name": "look", "arguments": {}}),
        Draft("checkpoint", {"state": 1}),
        Draft("tool_result", {"call_id": "1", "output": "x", "status": "ok"}),
    )
    for at in (3, 4, 5):
        assert re.findall(r'id="e-(\d+)" data-marked', reader.get(f"/conversations/{talk}?at={at}").text) == [
            "3"
        ]


def test_a_tool_is_told_once_where_its_call_is_however_far_its_result(
    reader: FlaskClient, alice: Player
) -> None:
    talk = alice.converse("Q")
    alice.say(talk, Draft("tool_call", {"call_id": "7", "name": "dig", "arguments": {"deep": True}}))
    alice.say(talk, *(Draft("assistant_message", {"content": f"w{n}"}) for n in range(150)))
    alice.say(talk, Draft("tool_result", {"call_id": "7", "output": {"found": "gold"}, "status": "ok"}))
    newest = main(reader.get(f"/conversations/{talk}").text)
    assert "dig" not in newest
    first = main(reader.get(f"/conversations/{talk}?before=60").text)
    assert first.count('<details class="tool"') == 1
    assert "gold" in first
    news = reader.get(f"/conversations/{talk}/part?after=152").text
    update = news.partition('id="told-updates"')[2]
    assert 'data-call="7"' in update
    assert "gold" in update


def test_what_is_long_is_cut_and_shown_whole_on_a_page_of_its_own(
    reader: FlaskClient, stranger: FlaskClient, alice: Player
) -> None:
    talk = alice.converse("Q")
    alice.say(talk, Draft("tool_call", {"call_id": "7", "name": "dig", "arguments": "a" * 30_000}))
    alice.say(talk, Draft("tool_result", {"call_id": "7", "output": "b" * 30_000 + "<end>", "status": "ok"}))
    page = main(reader.get(f"/conversations/{talk}").text)
    assert f'href="/conversations/{talk}/events/2"' in page
    assert "b" * 20_001 not in page
    whole = reader.get(f"/conversations/{talk}/events/2")
    assert "a" * 30_000 in whole.text
    assert "b" * 30_000 + "&lt;end&gt;" in whole.text
    for path in (
        f"{talk}/events/99",
        f"{talk}/events/0",
        f"{talk}/events/{'9' * 30}",
        f"{new_id()}/events/1",
    ):
        assert reader.get(f"/conversations/{path}").status_code == 404
    assert stranger.get(f"/conversations/{talk}/events/2").status_code == 404


def test_a_sub_agents_steps_are_one_fold(reader: FlaskClient, alice: Player) -> None:
    talk = alice.converse("Q")
    parent = alice.say(talk, Draft("tool_call", {"call_id": "1", "name": "agent", "arguments": {}}))[0]
    alice.say(
        talk, *(Draft("assistant_message", {"content": f"step {n}"}, parent_id=parent) for n in range(3))
    )
    alice.say(talk, Draft("assistant_message", {"content": "done"}))
    page = main(reader.get(f"/conversations/{talk}").text)
    assert page.count('class="nested"') == 1
    assert '<span class="count">3</span>' in page
    assert " open" not in page.partition('class="nested"')[2][:40]
    assert re.search(r'class="nested" id="n-3" open', reader.get(f"/conversations/{talk}?at=4").text)


def test_a_tool_says_how_long_it_took(reader: FlaskClient, alice: Player) -> None:
    talk = alice.converse("Q")
    alice.say(talk, Draft("tool_call", {"call_id": "1", "name": "look", "arguments": {}}))
    alice.say(talk, Draft("tool_result", {"call_id": "1", "output": "x", "status": "ok"}))
    with Session(alice.engine) as db, db.begin():
        db.execute(text("UPDATE events SET created_at = created_at - interval '2.5 seconds' WHERE seq = 2"))
    assert re.search(r"ok · 2\.\d s", main(reader.get(f"/conversations/{talk}").text))


def test_an_import_says_where_it_came_from(reader: FlaskClient, alice: Player) -> None:
    with Session(alice.engine) as db, db.begin():
        talk = open_conversation(db, alice.owner, origin="chatgpt").id
    alice.say(talk, Draft("user_message", {"content": "hello"}))
    page = main(reader.get(f"/conversations/{talk}").text)
    assert re.search(r"Imported from ChatGPT on \d+ \w+ \d{4}", page)
    assert "Imported" not in main(reader.get(f"/conversations/{alice.converse('own')}").text)


# -- who may -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["/part", "/part?after=1", "/events/1", "?at=1"])
def test_a_foreign_conversation_cannot_be_told_from_none(
    stranger: FlaskClient, alice: Player, what: str
) -> None:
    talk = alice.converse("Secret plan")
    foreign, missing = (stranger.get(f"/conversations/{name}{what}") for name in (talk, new_id()))
    # An open page that asks for more of what is gone does nothing wrong, and its console says nothing of it.
    assert foreign.status_code == missing.status_code == (204 if what.startswith("/part") else 404)
    if not what.startswith("/part"):
        assert main(foreign.text) == main(missing.text)
    assert "Secret" not in foreign.text


def test_nobody_else_is_given_hints(client: FlaskClient, stranger: FlaskClient, alice: Player) -> None:
    talk = alice.converse("Mine")
    for asks in (client, stranger):
        assert asks.get(f"/conversations/{talk}/live").status_code == 204
    assert stranger.get(f"/conversations/{new_id()}/live").status_code == 204


def test_a_server_without_streams_says_how_things_stand_and_when_to_come_again(
    reader: FlaskClient, alice: Player
) -> None:
    talk = alice.converse("Mine")
    stamp = re.findall(r'data-stamp="([^"]+)"', reader.get(f"/conversations/{talk}").text)[0]
    answer = reader.get(f"/conversations/{talk}/live?seen=x")
    assert answer.content_type.startswith("text/event-stream")
    assert "retry: 30000" in answer.text
    assert f"event: news\ndata: {stamp}\n\n" in answer.text


def test_parts_are_kept_by_nobody(reader: FlaskClient, alice: Player) -> None:
    talk = alice.converse("Secret")
    for path in ("", "/part", "/live", "/events/1"):
        assert reader.get(f"/conversations/{talk}{path}").headers["Cache-Control"] == "no-store"


# -- approvals -----------------------------------------------------------------------------------------------


def decide(client: FlaskClient, talk: str, approval_id: str, decision: str, **headers: str):  # type: ignore[no-untyped-def]
    data = {"decision": decision, **token(client)}
    return client.post(f"/conversations/{talk}/approvals/{approval_id}", data=data, headers=headers)


def test_an_approval_is_decided_where_it_stands(reader: FlaskClient, alice: Player) -> None:
    talk = alice.converse("Q")
    approval_id = ask_leave(alice, talk, "Delete <everything>?")
    page = main(reader.get(f"/conversations/{talk}").text)
    for part in (
        "Waiting for your approval",
        "Delete &lt;everything&gt;?",
        "rm",
        "&lt;x&gt;",
        "Approve",
        "Deny",
    ):
        assert part in page
    answer = decide(reader, talk, approval_id, "approve", **HTMX)
    assert answer.status_code == 200
    assert "Approved on" in answer.text
    assert "<form" not in answer.text
    with Session(alice.engine) as db:
        assert db.get_one(Approval, approval_id).decision == "approve"
    assert decide(reader, talk, approval_id, "approve", **HTMX).status_code == 200
    events = db_types(alice, talk)
    assert events.count("approval_decided") == 1


def db_types(player: Player, talk: str) -> list[str]:
    with Session(player.engine) as db:
        return list(
            db.execute(
                text("SELECT type FROM events WHERE session_id = :s ORDER BY seq"), {"s": talk}
            ).scalars()
        )


def test_a_second_different_decision_says_what_was_decided(reader: FlaskClient, alice: Player) -> None:
    talk = alice.converse("Q")
    approval_id = ask_leave(alice, talk)
    with Session(alice.engine) as db, db.begin():
        approvals.decide(db, alice.owner, approval_id, "deny")
    answer = decide(reader, talk, approval_id, "approve", **HTMX)
    assert answer.status_code == 409
    assert re.search(r"Nothing was changed: this was denied on \d+ \w+ \d{4} at \d\d:\d\d", answer.text)
    back = decide(reader, talk, approval_id, "approve")
    assert back.status_code == 303
    assert back.headers["Location"] == f"/conversations/{talk}?at=2#e-2"


def test_a_decision_elsewhere_reaches_an_open_page(reader: FlaskClient, alice: Player) -> None:
    talk = alice.converse("Q")
    approval_id = ask_leave(alice, talk)
    with Session(alice.engine) as db, db.begin():
        approvals.decide(db, alice.owner, approval_id, "deny")
    updates = reader.get(f"/conversations/{talk}/part?after=2").text.partition('id="told-updates"')[2]
    assert f'data-approval="{approval_id}"' in updates
    assert "Denied on" in updates


def test_who_may_not_decide_and_what_is_no_decision(
    reader: FlaskClient, stranger: FlaskClient, alice: Player
) -> None:
    talk, other = alice.converse("Q"), alice.converse("Other")
    approval_id = ask_leave(alice, talk)
    assert decide(stranger, talk, approval_id, "approve", **HTMX).status_code == 404
    assert decide(reader, other, approval_id, "approve", **HTMX).status_code == 404
    assert decide(reader, talk, new_id(), "approve", **HTMX).status_code == 404
    assert decide(reader, talk, "nonsense", "approve", **HTMX).status_code == 404
    assert decide(reader, talk, approval_id, "maybe", **HTMX).status_code == 400
    unsigned = reader.post(f"/conversations/{talk}/approvals/{approval_id}", data={"decision": "approve"})
    assert unsigned.status_code == 403
    with Session(alice.engine) as db:
        assert db.get_one(Approval, approval_id).decision is None


def test_the_run_is_stopped_from_the_page(reader: FlaskClient, alice: Player) -> None:
    talk = alice.converse("Q")
    alice.start_run(talk)
    page = main(reader.get(f"/conversations/{talk}").text)
    assert "A run is active." in page
    assert "Stop the run" in page
    stopped = reader.post(f"/conversations/{talk}/stop", data={"page": "1", **token(reader)})
    assert stopped.headers["Location"] == f"/conversations/{talk}"
    page = main(reader.get(f"/conversations/{talk}").text)
    assert "Stopping" in page
    assert "Stop the run" not in page

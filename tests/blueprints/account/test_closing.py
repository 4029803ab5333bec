"""Closing one's account at a browser: what goes is counted, the address typed, and the end told honestly."""

from __future__ import annotations

import pytest
from sqlalchemy.orm import Session

from models import accounts
from tasks.closing import empty_account
from tasks.outbox import drain_due
from tasks.resources import Resources
from tests.blueprints.account.conftest import Browser, Browsers
from tests.cast import Cast, Player
from tests.models.graph import fill, rows, typed_in


def closed(player: Player) -> bool:
    with Session(player.engine) as db:
        return db.get_one(accounts.Principal, player.id).closed_at is not None


def close(here: Browser, typed: str) -> tuple[int, str]:
    answer = here.post("/account/close", address=typed, page="/account/close")
    return answer.status_code, answer.headers.get("Location", "")


def test_the_question_counts_what_goes_and_says_what_stays(
    browser: Browsers, alice: Player, resources: Resources
) -> None:
    fill(resources, alice, "m")
    typed_in(resources, alice, "by hand")
    page = browser(alice).get("/account/close").text
    for said in (
        "<strong>1</strong> conversation<",
        "<strong>3</strong> files (100 kB)",
        "<strong>6</strong> memories",
        "<strong>0</strong> tokens",
        "<strong>1</strong> browser that is signed in",
        "all paired devices",
        "What stays",
    ):
        assert said in page, said


@pytest.mark.parametrize("typed", ["", "alice", "bob@example.com", "alice@example.com x"])
def test_without_its_address_nothing_is_closed(browser: Browsers, alice: Player, typed: str) -> None:
    here = browser(alice)
    answer = here.post("/account/close", address=typed, page="/account/close")
    assert (answer.status_code, "Nothing was closed" in answer.text) == (400, True)
    assert here.is_in()
    assert not closed(alice)


def test_closing_signs_out_everywhere_and_its_page_tells_how_far_it_is(
    browser: Browsers, cast: Cast, resources: Resources
) -> None:
    fill(resources, cast.alice, "m")
    here, there, bobs = browser(cast.alice), browser(cast.alice), browser(cast.bob)
    token, link = cast.alice.token(), cast.alice.link()
    status, receipt = close(here, " Alice@Example.com ")
    assert status == 303
    assert cast.alice.email not in receipt
    assert not here.is_in()
    assert not there.is_in()
    assert bobs.is_in()
    assert here.client.get("/v1/sessions", headers=token).status_code == 401
    assert browser().get(f"/sign-in/{link}").status_code == 401
    told = browser().get(receipt).text
    assert "<strong>1 conversation</strong>" in told
    assert "<strong>4 memories</strong>" in told or "<strong>5 memories</strong>" in told
    assert "Everything is gone" not in told
    assert empty_account(resources, cast.alice.id)
    told = browser().get(receipt).text
    assert "the bytes of <strong>3 files</strong>" in told
    assert "Everything is gone" not in told
    drain_due(resources)
    assert "Everything is gone" in browser().get(receipt).text
    assert rows(resources, "SELECT count(*) FROM sessions WHERE principal_id = :p", p=cast.alice.id) == [(0,)]


def test_a_receipt_that_is_not_ours_leads_nowhere(browser: Browsers, alice: Player) -> None:
    _, receipt = close(browser(alice), alice.email)
    for forged in (receipt[:-1], receipt + "x", "/closed/x", f"/closed/{alice.id}"):
        assert browser().get(forged).status_code == 404


def test_the_last_operator_is_told_why_not_and_what_to_do(browser: Browsers, cast: Cast) -> None:
    here = browser(cast.olivia)
    answer = here.post("/account/close", address=cast.olivia.email, page="/account/close")
    assert answer.status_code == 409
    assert "only operator" in answer.text
    assert "user operator EMAIL" in answer.text
    assert here.is_in()
    assert not closed(cast.olivia)


def test_a_form_without_its_token_closes_nothing(browser: Browsers, alice: Player) -> None:
    here = browser(alice)
    assert here.client.post("/account/close", data={"address": alice.email}).status_code == 403
    assert not closed(alice)
    assert browser().client.post("/account/close", data={"address": alice.email}).status_code == 303

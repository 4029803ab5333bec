"""Links for another device: shown once with their code, used once, taken back."""

from __future__ import annotations

import re
from datetime import timedelta

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from models.base import database_time
from models.ids import new_id
from models.sign_ins import SignIn, SignInLink
from tests.blueprints.account.conftest import Browser, Browsers
from tests.cast import Cast, Player


def make(browser: Browser) -> str:
    """Makes a link; returns its path."""
    answer = browser.post("/account/links", once=browser.once())
    assert answer.status_code == 200
    found = re.search(r'value="http://localhost(/sign-in/[^"]+)"', answer.text)
    assert found
    return found[1]


def test_a_link_is_shown_once_with_its_code_and_signs_one_device_in(browser: Browsers, alice: Player) -> None:
    here = browser(alice)
    answer = here.post("/account/links", once=here.once())
    assert answer.headers["Cache-Control"] == "no-store"
    assert re.search(r'<svg viewBox="0 0 \d+ \d+" class="segno">', answer.text)
    assert " style=" not in answer.text
    (path,) = re.findall(r'value="http://localhost(/sign-in/[^"]+)"', answer.text)
    assert path not in here.get("/account").text
    there = browser()
    assert there.get(path).status_code == 303
    assert there.is_in()
    assert browser().get(path).status_code == 401


def test_a_form_that_is_sent_again_makes_no_second_link(
    browser: Browsers, alice: Player, db: Session
) -> None:
    here = browser(alice)
    once = here.once()
    assert here.post("/account/links", once=once).status_code == 200
    for again in (once, "", "nonsense"):
        answer = here.post("/account/links", once=again)
        assert answer.status_code == 409
        assert "/sign-in/" not in re.sub(r'action="[^"]*"', "", answer.text)
    unused = select(SignInLink).where(SignInLink.used_at.is_(None))
    assert len(db.scalars(unused).all()) == 1


def test_a_link_that_waits_is_listed_and_taken_back(browser: Browsers, cast: Cast, db: Session) -> None:
    here = browser(cast.alice)
    path = make(here)
    (link,) = db.scalars(select(SignInLink).where(SignInLink.used_at.is_(None)))
    page = here.get("/account").text
    assert "Unused, good until" in page
    revoke = f"/account/links/{link.id}/revoke"
    assert browser(cast.mallory).post(revoke).status_code == 404
    assert here.post(revoke).status_code == 303
    assert "Unused, good until" not in here.get("/account").text
    assert browser().get(path).status_code == 401
    for gone in (revoke, f"/account/links/{new_id()}/revoke", "/account/links/nonsense/revoke"):
        assert here.post(gone).status_code == 404


def test_a_link_is_no_new_proof_of_who_one_is(browser: Browsers, alice: Player, db: Session) -> None:
    """Else whoever finds an open browser could make it look fresh, and set a password."""
    here = browser(alice)
    then = database_time(db) - timedelta(days=2)
    db.execute(update(SignIn).values(proved_at=then))
    db.commit()
    there = browser()
    there.get(make(here))
    assert set(db.scalars(select(SignIn.proved_at))) == {then}
    assert "show first that it is you" in there.get("/account").text

"""Where one is signed in: named, dated, and ended from elsewhere."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from models.base import database_time
from models.ids import new_id
from models.sign_ins import SignIn
from tests.blueprints.account.conftest import Browsers
from tests.cast import Cast, Player

PHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Mobile Safari/604.1"


def test_each_browser_is_named_with_how_it_got_in_and_this_one_is_marked(
    browser: Browsers, alice: Player
) -> None:
    here, there = browser(alice), browser(alice, agent=PHONE)
    page = here.get("/account").text
    assert "Firefox on Linux <span" in page
    assert page.count("this browser") == 1
    assert page.count("By a link") == 2
    assert "Sign out Safari on iPhone" in page
    assert "Sign out Firefox on Linux" not in page
    assert "Sign out Firefox on Linux" in there.get("/account").text


def test_one_browser_is_signed_out_from_another_and_nobody_elses(
    browser: Browsers, cast: Cast, db: Session
) -> None:
    here, there, stranger = browser(cast.alice), browser(cast.alice, agent=PHONE), browser(cast.mallory)
    sign_in_id = db.scalars(select(SignIn.id).where(SignIn.browser == "Safari on iPhone")).one()
    path = f"/account/browsers/{sign_in_id}/sign-out"
    assert stranger.post(path).status_code == 404
    assert there.is_in()
    assert here.post(path).status_code == 303
    assert not there.is_in()
    assert here.is_in()
    for gone in (path, f"/account/browsers/{new_id()}/sign-out", "/account/browsers/x/sign-out"):
        assert here.post(gone).status_code == 404


def test_all_others_are_signed_out_at_once_and_links_that_wait_are_taken_back(
    browser: Browsers, cast: Cast
) -> None:
    here, others, bobs = browser(cast.alice), [browser(cast.alice) for _ in range(3)], browser(cast.bob)
    waiting = cast.alice.link()
    assert here.post("/account/browsers/sign-out").status_code == 303
    assert here.is_in()
    assert not any(one.is_in() for one in others)
    assert bobs.is_in()
    assert browser().get(f"/sign-in/{waiting}").status_code == 401
    assert "Sign out everywhere else" not in here.get("/account").text


def test_a_page_notes_that_a_browser_was_seen_at_most_every_five_minutes(
    browser: Browsers, alice: Player, db: Session
) -> None:
    here = browser(alice)

    def seen() -> object:
        db.rollback()
        return db.scalars(select(SignIn.seen_at)).one()

    first = seen()
    here.get("/account")
    assert seen() == first
    long_ago = database_time(db) - timedelta(minutes=6)
    db.execute(update(SignIn).values(seen_at=long_ago))
    ends = db.scalars(select(SignIn.expires_at)).one()
    db.commit()
    here.get("/account")
    assert seen() > long_ago
    assert db.scalars(select(SignIn.expires_at)).one() == ends  # seen is not prolonged

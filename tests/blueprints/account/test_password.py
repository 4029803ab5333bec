"""The password at the Account page: set, changed and removed by its holder, and by nobody who passes by."""

from __future__ import annotations

from datetime import timedelta

import pytest
from argon2 import PasswordHasher
from sqlalchemy import update
from sqlalchemy.orm import Session

from blueprints.account import hashing
from models import ways
from models.base import database_time
from models.sign_ins import SignIn
from tests.blueprints.account.conftest import WORDS, Browser, Browsers
from tests.cast import Cast, Player

OTHER = "eleven yellow herons"


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """argon2 as cheap as it gets."""
    monkeypatch.setattr(hashing, "_hasher", PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))
    hashing._nobodys.cache_clear()


def choose(here: Browser, new: str, current: str = "", repeated: str | None = None) -> tuple[int, str]:
    form = {"new_password": new, "repeated_password": new if repeated is None else repeated}
    answer = here.post("/account/password", {**form, "current_password": current})
    return answer.status_code, answer.text


def kept(player: Player) -> str | None:
    with Session(player.engine) as db:
        held = ways.password_of(db, player.id)
        return held.hash if held else None


def age(player: Player) -> None:
    """Lets the proof of who one is grow old."""
    with Session(player.engine) as db, db.begin():
        mine = update(SignIn).where(SignIn.principal_id == player.id)
        db.execute(mine.values(proved_at=database_time(db) - timedelta(minutes=16)))


def sign_in_with(browser: Browsers, player: Player, password: str) -> bool:
    form = {"email": player.email, "password": password}
    return browser().post("/sign-in/password", form, page="/sign-in").status_code == 303


def test_who_has_just_signed_in_sets_a_password_and_stays_signed_in_elsewhere(
    browser: Browsers, alice: Player
) -> None:
    here, there = browser(alice), browser(alice)
    assert choose(here, WORDS)[0] == 303
    assert kept(alice) is not None
    assert WORDS not in (kept(alice) or "")
    assert there.is_in()
    assert sign_in_with(browser, alice, WORDS)


def test_a_change_needs_the_password_and_signs_out_everywhere_else(browser: Browsers, cast: Cast) -> None:
    here = browser(cast.alice)
    choose(here, WORDS)
    there, waiting, token = browser(cast.alice), cast.alice.link(), cast.alice.token()
    bobs = browser(cast.bob)
    age(cast.alice)
    before = kept(cast.alice)
    for current in ("", "wrong", OTHER, "x" * 10_000):
        status, text = choose(here, OTHER, current)
        assert (status, "This is not your password." in text) == (400, True)
        assert kept(cast.alice) == before
    assert there.is_in()
    assert choose(here, OTHER, WORDS)[0] == 303
    assert here.is_in()
    assert not there.is_in()
    assert bobs.is_in()
    assert browser().get(f"/sign-in/{waiting}").status_code == 401
    assert here.client.get("/v1/sessions", headers=token).status_code == 200
    assert "every other browser is signed out" in here.get("/account?done=password-changed").text.lower()
    assert sign_in_with(browser, cast.alice, OTHER)
    assert not sign_in_with(browser, cast.alice, WORDS)


def test_who_has_forgotten_it_changes_it_with_a_fresh_link(browser: Browsers, alice: Player) -> None:
    choose(browser(alice), WORDS)
    age(alice)
    fresh = browser(alice)
    assert "The password you have" not in fresh.get("/account").text
    assert choose(fresh, OTHER)[0] == 303
    assert sign_in_with(browser, alice, OTHER)


def test_who_finds_an_open_browser_sets_no_password(browser: Browsers, alice: Player) -> None:
    here = browser(alice)
    age(alice)
    assert "show first that it is you" in here.get("/account").text
    assert choose(here, WORDS)[0] == 400
    assert kept(alice) is None


@pytest.mark.parametrize(
    ("new", "repeated", "said"),
    [
        ("too short", None, "at least 12"),
        ("password12345", None, "tried first"),
        (WORDS, OTHER, "not the same"),
        ("x" * 257, None, "at most 256"),
        ("", None, "at least 12"),
    ],
)
def test_a_password_that_is_not_taken_changes_nothing_and_is_never_sent_back(
    browser: Browsers, alice: Player, new: str, repeated: str | None, said: str
) -> None:
    here = browser(alice)
    status, text = choose(here, new, repeated=repeated)
    assert status == 400
    assert said in text
    assert kept(alice) is None
    for typed in (new, repeated):
        assert not typed or f'value="{typed}"' not in text


def test_guesses_at_an_open_browser_are_bounded_like_those_at_the_door(
    browser: Browsers, alice: Player
) -> None:
    here = browser(alice)
    choose(here, WORDS)
    age(alice)
    seen = [choose(here, OTHER, "wrong")[0] for _ in range(12)]
    assert seen == [400] * 10 + [429] * 2
    assert choose(here, OTHER, WORDS)[0] == 429
    assert not sign_in_with(browser, alice, WORDS)


def test_a_password_is_removed_after_a_question(browser: Browsers, alice: Player, bob: Player) -> None:
    choose(browser(bob), WORDS)  # so that there is a form to try it at
    here = browser(alice)
    choose(here, WORDS)
    assert "Remove your password?" in here.get("/account/password/remove").text
    assert kept(alice) is not None
    assert here.post("/account/password/remove").status_code == 303
    assert kept(alice) is None
    assert here.is_in()
    assert not sign_in_with(browser, alice, WORDS)


def test_password_managers_find_the_form(browser: Browsers) -> None:
    answer = browser().get("/.well-known/change-password")
    assert (answer.status_code, answer.headers["Location"]) == (302, "/account#password")

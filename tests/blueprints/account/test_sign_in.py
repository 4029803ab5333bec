"""Signing in: one answer for everything that is wrong, a way back to where one was, and never somebody else's place."""

from __future__ import annotations

import re
import time
from urllib.parse import quote

import pytest
from argon2 import PasswordHasher
from sqlalchemy import event, select
from sqlalchemy.orm import Session

from blueprints import places
from blueprints.account import hashing
from blueprints.account.sign_in import WRONG
from models import ways
from models.sign_ins import SignIn, SignInLink
from tasks.resources import Resources
from tests.blueprints.account.conftest import WORDS, Browser, Browsers
from tests.cast import Cast, Player
from tests.models.graph import count


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """argon2 as cheap as it gets, where its cost is not the subject."""
    monkeypatch.setattr(hashing, "_hasher", PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))
    hashing._nobodys.cache_clear()


def give_password(player: Player, password: str = WORDS) -> None:
    made = hashing.hashed_password(password)
    with Session(player.engine) as db, db.begin():
        ways.set_password(db, player.id, made)


def enter(here: Browser, email: str, password: str = WORDS, **more: object) -> int:
    return here.post("/sign-in/password", page="/sign-in", email=email, password=password, **more).status_code


def test_an_address_and_its_password_sign_in(browser: Browsers, alice: Player, db: Session) -> None:
    give_password(alice)
    for email in (alice.email, " Alice@Example.com "):
        here = browser()
        assert enter(here, email) == 303
        assert here.is_in()
    assert set(db.scalars(select(SignIn.method))) == {"password"}
    assert "With your password" in here.get("/account").text


def test_the_form_is_there_only_where_somebody_has_a_password(browser: Browsers, alice: Player) -> None:
    assert 'type="password"' not in browser().get("/sign-in").text
    give_password(alice)
    page = browser().get("/sign-in").text
    assert 'autocomplete="username"' in page
    assert 'autocomplete="current-password"' in page


def test_whatever_is_wrong_has_one_answer(browser: Browsers, cast: Cast) -> None:
    give_password(cast.alice)
    answers = set()
    for number, (email, password) in enumerate(
        (
            (cast.alice.email, "seven purple otter"),
            (cast.bob.email, WORDS),  # has no password
            ("nobody@example.com", WORDS),
            ("", ""),
            ("a\0b@x", WORDS),
            (cast.alice.email, "x" * 100_000),
            (cast.alice.email, "\ud800" * 12),
        )
    ):
        here = browser(address=f"10.2.0.{number}")
        form = {"email": email, "password": password.encode("utf-8", "surrogatepass")}
        answer = here.post("/sign-in/password", form, page="/sign-in")
        assert not here.is_in()
        answers.add((answer.status_code, WRONG in answer.text))
    assert answers == {(401, True)}


def test_it_takes_as_long_to_refuse_a_stranger_as_to_refuse_a_user(
    browser: Browsers, cast: Cast, resources: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what is done: the same statements, and one hash of argon2's real parameters. By the processor's clock, not the
    wall's, since others use this machine too: the best of nine each, by turns."""
    monkeypatch.undo()
    hashing._nobodys.cache_clear()
    give_password(cast.alice)
    done: list[str] = []
    verify = PasswordHasher.verify

    def noting(hasher: PasswordHasher, kept: str, password: str) -> bool:
        done.append(kept.rpartition("$")[0].rpartition("$")[0])  # its parameters, without salt and hash
        return verify(hasher, kept, password)

    def stated(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        done.append(statement)

    monkeypatch.setattr(PasswordHasher, "verify", noting)
    engine = browser().client.application.extensions["allgone"].engine
    event.listen(engine, "before_cursor_execute", stated)

    def refuse(email: str, number: int) -> tuple[float, list[str]]:
        here = browser(address=f"10.3.{number}.{len(email)}")
        found = re.search(r'name="csrf_token" value="([^"]+)"', here.get("/sign-in").text)
        assert found
        done.clear()
        begun = time.process_time()
        form = {"email": email, "password": "wrong", "csrf_token": found[1]}
        assert here.client.post("/sign-in/password", data=form).status_code == 401
        return time.process_time() - begun, list(done)

    refuse("warm@example.com", 99)
    whom = (cast.alice.email, cast.bob.email, "nobody@example.com")  # with a password, without one, no user
    spent = [[refuse(email, number) for email in whom] for number in range(9)]
    first = spent[0][0][1]
    assert len([one for one in first if one.startswith("$argon2id$v=19$m=65536")]) == 1
    assert all(acts == first for row in spent for _, acts in row)
    best = [min(seconds for seconds, _ in column) for column in zip(*spent, strict=True)]
    assert max(best) < 1.4 * min(best), best


def test_guesses_at_one_account_are_bounded_from_any_number_of_addresses(
    browser: Browsers, cast: Cast, resources: Resources
) -> None:
    give_password(cast.bob)
    for email in (cast.alice.email, "nobody@example.com"):  # the same for who is there and who is not
        seen = [enter(browser(address=f"10.4.0.{number}"), email, "wrong") for number in range(12)]
        assert seen == [401] * 10 + [429] * 2
    give_password(cast.alice)
    refused = browser(address="10.4.1.1").post(
        "/sign-in/password", page="/sign-in", email="ALICE@example.com", password=WORDS
    )
    assert refused.status_code == 429  # also the right one: else guessing would go on
    assert 1 <= int(refused.headers["Retry-After"]) <= 901
    assert "sign in by a link" in refused.text
    assert enter(browser(address="10.4.0.1"), cast.bob.email) == 303
    assert browser(cast.alice).is_in()  # a link is no guess
    assert not [key for key in resources.redis.keys("*") if b"alice" in key]


def test_a_good_password_forgives_what_was_mistyped_before(browser: Browsers, alice: Player) -> None:
    give_password(alice)
    for _ in range(3):
        seen = [enter(browser(address="10.5.0.1"), alice.email, "wrong") for _ in range(7)]
        assert seen == [401] * 7
        assert enter(browser(address="10.5.0.2"), alice.email) == 303


def test_one_address_has_thirty_tries_a_minute(browser: Browsers, alice: Player) -> None:
    give_password(alice)
    seen = [enter(browser(address="10.6.0.1"), f"{number}@example.com", "x") for number in range(32)]
    assert seen == [401] * 30 + [429] * 2
    assert enter(browser(address="10.6.0.2"), "other@example.com", "x") == 401


def test_a_hash_of_older_parameters_is_made_anew_at_the_next_sign_in(
    browser: Browsers, alice: Player, db: Session
) -> None:
    old = PasswordHasher(time_cost=2, memory_cost=16, parallelism=1).hash(WORDS)
    ways.set_password(db, alice.id, old)
    db.commit()
    assert enter(browser(), alice.email) == 303
    db.expire_all()
    held = ways.password_of(db, alice.id)
    assert held is not None
    assert held.hash != old
    assert not hashing.outdated(held.hash)
    assert enter(browser(), alice.email) == 303


def test_every_sign_in_is_a_new_one_and_ends_the_one_before(
    browser: Browsers, alice: Player, db: Session
) -> None:
    give_password(alice)
    here = browser()
    here.get("/sign-in")
    planted = here.client.get_cookie("allgone")
    assert planted is not None
    assert enter(here, alice.email) == 303
    first = here.client.get_cookie("allgone")
    assert first is not None
    assert first.value != planted.value
    thief = browser()
    thief.client.set_cookie("allgone", planted.value)
    assert not thief.is_in()
    again = here.post("/sign-in/password", email=alice.email, password=WORDS)
    assert again.status_code == 303
    thief.client.set_cookie("allgone", first.value)
    assert not thief.is_in()
    assert here.is_in()


def test_a_password_never_replaces_another_users_sign_in_unasked(
    browser: Browsers, cast: Cast, db: Session, resources: Resources
) -> None:
    give_password(cast.mallory)
    here = browser(cast.alice)
    before = count(resources, "sign_ins")
    answer = here.post("/sign-in/password", email=cast.mallory.email, password=WORDS)
    assert answer.status_code == 200
    assert cast.alice.email in answer.text
    assert cast.mallory.email in answer.text
    assert count(resources, "sign_ins") == before
    assert cast.alice.email in here.get("/account").text
    secret = answer.text.split('name="secret" value="')[1].split('"')[0]
    assert here.post("/sign-in", secret=secret).status_code == 303
    page = here.get("/account").text
    assert cast.mallory.email in page
    assert "With your password" in page
    assert here.post("/sign-in", secret=secret).status_code == 303  # used: says nothing new, changes nothing
    assert set(db.scalars(select(SignInLink.method).where(SignInLink.used_at.is_(None)))) == set()


# -- where one was -------------------------------------------------------------------------------------------


def test_after_signing_in_by_any_way_one_is_where_one_wanted_to_be(browser: Browsers, alice: Player) -> None:
    give_password(alice)
    wanted = f"/conversations/{alice.converse('Plan')}?before=2"
    by_password, by_link = browser(), browser()
    for here in (by_password, by_link):
        sent = here.get(wanted)
        assert sent.status_code == 303
        assert sent.headers["Location"] == f"/sign-in?next={quote(wanted, safe='/?')}"
        here.get(sent.headers["Location"])
    form = {"email": alice.email, "password": WORDS}
    # Posted from the page that is open: another look at /sign-in would mean that one wants to go nowhere.
    answer = by_password.post("/sign-in/password", form, page=f"/sign-in?next={quote(wanted)}")
    assert answer.headers["Location"] == wanted
    assert by_link.get(f"/sign-in/{alice.link()}").headers["Location"] == wanted
    assert by_link.get(f"/sign-in/{alice.link()}").headers["Location"] == "/"  # told once


def test_a_part_that_htmx_asked_for_comes_back_to_its_page(browser: Browsers, alice: Player) -> None:
    headers = {"HX-Request": "true", "HX-Current-URL": "http://localhost/conversations/x?before=9"}
    answer = browser().get("/history/older", headers=headers)
    assert answer.headers["HX-Redirect"] == "/sign-in?next=/conversations/x?before%3D9"


PLACES = (
    "https://evil.example/", "//evil.example", "///evil.example", "/\\evil.example", "\\\\evil.example",
    "/\t/evil.example",
    "http:evil.example", "javascript:alert(1)", "evil.example", "", " /", "/\n/evil.example", "//evil.example/..",
    "/" * 5000, "http://[", "/sign-out", "/sign-in/abc", "\0", "/%0d%0a\r\n",
)  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_no_place_leads_away_from_here(browser: Browsers, alice: Player, place: str) -> None:
    here = browser()
    here.get("/sign-in", query_string={"next": place})
    there = here.get(f"/sign-in/{alice.link()}").headers["Location"]
    assert there == places.safe_place(place)
    # At most a path here that somebody made up: no host, and nothing that a browser might read as one.
    assert re.fullmatch(r"/|/[a-z.%0-9]+", there), there


def test_only_the_path_of_an_address_is_taken() -> None:
    assert places.safe_place("https://localhost/conversations/x?before=1#e") == "/conversations/x?before=1"
    assert places.safe_place("/account#tokens") == "/account"


def test_a_sign_in_page_that_was_open_for_too_long_says_so(browser: Browsers, alice: Player) -> None:
    """FAULTS.md S98."""
    give_password(alice)
    form = {"email": alice.email, "password": WORDS, "csrf_token": "stale"}
    answer = browser().client.post("/sign-in/password", data=form, follow_redirects=True)
    assert "Nothing was sent" in answer.text

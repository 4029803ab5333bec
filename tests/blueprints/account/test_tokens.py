"""Tokens at the Account page: shown once, never made twice by a browser that sends a form again, ended at once."""

from __future__ import annotations

import re

import pytest
from flask.testing import FlaskClient
from sqlalchemy import select
from sqlalchemy.orm import Session

from models import accounts
from models.accounts import SCOPES, Token
from models.base import database_time
from models.ids import new_id
from tests.blueprints.account.conftest import Browser, Browsers
from tests.cast import Cast, Player

FORM = {"name": "laptop", "scope": ["session.read", "memory.read"], "expires_in": "90"}


def make(browser: Browser, **change: object) -> str:
    """Makes a token; returns its secret."""
    answer = browser.post("/account/tokens", {**FORM, "once": browser.once(), **change})
    assert answer.status_code == 200, answer.text
    found = re.search(r'value="(allgone_[^"]+)"', answer.text)
    assert found
    return found[1]


def asks(client: FlaskClient, secret: str) -> int:
    return client.get("/v1/sessions", headers={"Authorization": f"Bearer {secret}"}).status_code


def test_a_token_is_shown_in_one_answer_that_nobody_keeps_and_works(
    browser: Browsers, client: FlaskClient, alice: Player, db: Session
) -> None:
    here = browser(alice)
    answer = here.post("/account/tokens", {**FORM, "once": here.once()})
    assert answer.headers["Cache-Control"] == "no-store"
    (secret,) = set(re.findall(r'"(allgone_[^"]+)"', answer.text))
    assert asks(client, secret) == 200
    assert client.get("/v1/approvals", headers={"Authorization": f"Bearer {secret}"}).status_code == 200
    assert client.post("/v1/sessions", headers={"Authorization": f"Bearer {secret}"}).status_code == 403
    for again in (here.get("/account"), here.get("/account/tokens", follow_redirects=True)):
        assert secret not in again.text
        assert "laptop" in again.text
    (token,) = db.scalars(select(Token))
    assert (token.name, token.scopes) == ("laptop", ["memory.read", "session.read"])
    assert token.expires_at is not None
    assert (token.expires_at - database_time(db)).days == 89


def test_a_form_that_a_reload_sends_again_makes_no_second_token_and_shows_none(
    browser: Browsers, alice: Player, db: Session
) -> None:
    here = browser(alice)
    form = {**FORM, "once": here.once()}
    assert here.post("/account/tokens", form).status_code == 200
    again = here.post("/account/tokens", form)
    assert again.status_code == 409
    assert "allgone_" not in again.text
    assert "was sent already" in again.text
    assert len(db.scalars(select(Token)).all()) == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": " "}, "Give it a name"),
        ({"name": "x" * 201}, "at most 200"),
        ({"name": "nul\0"}, "printable"),
        ({"scope": []}, "at least one"),
        ({"scope": ["session.read", "everything"]}, "A scope is one of"),
        ({"expires_in": "36500"}, "Choose one of these"),
        ({"expires_in": "-1"}, "Choose one of these"),
        ({"expires_in": "x"}, "Choose one of these"),
        ({"once": "nonsense"}, "was sent already"),
        ({"once": ""}, "was sent already"),
    ],
)
def test_a_form_that_cannot_be_used_is_shown_again_with_what_was_wrong(
    browser: Browsers, alice: Player, db: Session, change: dict[str, object], said: str
) -> None:
    here = browser(alice)
    answer = here.post("/account/tokens", {**FORM, "once": here.once(), **change})
    assert answer.status_code in (400, 409)
    assert said in answer.text
    assert "allgone_" not in answer.text
    assert db.scalars(select(Token)).all() == []


def test_what_was_filled_in_is_kept_beside_the_fault(browser: Browsers, alice: Player) -> None:
    here = browser(alice)
    form = {"name": "my <b>laptop</b>", "scope": ["memory.read"], "expires_in": "x", "once": here.once()}
    text = here.post("/account/tokens", form).text
    assert 'value="my &lt;b&gt;laptop&lt;/b&gt;"' in text
    assert re.search(r'value="memory.read" checked', text)
    assert not re.search(r'value="session.read" checked', text)


def test_revoking_asks_first_and_ends_a_token_at_once(
    browser: Browsers, client: FlaskClient, alice: Player, db: Session
) -> None:
    here = browser(alice)
    secret = make(here, name="old <b>laptop</b>")
    (token,) = db.scalars(select(Token))
    path = f"/account/tokens/{token.id}/revoke"
    for headers, whole in (({}, True), ({"HX-Request": "true"}, False)):
        asked = here.get(path, headers=headers)
        assert ("<html" in asked.text) is whole
        assert "old &lt;b&gt;laptop&lt;/b&gt;" in asked.text
        assert asks(client, secret) == 200
    assert here.post(path).status_code == 303
    assert asks(client, secret) == 401
    assert here.post(path).status_code == 303  # again is no error
    page = here.get("/account?done=token-revoked").text
    assert "Ended tokens" in page
    assert "The token is revoked" in page


def test_nobody_sees_or_revokes_another_users_token(browser: Browsers, cast: Cast, db: Session) -> None:
    here, stranger = browser(cast.alice), browser(cast.mallory)
    make(here, name="private name")
    (token,) = db.scalars(select(Token))
    assert "private name" not in stranger.get("/account").text
    for token_id in (token.id, new_id(), "nonsense"):
        path = f"/account/tokens/{token_id}/revoke"
        assert stranger.get(path).status_code == 404
        assert stranger.post(path).status_code == 404
    db.refresh(token)
    assert token.revoked_at is None


def test_a_form_without_its_token_or_of_another_sign_in_does_nothing(
    browser: Browsers, cast: Cast, db: Session
) -> None:
    """FAULTS.md S98: a clear message, never a silent no-op."""
    here = browser(cast.alice)
    form = {**FORM, "once": here.once()}
    assert here.client.post("/account/tokens", data=form).status_code == 403
    other = browser(cast.alice)
    stale = re.search(r'name="csrf_token" value="([^"]+)"', other.get("/account").text)
    assert stale
    answer = here.client.post("/account/tokens", data={**form, "csrf_token": stale[1]})
    assert answer.status_code == 403
    assert "opened under another sign-in, so nothing was done" in answer.text
    assert db.scalars(select(Token)).all() == []


def test_who_is_signed_out_is_sent_to_sign_in(browser: Browsers, alice: Player) -> None:
    for path in ("/account", "/account/tokens"):
        assert browser().get(path).status_code == 303
    assert browser().client.post("/account/tokens", data=FORM).status_code == 303


def test_every_scope_is_offered_in_words(browser: Browsers, alice: Player) -> None:
    page = browser(alice).get("/account").text
    for scope in SCOPES:
        assert f'value="{scope}"' in page


def test_the_number_of_live_tokens_is_bounded_and_a_revoked_one_makes_room(
    browser: Browsers, alice: Player, db: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accounts, "TOKENS_MAX", 2)
    here = browser(alice)
    make(here)
    make(here)
    answer = here.post("/account/tokens", {**FORM, "once": here.once()})
    assert (answer.status_code, "Revoke one" in answer.text) == (409, True)
    here.post(f"/account/tokens/{db.scalars(select(Token.id)).first()}/revoke")
    make(here)

"""Signing in through an identity provider that really answers, and through one that lies, lags or is away."""

from __future__ import annotations

import dataclasses
import re
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from flask import Flask
from joserfc import jwt
from joserfc.jwk import RSAKey
from sqlalchemy import select, update
from sqlalchemy.orm import Session
from werkzeug import Response
from werkzeug.test import TestResponse

from blueprints.account import outbound
from blueprints.account import provider as provider_module
from models import ways
from models.base import database_time
from models.settings import Settings
from models.sign_ins import SignIn
from models.ways import Identity
from tasks.resources import Resources
from tests.blueprints.account.conftest import Browser, Browsers
from tests.cast import Cast, Player
from tests.identity_provider import CLIENT_ID, CLIENT_SECRET, IdentityProvider, Person
from tests.models.graph import count


@pytest.fixture
def there() -> Iterator[IdentityProvider]:
    provider_module.provider.cache_clear()
    with IdentityProvider() as made:
        yield made


@pytest.fixture
def settings(engines: Settings, there: IdentityProvider, tmp_path: Any) -> Settings:
    told = {"oidc_issuer": there.issuer, "oidc_client_id": CLIENT_ID, "oidc_client_secret": CLIENT_SECRET}
    return dataclasses.replace(
        engines, object_store_url=(tmp_path / "objects").as_uri(), oidc_name="Example ID", **told
    )


def go(here: Browser, path: str = "/sign-in/provider") -> str:
    """Follows the way to the provider; returns the address that it sends the browser back to."""
    begun = here.get(path)
    assert begun.status_code == 303, begun.text
    sent = requests.get(begun.headers["Location"], allow_redirects=False, timeout=5)
    assert sent.status_code == 302
    back = urlsplit(sent.headers["Location"])
    assert back.netloc == "localhost"
    return f"{back.path}?{back.query}"


def come_in(here: Browser) -> TestResponse:
    """The whole way, there and back."""
    return here.get(go(here))


def identities(db: Session) -> list[tuple[str, str]]:
    db.rollback()
    return [(one.principal_id, one.subject) for one in db.scalars(select(Identity).order_by(Identity.id))]


def test_the_sign_in_page_leads_there_with_everything_that_guards_the_way(
    browser: Browsers, there: IdentityProvider
) -> None:
    here = browser()
    assert "Continue with Example ID" in here.get("/sign-in").text
    begun = here.get("/sign-in/provider")
    address = urlsplit(begun.headers["Location"])
    asked = {name: value[0] for name, value in parse_qs(address.query).items()}
    assert f"{address.scheme}://{address.netloc}{address.path}" == f"{there.issuer}/authorize"
    assert asked["redirect_uri"] == "http://localhost/sign-in/provider/answer"
    assert (asked["response_type"], asked["code_challenge_method"]) == ("code", "S256")
    assert asked["scope"] == "openid email"
    assert min(len(asked[name]) for name in ("state", "nonce", "code_challenge")) >= 43
    again = parse_qs(urlsplit(here.get("/sign-in/provider").headers["Location"]).query)
    assert {again[name][0] for name in ("state", "nonce", "code_challenge")}.isdisjoint(asked.values())


def test_a_verified_address_links_its_user_the_first_time_and_the_subject_signs_in_from_then_on(
    browser: Browsers, cast: Cast, there: IdentityProvider, db: Session
) -> None:
    there.person = Person("7", "Alice@example.com")
    first = browser()
    assert come_in(first).headers["Location"] == "/"
    assert cast.alice.email in first.get("/account").text
    assert identities(db) == [(cast.alice.id, "7")]
    there.person = Person("7", cast.bob.email)  # the address at the provider changed; who it is did not
    second = browser()
    assert come_in(second).status_code == 303
    assert cast.alice.email in second.get("/account").text
    assert identities(db) == [(cast.alice.id, "7")]
    assert set(db.scalars(select(SignIn.method))) == {"provider"}
    assert "Through your provider" in second.get("/account").text


@pytest.mark.parametrize("only_userinfo", [False, True])
@pytest.mark.parametrize("verified", [True, "true"])
def test_the_address_may_be_told_in_either_place(
    browser: Browsers, alice: Player, there: IdentityProvider, only_userinfo: bool, verified: object
) -> None:
    there.person, there.userinfo_only = Person("7", alice.email, verified), only_userinfo
    here = browser()
    assert come_in(here).status_code == 303
    assert here.is_in()


@pytest.mark.parametrize("verified", [False, None, "false", "yes", 1, "True"])
def test_an_address_that_is_not_verified_signs_nobody_in(
    browser: Browsers, alice: Player, there: IdentityProvider, db: Session, verified: object
) -> None:
    there.person = Person("7", alice.email, verified)
    here = browser()
    answer = come_in(here)
    assert answer.status_code == 403
    assert "does not say that your address is verified" in answer.text
    assert not here.is_in()
    assert identities(db) == []


def test_whom_nobody_here_knows_is_told_so_kindly_and_made_no_user(
    browser: Browsers, cast: Cast, there: IdentityProvider, resources: Resources
) -> None:
    before = count(resources, "principals")
    for address, said in (
        ("new@example.com", "Nobody here has the address new@example.com."),
        ("<b>@example.com", "&lt;b&gt;@example.com"),
        (None, "verified"),
    ):
        there.person = Person("7", address)
        here = browser()
        answer = come_in(here)
        assert (answer.status_code, said in answer.text) == (403, True)
        assert not here.is_in()
    assert count(resources, "principals") == before
    assert count(resources, "identities") == 0


# -- what the provider says wrongly --------------------------------------------------------------------------

NOW = int(time.time())
LIES = {
    "another nonce": {"nonce": "another"},
    "no nonce": {"nonce": None},
    "another issuer": {"iss": "https://evil.example"},
    "no issuer": {"iss": None},
    "another audience": {"aud": "another client"},
    "no audience": {"aud": None},
    "many audiences and no party": {"aud": [CLIENT_ID, "another"]},
    "another party": {"aud": [CLIENT_ID, "another"], "azp": "another"},
    "expired": {"exp": NOW - 120},
    "no end": {"exp": None},
    "not yet": {"nbf": NOW + 600},
    "made in the future": {"iat": NOW + 6000},
    "an end that is no time": {"exp": "tomorrow"},
    "no subject": {"sub": None},
    "an empty subject": {"sub": ""},
    "a subject that is no text": {"sub": 7},
    "a long subject": {"sub": "x" * 300},
    "another's hash of the access token": {"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"},
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_an_id_token_that_is_not_ours_signs_nobody_in(
    browser: Browsers, alice: Player, there: IdentityProvider, db: Session, lie: dict[str, Any]
) -> None:
    there.person = Person("7", alice.email)
    there.lie(**lie)
    here = browser()
    answer = come_in(here)
    assert answer.status_code == 403
    assert "did not confirm who you are, so nobody was signed in" in answer.text
    assert not here.is_in()
    assert identities(db) == []
    there.lie()
    assert come_in(here).status_code == 303  # and a good one does, so that it was the lie


def test_only_the_providers_own_signature_counts(
    browser: Browsers, alice: Player, there: IdentityProvider, db: Session
) -> None:
    strangers = RSAKey.generate_key(2048, {"kid": "one"})

    def of_a_stranger(claims: dict[str, Any]) -> str:
        return jwt.encode({"alg": "RS256", "kid": "one"}, claims, strangers, algorithms=["RS256"])

    def unsigned(claims: dict[str, Any]) -> str:
        _, body, _ = there.signed(claims).split(".")
        return f"eyJhbGciOiJub25lIn0.{body}."

    def tampered(claims: dict[str, Any]) -> str:
        head, _, signature = there.signed(claims).split(".")
        return f"{head}.{there.signed(claims | {'sub': '8'}).split('.')[1]}.{signature}"

    there.person = Person("7", alice.email)
    for sign in (
        of_a_stranger,
        unsigned,
        tampered,
        there.signed_with_the_secret,
        lambda _: "garbage",
        lambda _: "",
    ):
        there.sign = sign
        here = browser()
        assert come_in(here).status_code == 403
        assert not here.is_in()
    assert identities(db) == []


def test_a_key_that_the_provider_changed_is_fetched_again_but_not_at_every_try(
    browser: Browsers, alice: Player, there: IdentityProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    there.person = Person("7", alice.email)
    assert come_in(browser()).status_code == 303
    there.key = RSAKey.generate_key(2048, {"kid": "two", "use": "sig"})
    asked = there.asked.count("keys")
    assert come_in(browser()).status_code == 403  # asked for its keys a moment ago
    assert there.asked.count("keys") == asked
    monkeypatch.setattr(provider_module, "AGAIN_SECONDS", 0)
    assert come_in(browser()).status_code == 303
    assert there.asked.count("keys") == asked + 1
    assert there.asked.count("openid-configuration") == 1


def test_userinfo_of_another_subject_is_not_believed(
    browser: Browsers, alice: Player, there: IdentityProvider
) -> None:
    there.person, there.userinfo_only = Person("7", alice.email), True
    there.lie(userinfo_sub="8")
    assert come_in(browser()).status_code == 403


# -- the way back --------------------------------------------------------------------------------------------


def test_a_state_is_good_once_and_in_its_own_browser(
    browser: Browsers, alice: Player, there: IdentityProvider, resources: Resources
) -> None:
    there.person = Person("7", alice.email)
    here, thief = browser(), browser()
    back = go(here)
    go(thief)
    assert thief.get(back).status_code == 400
    assert not thief.is_in()
    for forged in (
        "/sign-in/provider/answer",
        "/sign-in/provider/answer?state=x&code=y",
        back.replace("state=", "state=x"),
    ):
        assert here.get(forged).status_code == 400
    assert here.get(back).status_code == 303
    assert here.is_in()
    assert here.get(back).status_code == 400  # replayed
    assert count(resources, "sign_ins") == 1


def test_a_way_that_took_too_long_is_begun_again(
    browser: Browsers, alice: Player, there: IdentityProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    from blueprints import access

    there.person = Person("7", alice.email)
    here = browser()
    back = go(here)
    monkeypatch.setattr(access, "TRY_SECONDS", 0)
    assert here.get(back).status_code == 400
    assert not here.is_in()


def test_an_answer_of_another_provider_is_refused(
    browser: Browsers, alice: Player, there: IdentityProvider
) -> None:
    """RFC 9207: the mix-up attack."""
    there.person = Person("7", alice.email)
    here = browser()
    back = re.sub(r"iss=[^&]*", "iss=https%3A%2F%2Fevil.example", go(here))
    assert here.get(back).status_code == 400
    assert not here.is_in()


def test_who_says_no_at_the_provider_is_not_signed_in(browser: Browsers, there: IdentityProvider) -> None:
    answer = come_in(browser())
    assert answer.status_code == 403
    assert "Example ID did not sign you in" in answer.text


def test_one_comes_back_to_where_one_wanted_to_be_and_a_new_sign_in_each_time(
    browser: Browsers, alice: Player, there: IdentityProvider
) -> None:
    there.person = Person("7", alice.email)
    here = browser()
    here.get("/sign-in?next=/account")
    assert come_in(here).headers["Location"] == "/account"
    old = here.client.get_cookie("allgone")
    assert come_in(here).headers["Location"] == "/"
    assert old is not None
    thief = browser()
    thief.client.set_cookie("allgone", old.value)
    assert not thief.is_in()


def test_another_users_sign_in_is_never_replaced_unasked(
    browser: Browsers, cast: Cast, there: IdentityProvider
) -> None:
    there.person = Person("7", cast.mallory.email)
    here = browser(cast.alice)
    answer = come_in(here)
    assert answer.status_code == 200
    assert "Sign in as someone else?" in answer.text
    assert cast.alice.email in here.get("/account").text


# -- away, slow, garbage -------------------------------------------------------------------------------------


def test_a_provider_that_is_down_costs_nobody_the_other_ways(
    browser: Browsers, alice: Player, there: IdentityProvider
) -> None:
    there.stop()
    here = browser()
    begun = time.monotonic()
    answer = here.get("/sign-in/provider")
    assert time.monotonic() - begun < 5
    assert answer.status_code == 503
    assert "Example ID does not answer as it should" in answer.text
    assert here.sign_in(alice).is_in()


GARBAGE: dict[str, Callable[[], Response]] = {
    "a page": lambda: Response("<html>Welcome</html>", content_type="text/html"),
    "an error": lambda: Response("{}", 500, content_type="application/json"),
    "nothing": lambda: Response(""),
    "a list": lambda: Response("[1, 2]", content_type="application/json"),
    "null": lambda: Response("null", content_type="application/json"),
    "an empty object": lambda: Response("{}", content_type="application/json"),
    "a redirect": lambda: Response(status=302, headers={"Location": "http://127.0.0.1:1/"}),
    "a megabyte": lambda: Response(b'{"a": "' + b"x" * 1_000_000 + b'"}', content_type="application/json"),
    "compressed": lambda: Response(b"\x1f\x8b garbage", headers={"Content-Encoding": "gzip"}),
    "half of an answer": lambda: Response(b"{", headers={"Content-Length": "1000"}),
    "numbers for words": lambda: Response('{"id_token": 7, "access_token": [], "keys": 3, "issuer": {}}'),
    "not UTF-8": lambda: Response(b"\xff\xfe\x00{}"),
    "deep": lambda: Response(b"[" * 100_000),
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE)
@pytest.mark.parametrize("endpoint", ["openid-configuration", "token", "keys", "userinfo"])
def test_garbage_from_any_endpoint_is_one_kind_sentence(
    browser: Browsers,
    alice: Player,
    there: IdentityProvider,
    db: Session,
    endpoint: str,
    garbage: Callable[[], Response],
) -> None:
    there.person, there.userinfo_only = Person("7", alice.email), True
    there.broken[endpoint] = garbage
    here = browser()
    answer = here.get("/sign-in/provider") if endpoint == "openid-configuration" else here.get(go(here))
    assert answer.status_code in (403, 503)
    assert "Example ID" in answer.text
    assert "Traceback" not in answer.text
    assert not here.is_in()
    assert identities(db) == []
    there.broken.clear()
    assert come_in(here).status_code == 303  # nothing of it was kept


@pytest.mark.parametrize(
    "document",
    [
        {"issuer": "https://evil.example"},
        {"authorization_endpoint": "http://evil.example/authorize"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"token_endpoint": "ftp://127.0.0.1/"},
        {"token_endpoint": None},
        {"jwks_uri": "http://["},
    ],
)
def test_a_document_that_leads_astray_is_not_followed(
    browser: Browsers, alice: Player, there: IdentityProvider, document: dict[str, Any]
) -> None:
    there.person, there.document = Person("7", alice.email), document
    here = browser()
    begun = here.get("/sign-in/provider")
    answer = begun if begun.status_code != 303 else here.get(go(here))
    assert answer.status_code == 503
    assert not here.is_in()


def test_a_provider_that_dawdles_holds_nobody_up_for_long_and_few_at_once(
    browser: Browsers, there: IdentityProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()

    def drip() -> Response:
        def bytes_by_the_way() -> Iterator[bytes]:
            while not go_on.wait(0.05):
                yield b" "

        return Response(bytes_by_the_way(), content_type="application/json")

    monkeypatch.setattr(provider_module, "WHOLE_SECONDS", 0.5)
    there.broken["openid-configuration"] = drip
    for number in range(provider_module.AT_ONCE):
        begun = time.monotonic()
        assert browser(address=f"10.9.0.{number}").get("/sign-in/provider").status_code == 503
        assert time.monotonic() - begun < 4
    asked = len(there.asked)
    assert browser(address="10.9.1.1").get("/sign-in/provider").status_code == 503
    assert len(there.asked) == asked  # the room is full: it was not even asked
    go_on.set()


def test_a_step_is_given_up_by_itself(there: IdentityProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbound, "STEP_SECONDS", (0.5, 0.2))
    go_on = threading.Event()
    there.broken["openid-configuration"] = lambda: Response(str(go_on.wait(10)))
    told = provider_module.Provider(there.issuer, CLIENT_ID, CLIENT_SECRET, "Example ID")
    with pytest.raises(provider_module.ProviderFault) as fault:
        told.begun("http://localhost/")
    assert fault.value.away
    go_on.set()


def test_ways_to_the_provider_are_counted_by_address(browser: Browsers, there: IdentityProvider) -> None:
    seen = [browser(address="10.9.2.1").get("/sign-in/provider").status_code for _ in range(32)]
    assert seen == [303] * 30 + [429] * 2
    assert browser(address="10.9.2.2").get("/sign-in/provider").status_code == 303


def test_who_only_looks_begins_nothing(browser: Browsers, there: IdentityProvider) -> None:
    assert browser().client.head("/sign-in/provider").status_code == 204
    assert browser().get("/sign-in/provider", headers={"Sec-Purpose": "prefetch"}).status_code == 204
    assert there.asked == []


# -- linking -------------------------------------------------------------------------------------------------


def test_an_account_is_linked_after_a_question_in_the_browser_that_asked(
    browser: Browsers, cast: Cast, there: IdentityProvider, db: Session
) -> None:
    there.person = Person("7", "other@example.com", False)
    here = browser(cast.alice)
    asked = here.get(go(here, "/sign-in/provider?link=1"))
    assert asked.status_code == 200
    assert "Link this account?" in asked.text
    assert identities(db) == []
    held = asked.text.split('name="held" value="')[1].split('"')[0]
    for wrong in (held[:-2], "", "x"):
        assert here.post("/account/identities", held=wrong).status_code == 400
    for other in (browser(cast.alice), browser(cast.mallory)):
        assert other.post("/account/identities", held=held).status_code == 400
    assert here.client.post("/account/identities", data={"held": held}).status_code == 403  # no CSRF token
    assert identities(db) == []
    assert here.post("/account/identities", held=held).status_code == 303
    assert identities(db) == [(cast.alice.id, "7")]
    assert come_in(browser()).status_code == 303


def test_an_identity_of_another_user_is_not_taken_over(
    browser: Browsers, cast: Cast, there: IdentityProvider, db: Session
) -> None:
    ways.link_identity(db, cast.bob.id, there.issuer, "7", "")
    db.commit()
    there.person = Person("7", cast.alice.email)
    here = browser(cast.alice)
    asked = here.get(go(here, "/sign-in/provider?link=1"))
    held = asked.text.split('name="held" value="')[1].split('"')[0]
    answer = here.post("/account/identities", held=held)
    assert (answer.status_code, "another user here" in answer.text) == (409, True)
    assert identities(db) == [(cast.bob.id, "7")]


def test_who_finds_an_open_browser_links_nothing(
    browser: Browsers, alice: Player, there: IdentityProvider, db: Session
) -> None:
    here = browser(alice)
    from datetime import timedelta

    db.execute(update(SignIn).values(proved_at=database_time(db) - timedelta(minutes=16)))
    db.commit()
    there.person = Person("7", "thief@example.com", False)
    assert here.get(go(here, "/sign-in/provider?link=1")).status_code == 403
    assert identities(db) == []


def test_an_identity_is_unlinked_after_a_question_by_its_user_alone(
    browser: Browsers, cast: Cast, there: IdentityProvider, db: Session
) -> None:
    ways.link_identity(db, cast.alice.id, there.issuer, "7", "a@id.example")
    db.commit()
    (identity_id,) = db.scalars(select(Identity.id))
    path = f"/account/identities/{identity_id}/unlink"
    stranger, here = browser(cast.mallory), browser(cast.alice)
    assert stranger.get(path).status_code == stranger.post(path).status_code == 404
    assert "a@id.example" in here.get(path).text
    assert here.post(path).status_code == 303
    assert identities(db) == []
    there.person = Person("7", None)
    assert come_in(browser()).status_code == 403


def test_without_a_provider_there_is_no_way_to_one(
    engines: Settings, resources: Resources, tmp_path: Any
) -> None:
    from importlib import import_module

    plain = dataclasses.replace(engines, object_store_url=(tmp_path / "objects").as_uri())
    app: Flask = import_module("app").create_app(plain)
    client = app.test_client()
    assert client.get("/sign-in/provider").status_code == 404
    assert client.get("/sign-in/provider/answer?state=x").status_code == 404
    assert "Continue with" not in client.get("/sign-in").text
    app.extensions["allgone"].engine.dispose()

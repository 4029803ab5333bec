"""Every way in at a browser, the identity provider's among them; the pages before a sign-in are for everybody."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from flask import Flask
from playwright.sync_api import expect
from sqlalchemy.orm import Session
from werkzeug.serving import make_server

from blueprints.account import hashing
from blueprints.account import provider as provider_module
from models import ways
from models.settings import Settings
from tests.cast import Cast, Player
from tests.identity_provider import CLIENT_ID, CLIENT_SECRET, IdentityProvider, Person
from tests.journeys.window import Windows
from tests.s3_server import free_port

pytestmark = pytest.mark.browser
LOOKS = {"light": {}, "dark": {"color_scheme": "dark"}, "phone": {"viewport": {"width": 360, "height": 740}}}


@pytest.fixture
def there() -> Iterator[IdentityProvider]:
    provider_module.provider.cache_clear()
    with IdentityProvider() as made:
        yield made


@pytest.fixture
def settings(engines: Settings, there: IdentityProvider, tmp_path: Path) -> Settings:
    told = {"oidc_issuer": there.issuer, "oidc_client_id": CLIENT_ID, "oidc_client_secret": CLIENT_SECRET}
    store, address = (tmp_path / "objects").as_uri(), f"http://127.0.0.1:{free_port()}"
    return dataclasses.replace(
        engines, object_store_url=store, public_url=address, oidc_name="Example ID", **told
    )


@pytest.fixture
def live_server(app: Flask, settings: Settings) -> Iterator[str]:
    """The app where its links say that it is, since the provider sends the browser back to there."""
    server = make_server("127.0.0.1", int(settings.public_url.rpartition(":")[2]), app, threaded=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield settings.public_url
    server.shutdown()
    server.server_close()
    thread.join(10)


def test_the_way_to_the_provider_and_back_ends_where_one_wanted_to_be(
    window: Windows, alice: Player, there: IdentityProvider
) -> None:
    there.person = Person("7", alice.email)
    reader = window()
    reader.page.goto(f"{reader.address}/account")
    reader.page.get_by_role("link", name="Continue with Example ID").click()
    expect(reader.page.get_by_role("heading", name="Account", exact=True)).to_be_visible()
    part = reader.page.get_by_role("region", name="Signing in with Example ID")
    expect(part.get_by_role("row")).to_have_count(2)
    reader.page.wait_for_load_state()  # a question opens in place once the scripts have run; before, as a page
    part.get_by_role("link", name=f"Unlink {alice.email}").click()
    reader.page.get_by_role("alertdialog").get_by_role("button", name="Unlink").click()
    expect(part.get_by_role("status")).to_contain_text("unlinked")
    there.person = Person("8", "elsewhere@example.com", False)
    part.get_by_role("link", name="Link an account at Example ID").click()
    expect(reader.page.get_by_role("heading", name="Link this account?")).to_be_visible()
    assert reader.audit() == ""
    reader.page.get_by_role("button", name="Link it").click()
    expect(part.get_by_role("row")).to_have_count(2)
    expect(part).to_contain_text("elsewhere@example.com")


def test_who_says_no_or_cannot_be_told_comes_back_to_every_other_way_in(
    window: Windows, cast: Cast, there: IdentityProvider
) -> None:
    reader = window()
    reader.expect("403", "503")
    for person, said in (
        (None, "did not sign you in"),
        (Person("7", "new@example.com"), "Nobody here has the address"),
    ):
        there.person = person
        reader.page.goto(f"{reader.address}/sign-in")
        reader.page.get_by_role("link", name="Continue with Example ID").click()
        expect(reader.page.get_by_role("alert")).to_contain_text(said)
        assert reader.audit() == ""
        expect(reader.page.get_by_role("link", name="Continue with Example ID")).to_be_visible()
    provider_module.provider.cache_clear()
    there.stop()
    reader.page.get_by_role("link", name="Continue with Example ID").click()
    expect(reader.page.get_by_role("alert")).to_contain_text("does not answer as it should")


@pytest.mark.parametrize("look", LOOKS)
def test_every_page_before_a_sign_in_is_for_everybody(
    window: Windows, cast: Cast, there: IdentityProvider, look: str
) -> None:
    made = hashing.hashed_password("seven purple otters")
    with Session(cast.alice.engine) as db, db.begin():
        ways.set_password(db, cast.alice.id, made)
    reader = window(**LOOKS[look])
    reader.expect("401")
    reader.page.goto(f"{reader.address}/sign-in")
    assert reader.audit() == ""
    for heading in ("With your password", "By a link"):
        expect(reader.page.get_by_role("heading", name=heading)).to_be_visible()
    reader.page.get_by_label("E-mail address").fill("alice@example.com")
    reader.page.get_by_label("Password").fill("wrong")
    reader.page.keyboard.press("Enter")
    expect(reader.page.get_by_role("alert")).to_be_visible()
    assert reader.audit() == ""
    reader.sign_in(cast.bob)
    reader.page.goto(f"{reader.address}/sign-in/{cast.alice.link()}")
    expect(reader.page.get_by_role("heading", name="Sign in as someone else?")).to_be_visible()
    assert reader.audit() == ""
    reader.page.get_by_role("button", name="Sign in as alice@example.com").click()
    reader.settle()
    reader.page.goto(f"{reader.address}/account/close")
    assert reader.audit() == ""
    reader.page.get_by_label("Type the address").fill("alice@example.com")
    reader.page.get_by_role("button", name="Close the account").click()
    expect(reader.page.get_by_role("heading", name="Your account is closed")).to_be_visible()
    assert reader.audit() == ""
    wide = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    assert reader.page.evaluate(wide)

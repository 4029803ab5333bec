"""The Account page at a browser: secrets that are seen once, questions, sessions, the password, and the end."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, expect
from sqlalchemy import select
from sqlalchemy.orm import Session

from models.accounts import Token
from models.sign_ins import SignInLink
from tasks.closing import empty_account
from tasks.outbox import drain_due
from tasks.resources import Resources
from tests.cast import Cast, Player
from tests.journeys.window import Window, Windows
from tests.models.graph import fill

pytestmark = pytest.mark.browser
WORDS = "seven purple otters"
LOOKS = {
    "light": {},
    "dark": {"color_scheme": "dark"},
    "phone": {"viewport": {"width": 360, "height": 740}},
    "twice as large": {"viewport": {"width": 600, "height": 390}, "device_scale_factor": 2},
}


def part(reader: Window, name: str) -> Locator:
    return reader.page.get_by_role("region", name=name)


def come_back(reader: Window) -> None:
    """Comes back to a window that was signed out: the whole page goes to sign-in, and nothing into the list."""
    reader.page.evaluate("void window.dispatchEvent(new Event('focus'))")
    reader.page.wait_for_url(re.compile("/sign-in"))


def make_token(reader: Window, name: str = "laptop") -> str:
    """Makes a token; returns what the page shows."""
    tokens = part(reader, "API tokens")
    tokens.get_by_text("Make a token", exact=True).click()
    tokens.get_by_role("textbox", name="Name").fill(name)
    tokens.get_by_role("checkbox", name="Read your conversations").check()
    tokens.get_by_role("button", name="Make the token").click()
    return reader.page.get_by_label("Your new token").input_value()


def test_a_token_is_shown_copied_and_never_seen_again(
    window: Windows, alice: Player, resources: Resources
) -> None:
    reader = window(permissions=["clipboard-read", "clipboard-write"]).sign_in(alice).open("/account")
    secret = make_token(reader)
    assert secret.startswith("allgone_")
    reader.settle()
    assert reader.focused() == "The new token"
    part(reader, "API tokens").get_by_role("button", name="Copy").click()
    expect(reader.page.get_by_role("status").filter(has_text="Copied.")).to_be_visible()
    assert reader.page.evaluate("navigator.clipboard.readText()") == secret
    for leave in (reader.page.reload, lambda: reader.open("/"), reader.page.go_back, reader.page.go_back):
        leave()
        reader.settle()
        assert secret not in reader.page.content()
    with Session(resources.engine) as db:
        assert len(db.scalars(select(Token)).all()) == 1
    held = reader.page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])")
    assert secret not in held


def test_a_reload_that_sends_the_form_again_makes_no_second_token(
    window: Windows, alice: Player, resources: Resources
) -> None:
    reader = window(java_script_enabled=False)
    reader.sign_in_at_once(alice)
    reader.page.goto(f"{reader.address}/account")
    reader.expect("409")
    secret = make_token(reader)
    reader.page.reload()  # the browser sends the form again, as a reader does who confirms that
    expect(reader.page.get_by_role("alert")).to_contain_text("was sent already")
    assert secret not in reader.page.content()
    with Session(resources.engine) as db:
        assert len(db.scalars(select(Token)).all()) == 1


def test_a_token_is_revoked_by_the_keyboard_after_a_question(window: Windows, alice: Player) -> None:
    alice.token("session.read")
    reader = window().sign_in(alice).open("/account")
    revoke = reader.page.get_by_role("link", name="Revoke token without a name")
    for leave in ("Escape", "Cancel"):
        revoke.focus()
        reader.page.keyboard.press("Enter")
        dialog = reader.page.get_by_role("alertdialog")
        expect(dialog).to_have_accessible_name("Revoke this token?")
        assert reader.focused() == "Cancel"
        reader.page.keyboard.press("Escape" if leave == "Escape" else "Enter")
        expect(dialog).to_be_hidden()
        assert reader.focused() == "Revoke token without a name"
    reader.page.keyboard.press("Enter")
    reader.page.get_by_role("alertdialog").wait_for()
    reader.page.keyboard.press("Tab")
    assert reader.focused() == "Revoke token"
    reader.page.keyboard.press("Enter")
    expect(part(reader, "API tokens").get_by_role("status")).to_contain_text("The token is revoked")
    expect(revoke).to_have_count(0)
    assert reader.page.url.endswith("/account#tokens")  # and a reload says it no second time


def test_a_link_signs_another_device_in_which_is_then_signed_out_from_here(
    window: Windows, alice: Player, live_server: str
) -> None:
    here = window().sign_in(alice).open("/account")
    here.page.get_by_role("button", name="Make a link for another device").click()
    address = here.page.get_by_label("Your new link").input_value()
    expect(here.page.get_by_role("img", name="The link as a QR code")).to_be_visible()
    there = window(user_agent="Mozilla/5.0 (Android 15; Mobile; rv:140.0) Gecko/140.0 Firefox/140.0")
    there.page.goto(live_server + address.removeprefix("http://localhost"))
    there.settle()
    assert there.page.url == f"{live_server}/"
    here.open("/account")
    expect(part(here, "Where you are signed in").get_by_role("row")).to_have_count(3)
    here.page.get_by_role("button", name=re.compile("^Sign out Firefox on Android")).click()
    expect(part(here, "Where you are signed in").get_by_role("status")).to_contain_text("signed out")
    come_back(there)


def test_a_password_is_set_and_used_and_a_wrong_one_is_told_kindly(window: Windows, alice: Player) -> None:
    reader = window().sign_in(alice).open("/account")
    password = part(reader, "Password")
    password.get_by_text("Set a password", exact=True).click()
    password.get_by_label("New password").fill("password1234567")
    password.get_by_label("The same again").fill("password1234567")
    reader.expect("400")
    password.get_by_role("button", name="Set the password").click()
    expect(password).to_contain_text("tried first")
    password.get_by_label("New password").fill(WORDS)
    password.get_by_label("The same again").fill(WORDS)
    password.get_by_role("button", name="Set the password").click()
    expect(password.get_by_role("status")).to_contain_text("Your password is set")
    other = window()
    other.expect("401")
    other.page.goto(f"{other.address}/account")  # where the reader wants to be
    for typed in ("seven purple otter", WORDS):
        other.page.get_by_label("E-mail address").fill(alice.email)
        other.page.get_by_label("Password").fill(typed)
        other.page.get_by_role("button", name="Sign in", exact=True).click()
        if typed != WORDS:
            expect(other.page.get_by_role("alert")).to_contain_text("do not belong together")
            assert other.page.get_by_label("E-mail address").input_value() == alice.email
            assert other.page.get_by_label("Password").input_value() == ""
    expect(other.page.get_by_role("heading", name="Account", exact=True)).to_be_visible()


def test_the_account_is_closed_here_and_every_other_window_is_sent_to_sign_in(
    window: Windows, alice: Player, resources: Resources
) -> None:
    fill(resources, alice, "m")
    here, there = window().sign_in(alice).open("/account"), window().sign_in(alice)
    here.page.get_by_role("link", name="Close your account").click()
    expect(here.page.get_by_role("heading", name="Close your account?")).to_be_visible()
    here.page.get_by_label("Type the address of this account").fill(alice.email)
    here.page.get_by_role("button", name="Close the account").click()
    expect(here.page.get_by_role("heading", name="Your account is closed")).to_be_visible()
    expect(here.page.get_by_role("list")).to_contain_text("1 conversation")
    come_back(there)
    empty_account(resources, alice.id)
    here.page.get_by_role("link", name="Look again").click()
    expect(here.page.get_by_role("list")).to_contain_text("the bytes of 3 files")
    drain_due(resources)
    here.page.get_by_role("link", name="Look again").click()
    expect(here.page.get_by_text("Everything is gone")).to_be_visible()


def test_without_a_script_everything_works_too(window: Windows, alice: Player) -> None:
    reader = window(java_script_enabled=False)
    reader.sign_in_at_once(alice)
    reader.page.goto(f"{reader.address}/account")
    assert make_token(reader).startswith("allgone_")
    reader.page.get_by_role("link", name="Revoke token laptop").click()
    expect(reader.page.get_by_role("heading", name="Revoke this token?")).to_be_visible()
    reader.page.get_by_role("button", name="Revoke token").click()
    expect(reader.page.get_by_text("The token is revoked")).to_be_visible()


def test_a_form_of_another_sign_in_does_nothing_and_says_so(
    window: Windows, alice: Player, resources: Resources
) -> None:
    """FAULTS.md S98."""
    one = window().sign_in(alice).open("/account")
    two = one.context.new_page()
    two.goto(f"{one.address}/account")
    two.get_by_role("button", name="Sign out", exact=True).last.click()
    two.goto(f"{one.address}/sign-in/{alice.link()}")
    one.expect("403")
    one.page.get_by_role("button", name="Make a link for another device").click()
    expect(one.page.get_by_text("opened under another sign-in, so nothing was done")).to_be_visible()
    with Session(resources.engine) as db:
        assert db.scalars(select(SignInLink).where(SignInLink.used_at.is_(None))).all() == []


def test_operators_see_the_way_to_their_pages_and_others_do_not_know_that_they_exist(
    window: Windows, cast: Cast
) -> None:
    for player, seen in ((cast.olivia, 1), (cast.alice, 0)):
        reader = window().sign_in(player).open("/account")
        expect(reader.page.get_by_role("link", name="Operations")).to_have_count(seen)
    reader.expect("404")
    reader.page.goto(f"{reader.address}/operations/")
    expect(reader.page.get_by_role("heading", name="Not found")).to_be_visible()


def ask_to_revoke(reader: Window) -> None:
    reader.page.get_by_role("link", name=re.compile("^Revoke token")).first.click()
    reader.page.get_by_role("alertdialog").wait_for()
    reader.page.evaluate("Promise.allSettled(document.getAnimations().map((one) => one.finished))")


def leave_out_the_scopes(reader: Window) -> None:
    reader.expect("400")
    tokens = part(reader, "API tokens")
    tokens.get_by_text("Make a token", exact=True).click()
    tokens.get_by_role("textbox", name="Name").fill("laptop")
    tokens.get_by_role("button", name="Make the token").click()
    expect(tokens).to_contain_text("Choose at least one")


def type_another_address(reader: Window) -> None:
    reader.expect("400")
    reader.page.goto(f"{reader.address}/account/close")
    reader.page.get_by_label("Type the address").fill("bob@example.com")
    reader.page.get_by_role("button", name="Close the account").click()
    expect(reader.page.get_by_text("Nothing was closed")).to_be_visible()


STATES: dict[str, Callable[[Window], object]] = {
    "as it is": lambda reader: None,
    "a new token": make_token,
    "a new link": lambda reader: reader.page.get_by_role("button", name="Make a link").click(),
    "a question": ask_to_revoke,
    "a fault": leave_out_the_scopes,
    "the password's form": lambda reader: reader.page.get_by_text("Set a password", exact=True).click(),
    "another address": type_another_address,
}


@pytest.mark.parametrize("look", LOOKS)
def test_every_state_of_the_page_is_for_everybody(window: Windows, alice: Player, look: str) -> None:
    alice.token("session.read", "memory.read")
    window().sign_in(alice)  # elsewhere
    reader = window(**LOOKS[look]).sign_in(alice)
    for name, bring_about in STATES.items():
        reader.open("/account")
        bring_about(reader)
        reader.settle()
        assert reader.audit() == "", name
        wide = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
        assert reader.page.evaluate(wide), name
        # What scrolls is the pane, never the frame around it.
        assert (
            look not in ("light", "dark") or reader.page.evaluate("document.documentElement.scrollTop") == 0
        ), name

"""No answer, no connection, a slow one: what the page says and does by itself (PRODUCT.md 7; FAULTS.md S84, S87)."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from blueprints.conversation import REACHED
from tests.cast import Player
from tests.journeys.window import POLL, Held, Windows

pytestmark = pytest.mark.browser
QUESTION = re.compile(r"/conversations/[0-9a-f-]+/delete$")


def test_a_question_that_cannot_be_asked_says_that_nothing_was_deleted(
    window: Windows, alice: Player
) -> None:
    alice.converse("Groceries")
    reader = window().sign_in(alice)
    reader.expect("ERR_INTERNET_DISCONNECTED", "Failed to fetch")
    reader.context.set_offline(True)
    dialog = reader.ask("Groceries")
    expect(dialog.get_by_role("heading")).to_have_text("You are offline")
    expect(dialog).to_contain_text("Nothing was deleted by this. Try again once you are connected.")
    reader.context.set_offline(False)
    dialog.get_by_role("button", name="Try again").click()
    expect(dialog.get_by_role("heading")).to_have_text("Delete this conversation everywhere?")
    expect(dialog.get_by_role("button", name="Try again")).to_have_count(0)


def test_a_server_that_does_not_answer_is_told_and_asked_again_by_itself(
    window: Windows, alice: Player
) -> None:
    alice.converse("Keep me")
    reader = window()
    reader.page.clock.install()
    reader.sign_in(alice)
    reader.expect("502", "ERR_", "Failed to fetch")
    reader.page.route(POLL, lambda route: route.fulfill(status=502, body=""))
    with reader.page.expect_response(POLL):
        reader.page.clock.run_for(30_100)
    words = reader.page.locator("#away-words")
    expect(words).to_have_text(
        re.compile(
            r"^The server does not answer\. What you see is as it was at \d\d:\d\d, and nothing is lost\."
        )
    )
    assert reader.titles() == ["Keep me"]
    asked: list[str] = []
    reader.page.on("request", lambda request: asked.append(request.url))
    with reader.page.expect_response(POLL):
        reader.page.clock.run_for(5_100)
    with reader.page.expect_response(POLL):
        reader.page.clock.run_for(10_100)
    assert len(asked) == 2  # later each time, and not both by the clock of the poll and by its own
    reader.page.unroute_all()
    with reader.page.expect_response(POLL):
        reader.page.clock.run_for(20_100)
    expect(words).to_be_empty()
    expect(reader.said).to_have_text("Connected again.")


def test_without_a_connection_the_page_says_so_at_once_and_is_back_at_once(
    window: Windows, alice: Player
) -> None:
    reader = window().sign_in(alice)
    reader.expect("ERR_", "Failed to fetch")
    reader.context.set_offline(True)
    words = reader.page.locator("#away-words")
    expect(words).to_contain_text("No connection.")
    again = reader.page.get_by_role("button", name="Try now")
    with reader.page.expect_event("requestfailed"):
        again.click()
    expect(words).to_contain_text("No connection.")
    alice.converse("Written meanwhile")
    again.focus()
    reader.context.set_offline(False)
    expect(words).to_be_empty()
    expect(again).to_be_hidden()
    expect(reader.row("Written meanwhile")).to_be_visible()
    assert reader.page.evaluate("document.activeElement !== document.body")


def test_an_older_page_that_failed_is_loaded_once_the_server_answers(window: Windows, alice: Player) -> None:
    for number in range(60):
        alice.converse(f"Talk {number}")
    reader = window()
    reader.expect("ERR_", "Failed to fetch")
    older = re.compile(r"/history/older\?")
    reader.page.route(older, lambda route: route.abort())
    reader.sign_in_at_once(alice)
    with reader.page.expect_event("requestfailed"):
        reader.nav.locator("li").last.scroll_into_view_if_needed()
    reader.page.route(POLL, lambda route: route.abort())
    with reader.page.expect_event("requestfailed"):
        reader.page.evaluate("window.dispatchEvent(new Event('focus'))")
    reader.page.unroute_all()
    reader.page.get_by_role("button", name="Try now").click()
    expect(reader.row("Talk 0")).to_have_count(1)


def test_a_question_that_is_slow_to_come_shows_that_it_is_under_way(window: Windows, alice: Player) -> None:
    alice.converse("Plan")
    reader = window().sign_in(alice)
    late = Held(reader.page, QUESTION)
    reader.row("Plan").focus()
    reader.page.keyboard.press("Delete")
    late.arrive()
    dialog = reader.page.get_by_role("alertdialog", name="Counting what goes")
    expect(dialog).to_contain_text("Nothing is deleted before you say so.")
    assert reader.focused() == "Cancel"
    late.release()
    expect(
        reader.page.get_by_role("alertdialog", name="Delete this conversation everywhere?")
    ).to_be_visible()
    assert reader.focused() == "Cancel"


def test_a_question_that_comes_after_cancel_is_not_shown(window: Windows, alice: Player) -> None:
    alice.converse("Plan")
    reader = window().sign_in(alice)
    late = Held(reader.page, QUESTION)
    reader.row("Plan").focus()
    reader.page.keyboard.press("Delete")
    late.arrive()
    reader.page.get_by_role("button", name="Cancel").click()
    with reader.page.expect_response(QUESTION) as answer:
        late.release()
    answer.value.finished()
    reader.frame()
    expect(reader.page.get_by_role("alertdialog")).to_be_hidden()
    expect(reader.page.locator("#delete-body")).to_be_empty()


def test_a_slow_question_about_one_conversation_is_dropped_for_another(
    window: Windows, alice: Player
) -> None:
    for title in ("Second", "First"):
        alice.converse(title)
    reader = window().sign_in(alice)
    late = Held(reader.page, QUESTION)
    reader.row("First").focus()
    reader.page.keyboard.press("Delete")
    late.arrive()
    reader.page.get_by_role("button", name="Cancel").click()
    with reader.page.expect_event("requestfailed"):
        dialog = reader.ask("Second")
    expect(dialog.locator(".which")).to_have_text("Second")


def test_a_dialog_left_while_the_deletion_is_under_way_still_loses_the_row(
    window: Windows, alice: Player
) -> None:
    for title in ("Stays", "Goes"):
        alice.converse(title)
    reader = window().sign_in(alice)
    dialog = reader.ask("Goes")
    late = Held(reader.page, QUESTION)
    dialog.get_by_role("button", name="Delete everywhere").click()
    late.arrive()
    reader.page.keyboard.press("Escape")
    late.release()
    expect(reader.row("Goes")).to_have_count(0)
    expect(reader.said).to_have_text(f"Conversation deleted: {REACHED} See deletions")
    assert reader.focused() == "Stays"

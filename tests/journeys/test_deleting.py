"""Delete Everywhere at a browser: the question, the answer, each way to fail (FAULTS.md S64, S66, S84, S94, S98)."""

from __future__ import annotations

import re
import secrets
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import expect
from sqlalchemy import text
from sqlalchemy.orm import Session

from blueprints.conversation import REACHED
from models import runs
from models.append import Draft
from tasks.deletion import delete_now
from tasks.resources import Resources
from tests.attachments import attach
from tests.cast import Player
from tests.journeys.window import Window, Windows

pytestmark = pytest.mark.browser
DELETE = re.compile(r"/conversations/[0-9a-f-]+/delete$")
CONFIRM = "Delete everywhere"


def confirm(reader: Window) -> None:
    reader.page.get_by_role("alertdialog").get_by_role("button", name=CONFIRM, exact=True).click()


def test_the_question_says_what_goes_and_for_whom(
    window: Windows, alice: Player, resources: Resources
) -> None:
    talk = alice.converse("Plan", "Sure", "Thanks")
    attach(resources, alice, talk, "plan.txt", b"x" * 1234)
    alice.say(talk, Draft("memory_formed", {"text": "Alice plans"}))
    reader = window().sign_in(alice)
    dialog = reader.ask("Plan")
    for said in (
        "This server",
        "all synchronized clients",
        "all paired devices",
        "for good",
        "3 messages",
        "1 file (1.2 kB)",
        "1 memory",
    ):
        expect(dialog).to_contain_text(said)
    expect(dialog).to_have_accessible_name("Delete this conversation everywhere?")
    assert reader.focused() == "Cancel"


def test_cancel_and_escape_leave_everything_and_give_the_focus_back(window: Windows, alice: Player) -> None:
    alice.converse("Plan")
    reader = window().sign_in(alice)
    for leave in ("Cancel", "Escape"):
        dialog = reader.ask("Plan")
        if leave == "Cancel":
            dialog.get_by_role("button", name="Cancel", exact=True).click()
        else:
            reader.page.keyboard.press("Escape")
        expect(dialog).to_be_hidden()
        assert reader.focused() == "Delete conversation Plan"
        expect(reader.page.locator("#delete-body")).to_be_empty()
    assert reader.titles() == ["Plan"]


def test_the_keyboard_alone_deletes_and_goes_on_to_the_neighbour(window: Windows, alice: Player) -> None:
    for title in ("Third", "Second", "First"):
        alice.converse(title)
    reader = window().sign_in(alice)
    for doomed, neighbour in (("Second", "Third"), ("Third", "First"), ("First", "No conversations yet")):
        reader.row(doomed).focus()
        reader.page.keyboard.press("Tab")
        assert reader.focused() == f"Delete conversation {doomed}"
        reader.page.keyboard.press("Enter")
        reader.page.get_by_role("alertdialog").wait_for()
        reader.page.keyboard.press("Tab")
        assert reader.focused() == CONFIRM
        reader.page.keyboard.press("Enter")
        expect(reader.row(doomed)).to_have_count(0)
        expect(reader.said).to_have_text(f"Conversation deleted: {REACHED} See deletions")
        assert reader.focused().startswith(neighbour)


def test_a_deletion_here_is_seen_in_the_other_window(window: Windows, alice: Player) -> None:
    for title in ("Stays", "Goes"):
        alice.converse(title)
    here, there = window().sign_in(alice), window().sign_in(alice)
    here.ask("Goes")
    confirm(here)
    expect(here.row("Goes")).to_have_count(0)
    assert there.poll() == 200
    assert there.titles() == ["Stays"]


def test_bytes_that_are_still_owed_are_not_claimed_gone(
    window: Windows, alice: Player, resources: Resources
) -> None:
    talk = alice.converse("With a file")
    attach(resources, alice, talk, "a.txt", b"x")
    folder = Path(resources.settings.object_store_url.removeprefix("file://"))
    reader = window().sign_in(alice)
    reader.ask("With a file")
    shutil.rmtree(folder)
    folder.write_text("a plain file where the folder should be")
    confirm(reader)
    expect(reader.said).to_have_text(
        f"Conversation deleted: {REACHED} 1 file still being erased. See deletions"
    )


def test_a_run_is_stopped_and_then_the_deletion_confirmed_in_the_same_dialog(
    window: Windows, alice: Player
) -> None:
    talk = alice.converse("Busy")
    run_id = alice.start_run(talk)
    reader = window().sign_in(alice)
    dialog = reader.ask("Busy")
    expect(dialog).to_have_accessible_name("A run is still active")
    expect(dialog.get_by_role("button", name=CONFIRM)).to_have_count(0)
    dialog.get_by_role("button", name="Stop the run", exact=True).click()
    expect(dialog).to_contain_text("asked to stop")
    with Session(alice.engine) as db:
        assert db.get_one(runs.Run, run_id).cancel_requested
    alice.say(talk, Draft("run_ended", {"status": "cancelled"}), run_id=run_id)  # the worker saw it
    expect(dialog.get_by_role("button", name=CONFIRM)).to_be_visible()
    assert reader.focused() == "Cancel"
    confirm(reader)
    expect(reader.row("Busy")).to_have_count(0)


def test_a_run_that_begins_behind_the_question_is_told_in_it(window: Windows, alice: Player) -> None:
    talk = alice.converse("Busy")
    reader = window().sign_in(alice)
    reader.expect("409")
    dialog = reader.ask("Busy")
    alice.start_run(talk)
    confirm(reader)
    expect(dialog).to_have_accessible_name("A run is still active")
    expect(dialog.get_by_role("button", name="Stop the run")).to_be_visible()
    expect(reader.row("Busy")).to_have_count(1)


def test_what_is_gone_already_is_said_and_its_row_goes(
    window: Windows, alice: Player, resources: Resources
) -> None:
    first, second = alice.converse("First"), alice.converse("Second")
    alice.converse("Stays")
    reader = window().sign_in(alice)
    delete_now(resources, alice.owner, second)
    dialog = reader.ask("Second")
    expect(dialog).to_contain_text("was deleted on")
    expect(reader.row("Second")).to_have_count(0)
    dialog.get_by_role("button", name="Close").click()
    reader.ask("First")
    delete_now(resources, alice.owner, first)
    confirm(reader)
    expect(reader.said).to_have_text("This conversation was deleted before. See deletions")
    assert reader.titles() == ["Stays"]


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (500, "<p>Something broke on our side.</p>", "Something broke on our side."),
        (403, "<p>This page was opened under another sign-in.</p>", "another sign-in"),
        (502, "", "The server answered 502."),
        (None, "", "No answer came from the server"),
    ],
)
def test_a_failure_says_what_happened_and_keeps_the_row(
    window: Windows, alice: Player, status: int | None, body: str, said: str
) -> None:
    alice.converse("Keep me")
    reader = window().sign_in(alice)
    reader.expect(str(status), "ERR_", "Failed to fetch")
    dialog = reader.ask("Keep me")
    reader.page.route(
        DELETE, lambda route: route.fulfill(status=status, body=body) if status else route.abort()
    )
    confirm(reader)
    expect(dialog.get_by_role("alert")).to_contain_text(said)
    expect(reader.row("Keep me")).to_have_count(1)
    reader.page.unroute_all()
    confirm(reader)  # and it can be tried again at once
    expect(reader.row("Keep me")).to_have_count(0)


def test_a_confirmed_404_takes_the_row_out(window: Windows, alice: Player) -> None:
    alice.converse("Ghost")
    reader = window().sign_in(alice)
    reader.expect("404")
    dialog = reader.ask("Ghost")
    with Session(alice.engine) as db, db.begin():  # as if it had never been this reader's
        for table in ("search_entries", "events", "sessions"):
            db.execute(text(f"DELETE FROM {table}"))
    confirm(reader)
    expect(dialog.get_by_role("alert")).to_contain_text("deleted elsewhere")
    expect(reader.row("Ghost")).to_have_count(0)


def test_a_stale_form_is_refused_with_a_way_on(window: Windows, alice: Player) -> None:
    alice.converse("Keep me")
    reader = window().sign_in(alice)
    reader.expect("403")
    dialog = reader.ask("Keep me")
    reader.context.clear_cookies()
    other = reader.context.new_page()  # signs out and in again in another tab
    other.goto(f"{reader.address}/sign-in/{alice.link()}")
    confirm(reader)
    expect(dialog.get_by_role("alert")).to_contain_text("Load the page again")
    expect(reader.row("Keep me")).to_have_count(1)


def test_a_signed_out_reader_is_sent_to_sign_in(window: Windows, alice: Player) -> None:
    alice.converse("Keep me")
    reader = window().sign_in(alice)
    reader.ask("Keep me")
    reader.context.clear_cookies()
    confirm(reader)
    reader.page.wait_for_url("**/sign-in")


def test_without_a_script_the_question_is_a_page(window: Windows, alice: Player) -> None:
    alice.converse("Plain")
    reader = window(java_script_enabled=False).sign_in(alice)
    reader.nav.get_by_role("button", name="Delete conversation Plain").click(force=True)
    expect(reader.page.get_by_role("heading", level=1)).to_have_text("Delete this conversation everywhere?")
    reader.page.get_by_role("link", name="Cancel").click()
    reader.page.go_back()
    reader.page.get_by_role("button", name=CONFIRM).click()
    assert reader.page.url == f"{reader.address}/"
    expect(reader.nav).to_contain_text("No conversations yet")


def test_a_page_open_on_a_conversation_deleted_elsewhere_says_so(
    window: Windows, alice: Player, resources: Resources
) -> None:
    talk = alice.converse("Open here", "Words that must go")
    reader = window().sign_in(alice).open(f"/conversations/{talk}")
    reader.page.get_by_role("button", name="Delete this conversation").focus()
    delete_now(resources, alice.owner, talk)
    reader.poll()
    main = reader.page.get_by_role("main")
    expect(main).to_be_focused()
    expect(main).to_contain_text(re.compile(r"This conversation was deleted on \d+ \w+ \d{4} at \d\d:\d\d\."))
    assert "Words that must go" not in reader.page.content()
    assert reader.page.url == f"{reader.address}/"


def test_deleting_the_open_conversation_leads_on_and_back_does_not_show_it(
    window: Windows, alice: Player
) -> None:
    marker = f"marker-{secrets.token_hex(8)}"
    alice.converse("Another")
    talk = alice.converse("Open here", f"It holds {marker}")
    reader = window().sign_in(alice).open(f"/conversations/{talk}")
    expect(reader.page.get_by_role("main")).to_contain_text(marker)
    reader.ask("Open here")
    confirm(reader)
    expect(reader.page.get_by_role("main")).to_contain_text("was deleted on")
    assert reader.focused() == "Another"
    reader.row("Another").click()
    reader.settle()
    reader.page.go_back()
    reader.settle()
    assert marker not in reader.page.content()
    kept = reader.page.evaluate("""async () => JSON.stringify([
      Object.entries(localStorage), Object.entries(sessionStorage),
      await caches.keys(), (await indexedDB.databases()).map(d => d.name), history.state])""")
    assert kept == "[[],[],[],[],null]"
    reader.expect("404")
    reader.open(f"/conversations/{talk}")
    expect(reader.page.get_by_role("main")).to_contain_text("This conversation was deleted on")

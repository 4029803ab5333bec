"""Select mode at a browser: many conversations, one question, and what became of each (FAULTS.md S65, S84, S90)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Locator, expect
from sqlalchemy import text
from sqlalchemy.orm import Session

from blueprints.conversation import REACHED
from models.append import Draft
from tasks.deletion import delete_now
from tasks.resources import Resources
from tests.attachments import attach
from tests.cast import Player
from tests.journeys.window import Window, Windows, converse_at

pytestmark = pytest.mark.browser
CONFIRM = "Delete everywhere"


def fill(player: Player, count: int) -> list[str]:
    now = datetime.now(UTC)
    return [converse_at(player, now - timedelta(hours=n), f"Talk {n}") for n in range(count)]


def selecting(window: Windows, player: Player, **options: object) -> Window:
    reader = window(**options).sign_in(player)
    reader.page.get_by_role("button", name="Select", exact=True).click()
    return reader


def box(reader: Window, title: str) -> Locator:
    return reader.page.get_by_role("checkbox", name=f"Select {title}", exact=True)


def selected(reader: Window) -> list[str]:
    return [title.removeprefix("Select ") for title in reader.page.locator(".pick:checked").evaluate_all(
        "boxes => boxes.filter(b => b.getClientRects().length).map(b => b.ariaLabel)"
    )]  # fmt: skip


def ask(reader: Window) -> Locator:
    reader.page.get_by_role("button", name="Delete…").click()
    dialog = reader.page.get_by_role("alertdialog")
    dialog.wait_for()
    return dialog


def test_many_are_deleted_by_one_confirmation(window: Windows, alice: Player, resources: Resources) -> None:
    made = fill(alice, 6)
    attach(resources, alice, made[2], "a.txt", b"x" * 1234)
    alice.say(made[2], Draft("memory_formed", {"text": "likes tea"}))
    reader = selecting(window, alice)
    for number in (1, 2, 4):
        reader.row(f"Talk {number}").click()
    expect(reader.page.locator("#many-count")).to_have_text("3 selected")
    dialog = ask(reader)
    expect(dialog).to_have_accessible_name("Delete 3 conversations everywhere?")
    assert reader.focused() == "Cancel"
    for said in ("Talk 2", "Talk 1", "Talk 4", "3 messages", "1 file (1.2 kB)", "1 memory", "for good"):
        expect(dialog).to_contain_text(said)
    dialog.get_by_role("button", name=CONFIRM).click()
    expect(dialog).to_be_hidden()
    expect(reader.page.locator("#said")).to_have_text(f"3 conversations deleted: {REACHED} See deletions")
    assert sorted(reader.titles()) == ["Talk 0", "Talk 3", "Talk 5"]
    assert reader.focused() in {"Talk 3", "Talk 5"}
    expect(reader.page.locator(".pick")).to_have_count(0)
    assert reader.poll() in {200, 204}
    assert sorted(reader.titles()) == ["Talk 0", "Talk 3", "Talk 5"]


def test_the_keyboard_alone_selects_ranges_takes_back_and_leaves(window: Windows, alice: Player) -> None:
    fill(alice, 6)
    reader = window().sign_in(alice)
    reader.row("Talk 1").focus()
    reader.page.get_by_role("button", name="Select", exact=True).focus()
    reader.page.keyboard.press("Enter")
    assert reader.focused() == "Talk 0"
    reader.page.keyboard.press("ArrowDown")
    reader.page.keyboard.press(" ")
    assert selected(reader) == ["Talk 1"]
    for _ in range(2):
        reader.page.keyboard.press("ArrowDown")
    reader.page.keyboard.press("Shift+Space")
    assert selected(reader) == ["Talk 1", "Talk 2", "Talk 3"]
    reader.page.keyboard.press(" ")
    assert selected(reader) == ["Talk 1", "Talk 2"]
    reader.page.keyboard.press("Control+a")
    assert len(selected(reader)) == 6
    reader.page.keyboard.press("Delete")
    dialog = reader.page.get_by_role("alertdialog")
    expect(dialog).to_have_accessible_name("Delete 6 conversations everywhere?")
    reader.page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    assert reader.focused() == "Talk 3"
    assert len(selected(reader)) == 6
    reader.page.keyboard.press("Escape")
    expect(reader.page.locator(".pick")).to_have_count(0)
    assert reader.focused() == "Select"
    assert len(reader.titles()) == 6


def test_shift_and_a_click_select_a_range(window: Windows, alice: Player) -> None:
    fill(alice, 6)
    reader = selecting(window, alice)
    box(reader, "Talk 1").click()
    box(reader, "Talk 4").click(modifiers=["Shift"])
    assert selected(reader) == ["Talk 1", "Talk 2", "Talk 3", "Talk 4"]
    reader.row("Talk 0").click(modifiers=["Shift"])
    assert len(selected(reader)) == 5
    box(reader, "Talk 2").click()
    assert selected(reader) == ["Talk 0", "Talk 1", "Talk 3", "Talk 4"]
    assert len(reader.context.pages) == 1


def test_a_poll_keeps_the_selection_and_drops_what_is_gone(
    window: Windows, alice: Player, resources: Resources
) -> None:
    made = fill(alice, 5)
    reader = selecting(window, alice)
    for number in (1, 2):
        box(reader, f"Talk {number}").click()
    reader.watch()
    assert reader.poll() == 204
    assert reader.changes() == []
    alice.converse("Brand new")
    assert reader.poll() == 200
    assert selected(reader) == ["Talk 1", "Talk 2"]
    expect(box(reader, "Brand new")).not_to_be_checked()
    assert reader.changes() == [f"added {reader.page.locator('#history li').first.get_attribute('id')}"]
    delete_now(resources, alice.owner, made[2])
    assert reader.poll() == 200
    assert selected(reader) == ["Talk 1"]
    expect(reader.page.locator("#many-count")).to_have_text("1 selected")


def test_older_pages_can_be_selected_too(window: Windows, alice: Player) -> None:
    fill(alice, 80)
    reader = selecting(window, alice)
    box(reader, "Talk 0").click()
    reader.nav.locator("li").last.scroll_into_view_if_needed()
    expect(reader.row("Talk 79")).to_have_count(1)
    reader.page.get_by_role("button", name="Select all").click()
    expect(reader.page.locator("#many-count")).to_have_text("80 selected")


def test_what_has_an_active_run_is_named_and_stays_selected(window: Windows, alice: Player) -> None:
    made = fill(alice, 3)
    reader = selecting(window, alice)
    reader.page.get_by_role("button", name="Select all").click()
    alice.start_run(made[1])
    dialog = ask(reader)
    expect(dialog).to_have_accessible_name("Delete 2 conversations everywhere?")
    expect(dialog).to_contain_text("One stays, because a run is active in it: Talk 1.")
    alice.start_run(made[2])  # and another begins behind the question
    dialog.get_by_role("button", name=CONFIRM).click()
    expect(dialog).to_have_accessible_name("Not all were deleted")
    expect(dialog).to_contain_text(f"1 conversation deleted: {REACHED}")
    expect(dialog).to_contain_text("Talk 2: a run is active")
    dialog.get_by_role("button", name="Close").click()
    assert selected(reader) == ["Talk 1", "Talk 2"]


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (500, "<p>Something broke on our side.</p>", "Something broke"),
        (None, "", "No answer came from the server"),
    ],
)
def test_a_failure_in_the_middle_says_what_went_and_keeps_the_rest_selected(
    window: Windows, alice: Player, status: int | None, body: str, said: str
) -> None:
    fill(alice, 4)
    reader = selecting(window, alice)
    reader.expect(str(status), "ERR_", "Failed to")
    reader.page.get_by_role("button", name="Select all").click()
    dialog = ask(reader)
    reader.page.route(
        re.compile(r"/deletions$"),
        lambda route: route.fulfill(status=status, body=body) if status else route.abort(),
        times=1,
    )
    dialog.get_by_role("button", name=CONFIRM).click()
    expect(dialog).to_have_accessible_name("Nothing was deleted")
    expect(dialog).to_contain_text(said)
    expect(dialog).to_contain_text("4 were not tried, and stay selected.")
    dialog.get_by_role("button", name="Close").click()
    assert len(selected(reader)) == 4
    ask(reader).get_by_role("button", name=CONFIRM).click()
    expect(reader.nav).to_contain_text("No conversations yet")


def test_more_than_one_request_holds_are_deleted_in_turn(window: Windows, alice: Player) -> None:
    now = datetime.now(UTC)
    for number in range(230):
        converse_at(alice, now - timedelta(minutes=number), f"Talk {number}")
    reader = selecting(window, alice)
    while reader.nav.get_by_role("link", name="Show older conversations").count():
        shown = reader.nav.locator("li").count()
        reader.nav.locator("li").last.scroll_into_view_if_needed()
        reader.page.wait_for_function("n => document.querySelectorAll('#history li').length > n", arg=shown)
    reader.page.get_by_role("button", name="Select all").click()
    dialog = ask(reader)
    expect(dialog).to_have_accessible_name("Delete 230 conversations everywhere?")
    sent: list[int] = []
    reader.page.on(
        "request",
        lambda request: (
            sent.append((request.post_data or "").count("id="))
            if request.url.endswith("/deletions")
            else None
        ),
    )
    dialog.get_by_role("button", name=CONFIRM).click()
    expect(reader.page.locator("#said")).to_have_text(
        f"230 conversations deleted: {REACHED} See deletions", timeout=60_000
    )
    assert max(sent) <= 100
    expect(reader.nav).to_contain_text("No conversations yet")


def test_what_a_search_found_can_be_selected(window: Windows, alice: Player) -> None:
    for title in ("Tea one", "Coffee", "Tea two"):
        alice.converse(title)
    reader = selecting(window, alice)
    box(reader, "Coffee").click()
    reader.page.get_by_role("searchbox").fill("tea")
    expect(reader.page.locator("#found li")).to_have_count(2)
    reader.page.locator("#found li a").first.click()
    expect(reader.page.locator("#many-count")).to_have_text("2 selected")
    ask(reader).get_by_role("button", name=CONFIRM).click()
    expect(reader.page.locator("#found li")).to_have_count(1)
    reader.page.get_by_role("searchbox").fill("")
    expect(reader.nav).to_be_visible()
    assert reader.titles() == ["Tea one"]


def test_the_open_conversation_may_be_among_them(window: Windows, alice: Player) -> None:
    talk = alice.converse("Open here", "words that must go")
    alice.converse("Other")
    reader = window().sign_in(alice).open(f"/conversations/{talk}")
    reader.page.get_by_role("button", name="Select", exact=True).click()
    reader.page.get_by_role("button", name="Select all").click()
    ask(reader).get_by_role("button", name=CONFIRM).click()
    expect(reader.page.get_by_role("main")).to_contain_text("was deleted on")
    assert "words that must go" not in reader.page.content()


def test_all_means_also_those_that_are_not_loaded(window: Windows, alice: Player) -> None:
    fill(alice, 70)
    reader = selecting(window, alice)
    loaded = len(reader.titles())
    assert loaded < 70
    reader.page.get_by_role("button", name="Select all").click()
    expect(reader.page.locator("#many-count")).to_have_text(f"70 selected ({70 - loaded} not shown)")
    dialog = ask(reader)
    expect(dialog).to_have_accessible_name("Delete 70 conversations everywhere?")
    dialog.get_by_role("button", name=CONFIRM).click()
    expect(reader.page.locator("#said")).to_contain_text("70 conversations deleted", timeout=60_000)
    expect(reader.nav).to_contain_text("No conversations yet")
    expect(
        reader.page.get_by_role("button", name="Select", exact=True)
    ).to_be_hidden()  # there is nothing to select


def test_all_of_a_search_are_those_that_it_finds(window: Windows, alice: Player) -> None:
    fill(alice, 40)
    alice.converse("Groceries")
    reader = selecting(window, alice)
    reader.page.get_by_role("searchbox").fill("talk")
    expect(reader.page.locator("#results")).to_have_attribute("data-q", "talk")
    reader.page.get_by_role("button", name="Select all").click()
    expect(reader.page.locator("#many-count")).to_have_text(
        "40 selected"
    )  # each is in the list, if not in view


def test_all_without_an_answer_are_those_that_are_loaded(window: Windows, alice: Player) -> None:
    fill(alice, 70)
    reader = selecting(window, alice)
    loaded = len(reader.titles())
    reader.expect("500")
    reader.page.route("**/deletions/choices*", lambda route: route.fulfill(status=500))
    reader.page.get_by_role("button", name="Select all").click()
    expect(reader.page.locator("#said")).to_contain_text("Only those that are loaded are selected")
    expect(reader.page.locator("#many-count")).to_have_text(f"{loaded} selected")


def test_a_form_of_another_sign_in_says_so_and_loads_the_page_again(window: Windows, alice: Player) -> None:
    alice.converse("Groceries")
    reader = window().sign_in(alice)
    reader.expect("403")
    dialog = reader.ask("Groceries")
    reader.page.evaluate("document.querySelector('#delete-form [name=csrf_token]').value = 'stale'")
    dialog.get_by_role("button", name=CONFIRM).click()
    expect(dialog).to_contain_text("nothing was done")
    dialog.get_by_role("button", name="Load the page again").click()
    expect(dialog).to_be_hidden()
    reader.settle()
    reader.ask("Groceries").get_by_role("button", name=CONFIRM).click()
    expect(reader.page.locator("#said")).to_contain_text("Conversation deleted")


def test_files_are_told_until_all_are_erased(
    window: Windows, alice: Player, resources: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tasks import deletion

    monkeypatch.setattr(deletion, "drain_soon", lambda *_: False)
    for title in ("One", "Two"):
        attach(resources, alice, alice.converse(title), "a.txt", b"x")
    attach(resources, alice, alice.converse("Three"), "a.txt", b"x")
    reader = window().sign_in(alice)
    reader.ask("Three").get_by_role("button", name=CONFIRM).click()
    line = reader.page.locator("#erasing")
    expect(line).to_contain_text("1 file still being erased")
    reader.page.get_by_role("button", name="Select", exact=True).click()
    reader.page.get_by_role("button", name="Select all").click()
    ask(reader).get_by_role("button", name=CONFIRM).click()
    expect(reader.page.locator("#said")).to_contain_text("2 files still being erased.")
    expect(line).to_contain_text("3 files still being erased")
    assert reader.audit() == ""
    with Session(alice.engine) as db, db.begin():
        db.execute(text("DELETE FROM outbox WHERE key = (SELECT min(key) FROM outbox)"))
        db.execute(text("UPDATE outbox SET error = 'credentials'"))
    expect(line).to_contain_text("2 files can't be erased until an operator acts")
    with Session(alice.engine) as db, db.begin():
        db.execute(text("DELETE FROM outbox"))
    expect(reader.page.locator("#said")).to_have_text("All erased: no file is left.", timeout=15_000)
    expect(line).to_be_hidden()
    asked: list[str] = []
    reader.page.on("request", lambda request: asked.append(request.url))
    reader.page.wait_for_timeout(1500)  # nothing asks any more
    assert [one for one in asked if "progress" in one] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 360])
def test_each_state_is_accessible(window: Windows, alice: Player, scheme: str, width: int) -> None:
    made = fill(alice, 5)
    alice.start_run(made[3])
    reader = selecting(
        window, alice, viewport={"width": width, "height": 780}, color_scheme=scheme, reduced_motion="reduce"
    )
    assert reader.audit() == ""
    reader.page.get_by_role("button", name="Select all").click()
    assert reader.audit() == ""
    dialog = ask(reader)
    assert reader.audit() == ""
    alice.start_run(made[4])
    dialog.get_by_role("button", name=CONFIRM).click()
    expect(dialog).to_have_accessible_name("Not all were deleted")
    assert reader.audit() == ""

"""Searching at a browser: as one types, by the keyboard alone, and true to what changes (FAULTS.md S83 to S97)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import expect
from sqlalchemy import text
from sqlalchemy.orm import Session

from models.search import RESULTS
from tasks.deletion import delete_now
from tasks.resources import Resources
from tests.cast import Player
from tests.journeys.window import Held, Window, Windows, converse_at

pytestmark = pytest.mark.browser
SEARCH = re.compile(r"/history/search\?")


def type_in(reader: Window, query: str) -> None:
    """Types a query, and waits until what is shown answers it."""
    reader.page.get_by_role("searchbox", name="Search your conversations").fill(query)
    expect(reader.page.locator("#results")).to_have_attribute("data-q", query.strip())


def results(reader: Window) -> list[str]:
    return reader.page.locator("#found li a").all_inner_texts()


def marks(reader: Window) -> list[str]:
    """What is marked in the open conversation's text."""
    script = "() => [...(CSS.highlights.get('found') ?? [])].map(String)"
    found: list[str] = reader.page.evaluate(script)
    return found


def test_typing_finds_shows_the_words_and_leads_to_the_message(window: Windows, alice: Player) -> None:
    alice.converse("Groceries")
    talk = alice.converse(
        "A trip to Norway", *(f"filler {n}" for n in range(200)), "Take the blue tent", "Thanks"
    )
    reader = window().sign_in(alice)
    reader.page.keyboard.press("/")
    reader.page.keyboard.type("blue te")
    expect(reader.page.locator("#results")).to_have_attribute("data-q", "blue te")
    assert results(reader) == ["A trip to Norway"]
    assert reader.page.locator("#found mark").all_inner_texts() == ["blue", "te"]
    expect(reader.page.locator("#history")).to_be_hidden()
    expect(reader.nav.get_by_role("link", name="A trip to Norway")).to_be_visible()  # the landmark stays
    expect(reader.page.locator("#found-said")).to_have_text("1 conversation")
    reader.page.keyboard.press("ArrowDown")
    assert reader.focused() == "A trip to Norway"
    reader.page.keyboard.press("Enter")
    reader.page.wait_for_url(f"**/conversations/{talk}?*")
    reader.settle()
    expect(reader.page.get_by_text("Take the blue tent").last).to_be_in_viewport()
    assert marks(reader) == ["blue", "te"]
    assert results(reader) == ["A trip to Norway"]  # and the others stay beside it
    expect(reader.page.locator("#found a[aria-current=page]")).to_have_count(1)
    reader.page.go_back()
    reader.settle()
    assert results(reader) == ["A trip to Norway"]


def test_the_first_found_word_of_a_long_message_is_in_view_and_each_is_marked(
    window: Windows, alice: Player
) -> None:
    lines = "\n\n".join(f"Line {n} of *many* words." for n in range(300))
    alice.converse("A question", f"{lines}\n\nThe **zebra** (zebras, Zebra+) 斑馬の話\n\n{lines}", "Thanks")
    reader = window().sign_in(alice)
    type_in(reader, "zebra")
    reader.page.locator("#found li a").click()
    reader.page.wait_for_url("**/conversations/*")
    reader.settle()
    assert marks(reader) == ["zebra", "zebra", "Zebra"]
    seen = reader.page.evaluate(
        "() => { const box = [...CSS.highlights.get('found')][0].getBoundingClientRect();"
        " return box.top > 0 && box.bottom < innerHeight; }"
    )
    assert seen
    type_in(reader, "馬の")
    reader.page.locator("#found li a").click()
    reader.page.wait_for_function(
        "() => [...(CSS.highlights.get('found') ?? [])].map(String).join() === '馬の'"
    )


def test_an_empty_search_leads_down_into_the_list_and_shift_escape_to_the_page(
    window: Windows, alice: Player
) -> None:
    alice.converse("Groceries")
    reader = window().sign_in(alice)
    reader.page.keyboard.press("/")
    reader.page.keyboard.press("ArrowDown")
    assert reader.focused() == "Groceries"
    reader.page.keyboard.press("/")
    reader.page.keyboard.press("Shift+Escape")
    expect(reader.page.locator("#main")).to_be_focused()
    type_in(reader, "groc")
    reader.page.keyboard.press("Shift+Escape")
    expect(reader.page.locator("#main")).to_be_focused()
    reader.page.keyboard.press("Shift+Escape")  # and back, to what was found
    expect(reader.page.locator("#found li a")).to_be_focused()


def test_a_snippet_shows_words_and_not_their_markup(window: Windows, alice: Player) -> None:
    alice.converse("Hello", "## Plan\n\n- **Buy** a [blue tent](https://shop.example/tents)\n- `pack` it")
    reader = window().sign_in(alice)
    type_in(reader, "tent")
    assert reader.page.locator("#found .snippet").all_inner_texts() == ["Plan Buy a blue tent pack it"]
    type_in(reader, "shop.example")
    assert "shop.example" in reader.page.locator("#found .snippet").inner_text()


def test_escape_leads_back_to_the_list_and_the_focus_with_it(window: Windows, alice: Player) -> None:
    alice.converse("Groceries")
    alice.converse("Norway")
    reader = window().sign_in(alice)
    reader.row("Groceries").focus()
    reader.page.keyboard.press("/")
    reader.page.keyboard.type("norway")
    expect(reader.page.locator("#found li")).to_have_count(1)
    reader.page.keyboard.press("Escape")
    expect(reader.nav).to_be_visible()
    expect(reader.page.locator("#found")).to_be_empty()
    assert reader.page.url == f"{reader.address}/"
    expect(reader.page.get_by_role("searchbox")).to_be_focused()
    reader.page.keyboard.press("Escape")
    assert reader.focused() == "Groceries"


def test_nothing_found_is_said_kindly(window: Windows, alice: Player) -> None:
    alice.converse("Norway")
    reader = window().sign_in(alice)
    type_in(reader, "sweden")
    expect(reader.page.locator("#found")).to_contain_text("No conversation holds these words.")
    expect(reader.page.locator("#found-said")).to_have_text("No conversation holds these words.")
    reader.page.get_by_role("link", name="Clear").click()
    expect(reader.nav).to_be_visible()
    expect(reader.page.get_by_role("searchbox")).to_be_focused()


def test_a_late_older_answer_never_overwrites_a_newer(window: Windows, alice: Player) -> None:
    alice.converse("Norway")
    alice.converse("Sweden")
    reader = window().sign_in(alice)
    late = Held(reader.page, SEARCH)
    field = reader.page.get_by_role("searchbox")
    field.fill("norway")
    late.arrive()
    type_in(reader, "sweden")
    late.release()
    reader.frame()
    assert results(reader) == ["Sweden"]
    late = Held(reader.page, SEARCH)
    field.fill("norway")
    late.arrive()
    field.fill("")
    late.release()
    reader.frame()
    expect(reader.page.locator("#found")).to_be_empty()
    expect(reader.nav).to_be_visible()


def test_further_results_come_by_scrolling_each_once(window: Windows, alice: Player) -> None:
    now = datetime.now(UTC)
    for number in range(RESULTS * 3):
        converse_at(alice, now - timedelta(hours=number), f"Tea {number}")
    reader = window().sign_in(alice)
    asked: list[str] = []
    reader.page.on(
        "request", lambda request: asked.append(request.url) if SEARCH.search(request.url) else None
    )
    type_in(reader, "tea")
    while reader.page.locator("#found-more").count():
        shown = reader.page.locator("#found li").count()
        reader.page.locator("#found li").last.scroll_into_view_if_needed()
        reader.page.wait_for_function("n => document.querySelectorAll('#found li').length > n", arg=shown)
    assert results(reader) == [f"Tea {number}" for number in range(RESULTS * 3)]
    assert len(asked) == 3


def test_a_result_is_deleted_like_any_row(window: Windows, alice: Player) -> None:
    for title in ("Tea three", "Tea two", "Tea one"):
        alice.converse(title)
    alice.converse("Coffee")
    reader = window().sign_in(alice)
    type_in(reader, "tea")
    reader.page.locator("#found").get_by_role("button", name="Delete conversation Tea two").click(force=True)
    dialog = reader.page.get_by_role("alertdialog")
    dialog.get_by_role("button", name="Delete everywhere").click()
    expect(reader.page.locator("#found li")).to_have_count(2)
    assert results(reader) == ["Tea one", "Tea three"]
    assert reader.focused() == "Tea three"
    count = reader.page.locator("#found-count")
    expect(count).to_have_text("2 conversations")
    reader.page.keyboard.press("Delete")
    dialog.get_by_role("button", name="Delete everywhere").click()
    expect(reader.page.locator("#found li")).to_have_count(1)
    assert reader.focused() == "Tea one"
    expect(count).to_have_text("1 conversation")
    reader.page.get_by_role("searchbox").fill("")
    expect(reader.nav).to_be_visible()
    assert reader.titles() == ["Coffee", "Tea one"]


def test_a_result_that_was_deleted_elsewhere_goes_and_nothing_else_moves(
    window: Windows, alice: Player, resources: Resources
) -> None:
    made = [alice.converse(f"Tea {number}") for number in range(5)]
    reader = window().sign_in(alice)
    type_in(reader, "tea")
    kept = reader.page.locator("#found li").nth(1).element_handle()
    reader.page.evaluate("e => (e.mark = 1)", kept)
    reader.page.locator("#found li a").nth(1).focus()
    delete_now(resources, alice.owner, made[2])
    assert reader.poll() == 200
    expect(reader.page.locator("#found li")).to_have_count(4)
    assert results(reader) == ["Tea 4", "Tea 3", "Tea 1", "Tea 0"]
    expect(reader.page.locator("#found-count")).to_have_text("4 conversations")
    assert reader.focused() == "Tea 3"
    assert reader.page.evaluate("() => document.querySelectorAll('#found li')[1].mark") == 1


def test_polls_leave_the_list_beneath_true_and_the_results_alone(window: Windows, alice: Player) -> None:
    alice.converse("Tea")
    reader = window().sign_in(alice)
    type_in(reader, "tea")
    assert reader.poll() == 204
    alice.converse("Brand new")
    assert reader.poll() == 200
    assert results(reader) == ["Tea"]
    reader.page.get_by_role("searchbox").fill("")
    expect(reader.nav).to_be_visible()
    assert reader.titles() == ["Brand new", "Tea"]


@pytest.mark.parametrize("status", [500, 503, None])
def test_a_failing_search_says_so_and_can_be_tried_again(
    window: Windows, alice: Player, status: int | None
) -> None:
    alice.converse("Tea")
    reader = window().sign_in(alice)
    reader.expect(str(status), "ERR_", "Failed to")
    reader.page.route(
        SEARCH,
        lambda route: route.fulfill(status=status, body="<p>x</p>") if status else route.abort(),
        times=1,
    )
    reader.page.get_by_role("searchbox").fill("tea")
    expect(reader.page.locator("#found").get_by_role("alert")).to_contain_text("The search did not answer.")
    reader.page.get_by_role("button", name="Search again").click()
    expect(reader.page.locator("#found li")).to_have_count(1)


def test_a_sign_in_that_is_over_sends_the_page_to_sign_in(window: Windows, alice: Player) -> None:
    alice.converse("Tea")
    reader = window().sign_in(alice)
    with Session(alice.engine) as db, db.begin():
        db.execute(text("UPDATE sign_ins SET revoked_at = now()"))
    reader.page.get_by_role("searchbox").fill("tea")
    reader.page.wait_for_url("**/sign-in")


def test_without_a_script_the_search_is_a_form(window: Windows, alice: Player) -> None:
    talk = alice.converse("Tea", "with milk")
    alice.converse("Coffee")
    reader = window(java_script_enabled=False).sign_in(alice)
    field = reader.page.get_by_role("searchbox", name="Search your conversations")
    field.fill("milk")
    field.press("Enter")
    assert results(reader) == ["Tea"]
    expect(reader.page.locator("#history")).to_be_hidden()
    reader.page.locator("#found li a").click()
    assert reader.page.url == f"{reader.address}/conversations/{talk}?at=2&q=milk#e-2"
    reader.page.get_by_role("link", name="Clear").click()
    expect(reader.nav).to_be_visible()


@pytest.mark.parametrize(
    ("said", "query"),
    [
        ("私は東京都へ行く", "東京"),
        ("Crème brûlée", "creme"),
        ("Привет, ёлка", "елка"),
        ("مُحَمَّد يكتب", "محمد"),
        ("ภาษาไทย", "ไทย"),
        ("학교에서", "학교"),
    ],
)
def test_any_script_is_found_and_marked(window: Windows, alice: Player, said: str, query: str) -> None:
    alice.converse("Begin", said)
    reader = window().sign_in(alice)
    type_in(reader, query)
    assert results(reader) == ["Begin"]
    expect(reader.page.locator("#found .snippet mark")).to_have_count(1)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 360])
@pytest.mark.parametrize("query", ["tea", "nothing like it", "?!"])
def test_each_state_is_accessible(
    window: Windows, alice: Player, scheme: str, width: int, query: str, resources: Resources
) -> None:
    alice.converse("A cup of tea", "Which tea do you like best? " * 20)
    alice.converse("<b>tea</b> שלום")
    with resources.engine.begin() as connection:
        connection.execute(text("UPDATE sessions SET searched_from = 9 WHERE title LIKE 'A%'"))
    reader = window(viewport={"width": width, "height": 780}, color_scheme=scheme).sign_in(alice)
    type_in(reader, query)
    assert reader.audit() == ""

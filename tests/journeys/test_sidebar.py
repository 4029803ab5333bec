"""The list of the history, as a reader sees it change (PRODUCT.md 7; FAULTS.md S56, S63, S65, S83 to S95)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import expect
from sqlalchemy import text
from sqlalchemy.orm import Session

from models.append import Draft
from tasks.deletion import delete_now
from tasks.resources import Resources
from tests.cast import Player
from tests.journeys.window import POLL, Held, Windows, converse_at

pytestmark = pytest.mark.browser
OLDER = re.compile(r"/history/older\?")


def fill(player: Player, count: int) -> None:
    """`count` conversations, an hour apart, "Talk 0" the newest."""
    now = datetime.now(UTC)
    for number in range(count):
        converse_at(player, now - timedelta(hours=number), f"Talk {number}")


def test_a_link_signs_in_once_and_leaves_no_trace_in_the_address(window: Windows, alice: Player) -> None:
    alice.converse("Plan the trip")
    link = alice.link()
    one, two = window(), window()
    one.page.goto(f"{one.address}/sign-in/{link}")
    assert one.page.url == f"{one.address}/"
    expect(one.row("Plan the trip")).to_be_visible()
    two.expect("401")
    two.page.goto(f"{two.address}/sign-in/{link}")
    expect(two.page.get_by_role("alert")).to_contain_text("used already")


def test_rows_stand_under_the_readers_own_days(window: Windows, alice: Player) -> None:
    zone = ZoneInfo("Pacific/Kiritimati")  # 14 hours ahead: its day is rarely the server's
    midnight = datetime.now(zone).replace(hour=0, minute=0, second=0, microsecond=0)
    old = (midnight - timedelta(days=70)).replace(day=3)
    for title, at in {
        "Just after midnight": midnight + timedelta(seconds=1),
        "Just before midnight": midnight - timedelta(seconds=1),
        "A week ago": midnight - timedelta(days=6),
        "Weeks ago": midnight - timedelta(days=20),
        "Months ago": old,
    }.items():
        converse_at(alice, at, title)
    reader = window(timezone_id="Pacific/Kiritimati").sign_in(alice)
    groups = reader.nav.locator(".group")
    told = {
        groups.nth(at).locator("h2").inner_text(): groups.nth(at).locator("li a").all_inner_texts()
        for at in range(groups.count())
    }
    assert told == {
        "Today": ["Just after midnight"],
        "Yesterday": ["Just before midnight"],
        "Previous 7 days": ["A week ago"],
        "Previous 30 days": ["Weeks ago"],
        f"{old:%B %Y}": ["Months ago"],
    }


def test_a_title_is_text_whatever_it_holds(window: Windows, alice: Player) -> None:
    title = """<img src=x onerror="alert(1)"> & 'quotes'"""
    alice.converse(title)
    alice.converse("")
    alice.converse("שלום עולם")
    reader = window().sign_in(alice)
    assert reader.titles() == ["שלום עולם", "Untitled", title]
    dialog = reader.ask(title)
    expect(dialog.locator(".which")).to_have_text(title)


def test_a_row_whose_run_is_active_shows_it(window: Windows, alice: Player) -> None:
    alice.start_run(alice.converse("Busy"))
    reader = window().sign_in(alice)
    row = reader.nav.locator("li")
    expect(row.get_by_role("img", name="A run is active")).to_be_visible()
    expect(reader.row("Busy")).to_be_visible()


def test_an_empty_history_says_how_to_fill_it(window: Windows, alice: Player) -> None:
    reader = window().sign_in(alice)
    expect(reader.nav.get_by_role("link", name="Import your history")).to_be_visible()
    alice.converse("The first")
    assert reader.poll() == 200
    assert reader.titles() == ["The first"]


def test_scrolling_reaches_the_last_of_many_and_shows_none_twice(window: Windows, alice: Player) -> None:
    fill(alice, 260)
    reader = window().sign_in(alice)
    assert len(reader.titles()) >= 50
    last = reader.row("Talk 259")
    while last.count() == 0:
        shown = reader.nav.locator("li").count()
        reader.nav.locator("li").last.scroll_into_view_if_needed()
        reader.page.wait_for_function("n => document.querySelectorAll('#history li').length > n", arg=shown)
    assert reader.titles() == [f"Talk {number}" for number in range(260)]
    assert reader.nav.get_by_role("link", name="Show older conversations").count() == 0
    asked: list[str] = []
    reader.page.on("request", lambda request: asked.append(request.url))
    assert reader.poll() == 204
    assert len(asked) == 1


def test_the_keyboard_alone_reaches_the_last_of_many(window: Windows, alice: Player) -> None:
    fill(alice, 120)
    reader = window().sign_in(alice)
    reader.row("Talk 0").focus()
    while reader.row("Talk 119").count() == 0:
        shown = reader.nav.locator("li").count()
        reader.page.keyboard.press("End")
        reader.page.wait_for_function("n => document.querySelectorAll('#history li').length > n", arg=shown)
    reader.page.keyboard.press("End")
    assert reader.focused() == "Talk 119"
    reader.page.keyboard.press("Home")
    assert reader.focused() == "Talk 0"


def test_without_a_script_older_conversations_are_a_link_away(window: Windows, alice: Player) -> None:
    fill(alice, 60)
    reader = window(java_script_enabled=False).sign_in(alice)
    reader.nav.get_by_role("link", name="Show older conversations").click()
    assert reader.titles() == [f"Talk {number}" for number in range(50, 60)]


def test_an_unchanged_poll_changes_no_node(window: Windows, alice: Player) -> None:
    fill(alice, 5)
    reader = window().sign_in(alice)
    reader.watch("html")  # of the whole document, and no attribute either
    assert [reader.poll() for _ in range(3)] == [204, 204, 204]
    assert reader.changes() == []


def test_what_another_client_wrote_comes_to_the_top(window: Windows, alice: Player) -> None:
    fill(alice, 4)
    reader = window().sign_in(alice)
    kept = reader.row("Talk 3").element_handle()
    assert reader.page.evaluate("e => (e.mark = 1)", kept) == 1
    with Session(alice.engine) as db:
        oldest = db.execute(text("SELECT id FROM sessions WHERE title = 'Talk 3'")).scalar_one()
    alice.converse("Brand new")
    alice.say(str(oldest), Draft("user_message", {"content": "and more"}))
    assert reader.poll() == 200
    assert reader.titles() == ["Talk 3", "Brand new", "Talk 0", "Talk 1", "Talk 2"]
    # The row was moved, not made anew.
    assert reader.page.evaluate("() => document.querySelector('#history li a').mark") == 1


def test_a_deletion_elsewhere_takes_out_that_row_and_nothing_else(
    window: Windows, alice: Player, resources: Resources
) -> None:
    fill(alice, 45)
    doomed = converse_at(alice, datetime.now(UTC), "Doomed")
    reader = window().sign_in(alice)
    reader.row("Talk 30").scroll_into_view_if_needed()
    reader.row("Talk 30").focus()
    reader.page.evaluate("""() => {
      const range = document.createRange();
      range.selectNodeContents([...document.querySelectorAll('#history bdi')].find(e => e.innerText === 'Talk 31'));
      getSelection().removeAllRanges(); getSelection().addRange(range);
    }""")
    reader.frame()
    at = "() => [document.activeElement.getBoundingClientRect().top, getSelection().toString()]"
    before = reader.page.evaluate(at)
    reader.watch()
    delete_now(resources, alice.owner, doomed)
    assert reader.poll() == 200
    assert reader.changes() == [f"removed c-{doomed}"]
    assert reader.focused() == "Talk 30"
    assert reader.page.evaluate(at)[1] == before[1] == "Talk 31"
    assert "Doomed" not in reader.page.content()


@pytest.mark.parametrize("which", ["Talk 0", "Talk 2", "Talk 4"])
def test_deleting_any_row_takes_exactly_that_row(window: Windows, alice: Player, which: str) -> None:
    fill(alice, 5)
    reader = window().sign_in(alice)
    reader.ask(which).get_by_role("button", name="Delete everywhere").click()
    expect(reader.row(which)).to_have_count(0)
    assert reader.titles() == [f"Talk {n}" for n in range(5) if f"Talk {n}" != which]


def test_a_late_older_answer_brings_nothing_back(window: Windows, alice: Player) -> None:
    fill(alice, 3)
    reader = window().sign_in(alice)
    alice.converse("Something new")  # so that the poll is answered with a whole list
    doomed = (reader.row("Talk 1").get_attribute("href") or "").rpartition("/")[2]
    late = Held(reader.page, POLL)
    reader.page.evaluate("window.dispatchEvent(new Event('focus'))")
    late.arrive()
    reader.ask("Talk 1").get_by_role("button", name="Delete everywhere").click()
    expect(reader.row("Talk 1")).to_have_count(0)
    reader.watch()
    with reader.page.expect_response(POLL):
        late.release()
    # It was too old to be taken, and so asked for again.
    expect(reader.row("Something new")).to_be_visible()
    assert f"added c-{doomed}" not in reader.changes()
    assert reader.titles() == ["Something new", "Talk 0", "Talk 2"]


def test_a_late_page_brings_nothing_back(window: Windows, alice: Player, resources: Resources) -> None:
    fill(alice, 70)
    reader = window()
    late = Held(reader.page, OLDER)
    reader.sign_in_at_once(alice)
    reader.nav.locator("li").last.scroll_into_view_if_needed()
    late.arrive()
    with Session(alice.engine) as db:
        gone = str(db.execute(text("SELECT id FROM sessions WHERE title = 'Talk 60'")).scalar_one())
    delete_now(resources, alice.owner, gone)
    assert reader.poll() == 200
    reader.watch()
    late.release()
    expect(reader.row("Talk 69")).to_have_count(1)
    assert f"added c-{gone}" not in reader.changes()
    assert reader.titles() == [f"Talk {n}" for n in range(70) if n != 60]


def test_a_page_of_a_newer_list_does_not_hide_what_changed_above_it(window: Windows, alice: Player) -> None:
    fill(alice, 60)
    reader = window().sign_in(alice)
    alice.converse("Brand new")
    reader.nav.locator("li").last.scroll_into_view_if_needed()
    expect(reader.row("Talk 59")).to_have_count(1)
    assert reader.poll() == 200
    assert reader.titles() == ["Brand new", *(f"Talk {n}" for n in range(60))]


def test_an_expired_sign_in_sends_the_whole_page_and_paints_nothing_into_the_list(
    window: Windows, alice: Player
) -> None:
    alice.converse("Private")
    reader = window().sign_in(alice)
    with Session(alice.engine) as db, db.begin():
        db.execute(text("UPDATE sign_ins SET expires_at = now() - interval '1 second'"))
    reader.page.evaluate("window.dispatchEvent(new Event('focus'))")
    reader.page.wait_for_url("**/sign-in")
    assert "Private" not in reader.page.content()


def test_polling_keeps_no_sign_in_alive(window: Windows, alice: Player) -> None:
    reader = window().sign_in(alice)
    asked = "SELECT expires_at FROM sign_ins"
    with Session(alice.engine) as db:
        before = db.execute(text(asked)).scalar_one()
    with reader.page.expect_response(POLL) as answer:
        reader.page.evaluate("window.dispatchEvent(new Event('focus'))")
    assert "set-cookie" not in answer.value.headers
    with Session(alice.engine) as db:
        assert db.execute(text(asked)).scalar_one() == before


def test_a_return_to_the_window_asks_once_and_a_hidden_one_never(window: Windows, alice: Player) -> None:
    reader = window()
    reader.page.clock.install()
    reader.sign_in(alice)
    asked: list[str] = []
    reader.page.on("request", lambda request: asked.append(request.url))
    reader.page.evaluate("""() => {
      Object.defineProperty(document, 'visibilityState', { get: () => window.hidden_now ? 'hidden' : 'visible' });
      window.hidden_now = true;
      document.dispatchEvent(new Event('visibilitychange'));
    }""")
    reader.page.clock.run_for(10 * 60 * 1000)
    assert asked == []
    reader.page.evaluate("""() => {
      window.hidden_now = false;
      document.dispatchEvent(new Event('visibilitychange'));
      window.dispatchEvent(new Event('focus'));
      window.dispatchEvent(new Event('online'));
    }""")
    with reader.page.expect_response(POLL):
        reader.page.clock.run_for(1000)
    assert len(asked) == 1
    with reader.page.expect_response(POLL):
        reader.page.clock.run_for(30_000)
    assert len(asked) == 2


def test_a_new_day_regroups_the_list(window: Windows, alice: Player) -> None:
    fill(alice, 1)
    reader = window().sign_in(alice)
    assert reader.poll() == 204
    # The list in the page was made on another day than this one.
    reader.page.evaluate("document.getElementById('list-state').dataset.day = '2020-01-01 Europe/Oslo'")
    assert reader.poll() == 200
    assert reader.poll() == 204


def test_a_failing_server_leaves_the_list_alone(window: Windows, alice: Player) -> None:
    fill(alice, 3)
    reader = window().sign_in(alice)
    reader.expect("500", "ERR_", "Failed to fetch")
    reader.watch()
    reader.page.route(POLL, lambda route: route.fulfill(status=500, body="<p>broken</p>"), times=1)
    assert reader.poll() == 500
    reader.page.route(POLL, lambda route: route.abort(), times=1)
    with reader.page.expect_event("requestfailed"):
        reader.page.evaluate("window.dispatchEvent(new Event('focus'))")
    assert reader.changes() == []
    reader.page.unroute_all()
    assert reader.poll() == 204


def test_the_served_htmx_is_the_one_version(window: Windows, alice: Player) -> None:
    reader = window().sign_in(alice)
    assert reader.page.evaluate("htmx.version") == "4.0.1"
    assert reader.page.evaluate("htmx.config.noSwap") == [204, 304, "4xx", "5xx"]
    elsewhere = reader.page.evaluate(
        "() => performance.getEntriesByType('resource').filter(r => !r.name.startsWith(location.origin)).length"
    )
    assert elsewhere == 0

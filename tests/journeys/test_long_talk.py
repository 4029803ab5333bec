"""A conversation of ten thousand events: opened at its newest, read upward without a jump, found in the middle."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from models.append import Draft
from tests.cast import Player
from tests.journeys.window import Window, Windows

pytestmark = pytest.mark.browser
PART = re.compile(r"/part\?")
PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}

# The place of what is in view, whatever it is: its id, and how far below the top of the window it stands.
PLACE = """() => {
  const seen = [...document.querySelectorAll("#events > [id]")].find((one) => one.getBoundingClientRect().bottom > 80);
  return [seen.id, seen.getBoundingClientRect().top];
}"""
WHERE = "(id) => document.getElementById(id).getBoundingClientRect().top"
SCROLL = """(to) => {
  const main = document.getElementById("main");
  const box = getComputedStyle(main).overflowY === "visible" ? document.scrollingElement : main;
  box.scrollTop = to < 0 ? box.scrollHeight : to;
  return box.scrollTop;
}"""


def long_talk(player: Player, count: int = 10_000) -> str:
    """Messages of unequal height by turns, the first words of each its number."""
    talk = player.converse()
    kinds = ("user_message", "assistant_message")
    for start in range(0, count, 1000):
        player.say(
            talk,
            *(
                Draft(kinds[n % 2], {"content": f"word{n + 1}. " + "and so on " * (n * 7 % 90)})
                for n in range(start, min(count, start + 1000))
            ),
        )
    return talk


def ids(reader: Window) -> list[int]:
    found: list[str] = reader.page.locator("#events > [id]").evaluate_all("all => all.map((one) => one.id)")
    return [int(one[2:]) for one in found]


def is_at_end(reader: Window) -> bool:
    found: bool = reader.page.evaluate(
        """() => { const main = document.getElementById("main");
        const box = getComputedStyle(main).overflowY === "visible" ? document.scrollingElement : main;
        return box.scrollHeight - box.scrollTop - box.clientHeight < 2; }"""
    )
    return found


@pytest.mark.parametrize("screen", [{}, PHONE], ids=["desktop", "phone"])
def test_ten_thousand_events_open_at_the_newest_and_load_upward_without_a_jump(
    window: Windows, alice: Player, screen: dict[str, Any]
) -> None:
    talk = long_talk(alice)
    reader = window(**screen).sign_in(alice)
    reader.open(f"/conversations/{talk}")
    assert ids(reader)[-1] == 10_000
    assert len(ids(reader)) <= 200
    assert is_at_end(reader)
    for _ in range(4):
        shown = len(ids(reader))
        with reader.page.expect_response(PART):
            reader.page.evaluate(SCROLL, 700)
            name, at = reader.page.evaluate(PLACE)
        reader.page.wait_for_function(
            "n => document.querySelectorAll('#events > [id]').length > n", arg=shown
        )
        reader.frame()
        assert abs(reader.page.evaluate(WHERE, name) - at) <= 1
    reader.settle()
    found = ids(reader)
    assert found == list(range(found[0], 10_001))


def test_at_the_very_top_nothing_jumps_either(window: Windows, alice: Player) -> None:
    talk = long_talk(alice, 350)
    reader = window().sign_in(alice).open(f"/conversations/{talk}")
    while ids(reader)[0] > 1:
        shown = len(ids(reader))
        reader.page.evaluate(SCROLL, 0)
        name, at = reader.page.evaluate(PLACE)
        reader.page.wait_for_function(
            "n => document.querySelectorAll('#events > [id]').length > n", arg=shown
        )
        reader.frame()
        if ids(reader)[0] > 1:  # at the beginning the line above it goes, and there is nothing to hold on to
            assert abs(reader.page.evaluate(WHERE, name) - at) <= 1
    reader.settle()
    assert ids(reader) == list(range(1, 351))
    expect(reader.page.get_by_role("link", name="Show earlier messages")).to_have_count(0)


def test_the_links_do_it_by_keyboard_and_the_focus_stays(window: Windows, alice: Player) -> None:
    talk = long_talk(alice, 250)
    reader = window(viewport={"width": 1200, "height": 300}).sign_in(alice)
    reader.open(f"/conversations/{talk}")
    link = reader.page.get_by_role("link", name="Show earlier messages")
    while link.count():
        shown = len(ids(reader))
        link.focus()
        reader.page.keyboard.press("Enter")
        reader.page.wait_for_function(
            "n => document.querySelectorAll('#events > [id]').length > n", arg=shown
        )
        reader.settle()
    assert ids(reader) == list(range(1, 251))
    assert reader.page.evaluate("document.activeElement.id") == "e-1"


def test_an_event_in_the_middle_is_marked_in_view_and_read_on_from_both_ways(
    window: Windows, alice: Player
) -> None:
    talk = long_talk(alice, 1000)
    reader = window().sign_in(alice).open(f"/conversations/{talk}?at=500")
    marked = reader.page.locator("#e-500")
    expect(marked).to_be_in_viewport()
    assert reader.page.evaluate("document.activeElement.id") == "e-500"
    assert reader.audit() == ""
    for to, first in ((0, True), (-1, False)):
        before = ids(reader)
        reader.page.evaluate(SCROLL, to)
        reader.page.wait_for_function(
            "n => document.querySelectorAll('#events > [id]').length > n", arg=len(before)
        )
        reader.settle()
        now = ids(reader)
        assert (now[0] < before[0]) if first else (now[-1] > before[-1])
    while reader.page.locator("#later").count():
        reader.page.evaluate(SCROLL, -1)
        reader.frame()
    found = ids(reader)
    assert found == list(range(found[0], 1001))


def test_without_scripts_links_lead_through_it_all(window: Windows, alice: Player) -> None:
    talk = long_talk(alice, 250)
    reader = window(java_script_enabled=False).sign_in(alice)
    reader.open(f"/conversations/{talk}")
    seen = ids_of(reader)
    while reader.page.get_by_role("link", name="Show earlier messages").count():
        reader.page.get_by_role("link", name="Show earlier messages").click()
        seen = ids_of(reader) + seen
    assert seen == list(range(1, 251))
    reader.page.get_by_role("link", name="Show later messages").click()
    assert ids_of(reader)[0] == seen[50]
    reader.page.get_by_role("link", name="Back to the newest messages").click()
    assert ids_of(reader)[-1] == 250


def ids_of(reader: Window) -> list[int]:
    return [int(seq) for seq in re.findall(r'id="e-(\d+)"', reader.page.content())]


def test_a_part_that_does_not_come_is_asked_for_again(window: Windows, alice: Player) -> None:
    talk = long_talk(alice, 250)
    reader = window(viewport={"width": 1200, "height": 300}).sign_in(alice)
    reader.expect("ERR_FAILED")
    reader.page.route(PART, lambda route: route.abort(), times=1)
    reader.open(f"/conversations/{talk}")
    reader.page.evaluate(SCROLL, 0)
    again = reader.page.get_by_role("link", name="They could not be loaded. Try again")
    again.click()
    expect(reader.page.locator("#e-51")).to_be_attached()

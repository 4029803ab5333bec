"""The keyboard: every shortcut does what the sheet says, and none gets in the way of typing (WCAG 2.1.1, 2.1.4)."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, expect

from tests.cast import Player
from tests.journeys.window import Window, Windows

pytestmark = pytest.mark.browser
PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
# A field of somebody's to type into, wherever the page has none yet.
FIELD = """() => {
  const field = document.createElement("textarea");
  field.id = "typed";
  field.setAttribute("aria-label", "typed");
  document.querySelector("#main").append(field);
  field.focus();
}"""


def sheet(reader: Window) -> Locator:
    return reader.page.get_by_role("dialog", name="Keyboard shortcuts")


def question(reader: Window) -> Locator:
    return reader.page.get_by_role("alertdialog")


@pytest.fixture
def reader(window: Windows, alice: Player) -> Window:
    """Alice at a conversation, with another below it."""
    alice.converse("Below")
    talk = alice.converse("Open here", "An answer\n\n```python\nprint('hello')\n```")
    return window().sign_in(alice).open(f"/conversations/{talk}")


@pytest.mark.parametrize("keys", ["?", "Control+/"])
def test_the_sheet_comes_and_goes_by_its_key_and_by_its_button(reader: Window, keys: str) -> None:
    reader.page.keyboard.press(keys)
    expect(sheet(reader)).to_be_visible()
    reader.page.keyboard.press(keys)
    expect(sheet(reader)).to_be_hidden()
    button = reader.page.get_by_role("button", name="Shortcuts", exact=True)
    button.click()
    expect(sheet(reader)).to_be_visible()
    reader.page.keyboard.press("Escape")
    expect(sheet(reader)).to_be_hidden()
    expect(button).to_be_focused()


def test_the_sheet_lists_what_the_handler_obeys(reader: Window) -> None:
    reader.page.evaluate("""() => allgone.shortcut({
      keys: "mod+shift+y", group: "Anywhere", says: "A new one", run: () => (document.title = "It ran") })""")
    reader.page.keyboard.press("?")
    for said in (
        "A new one",
        "Show or hide the sidebar",
        "Next conversation",
        "Delete the open conversation everywhere; asks first",
        "Copy the last block of code",
    ):
        expect(sheet(reader).get_by_text(said)).to_be_visible()
    reader.page.keyboard.press("Control+Shift+Y")
    assert reader.page.title() != "It ran"  # nothing but the sheet's own keys while it is open
    reader.page.keyboard.press("Escape")
    reader.page.keyboard.press("Control+Shift+Y")
    assert reader.page.title() == "It ran"


@pytest.mark.parametrize("key", ["Delete", "Backspace"])
def test_delete_on_a_row_asks_about_that_row_and_gives_the_focus_back(reader: Window, key: str) -> None:
    reader.row("Open here").focus()
    reader.page.keyboard.press("ArrowDown")
    reader.page.keyboard.press(key)
    expect(question(reader).locator(".which")).to_have_text("Below")
    reader.page.keyboard.press(key)  # not a second question
    reader.page.keyboard.press("Escape")
    expect(question(reader)).to_be_hidden()
    assert reader.focused() == "Below"
    reader.page.keyboard.press(key)
    question(reader).wait_for()
    reader.page.keyboard.press("Tab")
    reader.page.keyboard.press("Enter")
    expect(reader.row("Below")).to_have_count(0)
    assert reader.focused() == "Open here"


def test_the_open_conversation_is_asked_about_from_anywhere(reader: Window) -> None:
    reader.page.keyboard.press("Control+Shift+Backspace")
    expect(question(reader).locator(".which")).to_have_text("Open here")


def test_the_sidebar_folds_away_and_stays_folded_on_the_next_page(reader: Window) -> None:
    reader.page.keyboard.press("Control+Shift+S")
    expect(reader.nav).to_be_hidden()
    assert reader.focused() == "Conversation history"
    reader.open("/")
    expect(reader.nav).to_be_hidden()
    reader.page.get_by_role("button", name="Conversation history", exact=True).click()
    expect(reader.nav).to_be_visible()
    reader.page.get_by_role("button", name="Hide the sidebar", exact=True).click()
    expect(reader.nav).to_be_hidden()
    reader.page.keyboard.press("Control+Shift+S")
    assert reader.focused() == "Open here"
    reader.open("/")
    expect(reader.nav).to_be_visible()


def test_the_focus_goes_from_the_list_to_the_page_and_back(reader: Window) -> None:
    reader.row("Below").focus()
    reader.page.keyboard.press("Shift+Escape")
    expect(reader.page.get_by_role("main")).to_be_focused()
    reader.page.keyboard.press("Shift+Escape")
    assert reader.focused() == "Open here"


def test_what_somebody_types_stays_theirs(reader: Window) -> None:
    reader.page.evaluate(FIELD)
    field = reader.page.get_by_role("textbox", name="typed")
    reader.page.keyboard.type("what? and/or")
    expect(field).to_have_value("what? and/or")
    reader.page.keyboard.press("Control+Shift+Backspace")
    reader.page.keyboard.press("Delete")
    expect(question(reader)).to_be_hidden()
    expect(sheet(reader)).to_be_hidden()
    # An input method that composes sends keys that are not the reader's word yet.
    for made in ("isComposing: true", "keyCode: 229"):
        reader.page.evaluate(
            "document.body.dispatchEvent(new KeyboardEvent('keydown',"
            f" {{ key: '?', bubbles: true, cancelable: true, {made} }}))"
        )
    expect(sheet(reader)).to_be_hidden()
    reader.page.keyboard.press("Control+/")
    expect(sheet(reader)).to_be_visible()


@pytest.mark.parametrize(
    ("event", "opens"),
    [
        ("{ key: '/', code: 'Digit7', shiftKey: true, ctrlKey: true }", True),  # a German keyboard
        ("{ key: '/', code: 'Slash', ctrlKey: true, altKey: true }", False),  # AltGr
        ("{ key: '/', code: 'Slash', metaKey: true }", False),
        ("{ key: '?', code: 'Slash', shiftKey: true, repeat: true }", False),
    ],
)
def test_a_shortcut_is_what_the_keyboard_says_and_no_other(reader: Window, event: str, opens: bool) -> None:
    reader.page.evaluate(
        f"document.body.dispatchEvent(new KeyboardEvent('keydown', {{ bubbles: true, cancelable: true, ...{event} }}))"
    )
    expect(sheet(reader)).to_be_visible() if opens else expect(sheet(reader)).to_be_hidden()


def test_a_letter_of_another_script_stands_for_the_one_on_its_key(reader: Window) -> None:
    reader.page.evaluate(
        "document.body.dispatchEvent(new KeyboardEvent('keydown',"
        " { key: 'Ы', code: 'KeyS', ctrlKey: true, shiftKey: true, bubbles: true, cancelable: true }))"
    )
    expect(reader.nav).to_be_hidden()


def test_single_keys_can_be_switched_off_for_good(reader: Window) -> None:
    reader.page.keyboard.press("?")
    reader.page.get_by_role("checkbox", name="Single keys").uncheck()
    reader.page.keyboard.press("Escape")
    for _ in range(2):
        reader.page.keyboard.press("?")
        expect(sheet(reader)).to_be_hidden()
        reader.open("/")
    reader.page.keyboard.press("Control+/")
    reader.page.get_by_role("checkbox", name="Single keys").check()
    reader.page.keyboard.press("?")
    expect(sheet(reader)).to_be_hidden()
    assert reader.page.evaluate("localStorage.length") == 0


def test_the_last_block_of_code_and_the_last_answer_are_copied(window: Windows, alice: Player) -> None:
    talk = alice.converse("Ask", "First\n\n```\none\n```", "Again", "Second\n\n```\ntwo\n```")
    reader = window(permissions=["clipboard-read", "clipboard-write"]).sign_in(alice)
    reader.open(f"/conversations/{talk}")
    for keys, copied in (("Control+Shift+;", "two"), ("Control+Shift+C", "Second\n\ntwo")):
        reader.page.keyboard.press(keys)
        expect(reader.said).to_have_text("Copied.")
        assert reader.page.evaluate("navigator.clipboard.readText()").strip() == copied
        reader.page.evaluate("document.getElementById('said').textContent = ''")


def test_the_drawer_of_a_phone_keeps_the_focus_until_it_is_closed(window: Windows, alice: Player) -> None:
    talk = alice.converse("Here", "with a [link](https://example.org)")
    reader = window(**PHONE).sign_in(alice).open(f"/conversations/{talk}")
    reader.page.keyboard.press("Control+Shift+S")
    expect(reader.nav).to_be_visible()
    assert reader.focused() == "Here"
    for _ in range(12):
        reader.page.keyboard.press("Tab")
        inside = "!document.activeElement.closest('main')"
        assert reader.page.evaluate(inside)
    reader.page.keyboard.press("Escape")
    expect(reader.nav).to_be_hidden()
    assert reader.focused() == "Conversation history"
    reader.page.keyboard.press("Tab")
    assert reader.page.evaluate("!!document.activeElement.closest('main')")
    reader.page.get_by_role("button", name="Conversation history", exact=True).tap()
    reader.page.touchscreen.tap(350, 400)  # beside it
    expect(reader.nav).to_be_hidden()

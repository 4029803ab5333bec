"""Reading a conversation, on every kind of screen (PRODUCT.md 7); test_accessible.py looks at each with axe."""

from __future__ import annotations

import secrets

import pytest
from playwright.sync_api import expect

from models.append import Draft
from tasks.resources import Resources
from tests.attachments import attach
from tests.cast import Player
from tests.journeys.window import Window, Windows

pytestmark = pytest.mark.browser
PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
RICH = """# Result

Some *words*, `code` and a [link](https://example.org).

```python
def f(x: int) -> str:  # a comment
    return f"{x}"
```

| name | amount |
|------|-------:|
| one  | 1 |

### Deeper

> quoted
"""


def talk_of_everything(player: Player, resources: Resources) -> str:
    talk = player.converse("How does it all look?", RICH, "שלום, מה שלומך?", "x" * 300)
    player.say(
        talk,
        Draft("tool_call", {"call_id": "1", "name": "search", "arguments": {"q": "look " * 60}}),
        Draft("tool_result", {"call_id": "1", "output": "three hits", "status": "ok"}),
        Draft("memory_formed", {"text": "Alice looks"}),
    )
    attach(resources, player, talk, "notes.txt", b"bytes of notes")
    return talk


def fits(reader: Window) -> bool:
    """Whether the page is as wide as its window: nothing to scroll sideways."""
    found: bool = reader.page.evaluate(
        "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    )
    return found


def test_a_script_in_a_message_does_nothing(window: Windows, alice: Player) -> None:
    hostile = (
        "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">\n\n"
        "[x](javascript:document.title='owned') ![i](https://tracker.invalid/x.gif)"
    )
    talk = alice.converse(hostile, hostile)
    alice.say(
        talk, Draft("tool_call", {"call_id": hostile[:200], "name": hostile[:200], "arguments": hostile})
    )
    reader = window().sign_in(alice)
    asked: list[str] = []
    reader.page.on("request", lambda request: asked.append(request.url))
    reader.open(f"/conversations/{talk}")
    assert "owned" not in reader.page.title().replace("'owned'", "")
    assert all(url.startswith(reader.address) for url in asked)
    assert reader.page.locator("main script, main img, main a[href^='javascript']").count() == 0


def test_tools_unfold_and_files_download(window: Windows, alice: Player, resources: Resources) -> None:
    talk = talk_of_everything(alice, resources)
    reader = window().sign_in(alice).open(f"/conversations/{talk}")
    main = reader.page.get_by_role("main")
    expect(main.get_by_text("three hits")).to_be_hidden()
    main.get_by_text("search").click()
    expect(main.get_by_text("three hits")).to_be_visible()
    main.get_by_text("1 file").click()
    with reader.page.expect_download() as download:
        main.get_by_role("link", name="notes.txt").click()
    assert download.value.path().read_bytes() == b"bytes of notes"
    expect(main).to_contain_text("1 memory formed here")


def test_the_open_row_is_in_view_however_deep(window: Windows, alice: Player) -> None:
    talk = alice.converse("Deep down")
    for number in range(80):
        alice.converse(f"Above {number}")
    reader = window().sign_in(alice).open(f"/conversations/{talk}")
    row = reader.row("Deep down")
    expect(row).to_have_attribute("aria-current", "page")
    expect(row).to_be_in_viewport()


def test_on_a_phone_the_list_is_a_drawer_beside_a_conversation(window: Windows, alice: Player) -> None:
    other, talk = alice.converse("Another"), alice.converse("Here")
    reader = window(**PHONE).sign_in(alice)
    expect(reader.row("Here")).to_be_visible()
    reader.row("Here").tap()
    reader.page.wait_for_url(f"**/{talk}")
    reader.settle()
    expect(reader.row("Another")).to_be_hidden()
    button = reader.page.get_by_role("button", name="Conversation history", exact=True)
    button.focus()
    reader.page.keyboard.press("Enter")
    expect(reader.row("Another")).to_be_visible()
    reader.page.keyboard.press("Escape")
    expect(reader.row("Another")).to_be_hidden()
    assert reader.focused() == "Conversation history"
    button.tap()
    # Deleting from the drawer: the button is there without hovering, and the drawer stays.
    reader.nav.get_by_role("button", name="Delete conversation Another", exact=True).tap()
    reader.page.get_by_role("alertdialog").get_by_role("button", name="Delete everywhere").tap()
    expect(reader.nav.get_by_role("link", name="Another")).to_have_count(0)
    assert reader.focused() == "Here"
    assert fits(reader)
    assert other


def test_signing_out_ends_it_here(window: Windows, alice: Player) -> None:
    marker = f"marker-{secrets.token_hex(8)}"
    alice.converse(marker)
    reader = window().sign_in(alice)
    reader.page.get_by_role("button", name="Sign out").click()
    reader.page.wait_for_url("**/sign-in")
    reader.page.go_back()
    reader.settle()
    assert reader.page.url.endswith("/sign-in")
    assert marker not in reader.page.content()

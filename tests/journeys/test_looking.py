"""Looking at what a conversation holds: pictures, texts, code to copy, and exports to take along."""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any

import pytest
from playwright.sync_api import expect

from models.append import Draft
from tasks.resources import Resources
from tests.attachments import attach
from tests.cast import Player
from tests.journeys.window import Windows

pytestmark = pytest.mark.browser
SCREENS: list[dict[str, Any]] = [
    {},
    {"color_scheme": "dark"},
    {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True},
]


def png(width: int = 40, height: int = 30) -> bytes:
    """A picture of one colour."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + b"\x17\x60\x5a" * width) * height
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def talk_of_files(player: Player, resources: Resources) -> str:
    talk = player.converse("Look at these")
    attach(resources, player, talk, "plot.png", png(), "image/png")
    attach(resources, player, talk, "table.csv", b"name,amount\none,<1>\n", "text/csv")
    attach(resources, player, talk, "data.bin", b"\0\1", "application/octet-stream")
    said = (
        "![the plot](sandbox:/mnt/data/plot.png)\n\n![from elsewhere](https://example.org/x.png)\n\n"
        "```python\nprint('copy me')\n```\n\n- [x] done\n- [ ] open\n\nA $a_1*b*c$ and a note[^1].\n\n[^1]: noted"
    )
    player.say(talk, Draft("assistant_message", {"content": said}))
    return talk


@pytest.mark.parametrize("screen", SCREENS, ids=["light", "dark", "phone"])
def test_pictures_are_shown_from_attachments_and_nothing_is_fetched_from_elsewhere(
    window: Windows, alice: Player, resources: Resources, screen: dict[str, Any]
) -> None:
    talk = talk_of_files(alice, resources)
    reader = window(reduced_motion="reduce", **screen).sign_in(alice)
    asked: list[str] = []
    reader.page.on("request", lambda request: asked.append(request.url))
    reader.open(f"/conversations/{talk}")
    pictures = reader.page.locator("#events img")
    expect(pictures).to_have_count(2)
    for at in range(2):
        pictures.nth(at).scroll_into_view_if_needed()
        reader.page.wait_for_function(
            "n => document.querySelectorAll('#events img')[n].naturalWidth === 40", arg=at
        )
    assert all(url.startswith(reader.address) for url in asked)
    expect(reader.page.get_by_text("(example.org)")).to_be_visible()
    reader.page.locator("details.file summary").click()
    expect(reader.page.get_by_text("one,<1>")).to_be_visible()
    reader.page.locator("details").evaluate_all("all => all.forEach(one => one.open = true)")
    assert reader.audit() == ""
    assert reader.page.evaluate(
        "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    )


def test_code_is_copied_and_it_is_said(window: Windows, alice: Player, resources: Resources) -> None:
    talk = talk_of_files(alice, resources)
    reader = window(permissions=["clipboard-read", "clipboard-write"]).sign_in(alice)
    reader.open(f"/conversations/{talk}")
    reader.page.locator(".prose pre.code").hover()
    reader.page.locator(".prose").get_by_role("button", name="Copy").click()
    expect(reader.page.locator("#said")).to_have_text("Copied.")
    assert reader.page.evaluate("navigator.clipboard.readText()") == "print('copy me')\n"


def test_a_conversation_is_taken_along_by_its_menu(window: Windows, alice: Player) -> None:
    talk = alice.converse("Take me along", "Gladly")
    reader = window(reduced_motion="reduce").sign_in(alice).open(f"/conversations/{talk}")
    more = reader.page.get_by_role("button", name="More about this conversation")
    for label, name in (("Export as Markdown", "Take me along.md"), ("Export as JSON", "Take me along.json")):
        more.press("Enter")
        assert reader.audit() == ""
        with reader.page.expect_download() as download:
            reader.page.get_by_role("link", name=label).click()
        assert download.value.suggested_filename == name
        data = download.value.path().read_text("utf-8")
        assert "Gladly" in data
        reader.page.keyboard.press("Escape")
    assert json.loads(data)[0]["title"] == "Take me along"

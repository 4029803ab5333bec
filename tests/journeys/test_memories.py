"""Deleting what was remembered in a conversation, by mouse, by keyboard, and without scripts (PRODUCT.md 7)."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from models.append import Draft
from tasks.resources import Resources
from tests.cast import Player
from tests.journeys.window import Windows
from tests.models.graph import held_texts

pytestmark = pytest.mark.browser


def remembering(player: Player, *texts: str) -> str:
    talk = player.converse("Remember this")
    player.say(talk, *(Draft("memory_formed", {"text": text}) for text in texts))
    return talk


def test_a_memory_is_deleted_by_its_question_and_the_focus_goes_on(
    window: Windows, resources: Resources, alice: Player
) -> None:
    talk = remembering(alice, "Likes tea", "Lives in Oslo", "אוהבת ים")
    reader = window(reduced_motion="reduce").sign_in(alice).open(f"/conversations/{talk}")
    reader.page.get_by_text("3 memories formed here").click()
    assert reader.audit() == ""
    reader.page.get_by_role("button", name="Delete memory Likes tea").click()
    dialog = reader.page.get_by_role("alertdialog", name="Delete memory")
    expect(dialog).to_contain_text("at their next sync, from your paired devices")
    assert reader.focused() == "Cancel"
    assert reader.audit() == ""
    reader.page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    assert reader.focused() == "Delete memory Likes tea"
    reader.page.keyboard.press("Enter")
    dialog.get_by_role("button", name="Delete memory").click()
    expect(dialog).to_be_hidden()
    expect(reader.page.get_by_text("2 memories formed here")).to_be_visible()
    expect(reader.page.locator("#said")).to_have_text("Memory deleted.")
    assert reader.focused() == "Delete memory Lives in Oslo"
    assert held_texts(resources, alice) == {"Lives in Oslo", "אוהבת ים"}
    for name in ("Lives in Oslo", "אוהבת ים"):
        reader.page.get_by_role("button", name=f"Delete memory {name}").press("Enter")
        dialog.get_by_role("button", name="Delete memory").press("Enter")
        expect(dialog).to_be_hidden()
    expect(reader.page.locator("#memories")).to_have_count(0)
    assert reader.page.evaluate("document.activeElement.id") == "main"
    assert held_texts(resources, alice) == set()


def test_a_failure_keeps_the_memory_and_says_what_happened(
    window: Windows, resources: Resources, alice: Player
) -> None:
    talk = remembering(alice, "Likes tea")
    reader = window().sign_in(alice).open(f"/conversations/{talk}")
    reader.expect("ERR_FAILED")
    reader.page.get_by_text("1 memory formed here").click()
    reader.page.get_by_role("button", name="Delete memory Likes tea").click()
    dialog = reader.page.get_by_role("alertdialog")
    reader.page.route("**/memories/*/delete", lambda route: route.abort(), times=1)
    dialog.get_by_role("button", name="Delete memory").click()
    expect(dialog.get_by_role("alert")).to_contain_text("No answer came from the server")
    assert held_texts(resources, alice) == {"Likes tea"}
    dialog.get_by_role("button", name="Delete memory").click()
    expect(dialog).to_be_hidden()
    assert held_texts(resources, alice) == set()


def test_it_works_without_scripts(window: Windows, resources: Resources, alice: Player) -> None:
    talk = remembering(alice, "Likes tea")
    reader = window(java_script_enabled=False).sign_in(alice).open(f"/conversations/{talk}")
    reader.page.get_by_text("1 memory formed here").click()
    reader.page.get_by_role("button", name="Delete memory Likes tea").click()
    reader.page.get_by_role("button", name="Delete memory").click()
    reader.page.wait_for_url(f"**/conversations/{talk}#beside")
    assert held_texts(resources, alice) == set()

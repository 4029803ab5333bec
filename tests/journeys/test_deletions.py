"""The Deletions page: what was deleted, how far it has come, and nothing that says what it was."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect
from sqlalchemy import text
from sqlalchemy.orm import Session

from tasks import deletion
from tasks.deletion import delete_now
from tasks.resources import Resources
from tests.attachments import attach
from tests.cast import Player
from tests.journeys.window import Windows

pytestmark = pytest.mark.browser


def test_each_deletion_is_told_as_far_as_it_is_known_and_becomes_true_by_itself(
    window: Windows, alice: Player, resources: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deletion, "drain_soon", lambda *_: False)
    for title, files in (("Secret one", 0), ("Secret two", 2)):
        talk = alice.converse(title)
        for number in range(files):
            attach(resources, alice, talk, f"{number}.txt", b"x")
        delete_now(resources, alice.owner, talk)
    reader = window().sign_in(alice)
    reader.page.get_by_role("link", name="Deletions").click()
    main = reader.page.get_by_role("main")
    expect(main.get_by_role("heading", level=1)).to_have_text("Deletions")
    files = main.locator("td[data-label=Files]")
    expect(files).to_have_text(["2 still being erased", "None left"])
    expect(main.locator("td[data-label='This server']")).to_have_text(["Gone", "Gone"])
    assert "Secret" not in reader.page.content()
    with Session(alice.engine) as db, db.begin():
        db.execute(text("DELETE FROM outbox"))
    expect(files).to_have_text(["None left", "None left"], timeout=20_000)
    expect(reader.page.locator("#deletions[hx-get]")).to_have_count(0)


def test_without_a_script_older_deletions_are_a_link_away(
    window: Windows, alice: Player, resources: Resources
) -> None:
    for number in range(55):
        delete_now(resources, alice.owner, alice.converse(str(number)))
    reader = window(java_script_enabled=False).sign_in(alice).open("/deletions")
    expect(reader.page.locator("#deletions tbody tr")).to_have_count(50)
    reader.page.get_by_role("link", name="Show older deletions").click()
    expect(reader.page.locator("#deletions tbody tr")).to_have_count(5)
    reader.page.get_by_role("link", name="Back to the newest deletions").click()
    expect(reader.page.locator("#deletions tbody tr")).to_have_count(50)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 360])
@pytest.mark.parametrize("some", [True, False], ids=["some", "none"])
def test_each_state_is_accessible(
    window: Windows, alice: Player, resources: Resources, scheme: str, width: int, some: bool
) -> None:
    if some:
        for error in (None, "credentials"):
            talk = alice.converse("x")
            attach(resources, alice, talk, "a.txt", b"x")
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(deletion, "drain_soon", lambda *_: False)
                delete_now(resources, alice.owner, talk)
            with Session(alice.engine) as db, db.begin():
                db.execute(
                    text("UPDATE outbox SET error = :e WHERE session_id = :s"), {"e": error, "s": talk}
                )
    reader = window(viewport={"width": width, "height": 780}, color_scheme=scheme).sign_in(alice)
    reader.page.goto(f"{reader.address}/deletions")
    expect(reader.page.get_by_role("main")).to_contain_text("blocked" if some else "Nothing was deleted")
    assert reader.audit() == ""

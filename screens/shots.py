"""Which pictures there are: one line each. To add a screen, add its line, and where it needs one a way to reach it.

A way is a function of the page, and of the ids of Ada's conversations by their first words (`demo.HISTORY`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from playwright.sync_api import Page

from screens import demo

Ids = Mapping[str, str]
Way = Callable[[Page, Ids], None]


@dataclass(frozen=True)
class Shot:
    """One picture. `path` may name a conversation by its first words in braces; `who` is ada, new or nobody."""

    name: str
    path: str = "/"
    reach: Way | None = None
    who: str | None = "ada"
    dark: bool = False
    phone: bool = False


def question(page: Page, _ids: Ids) -> None:
    page.get_by_role("link", name=demo.DOOMED).focus()
    page.keyboard.press("Delete")
    page.get_by_role("alertdialog").wait_for()


def busy_question(page: Page, _ids: Ids) -> None:
    page.get_by_role("link", name=demo.BUSY).focus()
    page.keyboard.press("Delete")
    page.get_by_role("alertdialog").wait_for()


def sheet(page: Page, _ids: Ids) -> None:
    page.keyboard.press("?")
    page.get_by_role("dialog", name="Keyboard shortcuts").wait_for()


def drawer(page: Page, _ids: Ids) -> None:
    page.get_by_role("button", name="Conversation history", exact=True).click()
    page.get_by_role("navigation", name="Conversation history").wait_for()


def offline(page: Page, _ids: Ids) -> None:
    page.context.set_offline(True)
    page.get_by_text("No connection").wait_for()


def found(page: Page, _ids: Ids) -> None:
    page.get_by_role("searchbox", name="Search your conversations").fill("kitchen")
    page.locator("#results").get_by_role("link").first.wait_for()


def found_message(page: Page, ids: Ids) -> None:
    found(page, ids)
    page.locator("#found li a").first.click()
    page.wait_for_url("**/conversations/*q=*")
    page.wait_for_load_state("networkidle")


def selecting(page: Page, _ids: Ids) -> None:
    page.get_by_role("button", name="Select", exact=True).click()
    for number in (3, 5, 6):
        page.locator(".pick").nth(number).check()


def selected(page: Page, ids: Ids) -> None:
    selecting(page, ids)
    page.get_by_role("button", name="Delete…").click()
    page.get_by_role("alertdialog").wait_for()


TALK = f"/conversations/{{{demo.TALK}}}"
SHOTS = (
    Shot("history"),
    Shot("history-dark", dark=True),
    Shot("history-phone", phone=True),
    Shot("conversation", TALK),
    Shot("conversation-dark", TALK, dark=True),
    Shot("conversation-phone", TALK, phone=True),
    Shot("drawer-phone-dark", TALK, drawer, phone=True, dark=True),
    Shot("delete", reach=question),
    Shot("delete-phone-dark", reach=question, phone=True, dark=True),
    Shot("delete-while-running", reach=busy_question),
    Shot("shortcuts", TALK, sheet),
    Shot("search", TALK, found),
    Shot("search-message", reach=found_message),
    Shot("search-phone", reach=found, phone=True),
    Shot("select", reach=selecting),
    Shot("select-phone-dark", reach=selecting, phone=True, dark=True),
    Shot("select-delete", reach=selected),
    Shot("deletions", "/deletions"),
    Shot("deletions-phone", "/deletions", phone=True),
    Shot("import", "/import"),
    Shot("import-phone-dark", "/import", phone=True, dark=True),
    Shot("first-page", who="new"),
    Shot("first-page-phone", who="new", phone=True),
    Shot("account", "/account"),
    Shot("offline", TALK, offline),
    Shot("not-found", "/nowhere"),
    Shot("sign-in", "/sign-in", who=None),
)

"""A reader at a browser: one window, what it complained of, and the few things that most journeys do."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import APIResponse, BrowserContext, ConsoleMessage, Locator, Page, Route
from sqlalchemy.orm import Session

from models import append
from tests.cast import Player, messages

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
POLL = re.compile(r"/history/poll\?")

# Counts every change under an element: nodes, attributes and texts alike.
WATCH = """(selector) => {
  window.changes = [];
  window.watch = new MutationObserver((records) => {
    for (const r of records) {
      for (const n of r.addedNodes) window.changes.push("added " + (n.id || n.nodeName));
      for (const n of r.removedNodes) window.changes.push("removed " + (n.id || n.nodeName));
      if (r.type !== "childList") window.changes.push(r.type + " " + (r.attributeName || r.target.data));
    }
  });
  window.watch.observe(document.querySelector(selector),
    { childList: true, attributes: true, characterData: true, subtree: true });
}"""


@dataclass
class Window:
    """One browser context with one page. `problems` is what the console said; each must be expected by name."""

    context: BrowserContext
    page: Page
    address: str
    problems: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.problems.append(f"script: {error}"))

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.problems.append(message.text)

    def expect(self, *patterns: str) -> None:
        """Console messages that this journey provokes on purpose."""
        self.expected.extend(patterns)

    def unexpected(self) -> list[str]:
        """What the console said that nobody expected."""
        return [said for said in self.problems if not any(re.search(one, said) for one in self.expected)]

    def sign_in(self, player: Player) -> Window:
        """Follows a fresh link, and waits until the list is as this reader's zone has it."""
        self.sign_in_at_once(player)
        self.settle()
        return self

    def sign_in_at_once(self, player: Player) -> None:
        """Follows a fresh link; waits for no request that the page sends by itself."""
        self.page.goto(f"{self.address}/sign-in/{player.link()}")

    def open(self, path: str) -> Window:
        self.page.goto(self.address + path)
        self.settle()
        return self

    def settle(self) -> None:
        """Waits until the script has run and no request is under way."""
        self.page.wait_for_load_state("networkidle")

    @property
    def nav(self) -> Locator:
        return self.page.get_by_role("navigation", name="Conversation history")

    @property
    def said(self) -> Locator:
        """The page's own status line; a part of it may have another of its own."""
        return self.page.locator("#said")

    def titles(self) -> list[str]:
        return self.nav.locator("li a").all_inner_texts()

    def row(self, title: str) -> Locator:
        return self.nav.get_by_role("link", name=title, exact=True)

    def ask(self, title: str) -> Locator:
        """Opens the question about a row; returns the dialog."""
        self.row(title).hover()
        self.nav.get_by_role("button", name=f"Delete conversation {title}", exact=True).click()
        dialog = self.page.get_by_role("alertdialog")
        dialog.wait_for()
        return dialog

    def poll(self) -> int:
        """Comes back to the window, which asks at once; returns the answer's status."""
        with self.page.expect_response(POLL) as answer:
            self.page.evaluate("window.dispatchEvent(new Event('focus'))")
        answer.value.finished()
        self.frame()
        return answer.value.status

    def frame(self) -> None:
        """Waits until the page has drawn twice, so that what an answer set off has happened."""
        self.page.evaluate("() => new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))")

    def watch(self, selector: str = "#history") -> None:
        """Begins to count changes of the list, or of what else is named."""
        self.page.evaluate(WATCH, selector)

    def changes(self) -> list[str]:
        self.frame()
        found: list[str] = self.page.evaluate("window.changes")
        return found

    def focused(self) -> str:
        """The accessible name of what has the focus, near enough: its label or its text."""
        script = "() => (document.activeElement.ariaLabel || document.activeElement.innerText || '').trim()"
        name: str = self.page.evaluate(script)
        return name

    def audit(self) -> str:
        """Runs axe; returns its findings, "" when there are none."""
        found = Axe().run(self.page, options={"runOnly": {"type": "tag", "values": RULES}})
        return found.generate_report() if found.violations_count else ""


Windows = Callable[..., Window]


def converse_at(player: Player, at: datetime, *texts: str) -> str:
    """A conversation whose last activity was at `at`."""
    with Session(player.engine) as db, db.begin():
        made = append.open_conversation(db, player.owner, created_at=at, updated_at=at)
        append.append(db, player.owner, made.id, messages(*texts), at=at)
        return made.id


class Held:
    """Keeps the next answer to `pattern`: fetched from the server at once, and given to the page at `release`."""

    def __init__(self, page: Page, pattern: re.Pattern[str]) -> None:
        self._page = page
        self._kept: list[tuple[Route, APIResponse]] = []
        page.route(pattern, lambda route: self._kept.append((route, route.fetch())), times=1)

    def arrive(self) -> None:
        """Waits until the server has answered."""
        while not self._kept:
            self._page.wait_for_timeout(10)

    def release(self) -> None:
        route, answer = self._kept.pop()
        route.fulfill(response=answer)

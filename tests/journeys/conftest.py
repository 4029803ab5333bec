"""The browser of the journeys: Debian's Chromium, one process for the whole run, a context for each window."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.journeys.window import Window, Windows

CHROMIUM = next(
    (path for path in ("/usr/bin/chromium", "/usr/bin/chromium-browser") if Path(path).exists()), None
)
ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """The browser. Where there is none, a run that counts (CI) fails, and any other says what it left out."""
    if CHROMIUM is None:
        said = "Chromium is not installed, so the browser's journeys were not tried: apt-get install chromium"
        if os.environ.get("CI") == "true":
            pytest.fail(said)
        pytest.skip(said)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        yield browser
        browser.close()


@pytest.fixture
def window(chromium: Browser, live_server: str) -> Iterator[Windows]:
    """Opens windows at the running app; each must have had nothing to complain of at the end."""
    opened: list[Window] = []

    def make(**options: Any) -> Window:
        settings = {"viewport": {"width": 1200, "height": 780}, "timezone_id": "Europe/Oslo", **options}
        context = chromium.new_context(**settings)
        context.set_default_timeout(8000)
        opened.append(Window(context, context.new_page(), live_server))
        return opened[-1]

    yield make
    complaints = [said for one in opened for said in one.unexpected()]
    for one in opened:
        one.context.close()
    assert not complaints, complaints

"""The history page of somebody with 200,000 conversations, in a real browser: its weight, and how soon it obeys.

Chromium loads it from the production server. The empty page comes from the same server, headers and middleware
included. Times are the browser's own: a page counts as interactive when its scripts have run, which is when
DOMContentLoaded ends, since all of ours are deferred.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import BrowserContext, Page, sync_playwright

from benchmarks.figures import Figure
from benchmarks.ground import OF_ONE, SESSIONS, Ground
from benchmarks.serving import server, sign_in_link
from tests.journeys.conftest import ARGUMENTS, CHROMIUM

NAME = "browsing"
LOADS, DELETIONS, ROWS = 31, 21, 2_000
EMPTY = "<!doctype html><html lang=en><title>Empty</title><p>Nothing"

_READY = "performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"
_WATCH = """
() => new Promise((done) => {
    const row = document.querySelector('#history li');
    const form = document.getElementById('delete-form');
    let began = 0;
    form.addEventListener('click', () => (began = performance.now()), { capture: true, once: true });
    new MutationObserver((_, watch) => {
        if (row.isConnected) return;
        watch.disconnect();
        requestAnimationFrame(() => done(performance.now() - began));  // when the screen shows it
    }).observe(document.getElementById('history'), { childList: true, subtree: true });
    form.querySelector('button').click();
})
"""
_SCROLL = """
async (wanted) => {
    const list = document.getElementById('history');
    let last = -1;
    while (list.querySelectorAll('li').length < wanted) {
        const count = list.querySelectorAll('li').length;
        if (count !== last) list.scrollTop = list.scrollHeight;
        last = count;
        await new Promise((next) => setTimeout(next, 10));
    }
    const ids = [...list.querySelectorAll('li')].map((row) => row.id);
    return [ids.length, new Set(ids).size];
}
"""


def run(ground: Ground) -> Iterator[Figure]:
    """What is transferred, how soon it is interactive, that no row comes twice, how soon a deleted one is gone."""
    if CHROMIUM is None:
        raise SystemExit("Chromium is not installed: apt-get install chromium")
    with (
        tempfile.TemporaryDirectory() as folder,
        server(ground, Path(folder)) as port,
        sync_playwright() as playwright,
    ):
        (Path(folder) / "empty").write_text(EMPTY, "ascii")
        (Path(folder) / "empty.head").write_text("200\ntext/html; charset=utf-8", "ascii")
        base = f"http://127.0.0.1:{port}"
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        context = browser.new_context(viewport={"width": 1280, "height": 800}, timezone_id="UTC")
        context.set_default_timeout(30_000)
        page = context.new_page()
        page.goto(sign_in_link(ground, base))
        page.goto(base)  # the zone's cookie is set from here on
        weight, requests = _weight(browser.new_context(storage_state=context.storage_state()), base)
        yield Figure(
            NAME,
            f"the first page of {SESSIONS // OF_ONE:,} conversations, kB transferred",
            weight / 1000,
            bound=60,
            note=f"{requests} requests, nothing cached, script, style and letters included",
        )
        ours, empty = _interactive(page, base)
        yield Figure(
            NAME,
            "interactive, against an empty page of the same server",
            ours / empty,
            bound=1.5,
            note=f"{ours:.0f} ms against {empty:.0f} ms, style and script cached",
        )
        yield _scrolled(page, base)
        took = [_deleted(page, base) for _ in range(DELETIONS)]
        yield Figure(
            NAME,
            "from the click on Delete everywhere to the row's end on the screen, ms",
            statistics.median(took),
            bound=150,
            note=f"the slowest of {DELETIONS} took {max(took):.0f} ms",
        )
        browser.close()


def _weight(context: BrowserContext, base: str) -> tuple[int, int]:
    page = context.new_page()
    wire = context.new_cdp_session(page)
    wire.send("Network.enable")
    sizes: list[int] = []
    wire.on("Network.loadingFinished", lambda told: sizes.append(int(told["encodedDataLength"])))
    page.goto(base, wait_until="networkidle")
    context.close()
    return sum(sizes), len(sizes)


def _interactive(page: Page, base: str) -> tuple[float, float]:
    took: dict[str, list[float]] = {"/": [], "/noop/empty": []}
    for _ in range(LOADS):
        for path, times in took.items():
            page.goto(base + path, wait_until="load")
            times.append(page.evaluate(_READY))
    return statistics.median(took["/"]), statistics.median(took["/noop/empty"])


def _scrolled(page: Page, base: str) -> Figure:
    asked: list[str] = []

    def note(request: Any) -> None:
        if "/history/older" in request.url:
            asked.append(request.url)

    page.goto(base, wait_until="networkidle")
    page.on("request", note)
    rows, different = page.evaluate(_SCROLL, ROWS)
    page.remove_listener("request", note)
    twice = rows - different + len(asked) - len(set(asked))
    return Figure(
        NAME, f"rows and pages loaded twice while {ROWS:,} rows are scrolled through", twice, bound=0,
        note=f"{rows:,} rows, {len(asked)} pages",
    )  # fmt: skip


def _deleted(page: Page, base: str) -> float:
    page.goto(base, wait_until="load")
    page.locator("#history li").first.hover()
    page.locator("#history li .row-delete").first.click()
    page.locator("#delete-form").wait_for()
    took: float = page.evaluate(_WATCH)
    return took

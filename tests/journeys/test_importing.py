"""Importing at a browser: the first page, a file and its progress, the result, again, stop, undo (PRODUCT.md 6, 7)."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect
from rq.job import Job
from rq.serializers import JSONSerializer
from sqlalchemy.orm import Session

from models import import_requests
from models.append import Draft
from tasks.imports.jobs import work_on
from tasks.imports.ledger import Ledger
from tasks.outbox import drain_due
from tasks.resources import Resources
from tests.cast import Player
from tests.journeys.window import Window, Windows
from tests.models.graph import count, stored
from tests.tasks.imports.exports import chatgpt
from tests.tasks.imports.histories import conversations, delete, put

pytestmark = pytest.mark.browser
Gate = Callable[[int], None]


@pytest.fixture(autouse=True)
def importer(resources: Resources) -> Iterator[None]:
    """A worker of the imports' queue, in a thread of the tests."""
    over = threading.Event()

    def work() -> None:
        while not over.wait(0.01):
            if job_id := resources.redis.lpop(resources.imports.key):
                job = Job.fetch(job_id.decode(), connection=resources.redis, serializer=JSONSerializer)
                work_on(resources, *job.args)

    thread = threading.Thread(target=work)
    thread.start()
    yield
    over.set()
    thread.join(30)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    """Holds imports at their n-th conversation until it is opened further; -1 opens it for good."""
    allowed, changed = [0], threading.Condition()
    held = Ledger.looked_at

    def looked_at(book: Ledger, position: int, length: int, result: object) -> None:
        held(book, position, length, result)  # type: ignore[arg-type]
        with changed:
            changed.wait_for(lambda: allowed[0] < 0 or book.result.total < allowed[0] or book.stopping, 30)

    def opened(to: int) -> None:
        with changed:
            allowed[0] = to
            changed.notify_all()

    monkeypatch.setattr(Ledger, "looked_at", looked_at)
    monkeypatch.setattr("tasks.imports.ledger.SAVE_SECONDS", 0.0)
    yield opened
    opened(-1)


def choose(reader: Window, path: Path) -> None:
    reader.page.get_by_label("Choose or drop your export").set_input_files(path)


def state(reader: Window) -> Locator:
    return reader.page.locator("#import-state")


def becomes(reader: Window, wanted: str) -> None:
    """Waits until the import is in this state: on a busy machine a small one takes seconds, too."""
    expect(state(reader)).to_have_text(wanted, timeout=30_000)


def figures(reader: Window) -> dict[str, str]:
    names = reader.page.locator(".result dt").all_inner_texts()
    values = reader.page.locator(".result dd").all_inner_texts()
    return {name: value.split()[0] for name, value in zip(names, values, strict=True)}


def imported(reader: Window, path: Path) -> Window:
    reader.open("/import")
    choose(reader, path)
    becomes(reader, "Import finished")
    return reader


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return put(
        tmp_path / "conversations.json",
        *(chatgpt(n) for n in range(1, 6)),
        {"mapping": {}, "title": "bad <b>"},
    )


# -- the first minute ---------------------------------------------------------------------------------------------


def test_from_the_first_page_to_a_first_conversation_read_are_two_clicks(
    window: Windows, alice: Player, file: Path
) -> None:
    reader = window().sign_in(alice)
    expect(reader.page.get_by_role("heading", level=1)).to_have_text("Begin with a conversation")
    with reader.page.expect_file_chooser() as chooser:
        reader.page.locator(
            ".drop"
        ).click()  # the first click, and the file is chosen in the system's own window
    chooser.value.set_files(file)
    becomes(reader, "Import finished")
    reader.page.get_by_role("main").get_by_role("link", name="question 5").click()  # the second
    expect(reader.page.get_by_role("main")).to_contain_text("answer 5")


def test_the_example_is_one_click_away_and_says_that_it_is_one(
    window: Windows, alice: Player, resources: Resources
) -> None:
    reader = window().sign_in(alice)
    reader.page.get_by_role("button", name="Load an example conversation").click()
    expect(reader.page.get_by_role("main").get_by_role("heading", level=1)).to_contain_text("Example:")
    expect(reader.page.get_by_role("main")).to_contain_text("made for trying them out")
    expect(reader.page.get_by_role("main")).to_contain_text("Imported from the example that this server has")
    (held,) = conversations(resources, alice)
    assert held.origin == "example"
    delete(resources, alice, held.id)
    reader.open("/")
    reader.page.get_by_role("button", name="Load an example conversation").click()
    expect(reader.page.get_by_role("main").get_by_role("heading", level=1)).to_contain_text("Example:")
    assert len(conversations(resources, alice)) == 1
    reader.open("/import")
    expect(reader.page.get_by_role("row")).to_have_count(3)


def test_the_first_page_loads_nothing_from_anywhere_else(window: Windows, alice: Player) -> None:
    reader = window()
    seen: list[str] = []
    reader.page.on("request", lambda request: seen.append(request.url))
    reader.sign_in(alice)
    assert all(url.startswith(reader.address) for url in seen)
    links = (
        reader.page.get_by_role("main")
        .get_by_role("link")
        .evaluate_all("all => all.map(a => a.getAttribute('href'))")
    )
    assert all(link.startswith("/") for link in links)


def test_an_empty_list_points_to_the_import_page(window: Windows, alice: Player) -> None:
    reader = window().sign_in(alice)
    reader.nav.get_by_role("link", name="Import your history").click()
    expect(reader.page.get_by_role("heading", level=1)).to_have_text("Import")


# -- progress and result ------------------------------------------------------------------------------------------


def test_progress_counts_up_in_every_window_and_the_list_fills_meanwhile(
    window: Windows, alice: Player, file: Path, gate: Gate
) -> None:
    gate(2)
    here = window().sign_in(alice)
    choose(here, file)
    bar = here.page.get_by_role("progressbar")
    expect(bar).to_have_accessible_name("2 of 6 conversations")
    becomes(here, "Importing")
    there = window().sign_in(alice).open(here.page.url.removeprefix(here.address))
    expect(there.page.get_by_role("progressbar")).to_have_accessible_name("2 of 6 conversations")
    expect(here.row("question 2")).to_be_visible()
    expect(here.row("question 3")).to_have_count(0)
    here.page.get_by_role("button", name="Stop this import").focus()
    gate(4)
    expect(bar).to_have_accessible_name("4 of 6 conversations")
    expect(here.row("question 4")).to_be_visible()
    assert here.focused() == "Stop this import"  # a tick takes no focus
    here.open("/")  # leaving stops nothing
    gate(-1)
    becomes(there, "Import finished")
    expect(there.page.locator("#said")).to_have_text("Import finished. 5 of 6 conversations were imported.")
    assert figures(there) == {
        "Imported": "5", "Already there": "0", "Skipped": "0", "Failed": "1", "In the file": "6",
    }  # fmt: skip
    expect(there.page.get_by_role("main")).to_contain_text("bad <b>")
    expect(there.page.get_by_role("main")).to_contain_text("no messages")


def test_a_finished_import_asks_no_more(window: Windows, alice: Player, file: Path) -> None:
    reader = imported(window().sign_in(alice), file)
    reader.settle()
    asked: list[str] = []
    reader.page.on("request", lambda request: asked.append(request.url))
    reader.page.wait_for_timeout(2500)
    assert [url for url in asked if "/progress" in url] == []


def test_a_second_import_finds_everything_there_and_the_list_of_imports_tells_both(
    window: Windows, alice: Player, file: Path
) -> None:
    reader = imported(window().sign_in(alice), file)
    imported(reader, file)
    assert figures(reader)["Already there"] == "5"
    reader.open("/import")
    rows = reader.page.get_by_role("main").get_by_role("row")
    expect(rows).to_have_count(3)
    expect(rows.nth(1)).to_contain_text("0 imported, 5 already there, 1 failed")
    expect(rows.nth(2)).to_contain_text("5 imported, 1 failed")
    rows.nth(2).get_by_role("link").click()
    reader.page.get_by_role("button", name="Take it off the list").click()
    expect(reader.page.get_by_role("main").get_by_role("row")).to_have_count(2)
    assert len(reader.titles()) == 5


def test_what_was_deleted_here_is_skipped_and_comes_back_when_asked_for(
    window: Windows, alice: Player, resources: Resources, file: Path
) -> None:
    reader = imported(window().sign_in(alice), file)
    delete(resources, alice, conversations(resources, alice)[0].id)
    imported(reader, file)
    assert figures(reader)["Skipped"] == "1"
    expect(reader.page.get_by_role("main")).to_contain_text("1 conversation of this file was deleted here")
    reader.page.get_by_role("button", name="Import again what I deleted").click()
    becomes(reader, "Import finished")
    assert (figures(reader)["Imported"], figures(reader)["Already there"]) == ("1", "4")
    assert len(conversations(resources, alice)) == 5


def test_what_is_stopped_says_what_stays_and_goes_on(
    window: Windows, alice: Player, resources: Resources, file: Path, gate: Gate
) -> None:
    gate(2)
    reader = window().sign_in(alice)
    choose(reader, file)
    expect(reader.page.get_by_role("progressbar")).to_have_accessible_name("2 of 6 conversations")
    gate(3)
    reader.page.get_by_role("button", name="Stop this import").click()
    gate(4)
    becomes(reader, "Import stopped")
    assert int(figures(reader)["Not looked at"]) > 0
    gate(-1)
    reader.page.get_by_role("button", name="Go on with this import").click()
    becomes(reader, "Import finished")
    assert len(conversations(resources, alice)) == 5


# -- what is refused ----------------------------------------------------------------------------------------------


def test_a_file_of_no_known_kind_says_what_to_do(window: Windows, alice: Player, tmp_path: Path) -> None:
    path = tmp_path / "photo.json"
    path.write_bytes(b"no json at all")
    reader = window().sign_in(alice)
    choose(reader, path)
    becomes(reader, "This import did not succeed")
    expect(reader.page.get_by_role("alert").filter(has_text="cannot be imported")).to_contain_text(
        "Nothing was imported"
    )


@pytest.mark.parametrize("scripts", [True, False])
def test_an_empty_file_and_no_file_are_refused_kindly(
    window: Windows, alice: Player, tmp_path: Path, scripts: bool
) -> None:
    path = tmp_path / "empty.json"
    path.write_bytes(b"")
    reader = window(java_script_enabled=scripts).sign_in(alice).open("/import")
    reader.expect("400")
    choose(reader, path)
    if not scripts:
        reader.page.get_by_role("button", name="Import this file").click()
    expect(reader.page.locator(".fault")).to_contain_text("This file is empty")
    expect(reader.page.get_by_label("Choose or drop your export")).to_have_attribute("aria-invalid", "true")


def test_a_file_over_the_bound_is_not_even_sent(window: Windows, alice: Player, file: Path) -> None:
    reader = window().sign_in(alice).open("/import")
    reader.page.evaluate("document.getElementById('import-form').dataset.max = '10'")
    choose(reader, file)
    expect(reader.page.get_by_role("alert").filter(has_text="takes 10 bytes at most")).to_be_visible()


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (503, '<p class="problem">The file could not be kept.</p>', "The file could not be kept."),
        (413, "", "The server answered 413."),
        (None, "", "The connection broke off"),
    ],
)
def test_an_upload_that_fails_says_so_and_can_be_tried_again(
    window: Windows, alice: Player, file: Path, status: int | None, body: str, said: str
) -> None:
    reader = window().sign_in(alice).open("/import")
    reader.expect(str(status), "ERR_")
    reader.page.route(
        re.compile("/import$"),
        lambda route: route.fulfill(status=status, body=body) if status else route.abort(),
    )
    choose(reader, file)
    expect(reader.page.get_by_role("alert").filter(has_text=said)).to_be_visible()
    reader.page.unroute_all()
    choose(reader, file)
    becomes(reader, "Import finished")


def test_an_upload_shows_how_far_it_is_and_can_be_cancelled(
    window: Windows, alice: Player, resources: Resources, tmp_path: Path
) -> None:
    path = tmp_path / "large.json"
    path.write_text(json.dumps([chatgpt(1)]) + " " * 3_000_000)
    reader = window().sign_in(alice).open("/import")
    reader.page.context.new_cdp_session(reader.page).send(
        "Network.emulateNetworkConditions",
        {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": 500_000},
    )
    choose(reader, path)
    expect(reader.page.get_by_role("progressbar")).to_have_accessible_name(
        re.compile(r"^Sending large.json: .+ of 3.0 MB")
    )
    assert reader.focused() == "Cancel"
    reader.page.get_by_role("button", name="Cancel").click()
    expect(reader.page.locator("#said")).to_have_text("Cancelled. Nothing was imported.")
    expect(reader.page.get_by_label("Choose or drop your export")).to_be_focused()
    assert count(resources, "imports") == 0


def test_a_dropped_file_is_taken_and_one_beside_the_zone_does_no_harm(
    window: Windows, alice: Player, file: Path
) -> None:
    reader = window().sign_in(alice).open("/import")
    drop = """(zone, text) => {
      const data = new DataTransfer();
      data.items.add(new File([text], "dropped.json", { type: "application/json" }));
      const said = zone.dispatchEvent(new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer: data }));
      const input = zone.querySelector?.("input[type=file]");
      if (said && input) { input.files = data.files; input.dispatchEvent(new Event("change", { bubbles: true })); }
      return said;
    }"""
    assert not reader.page.locator("h1").evaluate(drop, file.read_text())  # refused: the page is not replaced
    assert reader.page.locator(".drop").evaluate(drop, file.read_text())
    becomes(reader, "Import finished")
    expect(reader.page.get_by_role("heading", level=1)).to_have_text("dropped.json")


# -- undo ---------------------------------------------------------------------------------------------------------


def test_an_undo_asks_counts_and_removes_what_the_import_made(
    window: Windows, alice: Player, resources: Resources, file: Path
) -> None:
    alice.converse("typed here")
    reader = window().sign_in(alice)
    imported(reader, file)
    alice.say(conversations(resources, alice)[0].id, Draft("user_message", {"content": "and then?"}))
    reader.page.get_by_role("link", name="Undo this import").click()
    dialog = reader.page.get_by_role("alertdialog")
    expect(dialog).to_have_accessible_name("Undo this import?")
    for said in ("the 5 conversations", "1 of them was continued since", "count as deleted here"):
        expect(dialog).to_contain_text(said)
    assert reader.focused() == "Cancel"
    reader.page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    assert reader.focused() == "Undo this import"
    reader.page.keyboard.press("Enter")
    reader.page.get_by_role("alertdialog").get_by_role("button", name="Delete 5 everywhere").click()
    becomes(reader, "Import undone")
    expect(reader.row("typed here")).to_be_visible()
    expect(reader.row("question 5")).to_have_count(0)
    assert [one.origin for one in conversations(resources, alice)] == [None]
    drain_due(resources)
    assert stored(resources) == []


def test_what_has_an_active_run_is_left_and_named(
    window: Windows, alice: Player, resources: Resources, file: Path
) -> None:
    reader = imported(window().sign_in(alice), file)
    busy = next(one for one in conversations(resources, alice) if one.title == "question 3")
    alice.start_run(busy.id)
    reader.page.get_by_role("link", name="Undo this import").click()
    reader.page.get_by_role("button", name="Delete 5 everywhere").click()
    becomes(reader, "Import undone in part")
    expect(reader.page.get_by_role("main")).to_contain_text(
        "1 conversation that this import made is still here"
    )
    expect(reader.page.get_by_role("main").get_by_role("link", name="question 3")).to_be_visible()


# -- without a script ---------------------------------------------------------------------------------------------


def test_without_a_script_a_file_is_imported_looked_at_and_undone(
    window: Windows, alice: Player, file: Path
) -> None:
    reader = window(java_script_enabled=False).sign_in(alice)
    choose(reader, file)
    reader.page.get_by_role("button", name="Import this file").click()
    while state(reader).inner_text() != "Import finished":
        again = reader.page.get_by_role("link", name="Look again")
        reader.page.reload() if not again.count() else again.click()
    assert len(reader.titles()) == 5
    reader.page.get_by_role("link", name="Undo this import").click()
    expect(reader.page.get_by_role("heading", level=1)).to_have_text("Undo this import?")
    reader.page.get_by_role("button", name="Delete 5 everywhere").click()
    while state(reader).inner_text() != "Import undone":
        reader.page.reload()
    expect(reader.nav).to_contain_text("No conversations yet")


# -- for everybody ------------------------------------------------------------------------------------------------

LOOKS: dict[str, dict[str, object]] = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "at 200 %": {"viewport": {"width": 600, "height": 390}},
    "phone": {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True},
    "narrow": {"viewport": {"width": 320, "height": 640}, "color_scheme": "dark", "has_touch": True},
}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_axe_finds_nothing_in_any_state(
    window: Windows, alice: Player, resources: Resources, file: Path, gate: Gate, look: dict[str, object]
) -> None:
    found: dict[str, str] = {}

    def audit(name: str) -> None:
        reader.frame()
        wide = reader.page.evaluate(
            "document.documentElement.scrollWidth > document.documentElement.clientWidth"
        )
        found[name] = reader.audit() + ("wider than the window" if wide else "")

    reader = window(reduced_motion="reduce", **look).sign_in(alice)
    audit("first page")
    reader.open("/import")
    audit("no imports")
    reader.page.locator("summary").first.click()
    audit("where")
    gate(3)
    choose(reader, file)
    expect(reader.page.get_by_role("progressbar")).to_have_accessible_name("3 of 6 conversations")
    audit("under way")
    gate(-1)
    becomes(reader, "Import finished")
    audit("finished")
    reader.page.get_by_role("link", name="Undo this import").click()
    reader.page.get_by_role("alertdialog").wait_for()
    audit("question")
    alice.start_run(conversations(resources, alice)[0].id)
    reader.page.get_by_role("button", name="Delete 5 everywhere").click()
    becomes(reader, "Import undone in part")
    audit("undone in part")
    imported(reader, file)
    audit("skipped")
    reader.open("/import")
    audit("imports")
    reader.page.evaluate("document.getElementById('import-form').dataset.max = '10'")
    choose(reader, file)
    expect(reader.page.locator(".fault")).to_be_visible()
    audit("refused")
    with Session(resources.engine) as db:
        some = import_requests.listed(db, alice.owner)[0].id
    reader.open(f"/import/{some}/undo")
    audit("question as a page")
    assert {name: said for name, said in found.items() if said} == {}

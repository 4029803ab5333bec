"""An open conversation while it goes on: what comes, what is asked of the reader, and how it ends (PRODUCT.md 7)."""

from __future__ import annotations

import dataclasses
import random
import re
import threading
import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect
from sqlalchemy import text
from sqlalchemy.orm import Session

from models import approvals
from models.append import Draft
from models.history import Approval, Run
from models.settings import Settings
from tasks.deletion import delete_now
from tasks.news import tell
from tasks.resources import Resources
from tests.cast import Player
from tests.journeys.test_long_talk import PART, SCROLL, ids, is_at_end, long_talk
from tests.journeys.window import Held, Window, Windows
from tests.served import Served

pytestmark = pytest.mark.browser
LIVE = re.compile(r"/live\?")


@pytest.fixture(scope="module")
def served(engines: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The product's own server, two processes of it."""
    folder = tmp_path_factory.mktemp("served")
    store = (folder / "objects").as_uri()
    held = Served(dataclasses.replace(engines, object_store_url=store), folder).start()
    yield held
    held.stop()


@pytest.fixture
def settings(served: Served) -> Settings:
    return served.settings


@pytest.fixture
def live_server(served: Served, resources: Resources) -> str:
    return f"http://127.0.0.1:{served.port}"


def watch(window: Windows, player: Player, talk: str) -> Window:
    """An open page whose stream is open."""
    reader = window().sign_in(player)
    with reader.page.expect_response(LIVE):
        reader.page.goto(f"{reader.address}/conversations/{talk}")
    return reader


def says(resources: Resources, player: Player, talk: str, words: str, run_id: str | None = None) -> None:
    player.say(talk, Draft("assistant_message", {"content": words}), run_id=run_id)
    tell(resources, talk)


def test_what_is_said_appears_and_the_end_is_followed(
    window: Windows, resources: Resources, alice: Player
) -> None:
    talk = long_talk(alice, 60)
    reader = watch(window, alice, talk)
    run_id = alice.start_run(talk)
    tell(resources, talk)
    expect(reader.page.get_by_text("A run is active.")).to_be_visible()
    says(resources, alice, talk, "A new **answer**", run_id)
    expect(reader.page.locator("#e-61 strong")).to_have_text("answer")
    reader.frame()
    assert is_at_end(reader)
    expect(reader.page.locator("#heard")).to_have_text("New message from Assistant.")
    alice.say(talk, Draft("run_ended", {"status": "succeeded"}), run_id=run_id)
    tell(resources, talk)
    expect(reader.page.get_by_text("A run is active.")).to_have_count(0)
    assert reader.audit() == ""


def test_who_reads_further_up_is_left_there_and_told(
    window: Windows, resources: Resources, alice: Player
) -> None:
    talk = long_talk(alice, 60)
    reader = watch(window, alice, talk)
    stayed = reader.page.evaluate(SCROLL, 300)
    says(resources, alice, talk, "Below")
    button = reader.page.get_by_role("link", name="New messages")
    expect(button).to_be_visible()
    assert reader.page.evaluate("document.getElementById('main').scrollTop") == stayed
    assert reader.audit() == ""
    button.click()
    expect(reader.page.locator("#e-61")).to_be_in_viewport()
    expect(button).to_be_hidden()


def test_nothing_is_lost_or_doubled_while_processes_are_killed(
    window: Windows, served: Served, resources: Resources, alice: Player
) -> None:
    talk = alice.converse("Hello")
    reader = watch(window, alice, talk)
    reader.expect("Failed to load resource", "ERR_")

    def write() -> None:
        for number in range(120):
            says(resources, alice, talk, f"n{number}")
            time.sleep(random.random() / 50)

    writer = threading.Thread(target=write)
    writer.start()
    served.kill_workers()
    writer.join(60)
    expect(reader.page.locator("#e-121")).to_be_attached(timeout=30_000)
    assert ids(reader) == list(range(1, 122))


def test_a_tools_result_comes_into_its_fold_as_it_stands(
    window: Windows, resources: Resources, alice: Player
) -> None:
    talk = alice.converse("Hello")
    alice.say(talk, Draft("tool_call", {"call_id": "1", "name": "dig", "arguments": {"x": 1}}))
    reader = watch(window, alice, talk)
    fold = reader.page.locator("#e-2")
    fold.locator("summary").click()
    expect(fold).to_contain_text("no result yet")
    alice.say(talk, Draft("tool_result", {"call_id": "1", "output": "gold", "status": "ok"}))
    tell(resources, talk)
    expect(fold.get_by_text("gold")).to_be_visible()
    expect(reader.page.locator("details.tool")).to_have_count(1)


def test_the_run_is_stopped_from_the_page(window: Windows, resources: Resources, alice: Player) -> None:
    talk = alice.converse("Hello")
    run_id = alice.start_run(talk)
    reader = watch(window, alice, talk)
    reader.page.get_by_role("button", name="Stop the run").click()
    expect(reader.page.get_by_text("Stopping: the run was asked to end.")).to_be_visible()
    assert reader.page.evaluate("document.activeElement.id") == "state"
    with Session(alice.engine) as db:
        assert db.get_one(Run, run_id).cancel_requested
    assert reader.audit() == ""
    alice.say(talk, Draft("run_ended", {"status": "cancelled"}), run_id=run_id)
    tell(resources, talk)
    expect(reader.page.get_by_text("Stopping")).to_have_count(0)


def test_an_approval_is_asked_for_and_given_while_the_worker_waits(
    window: Windows, resources: Resources, alice: Player
) -> None:
    talk = alice.converse("Hello")
    run_id = alice.start_run(talk)
    reader = watch(window, alice, talk)
    asked = Draft("approval_requested", {"summary": "Delete it all?", "tool": "rm", "arguments": {"f": "*"}})
    approval_id = alice.say(talk, asked, run_id=run_id)[0]
    tell(resources, talk)
    card = reader.page.get_by_role("region", name="Waiting for your approval")
    expect(card).to_contain_text("Delete it all?")
    expect(reader.page.locator("#state")).to_contain_text("Waiting for your approval")
    assert reader.audit() == ""
    reader.page.locator("#state a").click()
    reader.page.keyboard.press("Tab")
    card.get_by_role("button", name="Approve").focus()
    reader.page.keyboard.press("Enter")
    expect(reader.page.get_by_role("region", name="Approved")).to_be_focused()
    with Session(alice.engine) as db:
        assert db.get_one(Approval, approval_id).decision == "approve"
    expect(reader.page.locator("#state")).not_to_contain_text("Waiting")
    assert reader.audit() == ""


def test_an_approval_decided_elsewhere_first_is_told_and_not_overruled(
    window: Windows, resources: Resources, alice: Player
) -> None:
    talk = alice.converse("Hello")
    approval_id = alice.say(talk, Draft("approval_requested", {"summary": "May I?"}))[0]
    reader = watch(window, alice, talk)
    reader.expect("409")
    held = Held(reader.page, PART)  # the page hears of it, and is answered only after the click
    with Session(alice.engine) as db, db.begin():
        approvals.decide(db, alice.owner, approval_id, "deny")
    held.arrive()
    with reader.page.expect_response(re.compile("/approvals/")) as answer:
        reader.page.get_by_role("button", name="Approve").click()
    assert answer.value.status == 409
    told = reader.page.get_by_role("alert").filter(has_text="this was denied on")
    expect(told).to_be_visible()
    held.release()
    expect(reader.page.locator("#events > .note")).to_have_text("Denied")
    expect(told).to_be_visible()
    assert reader.audit() == ""


def test_a_deletion_elsewhere_takes_the_page_at_once(
    window: Windows, resources: Resources, alice: Player
) -> None:
    talk = alice.converse("Goes away")
    reader = watch(window, alice, talk)
    delete_now(resources, alice.owner, talk)
    tell(resources, talk)
    expect(reader.page.get_by_role("heading", level=1)).to_have_text("Deleted conversation")
    expect(reader.row("Goes away")).to_have_count(0)


def test_what_comes_and_goes_at_once_leaves_scripts_that_find_nothing_at_peace(
    window: Windows, resources: Resources, alice: Player
) -> None:
    """The transcript's scripts outlive it: scrolling, and the announcement of a last message, found null."""
    talk = alice.converse(*(f"Line {number}\n\n" * 5 for number in range(20)))
    reader = watch(window, alice, talk)
    alice.say(talk, Draft("assistant_message", {"content": "the last words"}))
    expect(reader.page.get_by_text("the last words")).to_be_visible()
    delete_now(resources, alice.owner, talk)
    tell(resources, talk)
    expect(reader.page.get_by_role("heading", level=1)).to_have_text("Deleted conversation")
    reader.page.evaluate("document.getElementById('main').dispatchEvent(new Event('scroll'))")
    reader.page.wait_for_timeout(
        2_000
    )  # the announcement waits for 1.5 s; that nothing happens has no other sign


def test_a_sign_in_that_is_revoked_ends_the_stream_and_the_page(
    window: Windows, resources: Resources, alice: Player
) -> None:
    talk = alice.converse("Private words")
    reader = watch(window, alice, talk)
    with Session(alice.engine) as db, db.begin():
        db.execute(text("UPDATE sign_ins SET revoked_at = now()"))
    reader.page.wait_for_url("**/sign-in?next=/conversations/*")


def test_a_page_out_of_view_holds_no_stream(window: Windows, alice: Player) -> None:
    talk = alice.converse("Hello")
    reader = watch(window, alice, talk)
    hide = """(state) => {
      Object.defineProperty(document, "visibilityState", { value: state, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }"""
    closed: list[str] = []
    reader.page.on("requestfailed", lambda request: closed.append(request.url))
    reader.page.evaluate(hide, "hidden")
    deadline = time.monotonic() + 15
    while not any(LIVE.search(url) for url in closed):
        assert time.monotonic() < deadline
        reader.page.wait_for_timeout(50)
    alice.say(talk, Draft("assistant_message", {"content": "meanwhile"}))
    with reader.page.expect_response(LIVE):
        reader.page.evaluate(hide, "visible")
    expect(reader.page.get_by_text("meanwhile")).to_be_visible()


def test_a_gap_in_the_network_is_told_calmly_and_mended(
    window: Windows, resources: Resources, alice: Player
) -> None:
    talk = alice.converse("Hello")
    reader = watch(window, alice, talk)
    reader.expect("ERR_INTERNET_DISCONNECTED", "Failed to load")
    reader.context.set_offline(True)
    gap, banner = reader.page.locator("#gap"), reader.page.get_by_text("No connection.")
    expect(gap).to_contain_text("The connection is interrupted.")
    expect(banner).to_be_visible()
    expect(gap).to_be_hidden()  # said once: the banner speaks for the whole page
    assert reader.audit() == ""
    alice.say(talk, Draft("assistant_message", {"content": "while you were away"}))
    reader.context.set_offline(False)
    expect(reader.page.get_by_text("while you were away")).to_be_visible(timeout=20_000)
    expect(gap).to_be_hidden()
    expect(banner).to_be_hidden()

"""Every state of every screen, looked at by axe and for its fit (WCAG 2.2 AA and best practice): one line a state.

A state is reached twice: with a mouse in a wide window, which is then looked at light, dark and at 200 %; and with a
finger on a phone, light at 360 px and dark at 320 px, which is also what 1280 px are at 400 % (1.4.10). To add one,
add its line to STATES and, where it needs one, a way to reach it. A way may also change the page's looks: the motion
is reduced, so that nothing is judged half faded in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pytest
from playwright.sync_api import expect
from sqlalchemy import text
from sqlalchemy.orm import Session

from models import approvals
from models.append import Draft
from models.ids import new_id
from tasks.deletion import delete_now
from tasks.resources import Resources
from tests.attachments import attach
from tests.cast import Cast, Player
from tests.journeys.test_looking import png
from tests.journeys.window import POLL, Window, Windows

pytestmark = pytest.mark.browser

WIDE = {"viewport": {"width": 1200, "height": 780}}
PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
# How a window is looked at, once its state is reached: what it is called, its width and height, its scheme.
LOOKS = {
    "wide": (("light", 1200, 780, "light"), ("dark", 1200, 780, "dark"), ("at 200 %", 600, 390, "light")),
    "phone": (("phone", 360, 740, "light"), ("narrow, dark", 320, 640, "dark")),
}
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
LONG = "תכנון טיול ארוך מאוד לירושלים בקיץ עם כל המשפחה"


@dataclass(frozen=True)
class World:
    """Who there is, and the ids of Alice's conversations by name."""

    cast: Cast
    resources: Resources
    ids: Mapping[str, str]


Way = Callable[[Window, World], None]


@dataclass(frozen=True)
class State:
    """`path` may name a conversation of the world in braces; nobody is signed in where `who` is empty."""

    name: str
    path: str = "/"
    reach: Way | None = None
    who: str = "alice"
    on: tuple[str, ...] = ("wide", "phone")
    says: str = ""  # a pattern of the console messages that it provokes


def question(title: str) -> Way:
    def reach(reader: Window, _world: World) -> None:
        reader.row(title).focus()
        reader.page.keyboard.press("Delete")
        reader.page.get_by_role("alertdialog").wait_for()

    return reach


def failed_question(reader: Window, world: World) -> None:
    question("Everything")(reader, world)
    reader.page.route(re.compile(r"/delete$"), lambda route: route.abort())
    reader.page.get_by_role("button", name="Delete everywhere").click()
    expect(reader.page.get_by_role("alert")).to_contain_text("No answer came")


def slow_question(reader: Window, _world: World) -> None:
    reader.page.route(re.compile(r"/delete$"), lambda _route: None)
    reader.row("Everything").focus()
    reader.page.keyboard.press("Delete")
    reader.page.get_by_role("alertdialog", name="Counting what goes").wait_for()


def deleted(reader: Window, world: World) -> None:
    world.cast.alice.converse("Doomed")
    reader.poll()
    question("Doomed")(reader, world)
    reader.page.get_by_role("button", name="Delete everywhere").click()
    expect(reader.said).not_to_be_empty()


def unfolded(reader: Window, _world: World) -> None:
    reader.page.locator("details").evaluate_all("all => all.forEach(one => one.open = true)")


def menu(reader: Window, _world: World) -> None:
    reader.page.get_by_role("button", name="More about this conversation").click()
    reader.page.get_by_role("link", name="Export as JSON").wait_for()


def memory_question(reader: Window, _world: World) -> None:
    reader.page.locator("#memories summary").click()
    reader.page.get_by_role("button", name=re.compile("Delete memory")).click()
    reader.page.get_by_role("alertdialog", name="Delete memory").wait_for()


def sheet(reader: Window, _world: World) -> None:
    reader.page.keyboard.press("?")
    reader.page.get_by_role("dialog", name="Keyboard shortcuts").wait_for()


def sheet_without_single_keys(reader: Window, world: World) -> None:
    sheet(reader, world)
    reader.page.get_by_role("checkbox", name="Single keys").uncheck()


def folded(reader: Window, _world: World) -> None:
    reader.page.keyboard.press("Control+Shift+S")
    expect(reader.nav).to_be_hidden()


def drawer(reader: Window, _world: World) -> None:
    reader.page.get_by_role("button", name="Conversation history", exact=True).tap()
    reader.nav.wait_for()


def away(reader: Window, _world: World) -> None:
    reader.page.route(POLL, lambda route: route.abort())
    reader.page.evaluate("window.dispatchEvent(new Event('focus'))")
    expect(reader.page.get_by_role("button", name="Try now")).to_be_visible()


def deleted_elsewhere(reader: Window, world: World) -> None:
    talk = world.cast.alice.converse("Doomed")
    reader.open(f"/conversations/{talk}")
    delete_now(world.resources, world.cast.alice.owner, talk)
    reader.poll()
    expect(reader.page.get_by_role("main")).to_contain_text("was deleted on")


def forged(reader: Window, _world: World) -> None:
    reader.page.evaluate("""() => {
      const form = document.createElement("form");
      form.method = "post";
      form.action = "/sign-out";
      document.body.append(form);
      form.submit();
    }""")
    expect(reader.page.get_by_text("Error 403")).to_be_visible()


def ended(reader: Window, world: World) -> None:
    with Session(world.resources.engine) as db, db.begin():
        db.execute(text("UPDATE sign_ins SET revoked_at = now()"))
    reader.page.evaluate("window.dispatchEvent(new Event('focus'))")
    expect(reader.page.get_by_text("Your sign-in in this browser has ended")).to_be_visible()


def other_users_link(reader: Window, world: World) -> None:
    reader.page.goto(f"{reader.address}/sign-in/{world.cast.bob.link()}")


def searched(query: str) -> Way:
    def reach(reader: Window, _world: World) -> None:
        if not reader.page.locator("#q").is_visible():
            reader.page.get_by_role("button", name="Conversation history").click()
        reader.page.locator("#q").fill(query)
        expect(reader.page.locator("#results")).to_have_attribute("data-q", query)

    return reach


def selecting(reader: Window, _world: World) -> None:
    reader.page.get_by_role("button", name="Select", exact=True).click()
    reader.page.locator(".pick").first.check()


def selected(reader: Window, world: World) -> None:
    selecting(reader, world)
    reader.page.get_by_role("button", name="Delete…").click()
    expect(reader.page.get_by_role("alertdialog")).to_contain_text("for good")


def offline_question(reader: Window, _world: World) -> None:
    reader.context.set_offline(True)
    reader.ask("Everything")
    expect(reader.page.get_by_role("alertdialog")).to_contain_text("You are offline")


STATES = (
    State("the sign-in page", "/sign-in", who=""),
    State("a used link", "/sign-in/used", who="", says="401"),
    State("a sign-in that has ended", reach=ended),
    State("the question of another user's link", reach=other_users_link),
    State("the list", "/"),
    State("an empty list", who="bob"),
    State("the list, folded away", "/", folded, on=("wide",)),
    State("a conversation", "{everything}", unfolded),
    State("a conversation without a word", "{empty}"),
    State("a conversation that waits for an answer", "{asking}", unfolded),
    State("a conversation at one message", "{asking}?at=3"),
    State("the menu of a conversation", "{asking}", menu),
    State("the question about a memory", "{asking}", memory_question),
    State("a message by itself", "{asking}/events/2"),
    State("the drawer", "{everything}", drawer, on=("phone",)),
    State("the question", reach=question("Everything")),
    State("the question, slow to come", reach=slow_question, says="ERR_|Failed to fetch"),
    State("the question, without an answer", reach=failed_question, says="ERR_|Failed to fetch"),
    State("the question while a run is active", reach=question("Busy")),
    State("the question as a page", "{everything}/delete"),
    State("a deletion that has just been done", reach=deleted),
    State("a conversation that is deleted elsewhere", reach=deleted_elsewhere),
    State("a conversation that is gone", "{gone}", says="404"),
    State("a conversation that never was", "/conversations/nonsense", says="404"),
    State("the sheet of shortcuts", "{everything}", sheet),
    State("the sheet, single keys off", reach=sheet_without_single_keys),
    State("no answer from the server", "{everything}", away, says="ERR_|Failed to fetch"),
    State("what a search found", reach=searched("look")),
    State("a search that found nothing", reach=searched("nowhere to be found")),
    State("a found message", "{everything}?at=2&q=quoted"),
    State("selecting", reach=selecting),
    State("the question about many", reach=selected),
    State("the question, offline", reach=offline_question, says="ERR_|Failed to fetch"),
    State("the deletions", "/deletions"),
    State("the Import page", "/import"),
    State("an address of nothing", "/nowhere", says="404"),
    State("a refused form", reach=forged, says="403"),
    State("the operator's page", "/operations/", who="olivia"),
    State("the account", "/account"),
    State("the reference of the API", "/v1/docs", who=""),
)


@pytest.fixture
def world(cast: Cast, resources: Resources) -> World:
    """Alice's conversations of every kind; Bob has none."""
    alice = cast.alice
    ids = {name: alice.converse() for name in ("empty", "gone")}
    ids["everything"] = everything(alice, resources)
    ids["asking"] = asking(alice, resources)
    ids["busy"] = alice.converse("Busy")
    alice.start_run(ids["busy"])
    alice.converse(LONG)
    delete_now(resources, alice.owner, ids["gone"])
    return World(cast, resources, ids)


def everything(player: Player, resources: Resources) -> str:
    talk = player.converse("Everything", RICH, "שלום, מה שלומך?", "x" * 300)
    player.say(
        talk,
        Draft("tool_call", {"call_id": "1", "name": "search", "arguments": {"q": "look " * 60}}),
        Draft("tool_result", {"call_id": "1", "output": "three hits", "status": "ok"}),
        Draft("memory_formed", {"text": "Alice looks"}),
        Draft("something_new", {"x": new_id()}),
    )
    attach(resources, player, talk, "notes.txt", b"bytes of notes")
    return talk


def asking(player: Player, resources: Resources) -> str:
    """A conversation whose run waits for its reader, with a picture, a table, a sub-agent and a denial before."""
    talk = player.converse(
        "May I?", "- [x] one\n- [ ] two\n\n$a_1*b$, see[^1]\n\n[^1]: noted\n\n![x](https://e.example/y)"
    )
    attach(resources, player, talk, "dot.png", png(), "image/png")
    attach(resources, player, talk, "table.csv", b"a,b\n1,2\n", "text/csv")
    run_id = player.start_run(talk)
    call = Draft("tool_call", {"call_id": "1", "name": "agent", "arguments": {"q": "x" * 90}})
    parent, refused = player.say(
        talk, call, Draft("approval_requested", {"summary": "All of it?"}), run_id=run_id
    )
    with Session(player.engine) as db, db.begin():
        approvals.decide(db, player.owner, refused, "deny")
    leave = {"summary": "Only the old ones? " + "x" * 80, "tool": "delete", "arguments": {"old": True}}
    player.say(
        talk,
        Draft("assistant_message", {"content": "a step"}, parent_id=parent),
        Draft("memory_formed", {"text": "Says no first"}),
        Draft("approval_requested", leave),
        run_id=run_id,
    )
    return talk


def fits(reader: Window) -> bool:
    """Whether the page is as wide as its window: nothing to scroll sideways."""
    found: bool = reader.page.evaluate(
        "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    )
    return found


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.name)
def test_nothing_stands_in_anybodys_way(window: Windows, world: World, state: State) -> None:
    findings: dict[str, str] = {}
    for device in state.on:
        reader = window(reduced_motion="reduce", **(WIDE if device == "wide" else PHONE))
        if state.says:
            reader.expect(state.says)
        path = re.sub(r"^\{(\w+)\}", lambda named: f"/conversations/{world.ids[named[1]]}", state.path)
        if state.who:
            reader.sign_in_at_once(getattr(world.cast, state.who))
        reader.settle() if path == "/" else reader.open(path)
        if state.reach:
            state.reach(reader, world)
        for look, width, height, scheme in LOOKS[device]:
            reader.page.set_viewport_size({"width": width, "height": height})
            reader.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            reader.frame()
            found = reader.audit()
            if found or not fits(reader):
                findings[look] = found or "wider than the window"
    assert not findings, "\n\n".join(f"{look}: {said}" for look, said in findings.items())

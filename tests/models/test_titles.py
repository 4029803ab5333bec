"""A title is settled once, with the first message, and never again (PRODUCT.md 3.3; FAULTS.md S72 to S74)."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select, text, update
from sqlalchemy.orm import Session

from models import listing
from models.append import Draft, append
from models.history import Conversation
from models.ids import new_id
from models.titles import derive_titles
from tasks.resources import Resources
from tests.cast import Cast, Player
from tests.models.graph import rows


def said(value: Any, **more: Any) -> Draft:
    return Draft("user_message", {"content": value}, **more)


def title(resources: Resources, player: Player, session_id: str) -> str:
    with Session(resources.engine) as db:
        return listing.find(db, player.owner, session_id).title


def test_a_title_is_set_in_the_transaction_of_the_first_message(resources: Resources, alice: Player) -> None:
    session_id = alice.converse()
    assert title(resources, alice, session_id) == ""
    with Session(resources.engine) as db, db.begin():
        append(db, alice.owner, session_id, [said("  Hello\n there ")])
        assert listing.find(db, alice.owner, session_id).title == "Hello there"
        db.rollback()
    assert title(resources, alice, session_id) == ""
    alice.say(
        session_id,
        Draft("note", {}),
        Draft("assistant_message", {"content": "no"}),
        said("Yes"),
        said("late"),
    )
    assert title(resources, alice, session_id) == "Yes"


def test_a_title_is_never_set_twice(resources: Resources, alice: Player) -> None:
    session_id = alice.converse("First")
    for number in range(100):
        alice.say(session_id, said(f"Later {number}"))
    with Session(resources.engine) as db, db.begin():
        assert derive_titles(db) == 0
    assert title(resources, alice, session_id) == "First"


TITLES: list[tuple[list[Draft], str]] = [
    ([said("nested", parent_id=new_id()), said("top")], "top"),
    (
        [said([{"type": "image", "data": "data:image/png;base64,AAAA"}, {"type": "text", "text": "look"}])],
        "look",
    ),
    ([said([{"type": "image", "data": "x"}]), said("second message")], ""),
    ([said(""), said("second message")], ""),
    ([said(" \u202e\u200b"), said("second message")], ""),
    (
        [Draft("tool_call", {"call_id": "c", "name": "n", "arguments": {}}), said("after tools")],
        "after tools",
    ),
    ([said("x" * 63 + "😀😀")], "x" * 63 + "😀"),
    ([said("\u202egnp.exe <b>")], "gnp.exe <b>"),
    ([said([])], ""),
]


@pytest.mark.parametrize(("drafts", "wanted"), TITLES)
def test_titles_come_from_the_first_top_level_message_and_derived_ones_are_the_same(
    resources: Resources, alice: Player, drafts: list[Draft], wanted: str
) -> None:
    at_once, one_by_one, older = alice.converse(), alice.converse(), alice.converse()
    alice.say(at_once, *drafts)
    for draft in drafts:
        alice.say(one_by_one, draft)
    alice.say(older, *drafts)
    predate(resources, older)
    with Session(resources.engine) as db, db.begin():
        assert derive_titles(db) == 1
    assert [title(resources, alice, one) for one in (at_once, one_by_one, older)] == [wanted] * 3
    settled = rows(resources, "SELECT count(*) FROM sessions WHERE title IS NULL")
    assert settled == [(0,)]


def test_an_older_conversation_that_goes_on_takes_the_title_of_its_first_message(
    resources: Resources, alice: Player
) -> None:
    session_id = alice.converse("First", "answer")
    predate(resources, session_id)
    alice.say(session_id, said("Second"))
    assert title(resources, alice, session_id) == "First"


def test_deriving_titles_moves_no_order_and_tells_the_lists_that_show_them(
    resources: Resources, cast: Cast, db: Session
) -> None:
    for player in (cast.alice, cast.bob):
        player.converse("First")
        player.converse()
    cast.mallory.converse("Stranger")
    with resources.engine.begin() as connection:
        mine = (cast.alice.id, cast.bob.id)
        connection.execute(update(Conversation).where(Conversation.principal_id.in_(mine)).values(title=None))
    times = rows(resources, "SELECT id, updated_at FROM sessions ORDER BY id")
    players = (cast.alice, cast.bob, cast.mallory)
    before = [listing.version(db, player.owner) for player in players]
    db.rollback()
    with Session(resources.engine) as session, session.begin():
        assert derive_titles(session) == 2
    assert rows(resources, "SELECT id, updated_at FROM sessions ORDER BY id") == times
    after = [listing.version(db, player.owner) for player in players]
    assert after == [before[0] + 1, before[1] + 1, before[2]]


def test_two_that_derive_titles_share_the_work(resources: Resources, alice: Player) -> None:
    ids = [alice.converse(f"Title {number}") for number in range(6)]
    predate(resources, *ids)
    with Session(resources.engine) as one, Session(resources.engine) as other:
        assert derive_titles(one, limit=4) == 4
        other.execute(text("SET LOCAL lock_timeout = '2s'"))
        mine = select(Conversation.id).where(Conversation.title.is_(None)).with_for_update(skip_locked=True)
        assert len(other.scalars(mine).all()) == 2
        other.rollback()
        one.commit()
        assert derive_titles(other) == 2
        other.commit()


def predate(resources: Resources, *ids: str) -> None:
    with resources.engine.begin() as connection:
        connection.execute(update(Conversation).where(Conversation.id.in_(ids)).values(title=None))

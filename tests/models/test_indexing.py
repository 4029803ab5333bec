"""What search looks in is written with the message, goes with the conversation, and is made for older ones later."""

from __future__ import annotations

import pytest
from sqlalchemy import text, update
from sqlalchemy.orm import Session

from models import indexing
from models.append import Draft
from models.history import Conversation
from models.indexing import index_older, pending
from models.words import tag
from tasks.deletion import delete_now
from tasks.resources import Resources
from tests.cast import Cast, Player
from tests.models.graph import count, dump, rows

BEFORE = 9223372036854775807  # what a row of before search says


def entries(resources: Resources, session_id: str) -> dict[int, str]:
    found = rows(
        resources,
        "SELECT seq, words::text FROM search_entries WHERE session_id = :s ORDER BY seq",
        s=session_id,
    )
    return {row[0]: row[1] for row in found}


def age(resources: Resources, *session_ids: str) -> None:
    """As if these conversations had been written before there was a search."""
    with resources.engine.begin() as connection:
        for session_id in session_ids:
            values = {"s": session_id}
            connection.execute(text("DELETE FROM search_entries WHERE session_id = :s"), values)
            connection.execute(
                update(Conversation).where(Conversation.id == session_id).values(searched_from=BEFORE)
            )


def catch_up(resources: Resources) -> int:
    batches = 0
    while True:
        with Session(resources.engine) as db, db.begin():
            if not index_older(db):
                return batches
        batches += 1


def test_each_shown_message_is_indexed_with_the_append(resources: Resources, alice: Player) -> None:
    session_id = alice.converse("A plan", "Of course")
    of = tag(alice.id)
    assert entries(resources, session_id) == {
        1: f"'{of}a':1 '{of}plan':2",
        2: f"'{of}course':2 '{of}of':1",
    }


def test_what_a_transcript_does_not_show_as_a_message_is_not_indexed(
    resources: Resources, alice: Player
) -> None:
    session_id = alice.converse("Begin")
    (parent,) = alice.say(
        session_id, Draft("tool_call", {"call_id": "1", "name": "find", "arguments": "secret"})
    )
    alice.say(
        session_id,
        Draft("user_message", {"content": "nested words"}, parent_id=parent),
        Draft("memory_formed", {"text": "a memory"}),
        Draft("reasoning", {"content": "thoughts"}),
        Draft("assistant_message", {"content": [{"type": "image", "name": "words.png"}]}),
        Draft(
            "assistant_message",
            {"content": [{"type": "text", "text": "One"}, {"type": "text", "text": "Two"}]},
        ),
        Draft("assistant_message", {"content": "🙂"}),
    )
    assert list(entries(resources, session_id)) == [1, 7]
    assert entries(resources, session_id)[7].endswith("two':2")


def test_a_deletion_takes_the_words_in_its_own_transaction(resources: Resources, alice: Player) -> None:
    stays, goes = alice.converse("stays"), alice.converse("goes")
    delete_now(resources, alice.owner, goes)
    assert entries(resources, goes) == {}
    assert list(entries(resources, stays)) == [1]


def test_an_append_that_fails_leaves_no_words(resources: Resources, alice: Player) -> None:
    session_id = alice.converse("begin")
    with pytest.raises(Exception, match="artifact"):
        alice.say(
            session_id,
            Draft("user_message", {"content": "lost"}),
            Draft("knowledge_added", {"artifact_id": session_id, "title": "x", "chunks": []}),
        )
    assert list(entries(resources, session_id)) == [1]


def test_older_conversations_are_indexed_later_and_as_they_would_have_been(
    resources: Resources, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [cast.alice.converse(f"one {n}", "two", "three") for n in range(5)]
    made += [cast.bob.converse(*(f"message {n}" for n in range(25))), cast.bob.converse()]
    wanted = {session_id: entries(resources, session_id) for session_id in made}
    age(resources, *made)
    with Session(resources.engine) as db:
        assert (pending(db, cast.alice.id), pending(db, cast.bob.id)) == (5, 2)
    cast.bob.say(made[5], Draft("user_message", {"content": "said since"}))  # and this is found at once
    assert list(entries(resources, made[5])) == [26]
    monkeypatch.setattr(indexing, "MESSAGES", 7)
    monkeypatch.setattr(indexing, "TOGETHER", 4)
    assert catch_up(resources) > 3
    wanted[made[5]][26] = entries(resources, made[5])[26]
    assert {session_id: entries(resources, session_id) for session_id in made} == wanted
    with Session(resources.engine) as db:
        assert (pending(db, cast.alice.id), pending(db, cast.bob.id)) == (0, 0)
    before = dump(resources)
    assert catch_up(resources) == 0
    assert dump(resources) == before


def test_a_batch_passes_over_what_is_locked_and_waits_for_nobody(resources: Resources, alice: Player) -> None:
    busy, free = alice.converse("busy"), alice.converse("free")
    age(resources, busy, free)
    with Session(resources.engine) as holder, holder.begin():
        holder.execute(text("SELECT FROM sessions WHERE id = :s FOR UPDATE"), {"s": busy})
        with Session(resources.engine) as db, db.begin():
            assert index_older(db) == 1
    assert (list(entries(resources, free)), list(entries(resources, busy))) == ([1], [])


def test_indexing_moves_no_order_and_no_version(resources: Resources, alice: Player) -> None:
    session_id = alice.converse("old")
    age(resources, session_id)
    before = dump(resources)
    catch_up(resources)
    after = dump(resources)
    assert {name for name in before if before[name] != after[name]} == {"search_entries", "sessions"}
    assert [line.replace(str(BEFORE), "1") for line in before["sessions"]] == after["sessions"]
    assert count(resources, "search_entries") == 1

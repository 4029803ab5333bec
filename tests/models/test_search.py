"""Search: what is found, for whom, in which order and how it goes on; both ways of looking give the same answer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text
from sqlalchemy.orm import Session

from models.append import Draft
from models.search import Results, search
from models.words import asked
from tasks.deletion import delete_now
from tasks.resources import Resources
from tests.cast import Cast, Player
from tests.journeys.window import converse_at
from tests.models.graph import fill

LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)
WAYS = pytest.mark.parametrize("most", [20_000, 0], ids=["looked up", "walked"])


def found(resources: Resources, player: Player, query: str, **options: object) -> Results:
    with Session(resources.engine) as db, db.begin():
        return search(db, player.owner, asked(query), **options)  # type: ignore[arg-type]


def ids(results: Results) -> list[str]:
    return [one.entry.id for one in results.found]


@WAYS
def test_a_message_is_found_at_once_and_leads_to_its_place(
    resources: Resources, alice: Player, most: int
) -> None:
    session_id = alice.converse("Plan the trip", "Take a tent", "Thanks")
    (one,) = found(resources, alice, "tent", most=most).found
    assert (one.entry.id, one.entry.title, one.seq) == (session_id, "Plan the trip", 2)
    assert found(resources, alice, "trip", most=most).found[0].seq == 1
    assert found(resources, alice, "boat", most=most).found == []


@WAYS
def test_each_conversation_is_shown_once_with_its_newest_match_newest_first(
    resources: Resources, alice: Player, most: int
) -> None:
    made = [converse_at(alice, LONG_AGO + timedelta(days=n), "tea", "no", "tea again") for n in (3, 1, 2)]
    results = found(resources, alice, "tea", most=most)
    assert ids(results) == [made[0], made[2], made[1]]
    assert {one.seq for one in results.found} == {3}
    alice.say(made[1], Draft("user_message", {"content": "more"}))
    assert ids(found(resources, alice, "tea", most=most))[0] == made[1]


@WAYS
def test_pages_follow_one_another_to_the_end(resources: Resources, alice: Player, most: int) -> None:
    made = [converse_at(alice, LONG_AGO + timedelta(hours=n // 2), f"tea {n}") for n in range(23)]
    seen: list[str] = []
    after = None
    while True:
        page = found(resources, alice, "tea", after=after, limit=5, most=most)
        seen += ids(page)
        if not page.more:
            break
        after = page.found[-1].entry.position
    assert len(seen) == 23
    assert set(seen) == set(made)


@WAYS
def test_nobody_finds_anothers_words(resources: Resources, cast: Cast, most: int) -> None:
    mine = cast.alice.converse("shared words of alice")
    for other in (cast.bob, cast.mallory):
        other.converse("shared words of another")
        assert mine not in ids(found(resources, other, "shared", most=most))
        assert ids(found(resources, other, "alice", most=most)) == []


@WAYS
def test_a_tag_that_two_share_shows_neither_the_others(
    resources: Resources, cast: Cast, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("models.indexing.tag", lambda _: "same")
    monkeypatch.setattr("models.search.tag", lambda _: "same")
    mine, theirs = cast.alice.converse("shared words"), cast.bob.converse("shared words")
    assert ids(found(resources, cast.alice, "shared", most=most)) == [mine]
    assert ids(found(resources, cast.bob, "shared", most=most)) == [theirs]


@WAYS
def test_what_was_deleted_is_found_no_more(resources: Resources, alice: Player, most: int) -> None:
    filled = fill(resources, alice, "marker")
    assert ids(found(resources, alice, "marker", most=most)) == [filled.session_id]
    delete_now(resources, alice.owner, filled.session_id)
    assert ids(found(resources, alice, "marker", most=most)) == []


@WAYS
def test_what_was_said_comes_with_it(resources: Resources, alice: Player, most: int) -> None:
    alice.converse("one tea", "two")
    alice.converse("three", "four tea")
    results = found(resources, alice, "tea", most=most)
    assert [one.payload["content"] for one in results.found] == ["four tea", "one tea"]


def test_a_word_of_many_messages_is_walked_for(resources: Resources, alice: Player) -> None:
    for n in range(6):
        alice.converse(f"tea {n}", "tea")
    by_look_up, by_walk = found(resources, alice, "tea"), found(resources, alice, "tea", most=11)
    assert by_look_up == by_walk
    assert len(by_walk.found) == 6


def test_a_look_up_goes_by_the_index_and_reads_nobody_elses_rows(resources: Resources, cast: Cast) -> None:
    with resources.engine.begin() as connection:
        ours = cast.alice.converse("tea for alice")
        theirs = cast.bob.converse("x")
        insertion = (
            "INSERT INTO search_entries (session_id, seq, words) SELECT :s, n, "
            "CAST(:of || 'tea:1 ' || :of || 'team:2' AS tsvector) FROM generate_series(2, 30000) n"
        )
        from models.words import tag

        connection.execute(text(insertion), {"s": theirs, "of": tag(cast.bob.id)})
    with resources.reader.connect() as connection:
        connection.execute(text("VACUUM ANALYZE search_entries"))
    with Session(resources.engine) as db, db.begin():
        results = search(db, cast.alice.owner, asked("te"))
        assert ids(results) == [ours]
        plan = db.execute(
            text(
                "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT session_id FROM search_entries "
                "WHERE words @@ CAST(:q AS tsquery)"
            ),
            {"q": f"'{tag(cast.alice.id)}te':*"},
        ).scalar_one()[0]["Plan"]
    assert plan["Node Type"] == "Bitmap Heap Scan"
    assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] < 20

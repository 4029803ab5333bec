"""Conversations that hold all the words, in different messages: which, in what order, whose, and at what cost."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy.orm import Session

from models.search import Results, search
from models.spread import spread
from models.words import asked
from tasks.deletion import delete_now
from tasks.resources import Resources
from tests.cast import Cast, Player
from tests.journeys.window import converse_at

LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


def found(resources: Resources, player: Player, query: str, **options: object) -> Results:
    with Session(resources.engine) as db, db.begin():
        return spread(db, player.owner, asked(query), **options)  # type: ignore[arg-type]


def places(results: Results) -> list[tuple[str, int]]:
    return [(one.entry.id, one.seq) for one in results.found]


def test_words_of_different_messages_lead_to_the_one_that_has_the_most_of_them(
    resources: Resources, alice: Player
) -> None:
    talk = alice.converse("A trip to Norway", "Take a tent", "And a stove for the tent", "Thanks", "Norway!")
    alice.converse("Norway alone")
    alice.converse("A tent alone")
    assert places(found(resources, alice, "norway tent")) == [(talk, 5)]
    assert places(found(resources, alice, "norway tent stov")) == [(talk, 3)]
    assert places(found(resources, alice, "norway tent boat")) == []


def test_what_one_message_holds_is_not_found_a_second_time(resources: Resources, alice: Player) -> None:
    alice.converse("Norway", "a tent", "a tent in Norway")
    assert places(found(resources, alice, "norway tent")) == []
    with Session(resources.engine) as db, db.begin():
        assert len(search(db, alice.owner, asked("norway tent")).found) == 1


@pytest.mark.parametrize("query", ["norway", '"norway tent"', "norway norway", ""])
def test_one_term_is_in_one_message_or_in_none(resources: Resources, alice: Player, query: str) -> None:
    alice.converse("Norway", "a tent")
    assert places(found(resources, alice, query)) == []


def test_pages_follow_one_another_newest_first(resources: Resources, alice: Player) -> None:
    made = [
        converse_at(alice, LONG_AGO + timedelta(hours=n // 2), "tea", f"with milk {n}") for n in range(23)
    ]
    seen: list[str] = []
    after = None
    while True:
        page = found(resources, alice, "tea milk", after=after, limit=5)
        seen += [one.entry.id for one in page.found]
        if not page.more:
            break
        after = page.found[-1].entry.position
    at = {one: LONG_AGO + timedelta(hours=n // 2) for n, one in enumerate(made)}
    assert sorted(seen) == sorted(made)
    assert seen == sorted(made, key=lambda one: (at[one], one), reverse=True)


def test_a_common_word_is_asked_for_where_the_rarer_ones_are(resources: Resources, alice: Player) -> None:
    for _ in range(4):
        alice.converse("tea", "tea again")
    both = alice.converse("tea", "zebra")
    alice.converse("zebra", "coffee")
    assert places(found(resources, alice, "tea zebra", most=3)) == [(both, 2)]
    assert places(found(resources, alice, "tea zebra", most=1)) == []  # neither is rare enough to begin with


def test_nobody_finds_anothers_words(
    resources: Resources, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("models.indexing.tag", lambda _: "same")
    monkeypatch.setattr("models.spread.tag", lambda _: "same")
    mine = cast.alice.converse("tea", "milk")
    for other in (cast.bob, cast.mallory):
        other.converse("tea", "sugar")
        assert places(found(resources, other, "tea milk")) == []
    assert places(found(resources, cast.alice, "tea milk")) == [(mine, 2)]


def test_what_was_deleted_is_found_no_more(resources: Resources, alice: Player) -> None:
    talk = alice.converse("tea", "milk")
    delete_now(resources, alice.owner, talk)
    assert places(found(resources, alice, "tea milk")) == []

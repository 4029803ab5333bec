"""What a user does with memories on a device: each verb, what it records, and what it leaves behind."""

from __future__ import annotations

from datetime import timedelta

import pytest
import sqlean
from sqlalchemy import select, text

from models.copies import Copy
from models.errors import Invalid, InvalidState, NotFound
from models.memorystore import looking, verbs
from models.memorystore.store import Held, Place, records
from models.memorystore.tables import RECORDS
from models.recorded import RECORDED, Deleting, Recorded
from models.rules import TICK, key_of
from tests.models.memorystore.conftest import HERE, NOW, Home

WORK = Place("work", "memories")


def texts(home: Home, place: Place = HERE) -> list[str]:
    return sorted(one.text for one in looking.memories(home.store, place))


def recorded(home: Home, place: Place = HERE) -> list[bytes]:
    with home.store.db.begin():
        rows = select(RECORDS.c.key).where(home.store.mine(RECORDS, place))
        return [key for (key,) in home.store.db.execute(rows)]


def test_a_text_is_remembered_once_and_an_act_raises_its_time(home: Home) -> None:
    first = verbs.remember(home.store, "tea at four", HERE, "typed")
    assert first == (key_of("tea at four"), True)
    home.now += timedelta(hours=1)
    assert verbs.remember(home.store, "tea at four", HERE, "typed") == (first.key, False)
    (held,) = looking.memories(home.store, HERE)
    assert (held.copy.made_at, held.copy.recorded_at) == (NOW, NOW + timedelta(hours=1))
    assert held.copy.device == home.name


def test_secrets_are_masked_before_anything_is_hashed_or_written(home: Home) -> None:
    secret = "ghp_" + "a1B2" * 9
    made = verbs.remember(home.store, f"the token is {secret} for now", HERE, "typed")
    (held,) = looking.memories(home.store, HERE)
    assert "[redacted]" in held.text
    assert made.key == key_of(held.text)
    home.close()
    assert not any(secret.encode() in path.read_bytes() for path in home.folder.iterdir())
    home.again()


@pytest.mark.parametrize("odd", ["", " \n\t", "a\0b", "\ud800", "x" * 100_001])
def test_a_text_that_is_none_is_refused_and_nothing_is_changed(home: Home, odd: str) -> None:
    with pytest.raises(Invalid):
        verbs.remember(home.store, odd, HERE, "typed")
    assert texts(home) == []
    assert looking.workspaces(home.store) == []


def test_what_is_forgotten_is_recorded_and_an_act_makes_it_again_past_that(home: Home) -> None:
    key = verbs.remember(home.store, "tea", HERE, "typed").key
    home.now -= timedelta(minutes=5)  # a clock that runs behind loses nothing
    assert verbs.forget(home.store, HERE, [key, key_of("never")]) == verbs.Gone(1, 1)
    with home.store.db.begin():
        assert records(home.store, HERE, [key]) == {key: NOW + TICK}
    verbs.remember(home.store, "tea", HERE, "typed")
    (held,) = looking.memories(home.store, HERE)
    assert held.copy.recorded_at == NOW + 2 * TICK


@pytest.mark.parametrize("why", list(Deleting))
def test_each_kind_of_deletion_records_what_the_table_says(home: Home, why: Deleting) -> None:
    own = verbs.remember(home.store, "made here", HERE, "typed").key
    other = verbs.remember(home.store, "made there", HERE, "typed").key
    with home.store.phase("made elsewhere"):
        elsewhere = {"device": b"phone".ljust(16, b"\0"), "key": other}
        home.store.db.execute(
            text("UPDATE memories SET recorded_device = :device WHERE key = :key"), elsewhere
        )
    gone = verbs.forget(home.store, HERE, [own, other], why)
    expected = {Recorded.ALL: {own, other}, Recorded.OWN: {own}, Recorded.NONE: set()}[RECORDED[why]]
    assert (gone.deleted, gone.recorded) == (2, len(expected))
    assert set(recorded(home)) == expected
    assert texts(home) == []


def test_a_redaction_leaves_neither_the_words_nor_a_record_of_them(home: Home) -> None:
    key = verbs.remember(home.store, "the gate opens with 4711-zebra", HERE, "typed").key
    verbs.forget(home.store, HERE, [key])
    verbs.remember(home.store, "the gate opens with 4711-zebra", HERE, "typed")
    verbs.redact(home.store, HERE, key, "the gate opens with [redacted]")
    assert texts(home) == ["the gate opens with [redacted]"]
    assert recorded(home) == []
    (mark,) = looking.all_marks(home.store).values()
    assert mark.redacted_at > NOW
    with pytest.raises(NotFound):
        verbs.redact(home.store, HERE, key, "again")


def test_a_move_keeps_the_memory_and_records_nothing(home: Home) -> None:
    key = verbs.remember(home.store, "tea", HERE, "typed").key
    (before,) = looking.memories(home.store, HERE)
    verbs.move(home.store, HERE, key, "work")
    (after,) = looking.memories(home.store, WORK)
    assert after.copy == before.copy
    assert texts(home) == []
    assert recorded(home) == recorded(home, WORK) == []
    assert looking.workspaces(home.store) == [("default", 0), ("work", 1)]
    verbs.move(home.store, WORK, key, "work")  # where it is already: nothing happens
    assert texts(home, WORK) == ["tea"]


def test_a_workspace_is_another_place_for_the_same_text(home: Home) -> None:
    key = verbs.remember(home.store, "tea", HERE, "typed").key
    verbs.remember(home.store, "tea", WORK, "typed")
    verbs.forget(home.store, HERE, [key])
    assert (texts(home), texts(home, WORK)) == ([], ["tea"])
    assert recorded(home, WORK) == []


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("zebra", ["A zebra crossed"]),
        ("zeb", ["A zebra crossed"]),
        ('"zebra crossed"', ["A zebra crossed"]),
        ('"crossed zebra"', []),
        ("CAFÉ", ["Ein Café in Köln"]),
        ("koln", ["Ein Café in Köln"]),
        ("斑馬", ["斑馬過馬路"]),
        ("過馬", ["斑馬過馬路"]),
        ("zebra café", []),
        ("' OR \" * ( NEAR zebra", []),
    ],
)
def test_recall_finds_words_in_any_script(home: Home, query: str, found: list[str]) -> None:
    for said in ("A zebra crossed", "Ein Café in Köln", "斑馬過馬路"):
        verbs.remember(home.store, said, HERE, "typed")
    assert [one.text for one in looking.recall(home.store, query)] == found
    assert looking.recall(home.store, query, "work") == []


def test_recall_without_a_word_is_refused(home: Home) -> None:
    with pytest.raises(Invalid):
        looking.recall(home.store, "?! …")


@pytest.mark.parametrize("way", ["forget", "redact", "wipe"])
def test_deleted_words_are_in_no_byte_of_the_files(home: Home, way: str) -> None:
    marker = "quaggaword"
    for number in range(50):
        verbs.remember(home.store, f"filler {number} about other animals", HERE, "typed")
    key = verbs.remember(home.store, f"only here stands {marker}", HERE, "typed").key
    assert [one.key for one in looking.recall(home.store, marker)] == [key]
    if way == "redact":
        verbs.redact(home.store, HERE, key, "only here stood something")
    elif way == "wipe":
        verbs.forget_all(home.store, HERE, Deleting.WIPE)
    else:
        verbs.forget(home.store, HERE, [key])
    assert looking.recall(home.store, marker) == []
    home.close()  # folds the log into the files
    for path in home.folder.iterdir():
        assert marker.encode() not in path.read_bytes(), path.name
    home.again()


def test_a_home_of_a_newer_release_is_refused_and_not_touched(home: Home) -> None:
    verbs.remember(home.store, "tea", HERE, "typed")
    home.close()
    for name in ("memories.sqlite3", "sync-deletions.sqlite3"):
        path = home.folder / name
        with sqlean.connect(str(path)) as file:
            (held,) = file.execute("PRAGMA user_version").fetchone()
            file.execute("PRAGMA user_version = 99")
        with pytest.raises(InvalidState, match="newer release"):
            home._open()
        with sqlean.connect(str(path)) as file:
            assert file.execute("PRAGMA user_version").fetchone() == (99,)
            file.execute(f"PRAGMA user_version = {held}")
    home.store = home._open()
    assert texts(home) == ["tea"]


def test_many_that_go_at_once_leave_no_word_either_and_the_index_goes_on(home: Home) -> None:
    markers = ["quaggaword", "dodoword"]
    arriving = []
    for number in range(2_500):
        said = f"{markers[number % 2]} {number}"
        copy = Copy(NOW, home.name, number.to_bytes(16, "big"), "typed", NOW)
        arriving.append(Held(HERE, key_of(said), said, copy))
    verbs.admit(home.store, HERE, arriving)
    kept = verbs.remember(home.store, "what stays is found", HERE, "typed").key
    gone = [one.key for one in arriving]
    assert verbs.forget(home.store, HERE, gone) == verbs.Gone(2_500, 2_500)
    assert looking.recall(home.store, "quaggaword") == []
    assert [one.key for one in looking.recall(home.store, "stays")] == [kept]
    with home.store.reading() as db:
        db.exec_driver_sql("INSERT INTO memory_words (memory_words, rank) VALUES ('integrity-check', 1)")
    home.close()
    for path in home.folder.iterdir():
        assert not any(marker.encode() in path.read_bytes() for marker in markers), path.name
    home.again()
    verbs.forget(home.store, HERE, [kept])  # and one by one goes on as before
    home.close()
    assert not any(b"stays" in path.read_bytes() for path in home.folder.iterdir())
    home.again()


def test_a_place_that_a_mark_leads_to_is_a_workspace_like_any_other(home: Home) -> None:
    key = verbs.remember(home.store, "tea", HERE, "typed").key
    (here,) = looking.memories(home.store, HERE)
    verbs.move(home.store, HERE, key, "work")
    verbs.forget(home.store, WORK, [key], Deleting.WIPE)
    with home.store.phase("removed") as db:
        db.execute(text("DELETE FROM workspaces"))
    older = here._replace(copy=here.copy._replace(recorded_at=NOW - timedelta(hours=1)))
    assert verbs.admit(home.store, HERE, [older]) == 1  # it comes from a device that did not hear of the move
    assert texts(home, WORK) == ["tea"]
    assert ("work", 1) in looking.workspaces(home.store)

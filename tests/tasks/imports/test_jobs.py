"""The jobs of imports: what a row says gets done, once, whoever is killed, and is counted exactly (FAULTS.md S77)."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.orm import Session
from structlog.testing import capture_logs

from models import import_requests, imports
from models.append import Draft
from models.errors import InvalidState, NotFound
from models.imports import Import
from models.purge import delete_conversation
from tasks.imports import jobs, ledger
from tasks.imports.arriving import arrive
from tasks.imports.jobs import work_on
from tasks.imports.ledger import Ledger
from tasks.outbox import drain_due
from tasks.resources import Resources
from tests.cast import Cast, Player
from tests.models.graph import count, fail_to_import, rows, stored
from tests.tasks.imports.exports import chatgpt, claude, dumped, node, zipped
from tests.tasks.imports.histories import conversations, delete, put

MARKER = "marker-7b1f"


def upload(
    resources: Resources, player: Player, path: Path, name: str = "export.json", **options: Any
) -> str:
    return arrive(resources, player.owner, name, [path.read_bytes()], **options)


def imported(resources: Resources, player: Player, path: Path, **options: Any) -> Import:
    """A whole import of a file that came by the browser."""
    import_id = upload(resources, player, path, **options)
    work_on(resources, import_id)
    return look(resources, player, import_id)


def look(resources: Resources, player: Player, import_id: str) -> Import:
    with Session(resources.engine) as db:
        return import_requests.find(db, player.owner, import_id)


def figures(row: Import) -> tuple[int, int, int, int, int]:
    return row.imported, row.already_there, row.skipped, row.failed, row.total


def named(resources: Resources, row: Import) -> list[tuple[str, str]]:
    with Session(resources.engine) as db:
        return [(one.conversation, one.reason) for one in import_requests.failures(db, row.id)]


def lapse(resources: Resources) -> None:
    """The time of every lease and every patience is over."""
    with resources.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE imports SET lease_until = clock_timestamp()")


class Died(BaseException):
    """What ends a worker without a word."""


@pytest.fixture
def dying(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Ends the worker when it has looked at as many conversations as the list says, one entry a try."""
    at: list[int] = []
    held = Ledger.looked_at

    def looked_at(book: Ledger, position: int, length: int, result: Any) -> None:
        if at and result.total >= at[0]:
            at.pop(0)
            raise Died
        held(book, position, length, result)

    monkeypatch.setattr(Ledger, "looked_at", looked_at)
    yield at
    assert not at


def die_in(resources: Resources, import_id: str) -> None:
    with pytest.raises(Died):
        work_on(resources, import_id)
    lapse(resources)


# -- an import ----------------------------------------------------------------------------------------------------


def test_what_came_by_the_browser_is_imported_counted_and_its_bytes_go(
    resources: Resources, alice: Player, tmp_path: Path
) -> None:
    row = imported(
        resources, alice, put(tmp_path / "f.json", chatgpt(1), chatgpt(2), {"mapping": {}, "title": "gone"})
    )
    assert (row.state, row.error, row.format) == ("done", None, "chatgpt")
    assert figures(row) == (2, 0, 0, 1, 3)
    assert (row.created, row.file_name) == (2, "export.json")
    assert named(resources, row) == [("gone", "no messages")]
    with Session(resources.engine) as db:
        assert import_requests.made_by(db, alice.owner, row.id) == 2
    assert len(conversations(resources, alice)) == 2


def test_without_anything_left_out_the_bytes_are_owed_at_once(
    resources: Resources, alice: Player, tmp_path: Path
) -> None:
    row = imported(resources, alice, put(tmp_path / "f.json", chatgpt(1)))
    assert row.upload is None
    drain_due(resources)
    assert stored(resources) == []
    assert count(resources, "outbox") == 0


def test_what_was_left_out_is_kept_an_hour_and_can_be_had_without_choosing_the_file_again(
    resources: Resources, alice: Player, tmp_path: Path
) -> None:
    path = put(tmp_path / "f.json", chatgpt(1), chatgpt(2))
    imported(resources, alice, path)
    delete(resources, alice, conversations(resources, alice)[0].id)
    row = imported(resources, alice, path)
    assert figures(row) == (0, 1, 1, 0, 2)
    drain_due(resources)
    assert len(stored(resources)) == 1
    (life,) = rows(resources, "SELECT next_attempt_at - now() FROM outbox WHERE reserved")[0]
    assert 3500 < life.total_seconds() <= 3600
    with Session(resources.engine) as db, db.begin():
        again = import_requests.repeat(db, alice.owner, row.id, again=True).id
    work_on(resources, again)
    assert figures(look(resources, alice, again)) == (1, 1, 0, 0, 2)
    drain_due(resources)
    assert stored(resources) == []
    with Session(resources.engine) as db, db.begin(), pytest.raises(InvalidState, match="not kept"):
        import_requests.repeat(db, alice.owner, row.id, again=True)


def test_importing_it_again_adds_nothing_and_a_longer_one_what_is_new(
    resources: Resources, alice: Player, tmp_path: Path
) -> None:
    first = imported(resources, alice, put(tmp_path / "f.json", chatgpt(1)))
    longer = chatgpt(
        1,
        node("q", None, "user", "question 1", children=("a",), create_time=1700000001.5),
        node("a", "q", "assistant", "answer 1", children=("b",)),
        node("b", "a", "user", "and more"),
    )
    row = imported(resources, alice, put(tmp_path / "g.json", longer, chatgpt(2)))
    assert (row.imported, row.created) == (2, 1)
    assert figures(imported(resources, alice, put(tmp_path / "g.json", longer, chatgpt(2)))) == (
        0,
        2,
        0,
        0,
        2,
    )
    with Session(resources.engine) as db:
        assert import_requests.made_by(db, alice.owner, first.id) == 1
        assert import_requests.made_by(db, alice.owner, row.id) == 1
        assert import_requests.continued(db, alice.owner, first.id) == 1


def test_a_zip_with_files_is_read_from_the_copy_that_has_no_name(
    resources: Resources, alice: Player, tmp_path: Path
) -> None:
    path = zipped(tmp_path / "e.zip", {"a/conversations.json": dumped(chatgpt(1), chatgpt(2))})
    assert figures(imported(resources, alice, path)) == (2, 0, 0, 0, 2)
    assert list(resources.settings.data_dir.glob("import-*")) == []


def test_a_file_of_no_known_kind_fails_with_its_reason(
    resources: Resources, alice: Player, tmp_path: Path
) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"hello")
    row = imported(resources, alice, path, name="holiday.jpg")
    assert (row.state, row.error, figures(row)) == ("failed", "unknown_kind", (0, 0, 0, 1, 1))
    assert named(resources, row)[0][0] == "holiday.jpg"
    assert row.upload is None


def test_of_very_many_failures_the_first_are_named_and_all_are_counted(
    resources: Resources, alice: Player, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imports, "FAILURES_MAX", 3)
    broken = [{"mapping": {}, "title": f"t{n}"} for n in range(5)]
    row = imported(resources, alice, put(tmp_path / "f.json", chatgpt(1), *broken))
    assert row.failed == 5
    assert [name for name, _ in named(resources, row)] == ["t0", "t1", "t2"]


# -- killed -------------------------------------------------------------------------------------------------------


def test_a_killed_import_goes_on_where_it_was_and_the_counts_are_those_of_one(
    resources: Resources, alice: Player, tmp_path: Path, dying: list[int]
) -> None:
    items = [chatgpt(n) if n % 4 else {"mapping": {}, "title": f"t{n}"} for n in range(20)]
    import_id = upload(resources, alice, put(tmp_path / "f.json", *items))
    for at in (3, 9, 13):
        dying.append(at)
        die_in(resources, import_id)
    work_on(resources, import_id)
    row = look(resources, alice, import_id)
    assert (row.state, figures(row), row.created) == ("done", (15, 0, 0, 5, 20), 15)
    assert [name for name, _ in named(resources, row)] == ["t0", "t4", "t8", "t12", "t16"]
    assert len(conversations(resources, alice)) == 15
    assert count(resources, "events") == 30


def test_a_worker_that_was_given_up_writes_nothing_more(
    resources: Resources, alice: Player, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import_id = upload(resources, alice, put(tmp_path / "f.json", *(chatgpt(n) for n in range(6))))
    held, other = Ledger.looked_at, []

    def looked_at(book: Ledger, position: int, length: int, result: Any) -> None:
        held(book, position, length, result)
        if result.total == 2 and not other:  # it hangs so long that another takes its place, and then goes on
            other.append(True)
            lapse(resources)
            work_on(resources, import_id)

    monkeypatch.setattr(Ledger, "looked_at", looked_at)
    work_on(resources, import_id)
    row = look(resources, alice, import_id)
    assert (row.state, figures(row), row.created) == ("done", (6, 0, 0, 0, 6), 6)
    assert count(resources, "events") == 12


def test_a_file_that_ends_its_worker_each_time_is_given_up_and_says_so(
    resources: Resources, alice: Player, tmp_path: Path, dying: list[int]
) -> None:
    import_id = upload(resources, alice, put(tmp_path / "f.json", {"mapping": {}}, chatgpt(1)))
    for _ in range(jobs.ATTEMPTS):
        dying.append(1)
        die_in(resources, import_id)
    work_on(resources, import_id)
    row = look(resources, alice, import_id)
    assert (row.state, row.error, row.imported) == ("failed", "interrupted", 0)
    with Session(resources.engine) as db, db.begin():
        again = import_requests.repeat(db, alice.owner, import_id, again=False).id
    work_on(resources, again)
    assert figures(look(resources, alice, again)) == (1, 0, 0, 1, 2)


def test_the_sweep_finds_what_redis_forgot_and_fills_no_queue_twice(
    resources: Resources, alice: Player, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "in_this_process", lambda: resources)
    import_id = upload(resources, alice, put(tmp_path / "f.json", chatgpt(1)))
    jobs.sweep()
    assert resources.imports.count == 0  # it was queued a moment ago
    lapse(resources)
    jobs.sweep()
    jobs.sweep()
    (job,) = resources.imports.get_jobs()
    assert (job.func_name, list(job.args)) == ("tasks.imports.jobs.work", [import_id])
    jobs.work(import_id)
    lapse(resources)
    jobs.sweep()
    assert resources.imports.count == 1
    assert look(resources, alice, import_id).state == "done"


def test_a_lease_is_renewed_for_as_long_as_the_worker_lives(
    resources: Resources, alice: Player, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.models.racing import wait_for

    monkeypatch.setattr(ledger, "BEAT_SECONDS", 0.01)
    import_id = upload(resources, alice, put(tmp_path / "f.json", chatgpt(1)))
    lapse(resources)
    taken = ledger.take(resources, import_id)
    assert taken is not None
    lapse(resources)
    with taken:
        fresh = "SELECT count(*) FROM imports WHERE lease_until > clock_timestamp() + interval '20 s'"
        wait_for(lambda: rows(resources, fresh) == [(1,)])
    assert ledger.take(resources, import_id) is None


# -- what is away -------------------------------------------------------------------------------------------------


def test_a_store_that_is_away_is_waited_for(resources: Resources, alice: Player, tmp_path: Path) -> None:
    import_id = upload(resources, alice, put(tmp_path / "f.json", chatgpt(1)))
    folder = Path(resources.settings.object_store_url.removeprefix("file://"))
    shutil.move(folder, tmp_path / "away")
    for _ in range(jobs.ATTEMPTS + 2):
        work_on(resources, import_id)
        row = look(resources, alice, import_id)
        assert (row.state, row.error, row.lease_id) == ("running", "store_away", None)
    shutil.move(tmp_path / "away", folder)
    work_on(resources, import_id)
    row = look(resources, alice, import_id)
    assert (row.state, row.error, row.imported) == ("done", None, 1)


def test_a_file_that_is_not_in_the_store_any_more_is_said_to_be_gone(
    resources: Resources, alice: Player, tmp_path: Path
) -> None:
    import_id = upload(resources, alice, put(tmp_path / "f.json", chatgpt(1)))
    with resources.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE outbox SET next_attempt_at = now()")
    drain_due(resources)
    work_on(resources, import_id)
    row = look(resources, alice, import_id)
    assert (row.state, row.error) == ("failed", "file_gone")


def test_no_title_and_no_text_is_in_a_log_or_in_redis(
    resources: Resources, alice: Player, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(book: Ledger, *_: Any) -> None:
        raise ZeroDivisionError(MARKER)

    monkeypatch.setattr(Ledger, "looked_at", fail)
    items = [chatgpt(1, node("q", None, "user", MARKER), title=MARKER), {"mapping": {}, "title": MARKER}]
    import_id = upload(resources, alice, put(tmp_path / "f.json", *items), name=f"{MARKER}.json")
    jobs.work_later(resources, import_id)
    with capture_logs() as logs:
        work_on(resources, import_id)
    assert "ZeroDivisionError" in repr(logs)
    assert MARKER not in repr(logs)
    for key in resources.redis.scan_iter():
        assert MARKER.encode() not in (resources.redis.dump(key) or b"")


# -- its owner stops it -------------------------------------------------------------------------------------------


def test_what_is_stopped_keeps_what_is_in_and_can_go_on(
    resources: Resources, alice: Player, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import_id = upload(resources, alice, put(tmp_path / "f.json", *(chatgpt(n) for n in range(9))))
    held = Ledger.looked_at

    def looked_at(book: Ledger, position: int, length: int, result: Any) -> None:
        if result.total == 3:
            with Session(resources.engine) as db, db.begin():
                assert not import_requests.cancel(db, alice.owner, import_id)
        held(book, position, length, result)

    monkeypatch.setattr(Ledger, "looked_at", looked_at)
    work_on(resources, import_id)
    monkeypatch.undo()
    row = look(resources, alice, import_id)
    assert (row.state, row.total) == ("stopped", 9)
    assert 3 <= row.imported < 9
    assert len(conversations(resources, alice)) == row.imported
    with Session(resources.engine) as db, db.begin():
        rest = import_requests.repeat(db, alice.owner, import_id, again=False).id
    work_on(resources, rest)
    assert look(resources, alice, rest).imported == 9 - row.imported


def test_what_waits_is_stopped_at_once(resources: Resources, alice: Player, tmp_path: Path) -> None:
    import_id = upload(resources, alice, put(tmp_path / "f.json", chatgpt(1)))
    with Session(resources.engine) as db, db.begin():
        assert import_requests.cancel(db, alice.owner, import_id)
    work_on(resources, import_id)
    assert look(resources, alice, import_id).state == "stopped"
    assert conversations(resources, alice) == []
    drain_due(resources)
    assert stored(resources) == []


# -- undo ---------------------------------------------------------------------------------------------------------


def undone(resources: Resources, player: Player, import_id: str) -> Import:
    with Session(resources.engine) as db, db.begin():
        import_requests.begin_undo(db, player.owner, import_id)
    work_on(resources, import_id)
    return look(resources, player, import_id)


def test_an_undo_removes_exactly_what_the_import_made(
    resources: Resources, cast: Cast, alice: Player, tmp_path: Path
) -> None:
    path = put(tmp_path / "f.json", chatgpt(1), chatgpt(2))
    first = imported(resources, alice, path)
    typed = alice.converse("typed here")
    imported(resources, cast.bob, path)
    second = imported(
        resources, alice, put(tmp_path / "g.json", chatgpt(2), chatgpt(3), chatgpt(4), claude())
    )
    assert (second.imported, second.already_there) == (3, 1) or second.failed
    row = undone(resources, alice, second.id)
    assert (row.state, row.to_remove, row.removed) == ("undone", second.created, second.created)
    with Session(resources.engine) as db:
        assert import_requests.made_by(db, alice.owner, first.id) == 2
    assert len(conversations(resources, alice)) == 3
    assert len(conversations(resources, cast.bob)) == 2
    assert count(resources, "tombstones") == second.created
    assert typed in {one.id for one in conversations(resources, alice)}


def test_what_was_undone_counts_as_deleted_here(resources: Resources, alice: Player, tmp_path: Path) -> None:
    path = put(tmp_path / "f.json", chatgpt(1), chatgpt(2))
    undone(resources, alice, imported(resources, alice, path).id)
    assert figures(imported(resources, alice, path)) == (0, 0, 2, 0, 2)
    assert figures(imported(resources, alice, path, again=True)) == (2, 0, 0, 0, 2)


def test_what_has_an_active_run_is_left_and_goes_with_the_next_undo(
    resources: Resources, alice: Player, tmp_path: Path
) -> None:
    made = imported(resources, alice, put(tmp_path / "f.json", chatgpt(1), chatgpt(2)))
    busy = conversations(resources, alice)[0].id
    run_id = alice.start_run(busy)
    row = undone(resources, alice, made.id)
    assert (row.state, row.to_remove, row.removed) == ("undone", 2, 1)
    with Session(resources.engine) as db:
        assert [one.id for one in import_requests.newest(db, alice.owner, made.id, 9)] == [busy]
    alice.say(busy, Draft("run_ended", {"status": "succeeded"}), run_id=run_id)
    assert undone(resources, alice, made.id).removed == 1
    with Session(resources.engine) as db, db.begin(), pytest.raises(InvalidState, match="Nothing"):
        import_requests.begin_undo(db, alice.owner, made.id)


def test_what_was_written_to_since_is_counted(resources: Resources, alice: Player, tmp_path: Path) -> None:
    made = imported(resources, alice, put(tmp_path / "f.json", chatgpt(1), chatgpt(2)))
    with Session(resources.engine) as db:
        assert import_requests.continued(db, alice.owner, made.id) == 0
    alice.say(conversations(resources, alice)[0].id, Draft("user_message", {"content": "and then?"}))
    with Session(resources.engine) as db:
        assert import_requests.continued(db, alice.owner, made.id) == 1


def test_a_killed_undo_goes_on_and_counts_right(
    resources: Resources, alice: Player, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = imported(resources, alice, put(tmp_path / "f.json", *(chatgpt(n) for n in range(6))))
    held, tries = Ledger.removing, []

    def removing(book: Ledger, db: Session) -> None:
        tries.append(True)
        if len(tries) == 3:
            raise Died
        held(book, db)

    monkeypatch.setattr(Ledger, "removing", removing)
    with Session(resources.engine) as db, db.begin():
        import_requests.begin_undo(db, alice.owner, made.id)
    die_in(resources, made.id)
    assert len(conversations(resources, alice)) == 4
    work_on(resources, made.id)
    row = look(resources, alice, made.id)
    assert (row.state, row.removed, conversations(resources, alice)) == ("undone", 6, [])


# -- nothing of a deleted conversation is kept --------------------------------------------------------------------


def test_a_deleted_conversation_leaves_no_name_in_an_import(
    resources: Resources, alice: Player, tmp_path: Path
) -> None:
    path = put(tmp_path / "f.json", chatgpt(1, title=MARKER), chatgpt(2))
    made = imported(resources, alice, path)
    kept = next(one.id for one in conversations(resources, alice))
    imports_before = count(resources, "imports")
    import_id = fail_to_import(resources, alice, kept, MARKER, "it has an active run")
    with Session(resources.engine) as db, db.begin():
        delete_conversation(db, alice.owner, kept)
    assert count(resources, "import_failures") == 0
    again = imported(resources, alice, path)
    assert again.skipped == 1
    assert count(resources, "import_failures") == 0
    assert count(resources, "imports") == imports_before + 2
    fail_to_import(resources, alice, kept, MARKER, "the deletion came before the failure")
    assert count(resources, "import_failures") == 0
    assert look(resources, alice, import_id).failed == 1
    assert look(resources, alice, made.id).created == 2


# -- whose it is --------------------------------------------------------------------------------------------------


def test_an_import_is_its_owners_alone(resources: Resources, cast: Cast, tmp_path: Path) -> None:
    row = imported(resources, cast.alice, put(tmp_path / "f.json", chatgpt(1)))
    for stranger in (cast.bob, cast.mallory):
        with Session(resources.engine) as db, db.begin():
            for verb in (import_requests.find, import_requests.cancel, import_requests.begin_undo):
                with pytest.raises(NotFound):
                    verb(db, stranger.owner, row.id)
            with pytest.raises(NotFound):
                import_requests.forget(db, stranger.owner, row.id)
            assert import_requests.listed(db, stranger.owner) == []
            assert import_requests.made_by(db, stranger.owner, row.id) == 0


def test_an_account_that_closes_stops_its_imports_and_leaves_no_row_and_no_file(
    resources: Resources, alice: Player, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import_id = upload(resources, alice, put(tmp_path / "f.json", *(chatgpt(n) for n in range(9))))
    held = Ledger.looked_at

    def looked_at(book: Ledger, position: int, length: int, result: Any) -> None:
        if result.total == 3:
            with Session(resources.engine) as db, db.begin():
                import_requests.forget_all(db, alice.owner)
        held(book, position, length, result)

    monkeypatch.setattr(Ledger, "looked_at", looked_at)
    work_on(resources, import_id)
    assert count(resources, "imports") == count(resources, "import_failures") == 0
    assert len(conversations(resources, alice)) <= 4
    drain_due(resources)
    assert stored(resources) == []

"""Delete Everywhere as every edge asks for it: rows, then bytes at once, then a worker for the rest."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Iterator, Sequence

import pytest
from sqlalchemy import text
from sqlalchemy.orm import Session
from structlog.testing import capture_logs

from models.accounts import Owner
from models.append import Draft
from models.bytestore.contract import Fault
from models.bytestore.memory import MemoryStore
from models.errors import InvalidState, NotFound
from models.purge import Deleted
from tasks import deletion
from tasks.deletion import delete_many, delete_now
from tasks.outbox import drain_due
from tasks.queues import open_queue, open_redis
from tasks.resources import Resources
from tests.cast import Cast, Player
from tests.models.graph import attach, count, dump, fill, stored
from tests.models.racing import all_well, at_once, wait_for
from tests.s3_server import free_port


class Unwell(MemoryStore):
    """Fails, or hangs until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.word: Fault | None = "unavailable"
        self.free = threading.Event()
        self.free.set()

    def delete(self, keys: Sequence[str]) -> dict[str, Fault]:
        self.free.wait(30)
        return dict.fromkeys(keys, self.word) if self.word else super().delete(keys)


@pytest.fixture
def store() -> Iterator[Unwell]:
    made = Unwell()
    yield made
    made.free.set()


def test_the_bytes_are_gone_when_it_answers_and_no_worker_is_woken(
    resources: Resources, alice: Player
) -> None:
    """FAULTS.md S1: three files, one of them empty."""
    session_id = alice.converse("files")
    attach(resources, alice, session_id, b"1", b"m" * 2**20, b"")
    assert len(list(resources.store.keys())) == 3
    outcome = delete_now(resources, alice.owner, session_id, budget=20)
    assert (outcome.deleted.files, outcome.bytes_owed) == (3, False)
    assert list(resources.store.keys()) == []
    assert count(resources, "outbox") == count(resources, "artifacts") == 0
    assert resources.queue.count == 0


def test_other_conversations_bytes_stay(resources: Resources, alice: Player) -> None:
    """FAULTS.md S3: also with the same content."""
    first, second = alice.converse("a"), alice.converse("b")
    attach(resources, alice, first, b"same")
    (kept,) = attach(resources, alice, second, b"same")
    delete_now(resources, alice.owner, first, budget=20)
    assert stored(resources) == [kept]
    assert b"".join(resources.store.open(kept)) == b"same"


def test_two_with_the_same_content_deleted_at_once_leave_nothing(resources: Resources, alice: Player) -> None:
    for _ in range(10):
        pair = [alice.converse("a"), alice.converse("b")]
        for one in pair:
            attach(resources, alice, one, b"same")
        all_well(at_once([lambda one=one: delete_now(resources, alice.owner, one, 20) for one in pair]))  # type: ignore[misc]
    drain_due(resources)
    assert list(resources.store.keys()) == []
    assert count(resources, "outbox") == 0


def test_a_failing_store_fails_nothing_and_a_worker_is_woken(
    resources: Resources, alice: Player, store: Unwell
) -> None:
    held = dataclasses.replace(resources, store=store)
    session_id = alice.converse("files")
    attach(held, alice, session_id, b"1", b"2")
    outcome = delete_now(held, alice.owner, session_id)
    assert outcome.bytes_owed
    assert count(held, "outbox") == 2
    assert count(held, "tombstones") == 1
    assert [(job.func_name, list(job.args)) for job in held.queue.get_jobs()] == [("tasks.outbox.drain", [])]


def test_a_store_that_hangs_costs_the_budget_alone(
    resources: Resources, alice: Player, store: Unwell
) -> None:
    held = dataclasses.replace(resources, store=store)
    session_id = alice.converse("files")
    attach(held, alice, session_id, b"1")
    store.word = None
    store.free.clear()
    began = time.monotonic()
    assert delete_now(held, alice.owner, session_id, budget=0.3).bytes_owed
    assert 0.3 <= time.monotonic() - began < 5
    store.free.set()
    wait_for(lambda: count(held, "outbox") == 0)


def test_without_redis_it_still_succeeds(resources: Resources, alice: Player, store: Unwell) -> None:
    """FAULTS.md S105."""
    away = open_redis(f"redis://127.0.0.1:{free_port()}")
    held = dataclasses.replace(resources, store=store, redis=away, queue=open_queue(away))
    session_id = alice.converse("files")
    attach(held, alice, session_id, b"1")
    assert delete_now(held, alice.owner, session_id).bytes_owed
    assert count(held, "tombstones") == 1


def test_again_is_no_work(resources: Resources, alice: Player) -> None:
    session_id = fill(resources, alice, "m").session_id
    first = delete_now(resources, alice.owner, session_id, 20)
    before = dump(resources)
    second = delete_now(resources, alice.owner, session_id)
    assert (second.deleted.again, second.deleted.deleted_at) == (True, first.deleted.deleted_at)
    assert not second.bytes_owed
    assert dump(resources) == before


def test_who_may_not_and_an_active_run_change_nothing(resources: Resources, cast: Cast) -> None:
    session_id = fill(resources, cast.alice, "m").session_id
    cast.alice.start_run(session_id)
    before = dump(resources)
    for player, refusal in ((cast.bob, NotFound), (cast.mallory, NotFound), (cast.alice, InvalidState)):
        with pytest.raises(refusal):
            delete_now(resources, player.owner, session_id)
    assert dump(resources) == before
    assert len(list(resources.store.keys())) == 3


def test_a_deletion_is_logged_with_counts_and_without_content(resources: Resources, alice: Player) -> None:
    """FAULTS.md S121, S122."""
    filled = fill(resources, alice, "confidential")
    with capture_logs() as lines:
        delete_now(resources, alice.owner, filled.session_id, 20)
        delete_now(resources, alice.owner, filled.session_id)
    (line,) = [line for line in lines if line["event"] == "conversation_deleted"]
    assert (line["session_id"], line["memories"], line["files"]) == (filled.session_id, 4, 3)
    assert "confidential" not in str(lines)
    assert not any(key in str(lines) for key in filled.artifact_ids)


def test_an_upload_that_a_deletion_overtakes_leaves_no_bytes(resources: Resources, alice: Player) -> None:
    """FAULTS.md S5: the upload finds its conversation gone, and its bytes are owed at once."""
    from sqlalchemy.orm import Session

    from models import artifacts, outbox
    from models.append import append
    from tests.models.graph import created, upload

    session_id = alice.converse("files")
    uploaded = upload(resources, session_id, b"slow")
    delete_now(resources, alice.owner, session_id, 20)
    assert stored(resources) == [uploaded.key]
    with Session(resources.engine) as db:
        assert outbox.owed_of(db, session_id) == 1  # never said to be gone before it is
        artifacts.claim(db, uploaded.key)
        with pytest.raises(NotFound):
            append(db, alice.owner, session_id, [created(uploaded)])
        db.rollback()
        outbox.give_up(db, uploaded.key)
        db.commit()
    drain_due(resources)
    assert list(resources.store.keys()) == []
    assert count(resources, "outbox") == 0


def test_everything_formed_is_gone_in_the_same_second(resources: Resources, alice: Player) -> None:
    """FAULTS.md S17, S21."""
    session_id = alice.converse("My PIN is 4711")
    alice.say(session_id, Draft("memory_formed", {"text": "the PIN is 4711"}))
    delete_now(resources, alice.owner, session_id)
    assert not any("4711" in line for lines in dump(resources).values() for line in lines)


# -- many ----------------------------------------------------------------------------------------------------


def test_many_go_each_by_itself_and_one_that_fails_costs_no_other(
    resources: Resources, alice: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [alice.converse(str(number)) for number in range(4)]
    real = deletion.delete_conversation

    def failing(db: Session, owner: Owner, session_id: str) -> Deleted:
        if session_id == made[1]:
            db.execute(text("SELECT 1 / 0"))
        return real(db, owner, session_id)

    monkeypatch.setattr(deletion, "delete_conversation", failing)
    with capture_logs() as lines:
        told = delete_many(resources, alice.owner, [*made, made[0]])
    assert (told.gone, told.kept, told.untried) == ([made[0], made[2], made[3]], {made[1]: "failed"}, [])
    assert [line["event"] for line in lines].count("conversation_deleted") == 3
    assert count(resources, "sessions") == 1
    assert told.since is not None


def test_many_end_in_time_and_say_what_was_not_tried(resources: Resources, alice: Player) -> None:
    made = [alice.converse(str(number)) for number in range(3)]
    told = delete_many(resources, alice.owner, made, seconds=0)
    assert (told.gone, told.untried, told.since) == ([], made, None)
    assert count(resources, "sessions") == 3


def test_a_store_that_hangs_costs_many_one_budget(
    resources: Resources, alice: Player, store: Unwell, monkeypatch: pytest.MonkeyPatch
) -> None:
    resources = dataclasses.replace(resources, store=store)
    made = [alice.converse(str(number)) for number in range(5)]
    for session_id in made:
        attach(resources, alice, session_id, b"x")
    store.free.clear()
    monkeypatch.setattr(deletion, "INLINE_BUDGET", 0.3)
    began = time.monotonic()
    told = delete_many(resources, alice.owner, made)
    assert time.monotonic() - began < 5 * 0.3 + 3
    assert list(told.gone) == made
    assert count(resources, "outbox") == 5
    store.free.set()

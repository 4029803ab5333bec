"""Live streams over the product's own web server: nothing lost, nothing doubled, and idle ones cost nobody anything."""

from __future__ import annotations

import contextlib
import dataclasses
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from redis import Redis
from sqlalchemy.orm import Session

from models import accounts
from models.append import Draft
from models.settings import Settings
from tasks.deletion import delete_now
from tasks.news import tell
from tasks.resources import Resources
from tests.cast import Player
from tests.models.racing import wait_for
from tests.served import Served


@pytest.fixture(scope="module")
def served(engines: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server for the module; its store is the module's."""
    folder = tmp_path_factory.mktemp("served")
    store = (folder / "objects").as_uri()
    held = Served(dataclasses.replace(engines, object_store_url=store), folder).start()
    yield held
    held.stop()


@pytest.fixture
def settings(served: Served) -> Settings:
    return served.settings


def notes(player: Player, session_id: str, count: int, text: str = "x") -> None:
    player.say(session_id, *(Draft("note", {"text": text}) for _ in range(count)))


def test_a_stream_says_what_there_is_and_then_what_comes(
    served: Served, resources: Resources, alice: Player
) -> None:
    session_id = alice.converse("Hello", "Hi")
    token = alice.token("session.read")
    with served.listen(f"/v1/sessions/{session_id}/events", token) as stream:
        assert stream.status == 200
        assert "content-type: text/event-stream" in stream.head.lower()
        first, second = stream.next(), stream.next()
        assert first is not None
        assert second is not None
        assert (first["id"], first["event"], first["data"]["payload"]) == (
            "1",
            "user_message",
            {"content": "Hello"},
        )
        assert stream.retry == "2000"
        page = served.ask("GET", f"/v1/sessions/{session_id}/events", token).json["data"]
        assert [first["data"], second["data"]] == page
        notes(alice, session_id, 1)
        tell(resources, session_id)
        began = time.monotonic()
        third = stream.next()
        assert third is not None
        assert third["id"] == "3"
        assert time.monotonic() - began < 0.9, "it was found by the look of each second, not by the hint"


def test_what_no_hint_announces_comes_within_two_seconds(
    served: Served, resources: Resources, alice: Player
) -> None:
    session_id = alice.converse("Hello")
    with served.listen(f"/v1/sessions/{session_id}/events", alice.token(), 1) as stream:
        resources.redis.client_kill_filter(_type="pubsub", skipme=True)
        notes(alice, session_id, 1)  # written behind the routes' back: nobody tells
        began = time.monotonic()
        assert stream.seqs(2) == [2]
        assert time.monotonic() - began < 2.5


def test_a_stream_resumes_above_the_last_id_and_takes_after_as_well(
    served: Served, resources: Resources, alice: Player
) -> None:
    session_id = alice.converse("Hello")
    notes(alice, session_id, 9)
    path, token = f"/v1/sessions/{session_id}/events", alice.token()
    with served.listen(path, token, 7) as stream:
        assert stream.seqs(10) == [8, 9, 10]
    with served.listen(f"{path}?after=8", token) as stream:
        assert stream.seqs(10) == [9, 10]
    with served.listen(path, token, 99) as stream:  # beyond the end: nothing comes, and nothing breaks
        notes(alice, session_id, 1)
        with pytest.raises(TimeoutError):
            stream.next(1.5)


def test_nothing_is_lost_or_doubled_while_streams_are_cut_and_processes_killed(
    served: Served, resources: Resources, alice: Player
) -> None:
    session_id = alice.converse("Hello")
    token, path, total = alice.token(), f"/v1/sessions/{session_id}/events", 400
    done = threading.Event()

    def write() -> None:
        for _ in range(total // 4 - 1):
            notes(alice, session_id, 4)
            tell(resources, session_id)
        notes(alice, session_id, 3)
        done.set()

    seen: list[list[int]] = [[] for _ in range(4)]

    def follow(mine: list[int], patience: int) -> None:
        while not mine or mine[-1] < total:
            with (
                contextlib.suppress(OSError, AssertionError),
                served.listen(path, token, mine[-1] if mine else 0) as stream,
            ):
                for _ in range(patience):
                    event = stream.next(20)
                    if event is None:
                        break
                    mine.append(int(event["id"]))
                    if mine[-1] == total:
                        return

    writer = threading.Thread(target=write)
    readers = [threading.Thread(target=follow, args=(mine, 7 + 20 * at)) for at, mine in enumerate(seen)]
    for thread in (writer, *readers):
        thread.start()
    served.kill_workers()
    for thread in (writer, *readers):
        thread.join(60)
    assert seen == [list(range(1, total + 1))] * 4


def test_events_larger_than_a_socket_takes_at_once_come_whole(
    served: Served, resources: Resources, alice: Player
) -> None:
    session_id = alice.converse("Hello")
    notes(alice, session_id, 3, "y" * 3_000_000)
    notes(alice, session_id, 600, "z" * 5_000)
    with served.listen(f"/v1/sessions/{session_id}/events", alice.token()) as stream:
        assert stream.seqs(604, 30) == list(range(1, 605))


def test_a_reader_that_does_not_read_costs_bounded_memory_and_no_one_elses_events(
    served: Served, resources: Resources, alice: Player
) -> None:
    session_id = alice.converse("Hello")
    path, token = f"/v1/sessions/{session_id}/events", alice.token()
    with contextlib.ExitStack() as stack:
        for _ in range(10):
            stack.enter_context(served.listen(path, token))
        before = sum(worker.memory_info().rss for worker in served.workers())
        for _ in range(40):
            notes(alice, session_id, 1, "y" * 1_000_000)
        with served.listen(path, token) as stream:
            assert stream.seqs(41, 30) == list(range(1, 42))
        grown = sum(worker.memory_info().rss for worker in served.workers()) - before
    assert grown < 64 * 1024**2, f"{grown / 1024**2:.0f} MiB for 10 readers of 40 MB who do not read"


def test_the_last_word_of_a_deleted_conversation_is_session_deleted(
    served: Served, resources: Resources, alice: Player
) -> None:
    session_id = alice.converse("Hello")
    path, token = f"/v1/sessions/{session_id}/events", alice.token()
    with served.listen(path, token) as stream, served.listen(path, token) as other:
        assert stream.seqs(1) == other.seqs(1) == [1]
        assert served.ask("DELETE", f"/v1/sessions/{session_id}", token).status == 204
        for one in (stream, other):
            last = one.next()
            assert last is not None
            assert last["event"] == "session_deleted"
            assert last["data"]["session_id"] == session_id
            assert last["data"]["deleted_at"].endswith("Z")
            assert one.next() is None
    with served.listen(path, token, 1) as again:
        assert again.status == 404


def test_a_deletion_that_nobody_announces_ends_the_stream_too(
    served: Served, resources: Resources, alice: Player
) -> None:
    session_id = alice.converse("Hello")
    quiet = dataclasses.replace(
        resources, redis=Redis.from_url("redis://127.0.0.1:1", socket_connect_timeout=1)
    )
    with served.listen(f"/v1/sessions/{session_id}/events", alice.token(), 1) as stream:
        delete_now(quiet, alice.owner, session_id)
        last = stream.next(3)
        assert last is not None
        assert last["event"] == "session_deleted"


def test_foreign_and_missing_streams_are_one_404_and_bad_ids_are_400(
    served: Served, resources: Resources, alice: Player, bob: Player, mallory: Player
) -> None:
    session_id = alice.converse("Secret")
    bodies = set()
    for stranger, wanted in ((bob, session_id), (mallory, session_id), (bob, "0" * 8)):
        with served.listen(f"/v1/sessions/{wanted}/events", stranger.token()) as stream:
            assert stream.status == 404
            bodies.add(stream.body())
    assert len(bodies) == 1
    for bad in ("-1", "one", "9" * 30, "1.5"):
        answer = served.ask(
            "GET",
            f"/v1/sessions/{session_id}/events",
            {**alice.token(), "Accept": "text/event-stream", "Last-Event-ID": bad},
        )
        assert answer.status == 400, bad
        assert answer.json["details"]["field"] == "Last-Event-ID"


@pytest.mark.parametrize(
    "accept", ["*/*", "application/json", "text/html", "", "application/json, text/event-stream;q=0.5"]
)
def test_who_does_not_name_a_stream_is_given_a_page(
    served: Served, resources: Resources, alice: Player, accept: str
) -> None:
    session_id = alice.converse("Hello")
    answer = served.ask("GET", f"/v1/sessions/{session_id}/events", {**alice.token(), "Accept": accept})
    assert answer.headers["Content-Type"] == "application/json"
    assert len(answer.json["data"]) == 1


def test_a_head_of_a_stream_answers_and_ends(served: Served, resources: Resources, alice: Player) -> None:
    session_id = alice.converse("Hello")
    headers = {**alice.token(), "Accept": "text/event-stream"}
    answer = served.ask("HEAD", f"/v1/sessions/{session_id}/events", headers, timeout=5)
    assert (answer.status, answer.body) == (200, b"")
    assert answer.headers["Content-Type"].startswith("text/event-stream")


def test_a_revoked_token_ends_its_streams_and_no_others(
    served: Served, resources: Resources, alice: Player
) -> None:
    session_id = alice.converse("Hello")
    path, kept, token = f"/v1/sessions/{session_id}/events", alice.token(), alice.token()
    with served.listen(path, token, 1) as ended, served.listen(path, kept, 1) as going_on:
        with Session(resources.engine) as db, db.begin():
            hashed = accounts.hashed(token["Authorization"].removeprefix("Bearer "))
            token_id = db.query(accounts.Token).filter_by(hash=hashed).one().id
            accounts.revoke_token(db, token_id)
        assert ended.next(5) is None
        notes(alice, session_id, 1)
        assert going_on.seqs(2) == [2]
    assert served.ask("GET", path, token).status == 401


def test_a_hundred_idle_streams_leave_the_api_responsive_and_their_sockets_come_back(
    served: Served, resources: Resources, alice: Player
) -> None:
    session_id = alice.converse("Hello")
    path, token = f"/v1/sessions/{session_id}/events", alice.token()
    with served.listen(path, token) as warm:
        assert warm.seqs(1) == [1]

    def descriptors() -> int:
        return sum(worker.num_fds() for worker in served.workers())

    base = descriptors()
    with contextlib.ExitStack() as stack:
        streams = [stack.enter_context(served.listen(path, token)) for _ in range(100)]
        assert all(stream.seqs(1) == [1] for stream in streams)
        worst = 0.0
        for _ in range(20):
            began = time.monotonic()
            assert served.ask("GET", "/v1/sessions", token, timeout=5).status == 200
            worst = max(worst, time.monotonic() - began)
        assert worst < 1.5, worst
        notes(alice, session_id, 1)
        tell(resources, session_id)
        assert all(stream.seqs(2) == [2] for stream in streams)
    wait_for(lambda: descriptors() <= base + 8)


def test_an_idle_stream_is_kept_alive_by_a_heartbeat(
    served: Served, resources: Resources, alice: Player
) -> None:
    session_id = alice.converse("Hello")
    with served.listen(f"/v1/sessions/{session_id}/events", alice.token(), 1) as stream:
        with pytest.raises(TimeoutError):
            stream.next(16.5)
        assert "heartbeat" in stream.comments


def test_streams_are_live_without_redis(
    engines: Settings,
    tmp_path: object,
    tmp_path_factory: pytest.TempPathFactory,
    resources: Resources,
    alice: Player,
) -> None:
    folder = tmp_path_factory.mktemp("deaf")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    away = dataclasses.replace(engines, redis_url=f"redis://127.0.0.1:{port}/0")
    deaf = Served(away, folder).start()
    try:
        session_id, token = alice.converse("Hello"), alice.token()
        with deaf.listen(f"/v1/sessions/{session_id}/events", token, 1) as stream:
            run = deaf.ask("POST", f"/v1/sessions/{session_id}/runs", token, {"message": {"content": "go"}})
            assert run.status == 201
            began = time.monotonic()
            assert stream.seqs(2) == [2]
            assert time.monotonic() - began < 2.5
    finally:
        deaf.stop()

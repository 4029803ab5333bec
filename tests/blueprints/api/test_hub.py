"""The hub of live streams survives what nobody foresaw: its thread goes on, and its readers lose nothing."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from blueprints.api import hub as module
from blueprints.api.hub import Hub
from blueprints.api.readers import Reader
from models.accounts import hashed
from models.append import Draft
from models.errors import RateLimited
from tasks.resources import Resources
from tests.cast import Player
from tests.models.racing import wait_for


@pytest.fixture
def hub(resources: Resources) -> Iterator[Hub]:
    held = Hub(resources)
    held.start()
    yield held
    held.stop()
    for reader in list(held._readers):  # their conversations go with the test
        reader.sock.close()


def reading(hub: Hub, player: Player, session_id: str, after: int = 0) -> socket.socket:
    """The far end of a stream."""
    near, far = socket.socketpair()
    near.setblocking(False)
    far.settimeout(10)
    token = hashed(player.token()["Authorization"].removeprefix("Bearer "))
    hub.admit(player.owner)
    hub.add(Reader(near, player.id, token, session_id, after))
    return far


def heard(far: socket.socket, text: bytes) -> bytes:
    got = b""
    while text not in got:
        data = far.recv(65536)
        assert data, got
        got += data
    return got


def test_a_socket_that_is_closed_already_takes_nobody_along(hub: Hub, alice: Player) -> None:
    session_id = alice.converse("Hello")
    good = reading(hub, alice, session_id)
    near, far = socket.socketpair()
    near.close()
    far.close()
    hub.admit(alice.owner)
    hub.add(Reader(near, alice.id, b"x", session_id, 0))
    later = reading(hub, alice, session_id)
    assert b"id: 1" in heard(good, b"id: 1")
    assert b"id: 1" in heard(later, b"id: 1")
    wait_for(lambda: hub._held.total() == 2)


def test_a_database_that_is_away_costs_a_second_and_no_event(
    hub: Hub, resources: Resources, alice: Player
) -> None:
    session_id = alice.converse("Hello")
    far = reading(hub, alice, session_id)
    heard(far, b"id: 1")
    for _ in range(3):
        alice.say(session_id, Draft("note", {}))
        with resources.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )
        resources.engine.dispose()
    got = heard(far, b"id: 4")
    assert [got.count(b"id: %d\n" % seq) for seq in (2, 3, 4)] == [1, 1, 1]


def test_a_fault_that_nobody_foresaw_ends_no_stream(
    hub: Hub, alice: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    session_id = alice.converse("Hello")
    far = reading(hub, alice, session_id)
    heard(far, b"id: 1")
    with monkeypatch.context() as broken:
        broken.setattr(module.looks, "told", None)
        alice.say(session_id, Draft("note", {}))
        wait_for(lambda: hub._look_at > 0)
        far.settimeout(1.5)
        with pytest.raises(TimeoutError):
            far.recv(1)
    far.settimeout(10)
    assert heard(far, b"id: 2").count(b"id: 2\n") == 1


def test_a_reader_that_takes_nothing_is_let_go(
    hub: Hub, alice: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STALLED_SECONDS", 1.0)
    session_id = alice.converse()
    alice.say(session_id, *(Draft("note", {"text": "x" * 1_000_000}) for _ in range(4)))
    far = reading(hub, alice, session_id)
    wait_for(lambda: hub._held.total() == 1)
    wait_for(lambda: hub._held.total() == 0)
    far.close()


def test_one_account_has_so_many_streams_and_no_more(
    hub: Hub, alice: Player, bob: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MINE_MAX", 2)
    session_id = alice.converse("Hello")
    ends = [reading(hub, alice, session_id) for _ in range(2)]
    with pytest.raises(RateLimited):
        hub.admit(alice.owner)
    hub.admit(bob.owner)
    ends.pop().close()
    wait_for(lambda: hub._held[alice.id] == 1)
    hub.admit(alice.owner)

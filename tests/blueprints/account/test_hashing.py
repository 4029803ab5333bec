"""argon2 in turns: few at once, few more wait, the rest are refused at once."""

from __future__ import annotations

import threading

import pytest

from blueprints.account import hashing
from models.errors import RateLimited
from tests.models.racing import at_once, wait_for


def test_a_password_is_its_hash_and_nothing_else_is() -> None:
    kept = hashing.hashed_password("seven purple otters")
    assert kept.startswith("$argon2id$")
    assert hashing.verified(kept, "seven purple otters")
    assert not hashing.verified(kept, "seven purple otter")
    assert not hashing.verified(None, "a password that nobody has")
    assert not hashing.verified("no hash at all", "seven purple otters")
    assert not hashing.outdated(kept)
    assert kept != hashing.hashed_password("seven purple otters")


def test_a_flood_is_refused_and_never_more_than_two_work_at_once() -> None:
    """64 MiB each: 200 at once would take 12 GiB."""
    go, working, most = threading.Event(), [], []

    def work() -> bool:
        working.append(1)
        most.append(len(working))
        assert go.wait(20)
        working.pop()
        return True

    room = hashing.AT_ONCE + hashing.WAITING
    threads = [threading.Thread(target=hashing._in_turn, args=(work,)) for _ in range(room)]
    for thread in threads:
        thread.start()
    wait_for(lambda: len(working) == hashing.AT_ONCE and hashing._room._value == 0)
    refused = at_once([lambda: hashing.verified(None, "x")] * 50)
    assert {type(one) for one in refused} == {RateLimited}
    go.set()
    for thread in threads:
        thread.join(20)
    assert max(most) == hashing.AT_ONCE
    assert hashing._room._value == room
    assert not hashing.verified(None, "x")


def test_whoever_waits_for_too_long_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashing, "WAIT_SECONDS", 0.05)
    go = threading.Event()
    threads = [
        threading.Thread(target=hashing._in_turn, args=(lambda: go.wait(20),)) for _ in range(hashing.AT_ONCE)
    ]
    for thread in threads:
        thread.start()
    wait_for(lambda: hashing._turn._value == 0)
    with pytest.raises(RateLimited) as refusal:
        hashing.verified(None, "x")
    assert refusal.value.details == {"retry_after": 5}
    go.set()
    for thread in threads:
        thread.join(20)

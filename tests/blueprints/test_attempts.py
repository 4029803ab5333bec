"""Wrong tokens: counted by address, over Redis and without it, and never held against a good one."""

from __future__ import annotations

import dataclasses

import pytest
from flask import Flask
from flask.testing import FlaskClient
from redis import Redis

from blueprints import attempts
from models.errors import RateLimited
from tasks.resources import Resources
from tests.cast import Player

WRONG = {"Authorization": "Bearer allgone_wrong"}


def refused(client: FlaskClient, address: str) -> int:
    answer = client.get("/v1/sessions", headers=WRONG, environ_base={"REMOTE_ADDR": address})
    if answer.status_code == 429:
        assert 1 <= int(answer.headers["Retry-After"]) <= 61
        assert answer.json is not None
        assert answer.json["code"] == "rate_limited"
    return answer.status_code


def test_too_many_wrong_tokens_of_an_address_are_429_and_good_ones_go_on(
    client: FlaskClient, alice: Player
) -> None:
    seen = [refused(client, "10.0.0.1") for _ in range(35)]
    assert seen == [401] * 30 + [429] * 5
    assert refused(client, "10.0.0.2") == 401
    good = client.get("/v1/sessions", headers=alice.token(), environ_base={"REMOTE_ADDR": "10.0.0.1"})
    assert good.status_code == 200
    assert client.get("/v1/sessions", environ_base={"REMOTE_ADDR": "10.0.0.1"}).status_code == 401


def test_the_limit_holds_when_redis_forgets_its_scripts_and_all_that_it_counted(
    app: Flask, client: FlaskClient, resources: Resources
) -> None:
    assert refused(client, "10.0.0.3") == 401
    resources.redis.script_flush()
    resources.redis.flushall()
    resources.redis.client_kill_filter(_type="normal", skipme=True)
    assert [refused(client, "10.0.0.3") for _ in range(31)] == [401] * 29 + [429] * 2


def test_without_redis_each_process_counts_for_itself(resources: Resources) -> None:
    away = dataclasses.replace(
        resources, redis=Redis.from_url("redis://127.0.0.1:1", socket_connect_timeout=1)
    )
    for _ in range(30):
        attempts.count_failure(away, "10.0.0.4")
    with pytest.raises(RateLimited):
        attempts.count_failure(away, "10.0.0.4")

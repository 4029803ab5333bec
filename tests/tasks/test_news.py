"""News are a hint: they arrive where somebody listens, and a Redis that is away fails and delays nobody."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator

import pytest
from redis import Redis

from tasks import news
from tasks.resources import Resources
from tests.models.racing import wait_for


@pytest.fixture(autouse=True)
def listening_again() -> Iterator[None]:
    """The quiet of a Redis that was away is this process's, and ends with the test."""
    yield
    news._quiet_until = 0.0


def test_who_listens_hears_the_name(resources: Resources) -> None:
    with resources.redis.pubsub(ignore_subscribe_messages=True) as heard:
        heard.subscribe(news.CHANNEL)
        heard.get_message(timeout=5)
        news.tell(resources, "a name")
        found: list[bytes] = []

        def arrived() -> bool:
            message = heard.get_message(timeout=1)
            found.extend([message["data"]] if message else [])
            return bool(found)

        wait_for(arrived)
    assert found == [b"a name"]


def test_a_redis_that_is_away_is_asked_once_in_five_seconds(resources: Resources) -> None:
    away = dataclasses.replace(
        resources, redis=Redis.from_url("redis://127.0.0.1:1", socket_connect_timeout=1)
    )
    news.tell(away, "a name")
    began = time.perf_counter()
    for _ in range(1000):
        news.tell(away, "a name")
    assert time.perf_counter() - began < 0.5

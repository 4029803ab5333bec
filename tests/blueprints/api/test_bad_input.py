"""Bad input on every route: the documented code as problem JSON, no 500, and not one row changed (PRODUCT.md 9)."""

from __future__ import annotations

import io
import json
import re
import statistics
import time
from collections.abc import Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from models.ids import new_id
from tasks.resources import Resources
from tests.blueprints.api.story import Call, Story
from tests.blueprints.api.test_contract import CENSUS
from tests.cast import Player
from tests.models.graph import dump

WITH_ID = [route for route in CENSUS if "{" in route]
WITH_JSON = [route for route in CENSUS if route.startswith("POST") and not route.endswith("/artifacts")]
WITH_LIMIT = [
    "GET /v1/sessions",
    "GET /v1/sessions/{session_id}/events",
    "GET /v1/approvals",
    "GET /v1/memories",
]
ID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")


@pytest.fixture
def unchanged(resources: Resources, story: Story) -> Iterator[None]:
    """Every row of every table is the same after the test; a token's rows are not part of the question."""

    def rows() -> dict[str, list[str]]:
        held = dump(resources)
        del held["tokens"]
        return held

    before = rows()
    yield
    assert rows() == before


def refused(answer: TestResponse, status: int, code: str, field: str | None = None) -> dict[str, Any]:
    assert answer.status_code == status, answer.text[:500]
    assert answer.content_type == "application/problem+json"
    told: dict[str, Any] = json.loads(answer.data)
    assert set(told) == {"status", "title", "detail", "code", "details"}
    assert (told["status"], told["code"]) == (status, code)
    assert len(answer.data) < 2000
    if field is not None:
        assert told["details"]["field"] == field
    return told


def elsewhere(call: Call, wanted: str) -> Call:
    return Call(call.method, ID.sub(wanted, call.path), call.body, call.data)


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("route", CENSUS)
def test_without_a_good_token_nothing_is_done(
    story: Story, client: FlaskClient, mallory: Player, route: str
) -> None:
    good = story.player.token()["Authorization"]
    for header in (
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer nothing",
        "Basic YTpi",
        good[:-1],
        good + "x",
        good.replace("Bearer", "Token"),
        "Bearer allgone_" + "x" * 5000,
        "Bearer allgone_\xff",
    ):
        headers = {} if header is None else {"Authorization": header}
        answer = story.calls[route].by(client, headers)
        refused(answer, 401, "unauthorized")
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("route", WITH_ID)
def test_foreign_missing_and_malformed_ids_are_one_404(
    story: Story, client: FlaskClient, bob: Player, mallory: Player, route: str
) -> None:
    call = story.calls[route]
    said = set()
    for player in (bob, mallory):
        token = player.token()
        for path in (call, elsewhere(call, new_id())):
            refused(answer := path.by(client, token), 404, "not_found")
            said.add(answer.data)
    token = story.player.token()
    for wanted in (
        new_id(),
        "x",
        "%00",
        "%ED%A0%80",
        "null",
        "-1",
        new_id().upper(),
        new_id() + "%0a",
        "a" * 3000,
    ):
        refused(answer := elsewhere(call, wanted).by(client, token), 404, "not_found")
        said.add(answer.data)
    assert len(said) == 1


RAW = [
    (b"{", "application/json", 400),
    (b"nothing", "application/json", 400),
    (b"\xff\xfe", "application/json", 400),
    (b'"text"', "application/json", 400),
    (b"null", "application/json", 400),
    (b"[]", "application/json", 400),
    (b"7", "application/json", 400),
    (b'{"nobody_knows": 1}', "application/json", 400),
    (b'{"a": 1, "a": 2}', "application/json", 400),
    (b'{"a": NaN}', "application/json", 400),
    (b'{"a": 1e999}', "application/json", 400),
    (b'{"a": ' + b"9" * 10_000 + b"}", "application/json", 400),
    (b'{"\\u0000": 1}', "application/json", 400),
    (b'{"\\ud800": 1}', "application/json", 400),
    (b'{"' + b"n" * 100_000 + b'": 1}', "application/json", 400),
    (b"[" * 500_000, "application/json", 400),
    (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "application/json", 400),
    (b"{}", "text/plain", 415),
    (b"a=1", "application/x-www-form-urlencoded", 415),
    (b"{}", "", 415),
    (b'{"k' + b"k" * 20_000 + b'":[' + b"1," * 100_000 + b'1],"e":"\\u0041"}', "application/json", 400),
    (b"{" + b",".join(b'"%d":1' % n for n in range(80_000)) + b',"79999":1}', "application/json", 400),
    (b"{" + b" " * (17 * 1024 * 1024) + b"}", "application/json", 413),
]


@pytest.mark.parametrize("route", [route for route in WITH_ID if route.startswith("GET")])
def test_foreign_and_missing_take_the_same_time(
    story: Story, client: FlaskClient, bob: Player, route: str
) -> None:
    call, token = story.calls[route], bob.token()
    calls = (call, elsewhere(call, new_id()))
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(60):
        for at in (0, 1):
            began = time.perf_counter()
            calls[at].by(client, token)
            times[at].append(time.perf_counter() - began)
    assert abs(statistics.median(times[0]) - statistics.median(times[1])) < 0.005


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("route", WITH_JSON)
def test_a_body_that_is_no_object_of_ours_is_refused(story: Story, client: FlaskClient, route: str) -> None:
    call, token = story.calls[route], story.player.token()
    for raw, kind, status in RAW:
        answer = client.open(call.path, method=call.method, data=raw, content_type=kind, headers=token)
        refused(answer, status, "too_large" if status == 413 else "invalid")


RUNS, EVENTS = "POST /v1/sessions/{session_id}/runs", "POST /v1/runs/{run_id}/events"
DECISION, MEMORIES = "POST /v1/approvals/{approval_id}/decision", "POST /v1/memories"
DEEP: Any = {"a": 1}
for _ in range(600):
    DEEP = {"a": DEEP}
LEVELS: list[Any] = ["bottom"]
for _ in range(300):
    LEVELS.append([LEVELS[-1]])


RESULT = {"call_id": "c", "output": 1, "status": "ok"}
MANY = [new_id() for _ in range(1_001)]


def one(**event: Any) -> dict[str, Any]:
    return {"events": [event]}


VALUES: list[tuple[str, Any, str | None]] = [
    (RUNS, {}, "message"),
    (RUNS, {"message": "go"}, "message"),
    (RUNS, {"message": {}}, "message.content"),
    (RUNS, {"message": {"content": 7}}, None),
    (RUNS, {"message": {"content": ["text"]}}, None),
    (RUNS, {"message": {"content": [{"text": "no type"}]}}, "message.content[0]"),
    (RUNS, {"message": {"content": [{"type": "x", "n": 2**70}]}}, "message"),
    (RUNS, {"message": {"content": [{"type": "x", "a": LEVELS[99]}]}}, "message"),
    (RUNS, {"message": {"content": [{"type": "text", "text": "ok", "more": DEEP}]}}, None),
    (RUNS, {"message": {"content": "a\0b"}}, "message.content"),
    (RUNS, {"message": {"content": "a\ud800b"}}, "message.content"),
    (RUNS, {"message": {"content": "go"}, "lease_s": 4}, "lease_s"),
    (RUNS, {"message": {"content": "go"}, "lease_s": 301}, "lease_s"),
    (RUNS, {"message": {"content": "go"}, "lease_s": "60"}, "lease_s"),
    (RUNS, {"message": {"content": "go"}, "lease_s": True}, "lease_s"),
    (RUNS, {"message": {"content": "go"}, "lease_s": 60.5}, "lease_s"),
    (EVENTS, {}, "events"),
    (EVENTS, {"events": []}, "events"),
    (EVENTS, {"events": {}}, "events"),
    (EVENTS, {"events": [{"type": "note", "payload": {}}] * 1001}, "events"),
    (EVENTS, one(type="note"), "events[0].payload"),
    (EVENTS, one(type="note", payload=[]), "events[0].payload"),
    (EVENTS, one(type=7, payload={}), "events[0].type"),
    (EVENTS, one(type="", payload={}), "events[0].type"),
    (EVENTS, one(type="a\nb", payload={}), "events[0].type"),
    (EVENTS, one(type="x" * 300, payload={}), "events[0].type"),
    (EVENTS, one(type="note", payload={}, parent_id="none"), "events[0].parent_id"),
    (EVENTS, one(type="note", payload={}, seq=1), "events[0].seq"),
    (EVENTS, one(type="note", payload={"a": ["\0"]}), "events[0].payload.a[0]"),
    (EVENTS, one(type="note", payload={"n": 2**70}), "events[0].payload"),
    (EVENTS, one(type="note", payload=DEEP), "events[0].payload"),
    *(
        (EVENTS, one(type="note", payload={"a": LEVELS[n]}), "events[0].payload")
        for n in (100, 251, 253, 254)
    ),
    (EVENTS, one(type="tool_result", payload={**RESULT, "name": {"a": 1}}), "events[0].payload.name"),
    (EVENTS, one(type="tool_result", payload={**RESULT, "name": ["a", "b"]}), "events[0].payload.name"),
    (EVENTS, one(type="tool_result", payload={**RESULT, "name": 5}), "events[0].payload.name"),
    (EVENTS, one(type="tool_result", payload={**RESULT, "name": "n" * 201}), "events[0].payload.name"),
    (EVENTS, one(type="memory_formed", payload={"text": "x" * 100_001}), "events[0].payload.text"),
    (EVENTS, one(type="recall", payload={"query": "x", "memory_ids": MANY}), "events[0].payload.memory_ids"),
    (
        EVENTS,
        {"events": [{"type": "consolidated", "payload": {"text": "x", "memory_ids": MANY[:1_000]}}] * 11},
        "events",
    ),
    (EVENTS, one(type="artifact_created", payload={}), "events[0].type"),
    (EVENTS, one(type="approval_decided", payload={}), "events[0].type"),
    (EVENTS, one(type="session_deleted", payload={}), "events[0].type"),
    (EVENTS, one(type="run_ended", payload={"status": "expired"}), "events[0].payload.status"),
    (
        EVENTS,
        {"events": [{"type": "note", "payload": {}}, {"type": "recall", "payload": {}}]},
        "events[1].payload.query",
    ),
    (DECISION, {}, "decision"),
    (DECISION, {"decision": "maybe"}, "decision"),
    (DECISION, {"decision": None}, "decision"),
    (DECISION, {"decision": ["approve"]}, "decision"),
    (MEMORIES, {}, "text"),
    (MEMORIES, {"text": ""}, "text"),
    (MEMORIES, {"text": " \n"}, "text"),
    (MEMORIES, {"text": 7}, "text"),
    (MEMORIES, {"text": "a\0"}, "text"),
    (MEMORIES, {"text": "x" * 100_001}, "text"),
    (MEMORIES, {"text": "x", "workspace": ""}, "workspace"),
    (MEMORIES, {"text": "x", "workspace": "\ud800"}, "workspace"),
    (MEMORIES, {"text": "x", "workspace": "w" * 201}, "workspace"),
    (MEMORIES, {"text": "x", "source": None}, "source"),
]


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("route", [RUNS, EVENTS, DECISION, MEMORIES])
def test_a_value_that_is_not_what_its_place_needs_is_named(
    story: Story, client: FlaskClient, route: str
) -> None:
    call, token = story.calls[route], story.player.token()
    for of, body, field in VALUES:
        if of == route:
            refused(Call(call.method, call.path, body).by(client, token), 400, "invalid", field)


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("route", WITH_LIMIT)
def test_a_page_that_cannot_be_is_refused(story: Story, client: FlaskClient, route: str) -> None:
    token, path = story.player.token(), story.calls[route].path
    for query, field in (
        ("limit=-1", "limit"),
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("limit=1.5", "limit"),
        ("limit=ten", "limit"),
        ("limit=", "limit"),
        ("limit=" + "9" * 3000, "limit"),
        ("limit=%00", "limit"),
        ("limit=1&limit=2", "limit"),
        ("limit=%ED%A0%80", "query"),
    ):
        refused(client.get(f"{path}?{query}", headers=token), 400, "invalid", field)


@pytest.mark.usefixtures("unchanged")
def test_arguments_that_cannot_be_are_named(story: Story, client: FlaskClient) -> None:
    token, ids = story.player.token(), story.ids
    for path, field in (
        (f"/v1/sessions/{ids['session_id']}/events?after=-1", "after"),
        (f"/v1/sessions/{ids['session_id']}/events?after={2**63}", "after"),
        ("/v1/approvals?state=open", "state"),
        ("/v1/approvals?state=pending&state=decided", "state"),
        ("/v1/memories?workspace=%00", "workspace"),
        ("/v1/memories?workspace=" + "w" * 201, "workspace"),
        ("/v1/memories?workspace=%ff", "query"),
    ):
        refused(client.get(path, headers=token), 400, "invalid", field)
    for query, field in (
        ("name=", "name"),
        ("name=%20", "name"),
        ("name=%00", "name"),
        ("name=%ED%A0%80", "query"),
        ("name=" + "n" * 256, "name"),
    ):
        path = f"/v1/sessions/{ids['session_id']}/artifacts?{query}"
        refused(client.post(path, data=b"x", headers=token), 400, "invalid", field)
    path = f"/v1/sessions/{ids['session_id']}/artifacts"
    for kind in ("text/\xe9", "x" * 300):
        refused(
            client.post(path, data=b"x", headers={**token, "Content-Type": kind}),
            400,
            "invalid",
            "Content-Type",
        )
    for run_id in ("x", new_id()):
        refused(client.post(f"{path}?run_id={run_id}", data=b"x", headers=token), 404, "not_found")


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("route", ["GET /v1/sessions", "GET /v1/approvals", "GET /v1/memories"])
def test_a_cursor_of_somebody_or_something_else_is_invalid_and_never_page_one(
    story: Story, client: FlaskClient, bob: Player, route: str
) -> None:
    token, path = story.player.token(), story.calls[route].path
    own = [f"{path}?limit=1&cursor={one}" for one in ("", "x", "é", "A" * 55, "A" * 10_000)]
    other = "/v1/memories" if route != "GET /v1/memories" else "/v1/sessions"
    page = client.get(f"{other}?limit=1", headers=token).json
    assert page is not None
    if page["next_cursor"]:
        own.append(f"{path}?cursor={page['next_cursor']}")
    for address in own:
        refused(client.get(address, headers=token), 400, "invalid_cursor")


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("route", WITH_JSON)
@pytest.mark.parametrize("tail", [b"garbage", b""])
def test_a_body_in_chunks_is_bounded_as_one_with_a_length_is(
    story: Story, client: FlaskClient, route: str, tail: bytes
) -> None:
    """It was read up to the bound, and what had come till then was taken for the whole."""
    call, token = story.calls[route], story.player.token()
    body = json.dumps(call.body or {}).encode() + b" " * (17 * 1024 * 1024) + tail
    answer = client.open(
        call.path,
        method=call.method,
        input_stream=io.BytesIO(body),
        content_type="application/json",
        headers={**token, "Transfer-Encoding": "chunked"},
        environ_overrides={"wsgi.input_terminated": True},
    )
    refused(answer, 413, "too_large")


@pytest.mark.usefixtures("unchanged")
def test_a_compressed_body_is_not_taken_for_a_plain_one(story: Story, client: FlaskClient) -> None:
    token = {**story.player.token(), "Content-Encoding": "gzip"}
    path = f"/v1/sessions/{story.ids['session_id']}/artifacts"
    refused(client.post("/v1/sessions", json={}, headers=token), 415, "invalid")
    refused(client.post(path, data=b"bytes", headers=token), 415, "invalid")


def test_an_id_in_capitals_is_the_same_id_in_a_body(story: Story, client: FlaskClient) -> None:
    token, session_id = story.player.token(), story.ids["session_id"]
    answer = client.post(
        "/v1/memories", json={"text": "here", "session_id": session_id.upper()}, headers=token
    )
    assert answer.status_code == 201
    assert answer.json is not None
    assert answer.json["session_id"] == session_id


def test_the_place_of_a_fault_is_shortened_in_its_error(story: Story, client: FlaskClient) -> None:
    body = {"k" * 900_000: {"a": "\0"}}
    answer = client.post("/v1/sessions", json=body, headers=story.player.token())
    assert answer.status_code == 400
    assert len(answer.data) < 2_000


def test_blanks_between_bearer_and_its_token_do_not_matter(client: FlaskClient, alice: Player) -> None:
    token = alice.token()["Authorization"].removeprefix("Bearer ")
    for spelled in (f"Bearer   {token}", f"bearer {token} ", f"BEARER {token}"):
        assert client.get("/v1/sessions", headers={"Authorization": spelled}).status_code == 200

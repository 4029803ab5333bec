"""The census of `/v1`: sixteen routes and no others, each with its scope, and a document that says the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient
from openapi_spec_validator import OpenAPIV31SpecValidator

from blueprints.api import OPERATIONS
from blueprints.api.openapi import document, document_bytes
from models.accounts import SCOPES
from tests.blueprints.api.story import Story
from tests.cast import Player

ROOT = Path(__file__).resolve().parents[3]
CENSUS = {  # PRODUCT.md 3.1
    "POST /v1/sessions": "session.write",
    "GET /v1/sessions": "session.read",
    "GET /v1/sessions/{session_id}": "session.read",
    "DELETE /v1/sessions/{session_id}": "session.write",
    "GET /v1/sessions/{session_id}/events": "session.read",
    "POST /v1/sessions/{session_id}/runs": "run.write",
    "GET /v1/runs/{run_id}": "session.read",
    "POST /v1/runs/{run_id}/events": "run.write",
    "POST /v1/runs/{run_id}/cancel": "run.write",
    "GET /v1/approvals": "session.read",
    "POST /v1/approvals/{approval_id}/decision": "approval.write",
    "POST /v1/sessions/{session_id}/artifacts": "artifact.write",
    "GET /v1/artifacts/{artifact_id}": "artifact.read",
    "GET /v1/memories": "memory.read",
    "POST /v1/memories": "memory.write",
    "DELETE /v1/memories/{memory_id}": "memory.write",
}


def test_there_are_the_sixteen_routes_and_no_others(app: Flask) -> None:
    served = {
        f"{method} {rule.rule.replace('<', '{').replace('>', '}')}"
        for rule in app.url_map.iter_rules()
        if rule.rule.startswith("/v1")
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }
    assert served == {*CENSUS, "GET /v1/openapi.json", "GET /v1/docs"}
    assert {f"{one.method} /v1{one.path}": one.scope for one in OPERATIONS} == CENSUS


def test_the_scopes_of_the_routes_are_those_that_a_token_can_have() -> None:
    assert set(CENSUS.values()) == set(SCOPES)


@pytest.mark.parametrize("route", CENSUS)
def test_each_route_needs_its_own_scope_and_no_other(story: Story, client: FlaskClient, route: str) -> None:
    call = story.calls[route]
    every_other = story.player.token(*(scope for scope in SCOPES if scope != CENSUS[route]))
    refused = call.by(client, every_other)
    assert refused.status_code == 403
    assert refused.json is not None
    assert refused.json["code"] == "forbidden"
    assert refused.json["details"] == {"scope": CENSUS[route]}
    assert call.by(client, story.player.token(CENSUS[route])).status_code < 300


@pytest.mark.parametrize("route", CENSUS)
def test_each_answer_is_what_its_view_says_and_nothing_more(
    story: Story, client: FlaskClient, route: str
) -> None:
    declared = next(one for one in OPERATIONS if f"{one.method} /v1{one.path}" == route)
    answer = story.calls[route].by(client, story.player.token())
    view = declared.answers[answer.status_code]
    if isinstance(view, type):
        strict = type(view.__name__, (view,), {}, extra="forbid")
        strict.model_validate_json(answer.data)
        assert set(answer.json or {}) == set(view.model_fields)
        for row in (answer.json or {}).get("data", []):
            inner = view.model_fields["data"].annotation.__args__[0]  # type: ignore[union-attr]
            assert set(row) == set(inner.model_fields)
    elif view is None:
        assert answer.data == b""
    assert answer.headers["X-Request-Id"]
    assert answer.headers["Cache-Control"] == "no-store"


def test_other_methods_are_405_with_allow_and_options_and_head_are_sane(
    story: Story, client: FlaskClient
) -> None:
    paths = {call.path.partition("?")[0] for call in story.calls.values()}
    token = story.player.token()
    for path in sorted(paths):
        refused = client.put(path, headers=token)
        assert refused.status_code == 405, path
        assert refused.content_type == "application/problem+json"
        allowed = set(refused.headers["Allow"].split(", "))
        assert client.options(path, headers=token).status_code == 200
        if "GET" in allowed:
            head, got = client.head(path, headers=token), client.get(path, headers=token)
            assert (head.status_code, head.data) == (got.status_code, b"")
            assert head.headers["Content-Length"] == got.headers["Content-Length"]
        for method in {"GET", "POST", "DELETE", "PATCH"} - allowed:
            assert client.open(path, method=method, headers=token).status_code == 405


def test_an_address_that_is_none_is_a_problem_too(client: FlaskClient, alice: Player) -> None:
    session_id = alice.converse("Hello")
    for method, path in (
        ("DELETE", "/v1/sessions/"),
        ("DELETE", "/v1/sessions/%20"),
        ("DELETE", "/v1/sessions/null"),
        ("DELETE", "/v1/sessions/*"),
        ("DELETE", "/v1/sessions"),
        ("GET", "/v1/nothing"),
        ("GET", "/v1/sessions/%2e%2e/runs"),
    ):
        answer = client.open(path, method=method, headers=alice.token())
        assert answer.status_code in (404, 405), path
        assert answer.content_type == "application/problem+json"
    assert client.get(f"/v1/sessions/{session_id}", headers=alice.token()).status_code == 200


def test_the_document_is_valid_openapi_and_the_committed_one_is_the_codes_own() -> None:
    OpenAPIV31SpecValidator(document()).validate()
    committed = (ROOT / "docs" / "openapi.json").read_bytes()
    assert committed == document_bytes(), "flask --app app openapi > docs/openapi.json"


def test_the_document_and_its_page_need_no_token(client: FlaskClient) -> None:
    answer = client.get("/v1/openapi.json")
    assert (answer.status_code, answer.data) == (200, document_bytes())
    page = client.get("/v1/docs").text
    for route in CENSUS:
        assert f"<code>{route}</code>" in page
    assert "/v1/docs" in (ROOT / "docs" / "api.md").read_text()


def test_each_route_has_its_place_in_the_docs() -> None:
    told = (ROOT / "docs" / "api.md").read_text()
    for route, scope in CENSUS.items():
        assert f"### `{route}`\nScope `{scope}`" in told, route

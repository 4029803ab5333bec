"""The three routes of the history, from outside: first that they work, then who may not, then what is odd."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from flask.testing import FlaskClient
from sqlalchemy import text, update
from sqlalchemy.orm import Session

from models.accounts import SCOPES, Token, hashed
from models.append import Draft
from models.base import database_time
from models.ids import new_id
from tasks.resources import Resources
from tests.cast import Cast, Player
from tests.models.graph import count, dump, fill, stored, traces


def test_a_list_shows_newest_activity_first_as_session_views(client: FlaskClient, alice: Player) -> None:
    first, second = alice.converse("One", "1"), alice.converse("Two", "2")
    answer = client.get("/v1/sessions", headers=alice.token("session.read"))
    assert answer.status_code == 200
    assert answer.json is not None
    assert [row["id"] for row in answer.json["data"]] == [second, first]
    assert answer.json["next_cursor"] is None
    row = answer.json["data"][0]
    assert set(row) == {"id", "title", "created_at", "updated_at", "active_run_id", "last_run_id"}
    assert row["title"] == "Two"
    assert row["updated_at"].endswith("Z")
    assert len(row["updated_at"]) == len("2026-11-30T12:00:00.000000Z")


def test_a_deletion_answers_204_again_204_and_404_to_everyone_else(
    client: FlaskClient, alice: Player, bob: Player, mallory: Player
) -> None:
    session_id = alice.converse("Secret plans")
    for stranger in (bob, mallory):
        assert client.delete(f"/v1/sessions/{session_id}", headers=stranger.token()).status_code == 404
    headers = alice.token("session.write")
    assert client.delete(f"/v1/sessions/{session_id}", headers=headers).status_code == 204
    assert client.delete(f"/v1/sessions/{session_id}", headers=headers).status_code == 204
    for stranger in (bob, mallory):
        assert client.delete(f"/v1/sessions/{session_id}", headers=stranger.token()).status_code == 404
    assert client.get(f"/v1/sessions/{session_id}", headers=alice.token()).status_code == 404


def test_an_active_run_refuses_the_deletion_and_is_named(client: FlaskClient, alice: Player) -> None:
    session_id = alice.converse("Hello")
    run_id = alice.start_run(session_id)
    answer = client.delete(f"/v1/sessions/{session_id}", headers=alice.token())
    assert answer.status_code == 409
    assert answer.content_type == "application/problem+json"
    assert answer.json is not None
    assert answer.json["code"] == "invalid_state"
    assert answer.json["details"] == {"reason": "active_run_exists", "active_run_id": run_id}
    assert client.get(f"/v1/sessions/{session_id}", headers=alice.token()).status_code == 200


def test_a_foreign_and_a_missing_conversation_cannot_be_told_apart(
    client: FlaskClient, alice: Player, bob: Player
) -> None:
    foreign, missing = alice.converse("Hello"), new_id()
    headers = bob.token()
    for method in ("get", "delete"):
        answers = [
            getattr(client, method)(f"/v1/sessions/{one}", headers=headers) for one in (foreign, missing)
        ]
        assert [answer.status_code for answer in answers] == [404, 404]
        assert answers[0].data == answers[1].data


def test_a_point_read_is_the_row_of_the_list(client: FlaskClient, alice: Player) -> None:
    session_id = alice.converse("Hello")
    headers = alice.token("session.read")
    listed = client.get("/v1/sessions", headers=headers).json
    shown = client.get(f"/v1/sessions/{session_id}", headers=headers)
    assert listed is not None
    assert shown.status_code == 200
    assert shown.json == listed["data"][0]
    assert shown.headers["Cache-Control"] == "no-store"


def test_active_and_last_run_are_in_the_view(client: FlaskClient, alice: Player) -> None:
    session_id = alice.converse("Hello")
    first = alice.start_run(session_id)
    alice.say(session_id, Draft("run_ended", {"status": "failed"}), run_id=first)
    second = alice.start_run(session_id)
    view = client.get(f"/v1/sessions/{session_id}", headers=alice.token()).json
    assert view is not None
    assert (view["active_run_id"], view["last_run_id"]) == (second, first)


@pytest.mark.parametrize("size", [1, 2, 50])
def test_following_the_cursors_gives_each_conversation_once(
    client: FlaskClient, cast: Cast, size: int
) -> None:
    """FAULTS.md S53, S54, S56, through the wire: microseconds survive, and the walk ends."""
    with cast.alice.engine.begin() as connection:
        connection.execute(text(SAME_MOMENT), {"owner": cast.alice.id, "tenant": cast.alice.owner.tenant_id})
        connection.execute(text(SAME_MOMENT), {"owner": cast.bob.id, "tenant": cast.bob.owner.tenant_id})
        wanted = connection.scalars(
            text("SELECT id FROM sessions WHERE principal_id = :owner ORDER BY updated_at DESC, id DESC"),
            {"owner": cast.alice.id},
        ).all()
    headers, found, cursors = cast.alice.token("session.read"), [], [None]
    while True:
        query = {"limit": size} | ({"cursor": cursors[-1]} if cursors[-1] else {})
        page = client.get("/v1/sessions", query_string=query, headers=headers).json
        assert page is not None
        found += [row["id"] for row in page["data"]]
        assert len(page["data"]) == size or page["next_cursor"] is None
        if page["next_cursor"] is None:
            break
        assert page["next_cursor"] not in cursors
        cursors.append(page["next_cursor"])
    assert found == wanted
    assert len(cursors) == math.ceil(105 / size)


SAME_MOMENT = """
    INSERT INTO sessions (id, tenant_id, principal_id, title, created_at, updated_at)
    SELECT gen_random_uuid(), :tenant, :owner, 'x', now(), now() - (n / 3) * interval '1 microsecond'
    FROM generate_series(1, 105) n
"""


def test_a_cursor_survives_the_deletion_of_its_row(client: FlaskClient, alice: Player) -> None:
    ids = [alice.converse(name) for name in ("a", "b", "c")]
    headers = alice.token()
    first = client.get("/v1/sessions?limit=1", headers=headers).json
    assert first is not None
    assert client.delete(f"/v1/sessions/{ids[2]}", headers=headers).status_code == 204
    rest = client.get("/v1/sessions", query_string={"cursor": first["next_cursor"]}, headers=headers).json
    assert rest is not None
    assert [row["id"] for row in rest["data"]] == [ids[1], ids[0]]


def test_a_deletion_takes_rows_bytes_and_the_right_to_read_them(
    client: FlaskClient, alice: Player, resources: Resources
) -> None:
    filled = fill(resources, alice, "marker")
    answer = client.delete(f"/v1/sessions/{filled.session_id}", headers=alice.token())
    assert (answer.status_code, answer.data) == (204, b"")
    assert traces(resources, filled.session_id) == {"tombstones"}
    assert stored(resources) == []
    listed = client.get("/v1/sessions", headers=alice.token()).json
    assert listed == {"data": [], "next_cursor": None}


# -- who may not ---------------------------------------------------------------------------------------------

ROUTES = [
    ("GET", "/v1/sessions", "session.read"),
    ("GET", "/v1/sessions/{id}", "session.read"),
    ("DELETE", "/v1/sessions/{id}", "session.write"),
]


@pytest.mark.parametrize(("method", "path", "scope"), ROUTES)
def test_each_route_needs_a_live_token_and_its_own_scope(
    client: FlaskClient, alice: Player, resources: Resources, method: str, path: str, scope: str
) -> None:
    path = path.format(id=alice.converse("mine"))
    before = dump_of_graph(resources)
    good = alice.token()["Authorization"]
    with Session(resources.engine) as db, db.begin():
        now = database_time(db)
        tokens = {name: alice.token()["Authorization"] for name in ("expired", "revoked")}
        for name, column in (("expired", Token.expires_at), ("revoked", Token.revoked_at)):
            mine = Token.hash == hashed(tokens[name].removeprefix("Bearer "))
            db.execute(update(Token).where(mine).values({column: now}))
    refused = [
        None, "", "Bearer", "Bearer ", "Bearer nonsense", good.removeprefix("Bearer "), f"Basic {good[7:]}", good[:-1],
        good + "x", good.replace("allgone_", ""), tokens["expired"], tokens["revoked"], f"{good}, {good}",
        "Bearer " + "a" * 10_000, "Bearer allgone_\xff",
    ]  # fmt: skip
    bodies = set()
    for value in refused:
        answer = client.open(path, method=method, headers={} if value is None else {"Authorization": value})
        assert answer.status_code == 401, value
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")
        bodies.add(answer.data)
    assert len(bodies) == 1
    others = alice.token(*(one for one in SCOPES if one != scope))
    answer = client.open(path, method=method, headers=others)
    assert (answer.status_code, answer.json and answer.json["code"]) == (403, "forbidden")
    assert answer.json is not None
    assert answer.json["details"] == {"scope": scope}
    assert dump_of_graph(resources) == before
    assert client.open(path, method=method, headers=alice.token(scope)).status_code in (200, 204)


def dump_of_graph(resources: Resources) -> dict[str, list[str]]:
    return {name: lines for name, lines in dump(resources).items() if name != "tokens"}


def test_nobody_else_finds_deletes_or_lists_it(client: FlaskClient, cast: Cast, resources: Resources) -> None:
    """FAULTS.md S48: another user, another tenant, an operator."""
    session_id = cast.alice.converse("mine")
    for player in (cast.bob, cast.mallory, cast.olivia):
        headers = player.token()
        for method in ("GET", "DELETE"):
            foreign = client.open(f"/v1/sessions/{session_id}", method=method, headers=headers)
            missing = client.open(f"/v1/sessions/{new_id()}", method=method, headers=headers)
            assert foreign.status_code == missing.status_code == 404
            assert foreign.data == missing.data
            assert sorted(name for name, _ in foreign.headers) == sorted(name for name, _ in missing.headers)
        listed = client.get("/v1/sessions", headers=headers).json
        assert listed == {"data": [], "next_cursor": None}
    assert count(resources, "sessions") == 1


def test_a_tombstone_is_its_owners_alone(client: FlaskClient, cast: Cast) -> None:
    session_id = cast.alice.converse("mine")
    assert client.delete(f"/v1/sessions/{session_id}", headers=cast.alice.token()).status_code == 204
    answers = {
        client.delete(f"/v1/sessions/{one}", headers=player.token()).data
        for player in (cast.bob, cast.mallory)
        for one in (session_id, new_id())
    }
    assert len(answers) == 1


# -- what is odd ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "odd",
    [
        "",
        "%20",
        "null",
        "undefined",
        "*",
        "%25",
        "%00",
        "..",
        "%2e%2e",
        "0",
        "' OR 1=1 --",
        "é",
        "a" * 5000,
        "{id}x",
    ],
)
def test_what_names_no_conversation_deletes_none(client: FlaskClient, alice: Player, odd: str) -> None:
    """FAULTS.md S51."""
    session_id = alice.converse("stays")
    target = odd.replace("{id}", session_id)
    for method in ("DELETE", "GET"):
        answer = client.open(f"/v1/sessions/{target}", method=method, headers=alice.token())
        assert answer.status_code in (404, 405), target
        assert answer.content_type == "application/problem+json"
    listed = client.get("/v1/sessions", headers=alice.token()).json
    assert listed is not None
    assert [row["id"] for row in listed["data"]] == [session_id]


@pytest.mark.parametrize(
    "body", ["null", "{}", "[]", '{"ids": null}', '{"ids": ["*"]}', "not json", "x" * 2_000_000]
)
def test_the_collection_cannot_be_deleted_whatever_the_body(
    client: FlaskClient, alice: Player, body: str
) -> None:
    """FAULTS.md S51, S52."""
    alice.converse("stays")
    for path in ("/v1/sessions", "/v1/sessions/", "/v1/sessions?ids=*", "/v1"):
        answer = client.delete(path, data=body, headers=alice.token(), content_type="application/json")
        assert answer.status_code in (404, 405)
        assert answer.content_type == "application/problem+json"
    listed = client.get("/v1/sessions", headers=alice.token()).json
    assert listed is not None
    assert len(listed["data"]) == 1


def test_methods_that_are_not_there_say_which_are(client: FlaskClient, alice: Player) -> None:
    session_id = alice.converse("mine")
    for method, path, allowed in (
        ("PUT", f"/v1/sessions/{session_id}", {"GET", "HEAD", "OPTIONS", "DELETE"}),
        ("PATCH", "/v1/sessions", {"GET", "HEAD", "OPTIONS"}),
    ):
        answer = client.open(path, method=method, headers=alice.token())
        assert answer.status_code == 405
        assert answer.json is not None
        assert answer.json["code"] == "invalid"
        assert set(answer.headers["Allow"].split(", ")) >= allowed


def test_head_is_a_get_without_its_body_and_options_changes_nothing(
    client: FlaskClient, alice: Player
) -> None:
    session_id = alice.converse("mine")
    for path in ("/v1/sessions", f"/v1/sessions/{session_id}"):
        head, get = (client.open(path, method=method, headers=alice.token()) for method in ("HEAD", "GET"))
        assert (head.status_code, head.data) == (200, b"")
        assert head.headers["Content-Length"] == get.headers["Content-Length"]
        assert client.head(path).status_code == 401
        options = client.options(path)
        assert (options.status_code, options.data) == (200, b"")
        assert "GET" in options.headers["Allow"]


def test_no_cookie_is_honoured_and_none_is_set(
    client: FlaskClient, alice: Player, sign_in: Callable[[FlaskClient, Player], None]
) -> None:
    session_id = alice.converse("mine")
    sign_in(client, alice)
    for method, path in (("GET", "/v1/sessions"), ("DELETE", f"/v1/sessions/{session_id}")):
        answer = client.open(path, method=method)
        assert answer.status_code == 401
        assert "Set-Cookie" not in answer.headers
    answer = client.get("/v1/sessions", headers=alice.token())
    assert "Set-Cookie" not in answer.headers


def test_an_id_in_capitals_is_the_same_id(client: FlaskClient, alice: Player) -> None:
    """Or the mirror of a client that prints them so would prune what is there."""
    session_id = alice.converse("stays")
    answer = client.get(f"/v1/sessions/{session_id.upper()}", headers=alice.token())
    assert answer.status_code == 200
    assert answer.json is not None
    assert answer.json["id"] == session_id

"""`flask --app app COMMAND`: what each prints, and one line and exit 1 for a refusal (PRODUCT.md 2)."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from click.testing import Result
from flask import Flask
from flask.testing import FlaskClient

from models.ids import is_id, new_id
from tasks.resources import Resources
from tests.cast import Player
from tests.models.graph import attach, count, dump, fill, stored


@pytest.fixture
def run(app: Flask) -> Any:
    """Runs a command; its result has the exit code and both outputs."""

    def call(*words: str) -> Result:
        result: Result = app.test_cli_runner().invoke(args=list(words))
        return result

    return call


def document(result: Result) -> dict[str, Any]:
    """The one JSON document of a command that was done."""
    assert result.exit_code == 0, result.output
    parsed: dict[str, Any] = json.loads(result.stdout)
    return parsed


def refused(result: Result, *words: str) -> None:
    """Exit 1 and one line on standard error that holds these words; no traceback."""
    assert result.exit_code == 1, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("Error: ")
    assert result.stderr.strip().count("\n") == 0
    for word in words:
        assert word in result.stderr


def test_a_user_is_made_with_its_tenant_and_once(run: Any, resources: Resources) -> None:
    made = document(run("user", "create", "dora@example.com", "--tenant", "acme", "--operator", "--json"))
    assert is_id(made["id"])
    assert (made["email"], made["tenant"], made["operator"]) == ("dora@example.com", "acme", True)
    assert run("user", "create", "emil@example.com").stdout == "emil@example.com is a user of default.\n"
    refused(run("user", "create", "dora@example.com"), "already a user")
    for odd in ("dora", "", "a b@c", "a@b\udcff", "a\0@b"):
        refused(run("user", "create", odd), "not an e-mail address")
    refused(run("user", "create", "f@example.com", "--tenant", " "), "tenant")
    assert count(resources, "principals") == 2


def test_another_user_can_be_made_the_operator_and_the_last_one_stays(run: Any, resources: Resources) -> None:
    run("user", "create", "dora@example.com", "--operator")
    run("user", "create", "emil@example.com")
    refused(run("user", "operator", "dora@example.com", "--off"), "last operator")
    told = document(run("user", "operator", "emil@example.com", "--json"))
    assert (told["email"], told["operator"]) == ("emil@example.com", True)
    assert (
        run("user", "operator", "dora@example.com", "--off").stdout
        == "dora@example.com is no operator any more.\n"
    )
    refused(run("user", "operator", "emil@example.com", "--off"), "last operator")
    refused(run("user", "operator", "nobody@example.com"), "nobody@example.com")


def test_a_sign_in_link_works_once_and_says_the_public_address(
    run: Any, client: FlaskClient, alice: Player
) -> None:
    url = document(run("user", "sign-in-link", alice.email, "--json"))["url"]
    assert url.startswith("http://localhost/sign-in/")
    assert (
        client.get(url.removeprefix("http://localhost"), headers={"Host": "evil.example"}).status_code == 303
    )
    for odd in ("nobody@example.com", "", "a\0", "\udcff"):
        refused(run("user", "sign-in-link", odd), "There is no user")


def test_a_token_is_printed_once_listed_without_it_and_revoked(
    run: Any, client: FlaskClient, alice: Player
) -> None:
    words = ("--scope", "session.read", "--scope", "session.write", "--name", "laptop", "--expires-in", "30")
    made = document(run("token", "create", alice.email, *words, "--json"))
    assert set(made) >= {"id", "token", "scopes", "expires_at"}
    assert made["scopes"] == ["session.read", "session.write"]
    ends = datetime.fromisoformat(made["expires_at"])
    assert timedelta(days=29) < ends - datetime.now(UTC) <= timedelta(days=30)
    headers = {"Authorization": f"Bearer {made['token']}"}
    assert client.get("/v1/sessions", headers=headers).status_code == 200
    listing = run("token", "list", alice.email, "--json")
    assert made["token"] not in listing.output
    (row,) = document(listing)["tokens"]
    assert (row["id"], row["name"], row["revoked_at"]) == (made["id"], "laptop", None)
    assert document(run("token", "revoke", made["id"], "--json"))["revoked_at"]
    assert client.get("/v1/sessions", headers=headers).status_code == 401
    assert run("token", "revoke", made["id"]).exit_code == 0
    refused(run("token", "revoke", new_id()), "There is no token")
    refused(run("token", "revoke", "nonsense"), "There is no token")


def test_a_token_that_cannot_be_is_refused(run: Any, alice: Player, resources: Resources) -> None:
    refused(run("token", "create", alice.email, "--scope", "admin"), "A scope is one of", "admin")
    refused(run("token", "create", "nobody@example.com", "--scope", "session.read"), "There is no user")
    refused(run("token", "create", alice.email, "--scope", "session.read", "--name", "x" * 201), "name")
    for usage in (
        ("token", "create", alice.email),
        ("token", "create", "--scope", "session.read"),
        ("token", "create", alice.email, "--scope", "session.read", "--expires-in", "0"),
        ("token", "create", alice.email, "--scope", "session.read", "--expires-in", "soon"),
        ("user",),
        ("nothing",),
        ("outbox", "nothing"),
        ("queues", "stats"),
    ):
        assert run(*usage).exit_code == 2, usage
    assert count(resources, "tokens") == 0


def test_what_is_owed_is_said_and_drained(run: Any, alice: Player, resources: Resources) -> None:
    empty = document(run("outbox", "status", "--json"))
    assert (empty["owed"], empty["blocked"], empty["oldest_seconds"]) == (0, 0, 0.0)
    (key,) = attach(resources, alice, alice.converse(), b"x")
    with resources.engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM artifacts")
        connection.exec_driver_sql(
            "INSERT INTO outbox (key, session_id, next_attempt_at, error, created_at) VALUES "
            f"('{key}', '{new_id()}', now() + interval '1 hour', 'credentials', now() - interval '1 hour')"
        )
    owed = document(run("outbox", "status", "--json"))
    assert (owed["owed"], owed["blocked"], owed["errors"]) == (1, 1, {"credentials": 1})
    assert owed["oldest_seconds"] >= 3600
    assert "1 owed, 1 blocked" in run("outbox", "status").stdout
    assert document(run("outbox", "drain", "--json")) == {"gone": 1, "failed": 0, "owed": 0}
    assert stored(resources) == []


def test_rows_and_bytes_are_compared_and_repaired_when_asked(
    run: Any, alice: Player, resources: Resources
) -> None:
    import os
    from pathlib import Path

    kept, missing = attach(resources, alice, alice.converse(), b"a", b"b")
    lost = new_id()
    resources.store.put(lost, [b"lost"])
    for path in Path(resources.settings.object_store_url.removeprefix("file://")).rglob(f"*{lost}*"):
        os.utime(path, (0, 0))
    resources.store.delete([missing])
    told = {"rows_without_bytes": [missing], "bytes_without_rows": [lost]}
    assert document(run("store", "check", "--json")) == told
    assert document(run("store", "check", "--repair", "--json")) == told | {"repaired": [lost]}
    assert stored(resources) == [kept]
    assert f"row without bytes: {missing}" in run("store", "check").stdout


def test_a_store_that_is_not_there_is_one_line(run: Any, resources: Resources) -> None:
    from pathlib import Path

    folder = Path(resources.settings.object_store_url.removeprefix("file://"))
    if folder.exists():
        folder.rename(folder.with_name("moved"))
    folder.write_text("a file")
    refused(run("store", "check", "--repair"))


def test_the_queue_is_described(run: Any, resources: Resources) -> None:
    said = document(run("queues", "status", "--json"))
    assert said == {"waiting": 0, "failed": 0, "workers": 0, "scheduler_seen_seconds": None}


def test_what_was_deleted_is_forgotten_again_by_a_restored_backup(
    run: Any, alice: Player, resources: Resources, tmp_path: Any
) -> None:
    filled = fill(resources, alice, "marker")
    before = dump(resources)
    from tasks.deletion import delete_now

    delete_now(resources, alice.owner, filled.session_id, 20)
    file = tmp_path / "tombstones"
    assert document(run("tombstones", "export", str(file), "--json"))["lines"] >= 2
    assert "marker" not in file.read_text()
    assert file.stat().st_mode & 0o077 == 0
    again = document(run("tombstones", "replay", str(file), "--json"))
    assert again == {"removed": 0, "already_gone": 1}
    assert before != dump(resources)
    for odd in (b"", b"not an export\n", b'{"allgone": "tombstones"}\n'):
        file.write_bytes(odd)
        refused(run("tombstones", "replay", str(file)))
    refused(run("tombstones", "replay", str(tmp_path / "missing")))
    refused(run("tombstones", "export", str(tmp_path / "no" / "folder")))


def test_migrating_again_is_no_fault(run: Any) -> None:
    assert document(run("db", "upgrade", "--json")) == {"upgraded": True}

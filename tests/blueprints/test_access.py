"""Who asks: sign-in by a link, the cookie that names it, and pages that are not for everyone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from blueprints.access import cookie_settings
from models.accounts import Token
from models.base import database_time
from models.sign_ins import SignIn
from tasks.resources import Resources
from tests.cast import Cast, Player
from tests.models.graph import count, rows

SignInAs = Callable[[FlaskClient, Player], None]


def test_a_link_signs_in_and_leaves_no_key_in_the_address(client: FlaskClient, alice: Player) -> None:
    secret = alice.link()
    answer = client.get(f"/sign-in/{secret}")
    assert answer.status_code == 303
    assert secret not in answer.headers["Location"]
    assert secret not in answer.headers["Set-Cookie"]
    assert client.get("/").status_code == 200


def test_the_cookie_is_for_this_site_and_no_script(client: FlaskClient, alice: Player) -> None:
    cookie = client.get(f"/sign-in/{alice.link()}").headers["Set-Cookie"]
    assert cookie.startswith("allgone=")
    for word in ("HttpOnly", "SameSite=Lax", "Path=/", "Expires="):
        assert word in cookie
    assert "Secure" not in cookie
    assert "Domain" not in cookie


def test_over_https_the_cookie_is_secure_and_bound_to_its_host() -> None:
    settings = cookie_settings("k" * 40, https=True)
    assert settings["SESSION_COOKIE_SECURE"] is True
    assert settings["SESSION_COOKIE_NAME"].startswith("__Host-")
    assert cookie_settings("k" * 40, https=False)["SESSION_COOKIE_SECURE"] is False


@pytest.mark.parametrize("change", ["expired", "revoked", "removed"])
def test_a_sign_in_that_ended_sends_the_whole_page_to_sign_in(
    client: FlaskClient, alice: Player, sign_in: SignInAs, resources: Resources, change: str
) -> None:
    """FAULTS.md S86: never a sign-in form inside a list."""
    sign_in(client, alice)
    with Session(resources.engine) as db, db.begin():
        now = database_time(db)
        if change == "expired":
            db.execute(update(SignIn).values(expires_at=now))
        elif change == "revoked":
            db.execute(update(SignIn).values(revoked_at=now - timedelta(seconds=1)))
        else:
            db.execute(SignIn.__table__.delete())
    page = client.get("/")
    assert (page.status_code, page.headers["Location"]) == (303, "/sign-in")
    part = client.get("/", headers={"HX-Request": "true"})
    assert (part.status_code, part.data) == (200, b"")
    assert part.headers["HX-Redirect"] == "/sign-in"


def test_a_cookie_that_we_did_not_sign_names_nobody(client: FlaskClient, app: Flask, alice: Player) -> None:
    client.get(f"/sign-in/{alice.link()}")
    good = client.get_cookie("allgone")
    assert good is not None
    for value in ("", "nonsense", good.value[:-2], good.value + "x", "." * 3000, "eyJzaWduX2luIjoxfQ.x.y"):
        other = app.test_client()
        other.set_cookie("allgone", value)
        assert other.get("/").status_code == 303, value


def test_reading_does_not_prolong_a_sign_in(client: FlaskClient, alice: Player, sign_in: SignInAs) -> None:
    sign_in(client, alice)
    client.get("/")  # the first page may add its form's secret
    for headers in ({}, {"HX-Request": "true"}):
        assert "Set-Cookie" not in client.get("/", headers=headers).headers


def test_signing_out_ends_the_sign_in_at_the_server(
    app: Flask, client: FlaskClient, alice: Player, sign_in: SignInAs
) -> None:
    sign_in(client, alice)
    stolen = client.get_cookie("allgone")
    assert stolen is not None
    app.config["WTF_CSRF_ENABLED"] = False
    assert client.post("/sign-out").status_code == 303
    thief = app.test_client()
    thief.set_cookie("allgone", stolen.value)
    assert thief.get("/").status_code == 303


def test_a_link_never_replaces_another_users_sign_in_unasked(
    client: FlaskClient, cast: Cast, sign_in: SignInAs, resources: Resources
) -> None:
    sign_in(client, cast.alice)
    secret = cast.mallory.link()
    answer = client.get(f"/sign-in/{secret}")
    assert answer.status_code == 200
    assert cast.alice.email in answer.text
    assert cast.mallory.email in answer.text
    assert count(resources, "sign_ins") == 1
    assert cast.mallory.link() != secret
    assert client.post("/sign-in", data={"secret": secret}).status_code in (
        400,
        403,
    )  # no CSRF token, no change
    assert count(resources, "sign_ins") == 1


def test_who_only_looks_at_a_link_does_not_use_it(app: Flask, alice: Player) -> None:
    path = f"/sign-in/{alice.link()}"
    for looking in (
        app.test_client().head(path),
        app.test_client().get(path, headers={"Sec-Purpose": "prefetch;prerender"}),
        app.test_client().get(path, headers={"Purpose": "prefetch"}),
    ):
        assert looking.status_code == 204
        assert "Set-Cookie" not in looking.headers
    assert app.test_client().get(path).status_code == 303


def test_a_used_link_is_refused_to_strangers_in_words(app: Flask, alice: Player) -> None:
    secret = alice.link()
    assert app.test_client().get(f"/sign-in/{secret}").status_code == 303
    answer = app.test_client().get(f"/sign-in/{secret}")
    assert answer.status_code == 401
    assert "10 minutes" in answer.text
    assert "Set-Cookie" not in answer.headers


@pytest.mark.parametrize("path", ["/", "/sign-in", "/v1/sessions", "/healthz"])
def test_every_answer_is_strict_about_what_a_browser_may_do(client: FlaskClient, path: str) -> None:
    headers = client.get(path).headers
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "same-origin"
    assert headers["Cache-Control"] == "no-store"


def test_a_tokens_last_use_is_noted_to_the_minute_and_reading_it_waits_for_nobody(
    client: FlaskClient, alice: Player, resources: Resources
) -> None:
    used = alice.token("session.read")
    alice.token("session.read")  # never used

    def noted() -> list[tuple[datetime | None]]:
        return rows(resources, "SELECT last_used_at FROM tokens ORDER BY id")

    assert noted() == [(None,), (None,)]
    assert client.get("/v1/sessions", headers=used).status_code == 200
    ((first,), (never,)) = noted()
    assert never is None
    assert first is not None
    assert client.get("/v1/sessions", headers=used).status_code == 200
    assert noted() == [(first,), (None,)]  # within the minute nothing is written
    with Session(resources.engine) as holder:
        earlier = update(Token).where(Token.last_used_at.is_not(None))
        holder.execute(earlier.values(last_used_at=first - timedelta(minutes=5)))
        holder.commit()
        holder.execute(select(Token).with_for_update())
        assert client.get("/v1/sessions", headers=used).status_code == 200  # somebody else holds the row
        holder.rollback()
    assert client.get("/v1/sessions", headers=used).status_code == 200
    ((again,), _) = noted()
    assert again is not None
    assert again >= first


def test_a_refused_token_is_not_used(client: FlaskClient, alice: Player, resources: Resources) -> None:
    narrow = alice.token("memory.read")
    with Session(resources.engine) as db, db.begin():
        db.execute(update(Token).values(expires_at=database_time(db)))
    assert client.get("/v1/sessions", headers=narrow).status_code == 401
    assert rows(resources, "SELECT last_used_at FROM tokens") == [(None,)]

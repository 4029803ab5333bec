"""`user create`, `user sign-in-link`, `user operator`, `token create|list|revoke`."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import click
from sqlalchemy.orm import Session

from blueprints.api.wire import time_text
from blueprints.commands.engines import sign_in_url
from blueprints.commands.terminal import command, held, json_option, say
from models import accounts


@click.group("user")
def user() -> None:
    """Users."""


@user.command("create")
@click.argument("email")
@click.option("--tenant", default="default", show_default=True, help="The tenant's name; a new one is made.")
@click.option("--operator", is_flag=True, help="May see the operator's pages.")
@json_option
@command
def create_user(email: str, tenant: str, operator: bool, as_json: bool) -> None:
    """Make a user."""
    with Session(held().engine) as db, db.begin():
        made = accounts.create_user(db, email, secrets.token_bytes(32), tenant=tenant, operator=operator)
        document = {"id": made.id, "email": made.email, "tenant": tenant, "operator": operator}
    say(as_json, document, f"{email} is a user of {tenant}.")


@user.command("sign-in-link")
@click.argument("email")
@json_option
@command
def sign_in_link(email: str, as_json: bool) -> None:
    """Print a link that signs EMAIL in: once, within 10 minutes."""
    with Session(held().engine) as db, db.begin():
        url = sign_in_url(held().settings, db, accounts.user_named(db, email))
    say(as_json, {"url": url}, url)


@user.command("operator")
@click.argument("email")
@click.option("--off", is_flag=True, help="Take it back; the last operator stays one.")
@json_option
@command
def make_operator(email: str, off: bool, as_json: bool) -> None:
    """Let EMAIL see the operator's pages."""
    with Session(held().engine) as db, db.begin():
        principal = accounts.user_named(db, email)
        accounts.set_operator(db, principal, not off)
        document = {"id": principal.id, "email": principal.email, "operator": principal.operator}
    say(as_json, document, f"{email} is {'no operator any more' if off else 'an operator'}.")


@click.group("token")
def token() -> None:
    """Bearer tokens of /v1."""


@token.command("create")
@click.argument("email")
@click.option(
    "--scope", "scopes", multiple=True, required=True, help=f"One of {', '.join(accounts.SCOPES)}; repeat it."
)
@click.option("--name", default="", help="What you will know it by.")
@click.option(
    "--expires-in", type=click.IntRange(1, 3650), metavar="DAYS", help="Its life in days; none: no end."
)
@json_option
@command
def create_token(email: str, scopes: Sequence[str], name: str, expires_in: int | None, as_json: bool) -> None:
    """Make a token for EMAIL and print it, this once."""
    secret = accounts.TOKEN_PREFIX + secrets.token_urlsafe(32)
    life = timedelta(days=expires_in) if expires_in is not None else None
    with Session(held().engine) as db, db.begin():
        principal = accounts.user_named(db, email)
        made = accounts.create_token(db, principal, secret, scopes, name=name, expires_in=life)
        document = {
            "id": made.id,
            "token": secret,
            "scopes": made.scopes,
            "expires_at": _time(made.expires_at),
        }
    say(as_json, document, secret)


@token.command("list")
@click.argument("email")
@json_option
@command
def list_tokens(email: str, as_json: bool) -> None:
    """List the tokens of EMAIL; a token itself is never shown again."""
    with Session(held().engine) as db:
        rows: list[dict[str, Any]] = [
            {
                "id": one.id,
                "name": one.name,
                "scopes": one.scopes,
                "created_at": _time(one.created_at),
                "expires_at": _time(one.expires_at),
                "revoked_at": _time(one.revoked_at),
                "last_used_at": _time(one.last_used_at),
            }
            for one in accounts.tokens_of(db, accounts.user_named(db, email))
        ]
    lines = [
        f"{row['id']}  {_state(row)}  {row['name'] or '(no name)'}  {' '.join(row['scopes'])}" for row in rows
    ]
    say(as_json, {"tokens": rows}, *(lines or [f"{email} has no tokens."]))


@token.command("revoke")
@click.argument("token_id", metavar="ID")
@json_option
@command
def revoke_token(token_id: str, as_json: bool) -> None:
    """End a token at once."""
    with Session(held().engine) as db, db.begin():
        ended = accounts.revoke_token(db, token_id)
        document = {"id": ended.id, "revoked_at": _time(ended.revoked_at)}
    say(as_json, document, f"Token {token_id} is revoked.")


def _time(at: datetime | None) -> str | None:
    return None if at is None else time_text(at)


def _state(row: dict[str, Any]) -> str:
    if row["revoked_at"]:
        return f"revoked {row['revoked_at']}"
    return f"until {row['expires_at']}" if row["expires_at"] else "no end"

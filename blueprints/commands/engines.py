"""`start` runs the whole product on this machine; `db upgrade` migrates."""

from __future__ import annotations

import secrets
from contextlib import suppress

import click
from flask.cli import with_appcontext
from redis.exceptions import RedisError
from sqlalchemy.orm import Session

from blueprints.commands.terminal import held, json_option, refusing, say
from models import accounts, migrations, sign_ins
from models.base import open_engine
from models.bytestore import StoreFault, open_store
from models.errors import Invalid, Misconfigured
from models.settings import Settings
from tasks.embedded import reach_engines
from tasks.processes import run_product
from tasks.queues import open_redis
from tasks.store import make_store


@click.command("start")
@with_appcontext
@refusing
def start() -> None:
    """Start engines, web, worker and scheduler; print one line when all is ready."""
    settings = held().settings
    run_product(settings, lambda: _prepare(settings), lambda: _sign_in_url(settings))


@click.group("db")
def database() -> None:
    """The schema."""


@database.command("upgrade")
@json_option
@with_appcontext
@refusing
def upgrade(as_json: bool) -> None:
    """Bring the schema to this release."""
    settings = held().settings
    with reach_engines(settings):
        _migrate(settings)
    say(as_json, {"upgraded": True}, "The schema is at this release.")


def sign_in_url(settings: Settings, db: Session, principal: accounts.Principal) -> str:
    """A fresh one-time sign-in link; its URL is PUBLIC_URL's, never the Host header's."""
    secret = secrets.token_urlsafe(32)
    sign_ins.create_link(db, principal, secret)
    return f"{settings.public_url}/sign-in/{secret}"


def _prepare(settings: Settings) -> None:
    """What a start needs before its processes: the schema, and a queue and a store that answer, or their names."""
    _migrate(settings)
    try:
        open_redis(settings.redis_url).ping()
    except RedisError as fault:
        raise Misconfigured(f"REDIS_URL: Redis does not answer: {type(fault).__name__}") from None
    try:
        open_store(settings.object_store_url, settings.aws, make=False).check()
    except StoreFault as fault:
        raise Misconfigured(f"OBJECT_STORE_URL: {fault.sentence}") from None


def _migrate(settings: Settings) -> None:
    engine = open_engine(settings.database_url)
    try:
        migrations.upgrade(engine)
        make_store(engine, settings)
    finally:
        engine.dispose()


def _sign_in_url(settings: Settings) -> str:
    engine = open_engine(settings.database_url)
    try:
        with (
            suppress(Invalid),
            Session(engine) as db,
            db.begin(),
        ):  # Invalid: a start beside this one made them
            if accounts.find_user(db, settings.owner_email) is None:
                accounts.create_user(db, settings.owner_email, secrets.token_bytes(32), operator=True)
        with Session(engine) as db, db.begin():
            return sign_in_url(settings, db, accounts.user_named(db, settings.owner_email))
    finally:
        engine.dispose()

"""Puts the house together; imported by nobody but the web server and `flask --app app`."""

from __future__ import annotations

from datetime import timedelta

from flask import Flask
from flask_wtf.csrf import CSRFProtect
from htmx_flask import Htmx
from werkzeug.middleware.proxy_fix import ProxyFix

from blueprints import (
    access,
    account,
    api,
    approvals,
    assets,
    commands,
    compression,
    conversation,
    database,
    deletions,
    doorstep,
    errors,
    export,
    files,
    headers,
    imports,
    logs,
    memories,
    operations,
    search,
    sidebar,
    talk,
)
from models.cursor import signing_key
from models.errors import Misconfigured
from models.settings import Settings
from tasks.logs import configure as configure_logs
from tasks.resources import from_environment

BODY_MAX = 1024 * 1024  # bytes of a request's body, where a route does not say otherwise


def create_app(settings: Settings | None = None) -> Flask:
    """The web application; `settings` come from the environment and `.env` unless given.

    Opens no connection, so that it may be made before the engines run and before a server forks. A setting that
    cannot be used ends the process with one line and exit code 1.
    """
    try:
        return _assembled(settings or from_environment())
    except Misconfigured as fault:
        raise SystemExit(f"allgone: {fault}") from None


def _assembled(settings: Settings) -> Flask:
    configure_logs()
    app = Flask(__name__)
    app.url_map.merge_slashes = False  # another spelling of an address is no address
    app.config.update(access.cookie_settings(settings.secret_key, settings.https))
    app.config["PERMANENT_SESSION_LIFETIME"] = timedelta(days=30)
    app.config["MAX_CONTENT_LENGTH"] = BODY_MAX
    app.config["CURSOR_KEY"] = signing_key(settings.secret_key)
    app.jinja_env.trim_blocks = app.jinja_env.lstrip_blocks = True
    if settings.trusted_proxies:
        proxies = settings.trusted_proxies
        app.wsgi_app = ProxyFix(app.wsgi_app, x_for=proxies, x_proto=proxies)  # type: ignore[method-assign]
    compression.register(app)  # the first to be added is the last to run
    database.connect(app, settings)
    errors.register(app)
    logs.register(app)
    headers.register(app)
    assets.register(app)
    Htmx(app)
    csrf = CSRFProtect(app)
    access.register(app)
    csrf.exempt(imports.receive)  # it reads its form by itself, and checks the token as soon as it has it
    csrf.exempt(api.v1)  # it takes no cookie, so no other site can ride on one
    for blueprint in (
        sidebar.sidebar,
        talk.talk,
        approvals.deciding,
        memories.remembered,
        search.finder,
        export.export,
        files.files,
        deletions.done,
        conversation.conversation,
        imports.imports,
        account.account,
        api.v1,
        api.openapi,
    ):
        app.register_blueprint(blueprint)
    operations.mount(app)
    app.wsgi_app = doorstep.Doorstep(app)  # type: ignore[method-assign,assignment]
    commands.register(app)
    return app

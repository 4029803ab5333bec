"""A request in the log: its id on every line that it causes, and a line of its own when it changed something."""

from __future__ import annotations

import re
import secrets
import time

import structlog
from flask import Flask, Response, g, request

log = structlog.get_logger()
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def register(app: Flask) -> None:
    """One line a request that changed something or failed; the request's id goes back in `X-Request-Id`."""

    @app.before_request
    def begin() -> None:
        given = request.headers.get("X-Request-Id", "")
        g.request_id = given if _ID.fullmatch(given) else secrets.token_hex(8)
        g.began = time.perf_counter()
        # So that whatever this request logs, wherever, can be joined to it.
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=g.request_id)

    @app.after_request
    def end(response: Response) -> Response:
        request_id = g.get("request_id")
        if request_id:
            response.headers["X-Request-Id"] = request_id
        if request.method not in {"GET", "HEAD"} or response.status_code >= 500:
            log.info(
                "request",
                method=request.method,
                route=request.url_rule.rule if request.url_rule else None,
                status=response.status_code,
                milliseconds=round((time.perf_counter() - g.get("began", time.perf_counter())) * 1000, 1),
            )
        return response

"""Structured logs: one event a line, with the request's id; no title, text, key or token in any (PRODUCT.md 8)."""

from __future__ import annotations

import logging
import re
import secrets
import sys
import time

import structlog
from flask import Flask, Response, g, request
from structlog.tracebacks import ExceptionDictTransformer

log = structlog.get_logger()
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def configure(level: int = logging.INFO) -> None:
    """JSON lines on standard error, for our own events of at least `level`."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            # Frames without their variables: those are readers' words, and tokens.
            structlog.processors.ExceptionRenderer(ExceptionDictTransformer(show_locals=False)),
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )


def register(app: Flask) -> None:
    """One line a request that changed something or failed; the request's id goes back in `X-Request-Id`."""

    @app.before_request
    def begin() -> None:
        given = request.headers.get("X-Request-Id", "")
        g.request_id = given if _ID.fullmatch(given) else secrets.token_hex(8)
        g.began = time.perf_counter()

    @app.after_request
    def end(response: Response) -> Response:
        request_id = g.get("request_id")
        if request_id:
            response.headers["X-Request-Id"] = request_id
        if request.method not in {"GET", "HEAD"} or response.status_code >= 500:
            log.info(
                "request",
                request_id=request_id,
                method=request.method,
                route=request.url_rule.rule if request.url_rule else None,
                status=response.status_code,
                milliseconds=round((time.perf_counter() - g.get("began", time.perf_counter())) * 1000, 1),
            )
        return response

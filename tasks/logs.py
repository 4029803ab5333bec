"""Every process logs one JSON object a line on standard error: our events, and those of gunicorn and RQ (PRODUCT.md 8).

No title, text, key or token is in any: exceptions are told by their kind and frames, without messages or variables.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping
from pathlib import Path
from traceback import extract_tb
from typing import Any

import structlog

Event = MutableMapping[str, Any]


def configure(level: int = logging.INFO) -> None:
    """JSON lines for our own events of at least `level`, and for what libraries log from warnings on."""
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _kind_and_frames,
    ]
    structlog.configure(
        processors=[*shared, structlog.processors.JSONRenderer()],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    handler = json_handler(shared)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    for name in ("gunicorn.error", "rq.worker"):
        # With a handler of their own they add none that prints colours or plain lines.
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.propagate = False


def json_handler(shared: list[Any]) -> logging.Handler:
    """A handler of the standard library's loggers that writes as ours do."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(),
            ],
        )
    )
    return handler


def _kind_and_frames(_logger: Any, _method: str, event: Event) -> Event:
    held = event.pop("exc_info", None)
    fault = held[1] if isinstance(held, tuple) else held
    if fault is True:
        fault = sys.exc_info()[1]
    if isinstance(fault, BaseException):
        frames = extract_tb(fault.__traceback__)[-12:]
        event["error"] = type(fault).__name__
        event["frames"] = [f"{Path(at.filename).name}:{at.lineno} {at.name}" for at in frames]
    return event

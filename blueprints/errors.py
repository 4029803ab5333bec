"""The one table from code to status, and the three shapes an error takes: problem JSON, a fragment, a page.

What is not a Refusal is `internal`: logged with its request id, and never shown.
"""

from __future__ import annotations

from pathlib import Path
from traceback import extract_tb
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import orjson
import structlog
from flask import Flask, Response, g, make_response, redirect, render_template, request
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from werkzeug.exceptions import HTTPException

from blueprints.patience import close_after
from models.bytestore import StoreFault
from models.errors import Refusal

STATUS = {
    "unauthorized": 401,
    "forbidden": 403,
    "not_found": 404,
    "invalid": 400,
    "invalid_cursor": 400,
    "invalid_state": 409,
    "too_large": 413,
    "rate_limited": 429,
    "internal": 500,
}
TITLES = {
    "unauthorized": "Not signed in",
    "forbidden": "Not allowed",
    "not_found": "Not found",
    "invalid": "Not valid",
    "invalid_cursor": "Not a cursor of ours",
    "invalid_state": "Not now",
    "too_large": "Too large",
    "rate_limited": "Too many attempts",
    "internal": "Something broke on our side",
}
# What Flask itself refuses, in our words.
HTTP_CODES = {401: "unauthorized", 403: "forbidden", 404: "not_found", 413: "too_large", 429: "rate_limited"}
HTTP_DETAILS = {
    404: "There is nothing at this address.",
    405: "This address does not take that method.",
    413: "The request is larger than this address takes.",
    415: "The request's Content-Type or Content-Encoding is not one that this address takes.",
}
INTERNAL = "Something broke on our side. Nothing that you asked for was done; try again in a moment."
DATABASE_AWAY = (
    "The database does not answer just now. Nothing that you asked for was done; try again in a moment."
)
QUEUED = "Another request of yours held what this one needed for too long. Nothing of this one was done; try again."
STORE_AWAY = "The store that keeps files does not answer. Nothing was lost, and nothing was added; try again."
QUEUED_CODES = ("55P03", "40P01")  # PostgreSQL's lock_not_available and deadlock_detected

ELSEWHERE = "elsewhere"  # the address of another host that a view means, in `g`

log = structlog.get_logger()


def register(app: Flask) -> None:
    """Makes every error of `app` come out in one of the three shapes."""
    app.register_error_handler(Refusal, lambda refusal: answer(refusal.code, refusal.detail, refusal.details))
    app.register_error_handler(StoreFault, _store_away)
    app.register_error_handler(HTTPException, _http)
    app.after_request(_from_here)
    app.after_request(_unread)
    app.register_error_handler(DBAPIError, _database_away)
    app.register_error_handler(Exception, _unknown)


def answer(code: str, detail: str, details: dict[str, Any], status: int | None = None) -> Response:
    """The error as who asked understands it: `/v1` problem JSON, htmx a small fragment, a browser a page."""
    status = status or STATUS[code]
    if request.path == "/v1" or request.path.startswith("/v1/"):
        response = problem(code, detail, details, status)
    else:
        template = "errors/fragment.html" if request.headers.get("HX-Request") else "errors/page.html"
        body = render_template(template, title=TITLES[code], detail=detail, details=details, status=status)
        response = make_response(body, status)
    if status == 401:
        response.headers["WWW-Authenticate"] = 'Bearer realm="allgone"'
    if "retry_after" in details:
        response.headers["Retry-After"] = str(details["retry_after"])
    return response


def elsewhere(address: str) -> Response:
    """Sends the browser to another host: the one way to, for the identity provider."""
    g.setdefault(ELSEWHERE, address)
    return make_response(redirect(address, 303))


def problem(code: str, detail: str, details: dict[str, Any], status: int) -> Response:
    """RFC 9457 problem JSON with our `code` and `details`."""
    body = {"status": status, "title": TITLES[code], "detail": detail, "code": code, "details": details}
    return Response(orjson.dumps(body), status, content_type="application/problem+json")


def _http(fault: HTTPException) -> Response:
    status = fault.code or 500
    if status < 400:  # a redirect that Werkzeug raises
        return make_response(fault.get_response())
    code = HTTP_CODES.get(status, "invalid" if status < 500 else "internal")
    detail = HTTP_DETAILS.get(status, INTERNAL if status >= 500 else "The request is malformed.")
    response = answer(code, detail, {}, status)
    allowed = getattr(fault, "valid_methods", None)
    if status == 405 and allowed:
        response.headers["Allow"] = ", ".join(sorted(allowed))
    return response


def _from_here(response: Response) -> Response:
    # Flask redirects an address spelled otherwise by the Host header, which is never believed: the path is enough.
    there = urlsplit(response.headers.get("Location", ""))
    if there.netloc and response.headers["Location"] != g.get(ELSEWHERE):
        response.headers["Location"] = urlunsplit(("", "", there.path, there.query, ""))
    return response


def _unread(response: Response) -> Response:
    # What is left of the body on the wire would be taken for the next request, so the connection ends here.
    had_body = bool(request.content_length or request.headers.get("Transfer-Encoding"))
    if response.status_code >= 400 and had_body and not g.get("body_read"):
        close_after()
    return response


def _database_away(fault: DBAPIError) -> Response:
    if not (fault.connection_invalidated or isinstance(fault, OperationalError | InterfaceError)):
        return _unknown(fault)
    if getattr(fault.orig, "pgcode", None) in QUEUED_CODES:
        log.warning("lock_not_had", error=type(fault.orig).__name__)
        return answer("internal", QUEUED, {"retry_after": 2}, 503)
    log.warning("database_unreachable", error=type(fault.orig).__name__)
    return answer("internal", DATABASE_AWAY, {"retry_after": 2}, 503)


def _store_away(fault: StoreFault) -> Response:
    log.warning("store_unreachable", fault=fault.fault)
    return answer("internal", STORE_AWAY, {"retry_after": 5}, 503)


def _unknown(fault: Exception) -> Response:
    # Its kind and where it came from; not its message and no variable, which hold whatever a reader sent.
    frames = [f"{Path(at.filename).name}:{at.lineno} {at.name}" for at in extract_tb(fault.__traceback__)]
    route = request.url_rule.rule if request.url_rule else None
    log.error("request_failed", path=route, error=type(fault).__name__, frames=frames[-12:])
    return answer("internal", INTERNAL, {})

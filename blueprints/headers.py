"""The headers that every answer carries: a strict Content-Security-Policy and its companions (PRODUCT.md 7)."""

from __future__ import annotations

from flask import Flask, Response, request

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "font-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)
# The RQ dashboard was written with inline scripts and styles: its pages alone get this, behind an operator's sign-in.
DASHBOARD_POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self' 'unsafe-inline'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "frame-ancestors 'none'",
    )
)
DASHBOARD = "/operations/rq/"


def register(app: Flask) -> None:
    """Adds the headers to each answer; one that a view set itself stays."""

    @app.after_request
    def protect(response: Response) -> Response:
        headers = response.headers
        if request.path.startswith("/static/"):
            # No document, so the rest would say nothing; five of them come with a first page, and each header weighs.
            headers.setdefault("Content-Security-Policy", "default-src 'none'")
            headers.setdefault("X-Content-Type-Options", "nosniff")
            return response
        headers.setdefault(
            "Content-Security-Policy", DASHBOARD_POLICY if request.path.startswith(DASHBOARD) else POLICY
        )
        headers.setdefault("X-Content-Type-Options", "nosniff")
        # same-origin and not no-referrer: the CSRF check over https reads it (PARTS.md).
        headers.setdefault("Referrer-Policy", "same-origin")
        headers.setdefault("Cross-Origin-Opener-Policy", "same-origin")
        headers.setdefault("Permissions-Policy", "camera=(), microphone=(), geolocation=()")
        # Nothing that may show a conversation is kept by any cache.
        headers.setdefault("Cache-Control", "no-store")
        headers.add("Vary", "HX-Request, Cookie")
        return response

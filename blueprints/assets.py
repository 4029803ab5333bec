"""Addresses in templates: of static files, which change with their content, so that browsers may keep them for good;
and whether there is a page at all."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from flask import Flask, Response, request, url_for

VERSIONED = ".woff2"  # the style sheet names it by its version, where no address can be counted up
FOR_GOOD = "public, max-age=31536000, immutable"


def register(app: Flask) -> None:
    """Gives templates `asset(name)` and `has_endpoint(name)`, and lets what an asset names be kept for a year."""
    folder = Path(app.static_folder or "static")
    known: dict[str, tuple[int, str]] = {}

    def version(name: str) -> str:
        changed = (folder / name).stat().st_mtime_ns
        if known.get(name, (0, ""))[0] != changed:
            known[name] = (changed, sha256((folder / name).read_bytes()).hexdigest()[:12])
        return known[name][1]

    @app.template_global()
    def asset(name: str) -> str:
        return url_for("static", filename=name, v=version(name))

    @app.template_global()
    def has_endpoint(name: str) -> bool:
        return name in app.view_functions

    @app.after_request
    def keep(response: Response) -> Response:
        if request.endpoint == "static" and response.status_code in {200, 304} and request.view_args:
            name = request.view_args["filename"]
            if request.args.get("v") == known.get(name, (0, ""))[1] or name.endswith(VERSIONED):
                response.headers["Cache-Control"] = FOR_GOOD
        return response

"""The product's web application with no-op routes beside it, so that the product itself ships none.

`GET /noop/NAME` answers with the bytes, type and status that the driver has laid into the folder that
ALLGONE_BENCHMARK_ANSWERS names: what an answer of that size costs this server when nothing is asked of it.
"""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from pathlib import Path

from flask import Flask, Response

FOLDER = "ALLGONE_BENCHMARK_ANSWERS"


def create() -> Flask:
    """What gunicorn loads."""
    folder = Path(os.environ.pop(FOLDER))  # the settings refuse names of ours that they do not know
    app: Flask = import_module("app").create_app()

    @cache
    def kept(name: str) -> tuple[bytes, int, str]:
        status, kind = (folder / f"{name}.head").read_text("ascii").split("\n")
        return (folder / name).read_bytes(), int(status), kind

    @app.get("/noop/<name>")
    def noop(name: str) -> Response:
        body, status, kind = kept(name)
        return Response(body, status, content_type=kind or None)

    return app

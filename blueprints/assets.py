"""Addresses in templates: of static files, which change with their content, so that browsers may keep them for good;
and whether there is a page at all.

The scripts that every page needs travel as one, and the style sheet likewise: a bundle is the files named in its
address, one after the other, without the lines that are nothing but a comment. They are read as they stand; nothing is
built.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from flask import Flask, Response, request, url_for

from models.errors import NotFound

VERSIONED = ".woff2"  # the style sheet names it by its version, where no address can be counted up
_name = re.compile(r"[a-z]+\.(js|css)")
KINDS = {"js": "text/javascript", "css": "text/css"}
_remarks = re.compile(r"^[ \t]*(?:/\*(?s:(?!\*/).)*\*/|//.*)[ \t]*\n", re.MULTILINE)
BUNDLE_MAX = 30  # files
FOR_GOOD = "public, max-age=31536000, immutable"


def register(app: Flask) -> None:
    """Gives templates `asset`, `bundle` and `has_endpoint`, and lets what an asset names be kept for a year."""
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
    def bundle(names: Sequence[str]) -> str:
        return url_for("bundled", names="+".join(names), v=bundle_version(names))

    def bundle_version(names: Sequence[str]) -> str:
        return sha256("".join(map(version, names)).encode()).hexdigest()[:12]

    @app.get("/static/bundle/<names>")
    def bundled(names: str) -> Response:
        """The named files, of one kind, as one. Raises NotFound for what is none of ours."""
        files = names.split("+")
        found = [_name.fullmatch(one) for one in files]
        kinds = {one[1] for one in found if one}
        if len(files) > BUNDLE_MAX or not all(found) or len(kinds) != 1:
            raise NotFound("There is no such file.")
        try:
            text = "\n".join(without_remarks((folder / one).read_text("utf-8")) for one in files)
        except FileNotFoundError:
            raise NotFound("There is no such file.") from None
        response = Response(text, content_type=f"{KINDS[kinds.pop()]}; charset=utf-8")
        response.headers["Cache-Control"] = (
            FOR_GOOD if request.args.get("v") == bundle_version(files) else "no-cache"
        )
        return response

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


def without_remarks(text: str) -> str:
    """Script or style without comments that stand on lines of their own: a third of what ours weigh."""
    return _remarks.sub("", text)

"""What a page is made of travels compressed: HTML, style and script, to who takes it so.

A file that is named by its content is compressed once a process, and hard; a page each time, and lightly. JSON
of `/v1`, streams and artifacts go as they are: their clients ask for many small answers, or for bytes of their own.
A page that another site could have asked for with words of its own in the address is not compressed: beside them, the
length would tell what else stands in the page (BREACH). What a script of ours asks for names itself by a header.
"""

from __future__ import annotations

import gzip

import brotli
from flask import Flask, Response, request

KINDS = ("text/html", "text/css", "text/javascript", "application/javascript", "image/svg+xml")
LEAST = 1000  # bytes; below it the headers weigh as much
LIGHT = 4  # gzip's level for what is made anew each time
KEPT_MAX = 100  # files


def register(app: Flask) -> None:
    """Compresses answers of `KINDS` after everything else has had its say."""
    kept: dict[tuple[str, ...], bytes] = {}

    @app.after_request
    def smaller(response: Response) -> Response:
        if response.mimetype not in KINDS or response.status_code not in {200, 400, 403, 404, 409, 500}:
            return response
        response.headers.add("Vary", "Accept-Encoding")
        if (
            "Content-Encoding" in response.headers
            or "Range" in request.headers
            or not request.accept_encodings["gzip"]
            or request.method == "HEAD"
        ):
            return response
        unchanging = "immutable" in response.headers.get("Cache-Control", "")
        if response.status_code == 200 and (unchanging or request.endpoint == "static"):
            return _file(response, kept, "br" if request.accept_encodings["br"] else "gzip")
        if response.is_streamed or (request.query_string and "HX-Request" not in request.headers):
            return response
        body = response.get_data()
        if len(body) < LEAST:
            return response
        return _sent(response, gzip.compress(body, LIGHT, mtime=0), "gzip")


def _file(response: Response, kept: dict[tuple[str, ...], bytes], how: str) -> Response:
    etag, _weak = response.get_etag()
    key = (request.path, etag or request.args.get("v", ""), how)
    if key not in kept:
        response.direct_passthrough = False
        if len(kept) >= KEPT_MAX:
            kept.clear()
        body = response.get_data()
        kept[key] = brotli.compress(body) if how == "br" else gzip.compress(body, 9, mtime=0)
    else:
        response.close()  # the file that nobody reads this time
    response.direct_passthrough = False
    return _sent(response, kept[key], how)


def _sent(response: Response, body: bytes, how: str) -> Response:
    response.set_data(body)
    response.headers["Content-Encoding"] = how
    etag, _weak = response.get_etag()
    if etag:
        response.set_etag(etag, weak=True)  # the same content in another dress
    return response

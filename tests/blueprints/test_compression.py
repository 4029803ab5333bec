"""Pages travel compressed, and what is not ours to squeeze does not."""

from __future__ import annotations

import re
from collections.abc import Callable
from gzip import compress, decompress

import brotli
import pytest
from flask.testing import FlaskClient

from tasks.resources import Resources
from tests.attachments import attach
from tests.cast import Player

SignIn = Callable[[FlaskClient, Player], None]
GZIP = {"Accept-Encoding": "gzip"}
FIRST_PAINT_MAX = 57_000  # bytes of bodies that the history page may bring; with their headers 60 kB


def test_the_first_paint_of_a_full_history_is_small(
    client: FlaskClient, sign_in: SignIn, alice: Player
) -> None:
    for number in range(60):
        alice.converse(
            f"{number} A title of the usual length, about {compress(bytes([number] * 9)).hex()[:30]}"
        )
    sign_in(client, alice)
    page = client.get("/", headers=GZIP)
    html = decompress(page.data).decode()
    carried = {"/": len(page.data)}
    for address in re.findall(r'(?:src|href)="(/static/[^"]+)"', html):
        carried[address] = len(client.get(address, headers={"Accept-Encoding": "gzip, br"}).data)
    assert sum(carried.values()) < FIRST_PAINT_MAX, carried


@pytest.mark.parametrize("path", ["/static/allgone.css", "/static/htmx-4.0.1.min.js", "/sign-in", "/nowhere"])
def test_the_content_is_the_same_in_both_dresses(client: FlaskClient, path: str) -> None:
    plain, packed = client.get(path), client.get(path, headers=GZIP)
    assert packed.headers["Content-Encoding"] == "gzip"
    assert int(packed.headers["Content-Length"]) == len(packed.data) < len(plain.data)
    if path != "/sign-in":  # whose token is a new one each time
        assert decompress(packed.data) == plain.data
    for answer in (plain, packed):
        assert "Accept-Encoding" in ", ".join(answer.headers.getlist("Vary"))
    assert "Content-Encoding" not in plain.headers
    again = client.get(path, headers=GZIP)  # out of what is kept
    assert again.status_code == packed.status_code
    assert len(again.data) - len(packed.data) in range(-40, 40)


def test_who_takes_brotli_gets_files_smaller_still(client: FlaskClient) -> None:
    path = "/static/htmx-4.0.1.min.js"
    plain, packed = client.get(path), client.get(path, headers=GZIP)
    for _ in range(2):
        smaller = client.get(path, headers={"Accept-Encoding": "gzip, deflate, br, zstd"})
        assert smaller.headers["Content-Encoding"] == "br"
        assert brotli.decompress(smaller.data) == plain.data
        assert len(smaller.data) < len(packed.data)


def test_a_file_that_is_held_is_not_sent_again(client: FlaskClient) -> None:
    first = client.get("/static/allgone.css", headers=GZIP)
    again = client.get("/static/allgone.css", headers={**GZIP, "If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.data) == (304, b"")


def test_answers_that_are_not_pages_go_as_they_are(
    client: FlaskClient, sign_in: SignIn, alice: Player, resources: Resources
) -> None:
    for number in range(9):
        talk = alice.converse(f"With a file {number}")
    key = attach(resources, alice, talk, "a.html", b"<p>" * 5000, "text/html")
    sign_in(client, alice)
    asked = [(f"/conversations/{talk}/artifacts/{key}", {}), ("/v1/sessions", alice.token())]
    for path, headers in asked:
        answer = client.get(path, headers={**GZIP, **headers})
        assert answer.status_code == 200
        assert "Content-Encoding" not in answer.headers
    for query in ("/?q=words", "/?cursor=x"):  # words of whoever made the link, beside what is the reader's
        assert "Content-Encoding" not in client.get(query, headers=GZIP).headers
    assert (
        "Content-Encoding"
        in client.get("/history/poll?version=0", headers={**GZIP, "HX-Request": "true"}).headers
    )
    part = client.get("/static/allgone.css", headers={**GZIP, "Range": "bytes=0-9"})
    assert (part.status_code, len(part.data)) == (206, 10)

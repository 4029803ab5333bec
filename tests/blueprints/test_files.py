"""Files that are looked at in place: which are, by their bytes, and with what headers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from flask.testing import FlaskClient

from models import preview
from models.append import Draft
from models.ids import new_id
from tasks.resources import Resources
from tests.attachments import attach
from tests.blueprints.test_conversation import HTMX, main
from tests.cast import Player

SignIn = Callable[[FlaskClient, Player], None]
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 40


@pytest.fixture
def reader(client: FlaskClient, sign_in: SignIn, alice: Player) -> FlaskClient:
    """Alice at a browser."""
    sign_in(client, alice)
    return client


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0" + b"\0" * 20, "image/jpeg"),
        (b"GIF89a" + b"\0" * 20, "image/gif"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
    ],
)
def test_an_image_is_served_as_what_its_bytes_are_and_can_do_nothing(
    reader: FlaskClient, alice: Player, resources: Resources, head: bytes, kind: str
) -> None:
    talk = alice.converse("Look")
    key = attach(resources, alice, talk, "a.jpg", head, "image/jpg")
    answer = reader.get(f"/conversations/{talk}/artifacts/{key}/picture")
    assert answer.data == head
    headers = answer.headers
    assert headers["Content-Type"] == kind
    assert headers["Content-Disposition"].startswith("attachment")
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
    assert headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    ("name", "kind", "data"),
    [
        ("a.svg", "image/svg+xml", b"<svg onload='alert(1)'/>"),
        ("a.png", "image/png", b"<svg onload='alert(1)'/>"),
        ("a.png", "image/png", b""),
        ("a.png", "text/html", PNG),
        ("a.html", "text/html", b"<b>x"),
    ],
)
def test_what_only_calls_itself_an_image_is_not_shown(
    reader: FlaskClient, alice: Player, resources: Resources, name: str, kind: str, data: bytes
) -> None:
    talk = alice.converse("Look")
    key = attach(resources, alice, talk, name, data, kind)
    assert reader.get(f"/conversations/{talk}/artifacts/{key}/picture").status_code == 404
    if not kind.startswith("image/png"):
        page = main(reader.get(f"/conversations/{talk}").text)
        assert "<img" not in page
        assert "/text" not in page


def test_a_text_is_shown_escaped_up_to_its_bound(
    reader: FlaskClient, alice: Player, resources: Resources
) -> None:
    talk = alice.converse("Look")
    data = b"<script>alert(1)</script>\n" + b"x" * preview.TEXT_MAX + b"the end"
    key = attach(resources, alice, talk, "a.csv", data, "text/csv")
    address = f"/conversations/{talk}/artifacts/{key}/text"
    part = reader.get(address, headers=HTMX).text
    assert "&lt;script&gt;" in part
    assert "<script" not in part
    assert "the end" not in part
    assert "This is its beginning" in part
    assert "<html" not in part
    assert "<html" in reader.get(address).text
    assert f'data-text="{address}"' in main(reader.get(f"/conversations/{talk}").text)


@pytest.mark.parametrize(
    ("name", "kind", "data", "status"),
    [
        ("a.json", "application/json", b"{}", 200),
        ("a.py", "application/octet-stream", b"x = 1", 200),
        ("a.txt", "text/plain; charset=latin-1", b"caf\xe9", 200),
        ("a.txt", "text/plain", b"a\0b", 404),
        ("a.bin", "application/octet-stream", b"x", 404),
        ("a.html", "text/html", b"<b>", 404),
        ("a.svg", "image/svg+xml", b"<svg/>", 404),
    ],
)
def test_which_files_are_texts(
    reader: FlaskClient, alice: Player, resources: Resources, name: str, kind: str, data: bytes, status: int
) -> None:
    talk = alice.converse("Look")
    key = attach(resources, alice, talk, name, data, kind)
    assert reader.get(f"/conversations/{talk}/artifacts/{key}/text").status_code == status


def test_they_are_their_owners_and_their_conversations_alone(
    reader: FlaskClient, sign_in: SignIn, alice: Player, mallory: Player, resources: Resources
) -> None:
    talk, other = alice.converse("One"), alice.converse("Two")
    key = attach(resources, alice, talk, "a.png", PNG, "image/png")
    stranger = reader.application.test_client()
    sign_in(stranger, mallory)
    for what in ("picture", "text"):
        assert stranger.get(f"/conversations/{talk}/artifacts/{key}/{what}").status_code == 404
        assert reader.get(f"/conversations/{other}/artifacts/{key}/{what}").status_code == 404
        assert reader.get(f"/conversations/{talk}/artifacts/{new_id()}/{what}").status_code == 404
        assert reader.get(f"/conversations/{talk}/artifacts/x/{what}").status_code == 404
    resources.store.delete([key])
    assert reader.get(f"/conversations/{talk}/artifacts/{key}/picture").status_code == 404


def test_a_file_is_shown_once_where_a_message_names_it_and_by_markdown(
    reader: FlaskClient, alice: Player, resources: Resources
) -> None:
    talk = alice.converse()
    key = attach(resources, alice, talk, "plot.png", PNG, "image/png")
    picture = f'src="/conversations/{talk}/artifacts/{key}/picture"'
    page = main(reader.get(f"/conversations/{talk}").text)
    assert page.count(picture) == 1
    alice.say(talk, Draft("user_message", {"content": [{"type": "image", "artifact_id": key}]}))
    alice.say(talk, Draft("assistant_message", {"content": "![x](sandbox:/mnt/data/plot.png)"}))
    news = reader.get(f"/conversations/{talk}/part?after=1").text
    assert news.count(picture) == 2
    foreign = attach(resources, alice, alice.converse("Other"), "other.png", PNG, "image/png")
    alice.say(talk, Draft("assistant_message", {"content": f"![x](artifact:{foreign})"}))
    assert foreign not in reader.get(f"/conversations/{talk}").text.partition("<main")[2]

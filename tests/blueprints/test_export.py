"""Exports as a browser asks for them."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable

import pytest
from flask.testing import FlaskClient

from blueprints import export
from models.ids import new_id
from tests.cast import Player

SignIn = Callable[[FlaskClient, Player], None]


@pytest.fixture
def reader(client: FlaskClient, sign_in: SignIn, alice: Player) -> FlaskClient:
    """Alice at a browser."""
    sign_in(client, alice)
    return client


def test_one_conversation_is_a_file_named_after_it(reader: FlaskClient, alice: Player) -> None:
    talk = alice.converse("Plan: the trip?", "Yes")
    answer = reader.get(f"/conversations/{talk}/export.json")
    assert answer.headers["Content-Disposition"].startswith('attachment; filename="Plan_ the trip_.json"')
    assert answer.headers["Cache-Control"] == "no-store"
    (told,) = json.loads(answer.data)
    assert told["title"] == "Plan: the trip?"
    page = reader.get(f"/conversations/{talk}/export.md")
    assert page.text.startswith("# Plan: the trip?")
    assert page.content_type.startswith("text/markdown")
    assert reader.get(f"/conversations/{talk}/export.html").status_code == 404


def test_the_page_leads_to_both(reader: FlaskClient, alice: Player) -> None:
    talk = alice.converse("Here")
    html = reader.get(f"/conversations/{talk}").text
    for ending in ("md", "json"):
        assert f'href="/conversations/{talk}/export.{ending}"' in html
    assert "/export/conversations.zip" in reader.get("/account").text


def test_all_of_them_are_one_archive(reader: FlaskClient, alice: Player) -> None:
    for title in ("One", "Two"):
        alice.converse(title)
    answer = reader.get("/export/conversations.zip")
    assert answer.content_type == "application/zip"
    told = json.loads(zipfile.ZipFile(io.BytesIO(answer.data)).read("conversations.json"))
    assert [one["title"] for one in told] == ["Two", "One"]
    pages = zipfile.ZipFile(io.BytesIO(reader.get("/export/conversations.zip?format=markdown").data))
    assert len(pages.namelist()) == 2
    assert reader.get("/export/conversations.zip?format=pdf").status_code == 400


def test_strangers_get_nothing(client: FlaskClient, sign_in: SignIn, alice: Player, mallory: Player) -> None:
    talk = alice.converse("Secret")
    assert client.get("/export/conversations.zip").status_code == 303
    sign_in(client, mallory)
    for name in (talk, new_id(), "nonsense"):
        for ending in ("md", "json"):
            answer = client.get(f"/conversations/{name}/export.{ending}")
            assert answer.status_code == 404
            assert b"Secret" not in answer.data


def test_so_many_at_once_and_no_more(reader: FlaskClient, alice: Player) -> None:
    alice.converse("One")
    open_ones = [reader.get("/export/conversations.zip", buffered=False) for _ in range(export.AT_ONCE)]
    refused = reader.get("/export/conversations.zip")
    assert refused.status_code == 429
    assert refused.headers["Retry-After"] == "60"
    for one in open_ones:
        one.close()
    assert reader.get("/export/conversations.zip").status_code == 200

"""An artifact's headers, ranges and names; what goes over real sockets is in tests/journeys/test_api_artifacts.py."""

from __future__ import annotations

import hashlib
from urllib.parse import quote

import pytest
from flask.testing import FlaskClient

from models.bytestore import Missing
from tasks.resources import Resources
from tests.cast import Player
from tests.models.graph import attach

DATA = bytes(range(100))


@pytest.fixture
def kept(resources: Resources, alice: Player) -> str:
    """The path of an artifact that holds DATA."""
    return f"/v1/artifacts/{attach(resources, alice, alice.converse('Hello'), DATA)[0]}"


def test_bytes_come_back_as_an_attachment_that_nobody_sniffs(client: FlaskClient, alice: Player) -> None:
    token, session_id = alice.token(), alice.converse()
    sent = {**token, "Content-Type": "text/html; charset=utf-8"}
    made = client.post(
        f"/v1/sessions/{session_id}/artifacts?name=a.html", data=b"<script>", headers=sent
    ).json
    assert made is not None
    assert (made["size"], made["sha256"]) == (8, hashlib.sha256(b"<script>").hexdigest())
    answer = client.get(f"/v1/artifacts/{made['id']}", headers=token)
    assert answer.data == b"<script>"
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Content-Disposition"].startswith("attachment;")
    assert "sandbox" in answer.headers["Content-Security-Policy"]
    assert answer.headers["Content-Length"] == "8"


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/passwd",
        'a"b.txt',
        "a\r\nX-Evil: 1",
        "C:\\con",
        "é中😀.png",
        ";filename=x",
        "%2e%2e%2f",
        ".",
        "n" * 255,
    ],
)
def test_a_hostile_name_is_kept_and_never_trusted(client: FlaskClient, alice: Player, name: str) -> None:
    token, session_id = alice.token(), alice.converse()
    path = f"/v1/sessions/{session_id}/artifacts?name={quote(name, safe='')}"
    made = client.post(path, data=b"x", headers=token).json
    assert made is not None
    assert made["name"] == name
    answer = client.get(f"/v1/artifacts/{made['id']}", headers=token)
    said = answer.headers["Content-Disposition"]
    assert said.isascii()
    assert said.isprintable()
    plain = said.split('"')[1]
    assert not set(plain) & set('/\\"\r\n;')
    assert said.endswith(f"filename*=UTF-8''{quote(name, safe='')}")
    assert "X-Evil" not in answer.headers


@pytest.mark.parametrize(
    ("asked", "status", "said", "data"),
    [
        ("bytes=0-0", 206, "bytes 0-0/100", DATA[:1]),
        ("bytes=0-", 206, "bytes 0-99/100", DATA),
        ("bytes=10-19", 206, "bytes 10-19/100", DATA[10:20]),
        ("bytes=90-500", 206, "bytes 90-99/100", DATA[90:]),
        ("bytes=-5", 206, "bytes 95-99/100", DATA[95:]),
        ("bytes=-500", 206, "bytes 0-99/100", DATA),
        ("bytes=100-", 416, "bytes */100", None),
        ("bytes=500-600", 416, "bytes */100", None),
        ("bytes=0-1,5-6", 200, None, DATA),
        ("bytes=9-1", 200, None, DATA),
        ("bytes=a-b", 200, None, DATA),
        ("bytes=", 200, None, DATA),
        ("bytes", 200, None, DATA),
        ("items=0-1", 200, None, DATA),
        ("bytes=" + "9" * 5000 + "-", 200, None, DATA),
    ],
)
def test_one_range_is_given_and_what_is_none_is_the_whole(
    client: FlaskClient,
    alice: Player,
    kept: str,
    asked: str,
    status: int,
    said: str | None,
    data: bytes | None,
) -> None:
    answer = client.get(kept, headers={**alice.token(), "Range": asked})
    assert answer.status_code == status
    assert answer.headers.get("Content-Range") == said
    if data is None:
        assert answer.json is not None
        assert answer.json["code"] == "invalid"
    else:
        assert answer.data == data
        assert answer.headers["Content-Length"] == str(len(data))


def test_if_range_gives_the_range_of_the_same_bytes_alone(
    client: FlaskClient, alice: Player, kept: str
) -> None:
    token = alice.token()
    tag = client.get(kept, headers=token).headers["ETag"]
    for validator, status in (
        (tag, 206),
        ('"other"', 200),
        (f"W/{tag}", 200),
        ("Mon, 30 Nov 2026 00:00:00 GMT", 200),
    ):
        answer = client.get(kept, headers={**token, "Range": "bytes=0-0", "If-Range": validator})
        assert answer.status_code == status, validator


def test_a_range_of_nothing_and_a_head(
    client: FlaskClient, resources: Resources, alice: Player, kept: str
) -> None:
    token = alice.token()
    (empty,) = attach(resources, alice, alice.converse(), b"")
    whole = client.get(f"/v1/artifacts/{empty}", headers=token)
    assert (whole.status_code, whole.data) == (200, b"")
    assert client.get(f"/v1/artifacts/{empty}", headers={**token, "Range": "bytes=0-0"}).status_code == 416
    head = client.head(kept, headers=token)
    assert (head.status_code, head.data, head.headers["Content-Length"]) == (200, b"", "100")
    part = client.head(kept, headers={**token, "Range": "bytes=0-9"})
    assert (part.status_code, part.headers["Content-Length"]) == (206, "10")


def test_after_the_deletion_neither_row_nor_bytes_are_there(
    client: FlaskClient, resources: Resources, alice: Player
) -> None:
    token, session_id = alice.token(), alice.converse()
    made = client.post(f"/v1/sessions/{session_id}/artifacts", data=b"x", headers=token).json
    assert made is not None
    assert client.delete(f"/v1/sessions/{session_id}", headers=token).status_code == 204
    assert client.get(f"/v1/artifacts/{made['id']}", headers=token).status_code == 404
    assert client.post(f"/v1/sessions/{session_id}/artifacts", data=b"x", headers=token).status_code == 404
    with pytest.raises(Missing):
        resources.store.size(made["id"])

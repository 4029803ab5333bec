"""The Import page as a client without a browser sees it: what is taken, what is refused, and by whom."""

from __future__ import annotations

import dataclasses
import io
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from flask.testing import FlaskClient
from sqlalchemy import text
from sqlalchemy.orm import Session
from werkzeug.test import TestResponse

from models import import_requests
from models.ids import new_id
from models.settings import Settings
from tasks import upkeep
from tasks.deletion import delete_now
from tasks.imports.jobs import work_on
from tasks.outbox import drain_due
from tasks.resources import Resources
from tests.cast import Cast, Player
from tests.models.graph import count, rows, stored
from tests.tasks.imports.exports import chatgpt
from tests.tasks.imports.histories import conversations

SignIn = Callable[[FlaskClient, Player], None]
HTMX = {"HX-Request": "true"}
EXPORT = orjson.dumps([chatgpt(1), chatgpt(2)])


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return dataclasses.replace(settings, import_max_mib=1)


@pytest.fixture
def reader(client: FlaskClient, sign_in: SignIn, alice: Player) -> FlaskClient:
    """Alice at a browser."""
    sign_in(client, alice)
    return client


def token(client: FlaskClient) -> str:
    return re.findall(r'name="csrf_token" value="([^"]+)"', client.get("/import").text)[0]


def send(
    client: FlaskClient, data: bytes = EXPORT, name: str = "export.json", **options: Any
) -> TestResponse:
    """Posts the form of the page."""
    fields = {"csrf_token": token(client), **options.pop("fields", {})}
    form = {**fields, "file": (io.BytesIO(data), name)}
    return client.post("/import", data=form, content_type="multipart/form-data", **options)


def import_id(answer: TestResponse) -> str:
    assert answer.status_code == 303, answer.text
    return str(answer.headers["Location"]).rpartition("/")[2]


def post(client: FlaskClient, path: str, **fields: str) -> TestResponse:
    return client.post(path, data={"csrf_token": token(client), **fields})


# -- what is taken ------------------------------------------------------------------------------------------------


def test_a_file_is_taken_queued_imported_and_told(
    reader: FlaskClient, resources: Resources, alice: Player
) -> None:
    made = import_id(send(reader))
    (job,) = resources.imports.get_jobs()
    assert list(job.args) == [made]
    assert "Waiting to begin" in reader.get(f"/import/{made}").text
    work_on(resources, made)
    page = reader.get(f"/import/{made}").text
    assert "Import finished" in page
    assert "question 2" in page
    assert len(conversations(resources, alice)) == 2


def test_a_queued_import_says_how_many_are_ahead(reader: FlaskClient, resources: Resources) -> None:
    made = [import_id(send(reader)) for _ in range(3)]
    said = [reader.get(f"/import/{one}").text for one in made]
    assert "Its import begins in a moment." in said[0]
    assert "Another import is ahead of it" in said[1]
    assert "2 imports are ahead of it" in said[2]
    work_on(resources, made[0])
    assert "Another import is ahead of it" in reader.get(f"/import/{made[2]}").text


def test_trying_again_is_offered_where_it_may_help(reader: FlaskClient, resources: Resources) -> None:
    damaged = import_id(send(reader, orjson.dumps([{"mapping": {}, "title": "damaged"}, chatgpt(1)])))
    work_on(resources, damaged)
    page = reader.get(f"/import/{damaged}").text
    assert "damaged in the file" in page
    assert "Try again what failed" not in page
    refused_one = import_id(send(reader, orjson.dumps([chatgpt(2), chatgpt(3)])))
    with Session(resources.engine) as db, db.begin():
        db.execute(
            text(
                "CREATE FUNCTION pg_temp_refuse() RETURNS trigger AS $$ BEGIN"
                " IF NEW.title = 'question 3' THEN RAISE EXCEPTION 'no'; END IF; RETURN NEW; END $$ LANGUAGE plpgsql"
            )
        )
        db.execute(
            text(
                "CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON sessions"
                " FOR EACH ROW EXECUTE FUNCTION pg_temp_refuse()"
            )
        )
    try:
        work_on(resources, refused_one)
    finally:
        with Session(resources.engine) as db, db.begin():
            db.execute(text("DROP TRIGGER refuse ON sessions"))
            db.execute(text("DROP FUNCTION pg_temp_refuse"))
    assert "Try again what failed" in reader.get(f"/import/{refused_one}").text


def test_a_deletion_takes_the_export_along_that_is_kept_for_another_try(
    reader: FlaskClient, resources: Resources, alice: Player
) -> None:
    """FAULTS.md S1 and S10: what is deleted is in no file of this server, the one it came by included."""
    made = import_id(send(reader, orjson.dumps([{"mapping": {}, "title": "damaged"}, chatgpt(1)])))
    work_on(resources, made)
    drain_due(resources)
    assert len(stored(resources)) == 1
    (held,) = conversations(resources, alice)
    delete_now(resources, alice.owner, held.id)
    drain_due(resources)
    assert stored(resources) == []
    assert count(resources, "outbox") == 0
    assert "Import again" not in reader.get(f"/import/{made}").text


def test_an_export_that_is_worked_on_during_a_deletion_goes_soon_after(
    reader: FlaskClient,
    resources: Resources,
    alice: Player,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = alice.converse("deleted meanwhile")
    made = import_id(send(reader, orjson.dumps([{"mapping": {}, "title": "damaged"}, chatgpt(1)])))
    delete_now(resources, alice.owner, other)  # its import is not over, so the file is needed yet
    work_on(resources, made)
    drain_due(resources)
    assert len(stored(resources)) == 1
    monkeypatch.setattr(upkeep, "in_this_process", lambda: resources)
    upkeep.let_go_of_files()
    drain_due(resources)
    assert stored(resources) == []


def test_another_readers_deletion_takes_nothing_along(
    reader: FlaskClient, resources: Resources, cast: Cast
) -> None:
    made = import_id(send(reader, orjson.dumps([{"mapping": {}, "title": "damaged"}, chatgpt(1)])))
    work_on(resources, made)
    delete_now(resources, cast.bob.owner, cast.bob.converse("his own"))
    drain_due(resources)
    assert len(stored(resources)) == 1


def test_htmx_is_told_where_to_go(reader: FlaskClient) -> None:
    answer = send(reader, headers=HTMX)
    assert answer.status_code == 200
    assert answer.headers["HX-Redirect"].startswith("/import/")


def test_what_was_deleted_here_is_asked_for_by_a_field(reader: FlaskClient, resources: Resources) -> None:
    import_id(send(reader, fields={"again": "yes"}))
    assert rows(resources, "SELECT again FROM imports") == [(True,)]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("../../etc/passwd", "passwd"),
        ("a\u202ecod.json", "acod.json"),
        ("x" * 400 + ".json", "x" * 250 + ".json"),
        ("…", "…"),
    ],
)
def test_a_files_name_is_shown_and_nothing_else(
    reader: FlaskClient, resources: Resources, given: str, kept: str
) -> None:
    import_id(send(reader, name=given))
    assert rows(resources, "SELECT file_name FROM imports") == [(kept,)]


def test_a_title_from_a_strangers_file_is_only_text(reader: FlaskClient, resources: Resources) -> None:
    made = import_id(send(reader, orjson.dumps([{"mapping": {}, "title": "<script>x</script>"}, chatgpt(1)])))
    work_on(resources, made)
    page = reader.get(f"/import/{made}").text
    assert "<script>x" not in page
    assert "&lt;script&gt;x" in page


def test_an_unchanged_progress_is_204(reader: FlaskClient, resources: Resources) -> None:
    made = import_id(send(reader))
    seen = re.findall(r"progress\?seen=([0-9a-f]+)", reader.get(f"/import/{made}").text)[0]
    for _ in range(2):
        assert reader.get(f"/import/{made}/progress?seen={seen}", headers=HTMX).status_code == 204
    work_on(resources, made)
    answer = reader.get(f"/import/{made}/progress?seen={seen}", headers=HTMX)
    assert answer.status_code == 200
    assert "data-live" not in answer.text


# -- what is refused ----------------------------------------------------------------------------------------------


def refused(reader: FlaskClient, resources: Resources, answer: TestResponse, status: int, said: str) -> None:
    assert answer.status_code == status, answer.text
    assert said in answer.text
    drain_due(resources)
    assert count(resources, "imports") == 0
    assert stored(resources) == []
    assert count(resources, "outbox") == 0


def test_an_empty_file_and_none_at_all(reader: FlaskClient, resources: Resources) -> None:
    refused(reader, resources, send(reader, b""), 400, "This file is empty")
    refused(reader, resources, send(reader, b"", ""), 400, "No file was chosen")
    refused(reader, resources, send(reader, b"", headers=HTMX), 400, "This file is empty")


def test_a_file_over_the_bound(reader: FlaskClient, resources: Resources) -> None:
    for size in ((1 << 20) + 1, 3 << 20):
        refused(
            reader,
            resources,
            send(reader, b"x" * size),
            413,
            "larger than this server takes, which is 1.0 MB",
        )
    assert send(reader, EXPORT + b" " * ((1 << 20) - len(EXPORT))).status_code == 303


def test_a_form_of_another_site_or_another_sign_in(reader: FlaskClient, resources: Resources) -> None:
    for wrong in ("", "x", token(reader)[::-1]):
        form = {"csrf_token": wrong, "file": (io.BytesIO(EXPORT), "a.json")}
        answer = reader.post("/import", data=form, content_type="multipart/form-data")
        refused(reader, resources, answer, 403, "nothing was done")
    late = [
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.json"\r\n\r\n' + EXPORT,
        b'--b\r\nContent-Disposition: form-data; name="csrf_token"\r\n\r\n' + token(reader).encode(),
        b"--b--\r\n",
    ]
    answer = reader.post("/import", data=b"\r\n".join(late), content_type="multipart/form-data; boundary=b")
    refused(reader, resources, answer, 403, "nothing was done")


def test_another_kind_of_body(reader: FlaskClient, resources: Resources) -> None:
    answer = reader.post("/import", data=EXPORT, content_type="application/json")
    refused(reader, resources, answer, 400, "Load the page again")


def test_a_store_that_is_full_or_away(reader: FlaskClient, resources: Resources, tmp_path: Path) -> None:
    folder = Path(resources.settings.object_store_url.removeprefix("file://"))
    shutil.move(folder, tmp_path / "away")
    for headers in ({}, HTMX):
        answer = send(reader, headers=headers)
        assert answer.status_code == 503
        assert "nothing here was changed" in answer.text
    shutil.move(tmp_path / "away", folder)
    assert count(resources, "imports") == 0
    assert [row[0] for row in rows(resources, "SELECT reserved FROM outbox")] == [False, False]


def test_too_many_at_once(reader: FlaskClient, resources: Resources) -> None:
    for _ in range(import_requests.AT_ONCE):
        import_id(send(reader))
    answer = send(reader)
    assert answer.status_code == 409
    assert "Wait until one has ended" in answer.text
    assert count(resources, "imports") == import_requests.AT_ONCE
    assert post(reader, "/import/example").status_code == 409


def test_who_is_signed_out_is_sent_to_sign_in_before_a_byte_is_read(
    client: FlaskClient, resources: Resources
) -> None:
    form = {"csrf_token": "x", "file": (io.BytesIO(EXPORT), "a.json")}
    answer = client.post("/import", data=form, content_type="multipart/form-data")
    assert (answer.status_code, answer.headers["Location"]) == (303, "/sign-in")
    answer = client.post("/import", data={}, content_type="multipart/form-data", headers=HTMX)
    assert answer.headers["HX-Redirect"] == "/sign-in"
    for path in ("/import", "/import/" + new_id()):
        assert client.get(path).status_code == 303


ROUTES = [
    ("GET", ""),
    ("GET", "/progress"),
    ("GET", "/undo"),
    ("POST", "/stop"),
    ("POST", "/again"),
    ("POST", "/undo"),
    ("POST", "/forget"),
]


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_another_ones_import_and_none_are_answered_alike(
    reader: FlaskClient,
    resources: Resources,
    sign_in: SignIn,
    bob: Player,
    mallory: Player,
    method: str,
    path: str,
) -> None:
    made = import_id(send(reader))
    work_on(resources, made)
    for player in (bob, mallory):
        stranger = reader.application.test_client()
        sign_in(stranger, player)
        data = {"csrf_token": token(stranger)} if method == "POST" else {}
        answers = [
            stranger.open(f"/import/{some}{path}", method=method, data=data)
            for some in (made, new_id(), "nonsense")
        ]
        assert {one.status_code for one in answers} == {404}
        assert len({re.sub(r"\s+", " ", one.text) for one in answers}) == 1
    assert len(rows(resources, "SELECT * FROM imports")) == 1


def test_every_post_needs_its_token(reader: FlaskClient, resources: Resources) -> None:
    made = import_id(send(reader))
    for path in ("/example", f"/{made}/stop", f"/{made}/again", f"/{made}/undo", f"/{made}/forget"):
        assert reader.post(f"/import{path}").status_code == 403
    assert rows(resources, "SELECT state FROM imports") == [("queued",)]


def test_an_undo_that_is_too_early_or_too_late_is_refused_with_its_reason(
    reader: FlaskClient, resources: Resources
) -> None:
    made = import_id(send(reader))
    answer = post(reader, f"/import/{made}/undo")
    assert (answer.status_code, "Stop it first" in answer.text) == (409, True)
    assert post(reader, f"/import/{made}/forget").status_code == 409
    work_on(resources, made)
    assert post(reader, f"/import/{made}/undo").status_code == 303
    assert post(reader, f"/import/{made}/undo").status_code == 303  # the same yes from a second tab
    work_on(resources, made)
    answer = post(reader, f"/import/{made}/undo")
    assert (answer.status_code, "Nothing that this import made" in answer.text) == (409, True)
    assert post(reader, f"/import/{made}/forget").status_code == 303
    assert count(resources, "imports") == 0


def test_a_file_that_is_not_kept_any_more_is_said_to_be_gone(
    reader: FlaskClient, resources: Resources
) -> None:
    made = import_id(send(reader))
    work_on(resources, made)
    answer = post(reader, f"/import/{made}/again")
    assert answer.status_code == 409
    assert "Choose it again" in answer.text


def test_the_example_is_made_once_and_led_to(
    reader: FlaskClient, resources: Resources, alice: Player
) -> None:
    places = {post(reader, "/import/example").headers["Location"] for _ in range(2)}
    (held,) = conversations(resources, alice)
    assert places == {f"/conversations/{held.id}"}
    assert held.title.startswith("Example:")
    assert rows(resources, "SELECT kind, state, imported FROM imports ORDER BY id") == [
        ("example", "done", 1),
        ("example", "done", 0),
    ]
    with Session(resources.engine) as db:
        assert [
            import_requests.made_by(db, alice.owner, row.id)
            for row in import_requests.listed(db, alice.owner)
        ] == [
            0,
            1,
        ]

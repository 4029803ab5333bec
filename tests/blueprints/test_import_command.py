"""`flask --app app import`: what it prints, and how it ends (PRODUCT.md 2 and 6)."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from flask import Flask
from sqlalchemy.orm import Session

from models import import_requests, imports
from models.settings import Settings
from tasks.imports.jobs import work_on
from tasks.resources import Resources
from tests.cast import Cast, Player
from tests.tasks.imports.exports import chatgpt, claude
from tests.tasks.imports.histories import conversations, delete, put

ROOT = Path(__file__).resolve().parents[2]
FLASK = [sys.executable, "-m", "flask", "--app", "app"]


def call(app: Flask, *words: str, code: int = 0) -> Result:
    done = app.test_cli_runner().invoke(args=["import", *words])
    assert done.exit_code == code, (done.output, done.exception)
    assert "Traceback" not in done.output
    return done


def document(app: Flask, *words: str, code: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(call(app, *words, "--json", code=code).stdout)
    return found


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return put(tmp_path / "conversations.json", chatgpt(1), chatgpt(2), {"mapping": {}, "title": "gone"})


def test_the_document_has_its_keys_and_counts_that_add_up(app: Flask, alice: Player, file: Path) -> None:
    found = document(app, str(file), "--user", alice.email)
    assert list(found) == [
        "imported",
        "already_there",
        "skipped",
        "failed",
        "total",
        "failures",
        "skips",
        "replaced_characters",
        "files_left",
        "ended_early",
    ]
    assert [found[key] for key in list(found)[:5]] == [2, 0, 0, 1, 3]
    assert found["failures"] == [{"conversation": "gone", "reason": "no messages"}]
    assert found["ended_early"] is None
    again = document(app, str(file), "--user", alice.email)
    assert [again[key] for key in list(again)[:5]] == [0, 2, 0, 1, 3]


def test_it_goes_to_the_user_that_is_named_and_to_no_other(
    app: Flask, resources: Resources, cast: Cast, file: Path
) -> None:
    call(app, str(file), "--user", cast.bob.email)
    assert len(conversations(resources, cast.bob)) == 2
    assert conversations(resources, cast.alice) == []


def test_a_person_reads_counts_failures_and_what_to_do(
    app: Flask, resources: Resources, alice: Player, file: Path
) -> None:
    said = call(app, str(file), "--user", alice.email).output
    assert said == (
        "2 imported, 0 already there, 0 skipped, 1 failed: 3 in all.\n  failed: gone: no messages\n"
    )
    delete(resources, alice, conversations(resources, alice)[0].id)
    said = call(app, str(file), "--user", alice.email).output
    assert "0 imported, 1 already there, 1 skipped, 1 failed: 3 in all." in said
    assert "--again imports them" in said
    assert call(app, str(file), "--user", alice.email, "--again").output.startswith("1 imported, 1 already")


def test_of_many_failures_a_person_is_shown_some_and_a_program_all(
    app: Flask, alice: Player, tmp_path: Path
) -> None:
    file = put(tmp_path / "f.json", chatgpt(0), *({"mapping": {}, "title": f"t{n}"} for n in range(30)))
    said = call(app, str(file), "--user", alice.email).output
    assert said.count("  failed: ") == 20
    assert "and 10 more; --json names each" in said
    assert len(document(app, str(file), "--user", alice.email)["failures"]) == 30


def test_a_title_moves_no_cursor(app: Flask, alice: Player, tmp_path: Path) -> None:
    file = put(tmp_path / "f.json", {"mapping": {}, "title": "\x1b[2Jred\u202e"}, chatgpt(1))
    said = call(app, str(file), "--user", alice.email).output
    assert "failed: \ufffd[2Jred\ufffd: no messages" in said
    assert "\x1b" not in said


@pytest.mark.parametrize(
    ("name", "data", "word"),
    [
        ("letter.txt", b"Dear all,", "no conversation"),
        ("empty.json", b"", "empty"),
        ("missing.json", None, "no such file"),
        ("folder", ..., "folder"),
    ],
)
def test_a_file_of_no_known_kind_exits_1_with_its_reason(
    app: Flask, alice: Player, tmp_path: Path, name: str, data: Any, word: str
) -> None:
    path = tmp_path / name
    if data is ...:
        path.mkdir()
    elif data is not None:
        path.write_bytes(data)
    found = document(app, str(path), "--user", alice.email, code=1)
    assert (found["total"], found["failed"], found["imported"]) == (1, 1, 0)
    (failure,) = found["failures"]
    assert failure["conversation"] == name
    assert word in failure["reason"]
    assert word in call(app, str(path), "--user", alice.email, code=1).output


def test_an_unknown_user_exits_1_in_one_line(app: Flask, resources: Resources, file: Path) -> None:
    done = call(app, str(file), "--user", "nobody@example.com", "--json", code=1)
    assert done.stdout == ""
    assert done.stderr == "Error: There is no user 'nobody@example.com'.\n"


@pytest.mark.parametrize("words", [[], ["FILE"], ["--user", "a@b"], ["FILE", "--user", "a@b", "--sideways"]])
def test_wrong_words_exit_2(app: Flask, resources: Resources, words: list[str]) -> None:
    call(app, *words, code=2)


def test_an_import_that_ended_early_says_its_counts_and_exits_1(
    app: Flask, resources: Resources, alice: Player, file: Path
) -> None:
    made = """CREATE FUNCTION full() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.payload::text LIKE '%question 2%' THEN RAISE EXCEPTION 'no space' USING ERRCODE = '53100'; END IF;
        RETURN NEW; END $$;
        CREATE TRIGGER full_disk BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION full()"""
    made = made.replace("FUNCTION full()", "FUNCTION full_disk()").replace("%", "%%")
    with resources.engine.begin() as connection:
        connection.exec_driver_sql(made)
    try:
        done = call(app, str(file), "--user", alice.email, "--json", code=1)
    finally:
        with resources.engine.begin() as connection:
            connection.exec_driver_sql("DROP FUNCTION full_disk CASCADE")
    found = json.loads(done.stdout)
    assert (found["imported"], found["total"]) == (1, 1)
    assert found["ended_early"] == "PostgreSQL does not answer: no space"
    assert done.stderr == "Error: PostgreSQL does not answer: no space. Import the file again to go on.\n"


def environment(folder: Path, **more: str) -> dict[str, str]:
    return {**os.environ, "ALLGONE_DATA_DIR": str(folder), "TERM": "xterm", **more}


def test_the_bar_is_for_a_terminal(settings: Settings, alice: Player, file: Path) -> None:
    """Both while the engines of the data folder run for someone else, as they do while the product runs."""
    ours = environment(settings.data_dir, OBJECT_STORE_URL=settings.object_store_url)
    command = [*FLASK, "import", str(file), "--user", alice.email, "--json"]
    plain = subprocess.run(command, cwd=ROOT, env=ours, capture_output=True, timeout=60, check=True)
    assert json.loads(plain.stdout)["imported"] == 2
    assert plain.stderr == b""
    screen, terminal = pty.openpty()
    with subprocess.Popen(command, cwd=ROOT, env=ours, stdout=subprocess.PIPE, stderr=terminal) as child:
        os.close(terminal)
        out, _ = child.communicate(timeout=60)
    drawn = os.read(screen, 65536)
    os.close(screen)
    assert child.returncode == 0
    assert json.loads(out)["already_there"] == 2
    assert b"Import" in drawn


def test_it_works_while_nothing_runs(tmp_path: Path) -> None:
    ours = environment(tmp_path / "var", PUBLIC_URL="http://localhost")
    file = put(tmp_path / "f.json", claude())

    def flask(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*FLASK, *words], cwd=ROOT, env=ours, capture_output=True, text=True, timeout=120, check=False
        )

    for words in (("db", "upgrade"), ("user", "create", "a@example.com")):
        assert flask(*words).returncode == 0
    done = flask("import", str(file), "--user", "a@example.com", "--json")
    assert json.loads(done.stdout)["imported"] == 1
    assert done.stderr == ""


def test_an_import_by_the_command_is_listed_with_the_others_and_can_be_undone(
    app: Flask, resources: Resources, alice: Player, file: Path
) -> None:
    call(app, str(file), "--user", alice.email)
    with Session(resources.engine) as db:
        (row,) = import_requests.listed(db, alice.owner)
        assert (row.kind, row.state, row.file_name) == ("command", "done", "conversations.json")
        assert (row.imported, row.created, row.failed, row.total) == (2, 2, 1, 3)
        assert [one.conversation for one in import_requests.failures(db, row.id)] == ["gone"]
        import_requests.begin_undo(db, alice.owner, row.id)
        db.commit()
        work_on(resources, row.id)
    assert conversations(resources, alice) == []


def test_a_command_that_was_killed_is_said_to_be_interrupted(
    app: Flask, resources: Resources, alice: Player, file: Path
) -> None:
    with Session(resources.engine) as db, db.begin():
        made = import_requests.create(db, alice.id, kind="command", file_name="x", size=1).id
        imports.claim(db, made, made)
    with resources.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE imports SET lease_until = clock_timestamp()")
    work_on(resources, made)
    with Session(resources.engine) as db:
        row = import_requests.find(db, alice.owner, made)
        assert (row.state, row.error) == ("failed", "interrupted")

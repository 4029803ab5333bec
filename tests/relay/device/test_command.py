"""`python -m relay.device`: what each command prints, changes, and refuses (PRODUCT.md 4.5)."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import click
import pytest

from relay.device.command import device as command
from tests.relay.device.conftest import ROOT, Typed

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


def test_a_text_is_remembered_listed_recalled_and_forgotten(device: Typed) -> None:
    told = device.json("remember", "Ada bakes on Saturdays")
    key = sha256(b"Ada bakes on Saturdays").hexdigest()
    assert told == {"key": key, "workspace": "default"}
    (one,) = device.json("memories")["memories"]
    assert set(one) == {
        "key", "text", "workspace", "dataset", "logical_id", "source", "recorded_at", "recorded_device",
    }  # fmt: skip
    assert (one["key"], one["text"], one["workspace"], one["dataset"]) == (
        key, "Ada bakes on Saturdays", "default", "memories",
    )  # fmt: skip
    assert TIME.fullmatch(one["recorded_at"])
    assert device.json("recall", "bakes", "satur")["memories"] == [one]
    assert device.json("forget", key) == {"deleted": 1, "recorded": 1}
    assert device.json("memories") == {"memories": []}
    assert device.json("forget", key) == {"deleted": 0, "recorded": 0}
    status = device.json("status")
    assert status["deletion_records"] == 1
    assert status["workspaces"] == [{"name": "default", "memories": 0}]
    assert (status["device"]["name"], status["key_store"]) == ("laptop", "file")


def test_a_text_may_come_from_standard_input(device: Typed) -> None:
    told = device.json("remember", "-", stdin="two\nlines, é\n".encode())
    assert device.texts() == ["two\nlines, é"]
    assert told["key"] == sha256("two\nlines, é".encode()).hexdigest()
    assert "not UTF-8" in device.refused("remember", "-", stdin=b"\xff\xfe")
    assert "at most" in device.refused("remember", "-", stdin=b"x" * 2_000_000)
    assert "empty" in device.refused("remember", "-", stdin=b"\n")
    assert device.texts() == ["two\nlines, é"]


def test_forget_goes_through_every_workspace_unless_one_is_named(device: Typed) -> None:
    (key,) = device.remember("tea")
    device.remember("tea", workspace="work")
    assert device.json("forget", key, "--workspace", "work") == {"deleted": 1, "recorded": 1}
    assert device.texts() == ["tea"]
    device.remember("tea", workspace="work")
    assert device.json("forget", key) == {"deleted": 2, "recorded": 2}


def test_a_secret_is_masked_in_what_holds_it_and_no_record_is_kept(device: Typed) -> None:
    (key,) = device.remember("the gate opens with 4711-zebra")
    assert "does not hold" in device.refused("redact", key, "--text", "another")
    assert device.json("redact", key, "--text", "-", stdin=b"4711-zebra\n") == {"deleted": 1, "recorded": 0}
    assert device.texts() == ["the gate opens with [redacted]"]
    assert device.json("status")["deletion_records"] == 0
    assert not any(b"4711-zebra" in path.read_bytes() for path in device.home.iterdir())
    assert "no such memory" in device.refused("redact", key, "--text", "4711-zebra")


def test_moving_makes_the_workspace_and_records_nothing(device: Typed) -> None:
    (key,) = device.remember("tea")
    assert device.json("move", key, "--to", "work") == {"moved": 1, "workspace": "work"}
    assert device.texts("--workspace", "work") == ["tea"]
    assert device.json("status")["deletion_records"] == 0
    assert "Nothing was moved" in device.refused("move", "0" * 64, "--to", "work")


def test_workspaces_are_made_listed_and_removed_without_a_record(device: Typed) -> None:
    device.json("workspace", "create", "work")
    device.remember("tea", "bread", workspace="work")
    assert device.json("workspace", "list") == {"workspaces": [{"name": "work", "memories": 2}]}
    assert device.json("workspace", "remove", "work") == {"deleted": 2, "recorded": 0}
    assert device.json("workspace", "list") == {"workspaces": []}
    assert "no workspace" in device.refused("workspace", "remove", "work")
    assert "printable" in device.refused("workspace", "create", " ")


def test_a_wipe_empties_the_device_which_stays_itself_and_keeps_its_records(device: Typed) -> None:
    before = device.json("status")["device"]
    first, _ = device.remember("tea", "bread")
    device.json("forget", first)
    assert device.json("wipe", "--yes") == {"deleted": 1, "recorded": 0}
    after = device.json("status")
    assert (after["device"], after["deletion_records"]) == (before, 1)
    assert device.texts() == []


def test_an_export_comes_back_but_for_what_was_deleted_since(
    device: Typed, device_at: Callable[[str], Typed], tmp_path: Path
) -> None:
    """FAULTS.md D9: an old archive is no way around a deletion."""
    file = tmp_path / "memories.jsonl"
    first, _, _ = device.remember("tea", "bread", "salt")
    assert device.json("export", str(file)) == {"exported": 3}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    device.json("forget", first)
    told = device.json("import", str(file))
    assert told == {"imported": 0, "already_there": 2, "blocked": 1, "total": 3}
    assert sorted(device.texts()) == ["bread", "salt"]
    other = device_at("phone")
    assert other.json("import", str(file)) == {"imported": 3, "already_there": 0, "blocked": 0, "total": 3}
    assert {one["logical_id"] for one in other.json("memories")["memories"]} >= {
        one["logical_id"] for one in device.json("memories")["memories"]
    }


@pytest.mark.parametrize(
    "change",
    [
        lambda line: b"",
        lambda line: line[: len(line) // 2],
        lambda line: line.replace(b'"text": "tea"', b'"text": "tee"'),
        lambda line: line.replace(b'"dataset": "memories"', b'"dataset": "x"'),
        lambda line: b"[" * 100_000,
        lambda line: re.sub(rb'"made_at": "[^"]+"', b'"made_at": "0001-01-01T00:00:00Z"', line),
        lambda line: re.sub(rb'"made_at": "[^"]+"', b'"made_at": "2026-01-01T00:00:00"', line),
        lambda line: re.sub(rb'"logical_id": "[^"]+"', b'"logical_id": "00"', line),
    ],
)
def test_a_file_that_is_no_export_is_refused_by_its_line(
    device: Typed, tmp_path: Path, change: Callable[[bytes], bytes]
) -> None:
    file = tmp_path / "memories.jsonl"
    device.remember("tea")
    device.json("export", str(file))
    header, line = file.read_bytes().splitlines()
    file.write_bytes(header + b"\n" + change(line) + b"\n")
    assert "line 2" in device.refused("import", str(file))
    file.write_bytes(line + b"\n")
    assert "line 1" in device.refused("import", str(file))
    assert device.texts() == ["tea"]


def test_requests_are_listed_empty_and_unknown_ones_refused(device: Typed) -> None:
    assert device.json("refused") == {"requests": []}
    for verb in ("confirm", "keep"):
        assert "no open request" in device.refused(verb, "nothing")


@pytest.mark.parametrize(
    "words", [["forget", "abc"], ["forget"], ["remember"], ["nonsense"], ["redact", "0" * 64]]
)
def test_what_is_not_understood_exits_with_2(device: Typed, words: list[str]) -> None:
    assert "Usage:" in device.refused(*words, code=2)


def test_a_folder_without_a_device_says_how_to_make_one(tmp_path: Path) -> None:
    nobody = Typed(tmp_path / "nowhere")
    assert "init --name" in nobody.refused("memories")
    assert not nobody.home.exists()


def test_a_home_is_its_owners_alone_and_made_once(device: Typed) -> None:
    device.remember("tea")
    modes = {stat.S_IMODE(path.stat().st_mode) for path in device.home.iterdir()}
    assert (stat.S_IMODE(device.home.stat().st_mode), modes) == (0o700, {0o600})
    assert "already" in device.refused("init", "--name", "again")
    assert device.json("status")["device"]["name"] == "laptop"


@pytest.mark.parametrize("lost", ["memories.sqlite3", "sync-deletions.sqlite3"])
def test_d28_a_store_that_is_gone_is_not_begun_anew(device: Typed, lost: str) -> None:
    device.remember("tea")
    kept = (device.home / lost).read_bytes()
    (device.home / lost).unlink()
    assert f"{lost} is missing" in device.refused("memories")
    assert not (device.home / lost).exists()
    (device.home / lost).write_bytes(kept)
    assert device.texts() == ["tea"]


@pytest.mark.parametrize("file", ["memories.sqlite3", "sync-deletions.sqlite3", "device.json"])
def test_a_damaged_file_is_said_and_left(device: Typed, file: str) -> None:
    device.remember("tea")
    (device.home / file).write_bytes(b"no database at all" * 500)
    said = device.refused("memories")
    assert "damaged" in said or "cannot be read" in said
    assert (device.home / file).read_bytes() == b"no database at all" * 500


def test_ending_a_command_anywhere_leaves_a_sound_store(device: Typed) -> None:
    device.remember("tea")
    for delay in (0.1, 0.3, 0.5, 0.6, 0.7):
        words = [sys.executable, "-m", "relay.device", "--home", str(device.home), "remember", f"at {delay}"]
        begun = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            begun.wait(delay)
        except subprocess.TimeoutExpired:
            begun.send_signal(signal.SIGKILL)
        begun.wait(10)
    assert "tea" in device.texts()
    for one in device.json("memories")["memories"]:
        assert one["key"] == sha256(one["text"].encode()).hexdigest()


def test_a_reader_that_leaves_early_is_no_fault(device: Typed) -> None:
    device.remember(*(f"memory {number}" for number in range(3)))
    words = [sys.executable, "-m", "relay.device", "--home", str(device.home), "memories"]
    reader, writer = os.pipe()
    os.close(reader)
    begun = subprocess.run(words, cwd=ROOT, stdout=writer, stderr=subprocess.PIPE, timeout=30, check=False)
    os.close(writer)
    assert b"Traceback" not in begun.stderr


def test_every_command_is_documented_with_its_heading() -> None:
    page = (ROOT / "docs" / "device.md").read_text("utf-8")

    def names(group: click.Group, before: str = "") -> list[str]:
        found = []
        for name, one in group.commands.items():
            assert one.help, name
            found += names(one, f"{before}{name} ") if isinstance(one, click.Group) else [f"{before}{name}"]
        return found

    headings = set(re.findall(r"^### `((?:[a-z]+ ?)+)", page, re.MULTILINE))
    assert {one.strip() for one in headings} == set(names(command))


def test_json_is_ascii_so_that_any_terminal_can_carry_it(device: Typed) -> None:
    device.remember("é 馬")
    done = device.run("--json", "memories")
    assert done.stdout.isascii()
    assert json.loads(done.stdout)["memories"][0]["text"] == "é 馬"

"""A device whose process dies at each point of each verb: the next start goes on, and nothing is lost that should stay.

Real processes, ended without a word (`os._exit`) at the point; PRODUCT.md 4.4, Crash.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from models.errors import InvalidState
from models.memorystore import looking, opening, verbs
from models.memorystore.store import Place
from models.rules import key_of
from tests.models.memorystore.conftest import HERE, Home

ROOT = Path(__file__).resolve().parents[3]
DYING = """
import os, random, sys
from datetime import UTC, datetime
from pathlib import Path
from models.errors import InvalidState
from models.memorystore import verbs
from models.memorystore.opening import open_files
from models.memorystore.store import Place, Store
from models.recorded import Deleting
from models.rules import key_of
folder, point, verb = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
here = Place("default", "memories")
def at(passed):
    if passed == point:
        print("died", flush=True)
        os._exit(9)
now = lambda: datetime(2026, 11, 30, 13, tzinfo=UTC)
store = Store(open_files(folder).connect(), b"laptop".ljust(16, b"\\0"), now, random.Random(2).randbytes, at)
match verb:
    case "remember": verbs.remember(store, "new", here, "typed")
    case "forget": verbs.forget(store, here, [key_of("tea")])
    case "purge": verbs.forget_all(store, here, Deleting.PURGE)
    case "redact": verbs.redact(store, here, key_of("tea"), "masked")
    case "move": verbs.move(store, here, key_of("tea"), "work")
    case "settle": verbs.settle(store)
"""


def die(home: Home, point: str, verb: str) -> None:
    """Runs the verb in a process of its own, which ends at the point."""
    home.close()
    ran = subprocess.run(
        [sys.executable, "-c", DYING, str(home.folder), point, verb],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    home.again()
    assert (ran.returncode, ran.stdout) == (9, "died\n"), ran.stderr


def held(home: Home, workspace: str = "default") -> list[str]:
    return sorted(one.text for one in looking.memories(home.store, Place(workspace, "memories")))


@pytest.mark.parametrize(
    ("verb", "point", "before", "after"),
    [
        ("remember", "remembered", ["bread", "new", "tea"], ["bread", "new", "tea"]),
        ("forget", "recorded", ["bread", "tea"], ["bread"]),
        ("forget", "deleted", ["bread"], ["bread"]),
        ("purge", "recorded", ["bread", "tea"], []),
        ("purge", "deleted", [], []),
        ("redact", "marked", ["bread", "tea"], ["bread", "tea"]),  # the new text died with the process
        ("redact", "redacted", ["bread", "masked"], ["bread", "masked"]),
        ("move", "marked", ["bread", "tea"], ["bread"]),
        ("move", "moved", ["bread"], ["bread"]),
    ],
)
def test_the_next_start_goes_on(
    home: Home, verb: str, point: str, before: list[str], after: list[str]
) -> None:
    for said in ("tea", "bread"):
        verbs.remember(home.store, said, HERE, "typed")
    die(home, point, verb)
    assert held(home) == before
    verbs.settle(home.store)
    assert held(home) == after
    if verb == "move":
        assert held(home, "work") == ["tea"]
    assert verbs.settle(home.store) == 0  # and there is no more to do
    assert [one.text for one in looking.recall(home.store, "bread")] == [
        one for one in after if one == "bread"
    ]


def test_a_start_that_died_while_it_finished_a_deletion_is_finished_by_the_next(home: Home) -> None:
    for said in ("tea", "bread"):
        verbs.remember(home.store, said, HERE, "typed")
    die(home, "recorded", "forget")
    die(home, "settled", "settle")
    assert held(home) == ["bread"]
    assert verbs.settle(home.store) == 0
    with home.store.reading():
        assert home.store.whole()


def test_memories_brought_back_from_before_their_deletion_go_again(home: Home) -> None:
    """FAULTS.md D13, restore: one file of the two is older than the other."""
    for said in ("tea", "bread", "salt"):
        verbs.remember(home.store, said, HERE, "typed")
    verbs.forget(home.store, HERE, [key_of("salt")])
    home.close()
    older = (home.folder / "memories.sqlite3").read_bytes()
    home.again()
    verbs.forget(home.store, HERE, [key_of("tea")])
    verbs.move(home.store, HERE, key_of("bread"), "work")
    verbs.remember(home.store, "rice", HERE, "typed")
    home.close()
    (home.folder / "memories.sqlite3").write_bytes(older)
    home.again()
    assert held(home) == ["bread", "tea"]
    assert verbs.settle(home.store) == 1
    assert (held(home), held(home, "work")) == ([], ["bread"])
    assert verbs.settle(home.store) == 0


@pytest.mark.parametrize("missing", ["memories.sqlite3", "sync-deletions.sqlite3"])
def test_d28_a_home_that_lost_one_of_its_files_is_not_opened(home: Home, missing: str) -> None:
    verbs.remember(home.store, "tea", HERE, "typed")
    home.close()
    kept = (home.folder / missing).rename(home.folder / "elsewhere")
    for _ in range(2):  # nor made anew by the first try
        with pytest.raises(InvalidState, match="missing"):
            home.again()
        assert not (home.folder / missing).exists()
    kept.rename(home.folder / missing)
    home.again()
    assert held(home) == ["tea"]


def test_a_redaction_that_died_is_done_by_asking_again(home: Home) -> None:
    verbs.remember(home.store, "tea", HERE, "typed")
    die(home, "marked", "redact")
    verbs.redact(home.store, HERE, key_of("tea"), "masked")
    assert held(home) == ["masked"]


def test_two_devices_write_at_once_and_neither_is_locked_out(home_at: Callable[..., Home]) -> None:
    """FAULTS.md D69: four processes, each with many acts on one home."""
    home = home_at()
    work = """
import random, sys
from datetime import UTC, datetime
from pathlib import Path
from models.memorystore import verbs
from models.memorystore.opening import open_files
from models.memorystore.store import Place, Store
here, name = Place("default", "memories"), sys.argv[2]
store = Store(open_files(Path(sys.argv[1])).connect(), b"laptop".ljust(16, b"\\0"),
              lambda: datetime.now(UTC), random.Random(name).randbytes)
for number in range(40):
    key = verbs.remember(store, f"{name} {number}", here, "typed").key
    if number % 2:
        assert verbs.forget(store, here, [key]) == verbs.Gone(1, 1)
"""
    running = [
        subprocess.Popen(
            [sys.executable, "-c", work, str(home.folder), name], cwd=ROOT, stderr=subprocess.PIPE
        )
        for name in "abcd"
    ]
    for one in running:
        _, said = one.communicate(timeout=120)
        assert one.returncode == 0, said.decode()
    assert len(held(home)) == 4 * 20
    with home.store.db.begin():
        (count,) = home.store.db.exec_driver_sql("SELECT count(*) FROM deletion_records").one()
    assert count == 4 * 20


def test_a_writer_that_never_lets_go_is_named_and_nothing_is_changed(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FAULTS.md D69: a locked database is a clear error."""
    monkeypatch.setattr(opening, "PATIENCE", 0.05)
    other = Home(home.folder)
    with home.store.phase("long"):
        with pytest.raises(InvalidState, match="Another program"):
            verbs.remember(other.store, "tea", HERE, "typed")
        assert list(looking.memories(other.store)) == []  # who reads is not kept out
    verbs.remember(other.store, "tea", HERE, "typed")
    other.close()
    assert held(home) == ["tea"]

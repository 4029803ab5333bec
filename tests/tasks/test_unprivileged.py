"""As whom PostgreSQL runs when we are root: in a namespace, else as a system user that may pass."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from models.errors import Misconfigured
from tasks import unprivileged
from tasks.embedded import running_engines
from tasks.postgres import _binaries
from tasks.unprivileged import runner, take
from tests.tasks.stand_in import FAST, ask, left_of, settings_in
from tests.tasks.strangers import as_another_user

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="PostgreSQL refuses root alone")


@pytest.fixture
def passable() -> Iterator[Path]:
    """A folder that every user may pass, as /srv is; pytest's own is not."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def no_namespaces(monkeypatch: pytest.MonkeyPatch, passable: Path) -> None:
    """A machine that has no `unshare`, and already the user, whose part `nobody` takes."""
    (passable / "bin").mkdir()
    monkeypatch.setenv("PATH", str(passable / "bin"))
    monkeypatch.setattr(unprivileged, "USER", "nobody")


def _passes(path: Path) -> bool:
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in path.resolve().parents)


@root_only
@pytest.mark.usefixtures("no_namespaces")
def test_without_namespaces_a_system_user_owns_its_two_folders_and_passes_to_no_other(passable: Path) -> None:
    if not _passes(_binaries() / "postgres"):
        pytest.skip("the binaries lie where no other user may pass")
    settings = settings_in(passable / "d")
    (settings.data_dir / "objects").mkdir(mode=0o755)
    with running_engines(settings, FAST):
        assert ask(settings, "SELECT 1") == 1
        assert stat.S_IMODE(settings.data_dir.stat().st_mode) == 0o711
        inside = {path.name: path.stat() for path in settings.data_dir.iterdir()}
        nobody = unprivileged.known_uid()
        assert {name for name, found in inside.items() if found.st_uid == nobody} == {"postgres", "run"}
        assert [name for name, found in inside.items() if found.st_mode & 0o077] == []
        kept = settings.data_dir / "secret.key"
        assert as_another_user(kept.read_text).startswith("PermissionError")
    assert left_of(passable) == []


@root_only
def test_data_made_in_one_way_is_used_in_the_other(passable: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not _passes(_binaries() / "postgres"):
        pytest.skip("the binaries lie where no other user may pass")
    settings = settings_in(passable / "d")
    with running_engines(settings, FAST):
        ask(settings, "CREATE TABLE kept ()")
    monkeypatch.setattr(unprivileged, "USER", "nobody")
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("PATH", str(passable / "none"))
        with running_engines(settings, FAST):
            assert ask(settings, "SELECT to_regclass('kept')") == "kept"
    with running_engines(settings, FAST):
        assert ask(settings, "SELECT to_regclass('kept')") == "kept"
        assert stat.S_IMODE(settings.data_dir.stat().st_mode) in {0o700, 0o711}


@root_only
@pytest.mark.usefixtures("no_namespaces")
def test_a_parent_that_cannot_be_passed_is_answered_with_a_way_out(passable: Path) -> None:
    closed = passable / "closed"
    closed.mkdir(mode=0o700)
    settings = settings_in(closed / "d")
    with pytest.raises(Misconfigured, match=r"set ALLGONE_DATA_DIR .* ordinary user, or set DATABASE_URL$"):
        runner(settings.data_dir, _binaries() / "postgres")
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700


@root_only
def test_an_ordinary_users_data_is_not_taken_from_him(tmp_path: Path) -> None:
    os.chown(tmp_path, 12345, 12345)
    with pytest.raises(Misconfigured, match="belongs to uid 12345: run Allgone as that user"):
        take(tmp_path, None)


def test_an_ordinary_user_runs_everything_as_himself(passable: Path) -> None:
    if not _passes(_binaries() / "postgres"):
        pytest.skip("the binaries lie where no other user may pass")
    settings = settings_in(passable / "d")

    def start() -> None:
        with running_engines(settings, FAST):
            assert ask(settings, "SELECT 1") == 1
            uids = {path.lstat().st_uid for path in settings.data_dir.rglob("*")}
            assert uids == {os.geteuid()}, uids

    assert as_another_user(start, owning=settings.data_dir) == "none"
    assert left_of(passable) == []

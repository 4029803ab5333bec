"""The data folder: held by one at a time, its owner's alone, and refused in one line when it cannot be used."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from models.errors import Misconfigured
from tasks.embedded import running_engines
from tasks.folder import Busy, hold, private_folder
from tests.tasks.stand_in import left_of, settings_in
from tests.tasks.strangers import as_another_user


def test_a_folder_is_held_by_one_and_free_again_after(tmp_path: Path) -> None:
    with hold(tmp_path, "product"):
        with pytest.raises(Busy) as refused, hold(tmp_path, "command"):
            pass
        assert str(refused.value) == f"Allgone is already running on {tmp_path} (process {os.getpid()})"
        assert (refused.value.pid, refused.value.use) == (os.getpid(), "product")
    with hold(tmp_path, "command"):
        assert (tmp_path / "allgone.lock").read_text() == f"{os.getpid()} command\n"


def test_holding_makes_a_folder_its_owners_alone(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with hold(tmp_path, "product"):
        assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700


def test_a_folder_that_cannot_be_written_is_refused_by_name() -> None:
    with TemporaryDirectory() as passable:
        Path(passable).chmod(0o711)
        folder = Path(passable) / "d"
        settings = settings_in(folder)

        def start() -> None:
            with running_engines(settings):
                pass

        said = as_another_user(start, owning=folder, mode=0o500)
        assert said == f"Misconfigured: ALLGONE_DATA_DIR: {folder} cannot be used: Permission denied"
        assert as_another_user(lambda: [*folder.iterdir()]) == "none"  # it was the writing
        assert left_of(folder) == []


def test_a_private_folder_is_made_and_tightened(tmp_path: Path) -> None:
    private_folder(tmp_path / "made")
    assert stat.S_IMODE((tmp_path / "made").stat().st_mode) == 0o700
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    private_folder(tmp_path / "open")
    assert stat.S_IMODE((tmp_path / "open").stat().st_mode) == 0o700


def test_a_link_or_a_file_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "file").touch()
    for name in ("link", "file"):
        with pytest.raises(Misconfigured, match="is not a folder; remove it"):
            private_folder(tmp_path / name)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a stranger's folder")
def test_a_strangers_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", 12345, 12345)
    with pytest.raises(Misconfigured, match=r"belongs to another user \(uid 12345\); remove it"):
        private_folder(tmp_path / "theirs")
    private_folder(tmp_path / "theirs", also=12345)

"""The local directory: its modes, its marker, and the faults of a real file system."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from models.bytestore import ByteStore, Missing, StoreFault, open_store
from models.bytestore.local_faults import fault_of
from tests.models.bytestore.conftest import listed, new_key

MARKER = ".allgone-store"


def put(store: ByteStore, number: int = 1) -> list[str]:
    keys = [new_key() for _ in range(number)]
    for key in keys:
        store.put(key, [b"bytes"])
    return keys


def fault(error: pytest.ExceptionInfo[StoreFault]) -> str:
    return error.value.fault


def test_an_object_lies_under_the_end_of_its_key_for_its_owner_alone(local: ByteStore, folder: Path) -> None:
    (key,) = put(local)
    assert (folder / key[-2:] / key).read_bytes() == b"bytes"
    for path in [folder, *folder.rglob("*")]:
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path


def test_folders_stay_and_none_is_made_by_a_deletion(local: ByteStore, folder: Path) -> None:
    (key,) = put(local)
    before = {path for path in folder.rglob("*") if path.is_dir()}
    local.delete([key, *(new_key() for _ in range(50))])
    assert {path for path in folder.rglob("*") if path.is_dir()} == before
    assert [path.name for path in folder.rglob("*") if path.is_file()] == [MARKER]


def test_a_second_opening_takes_the_store_as_it_is(local: ByteStore, folder: Path) -> None:
    (key,) = put(local)
    assert b"".join(open_store(folder.as_uri()).open(key)) == b"bytes"


@pytest.mark.parametrize("inside", [[], ["lost+found"]])
def test_an_empty_folder_becomes_a_store(tmp_path: Path, inside: list[str]) -> None:
    for name in inside:
        (tmp_path / name).mkdir()
    open_store(tmp_path.as_uri()).check()
    assert (tmp_path / MARKER).is_file()


def test_a_folder_with_someone_elses_files_does_not(tmp_path: Path) -> None:
    (tmp_path / "thesis.odt").write_text("mine")
    store = open_store(tmp_path.as_uri())
    with pytest.raises(StoreFault) as error:
        store.check()
    assert fault(error) == "misconfigured"
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.odt"]


def test_a_store_that_was_used_is_not_made_a_second_time(tmp_path: Path) -> None:
    store = open_store((tmp_path / "objects").as_uri(), make=False)
    key = new_key()
    assert store.delete([key]) == {key: "misconfigured"}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("lost", ["marker", "root", "plain file"])
def test_a_disk_that_is_not_there_is_not_taken_for_deleted(local: ByteStore, folder: Path, lost: str) -> None:
    keys = put(local, 3)
    if lost == "marker":
        (folder / MARKER).unlink()
    else:
        shutil.rmtree(folder)
    if lost == "plain file":
        folder.write_text("not a folder")
    before = sorted(folder.parent.rglob("*"))

    assert local.delete(keys) == dict.fromkeys(keys, "misconfigured")
    for verb in (
        local.check,
        lambda: list(local.keys()),
        lambda: local.put(new_key(), [b"late"]),
        lambda: local.size(new_key()),
        lambda: local.open(new_key()),
    ):
        with pytest.raises(StoreFault, match="is its disk mounted") as error:
            verb()
        assert fault(error) == "misconfigured"
    assert sorted(folder.parent.rglob("*")) == before


def test_a_disk_that_goes_in_the_middle_of_a_deletion(local: ByteStore, folder: Path) -> None:
    keys = put(local, 400)
    left: dict[str, str] = {}
    # The whole folder goes in one step, as an unmounted disk does, while the deletion runs.
    deletion = threading.Thread(target=lambda: left.update(local.delete(keys)))
    deletion.start()
    folder.rename(folder.with_name("elsewhere"))
    deletion.join()
    there = {path.name for path in folder.with_name("elsewhere").rglob("*-*-*") if path.is_file()}
    assert there <= set(left)
    assert set(left.values()) <= {"misconfigured"}


def test_a_plain_file_or_a_folder_in_the_way_stops_its_own_keys_alone(local: ByteStore, folder: Path) -> None:
    good, blocked, shadowed = put(local)[0], new_key(), new_key()
    while len({good[-2:], blocked[-2:], shadowed[-2:]}) < 3:
        blocked, shadowed = new_key(), new_key()
    (folder / blocked[-2:]).write_text("a file where a folder should be")
    (folder / shadowed[-2:] / shadowed).mkdir(parents=True)
    assert local.delete([blocked, good, shadowed]) == {blocked: "misconfigured", shadowed: "misconfigured"}
    with pytest.raises(Missing):
        local.size(good)


def test_a_file_system_that_takes_no_more_leaves_nothing(local: ByteStore, folder: Path) -> None:
    def file_limit_reached() -> Iterator[bytes]:
        for _ in range(64):
            yield bytes(64 * 1024)

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    signalled = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024 * 1024 + 7, before[1]))
    try:
        with pytest.raises(StoreFault) as error:
            local.put(new_key(), file_limit_reached())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, signalled)
    assert fault(error) == "unavailable"
    assert [path.name for path in folder.rglob("*") if path.is_file()] == [MARKER]


def test_what_a_killed_upload_left_is_listed_and_deleted_under_its_key(
    local: ByteStore, folder: Path
) -> None:
    key = new_key()
    program = (
        "import os, sys\nfrom models.bytestore import open_store\n"
        "def chunks():\n    yield b'x' * 100_000\n    os.kill(os.getpid(), 9)\n"
        "open_store(sys.argv[1]).put(sys.argv[2], chunks())\n"
    )
    killed = subprocess.run([sys.executable, "-c", program, folder.as_uri(), key], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert [path.stat().st_size for path in (folder / ".incoming").iterdir()] == [100_000]
    assert listed(local) == [key]
    with pytest.raises(Missing):
        local.open(key)
    assert local.delete([key]) == {}
    assert listed(local) == []
    assert [path.name for path in folder.rglob("*") if path.is_file()] == [MARKER]


def test_files_that_are_not_named_like_ours_are_left_alone(local: ByteStore, folder: Path) -> None:
    (key,) = put(local)
    (folder / key[-2:] / "notes.txt").write_text("someone's")
    (folder / "README").write_text("someone's")
    assert listed(local) == [key]
    assert local.delete([key]) == {}
    assert (folder / key[-2:] / "notes.txt").exists()


def test_many_threads_put_and_delete_side_by_side(local: ByteStore) -> None:
    wrong: list[object] = []

    def work() -> None:
        keys = put(local, 40)
        wrong.extend(key for key in keys if b"".join(local.open(key)) != b"bytes")
        wrong.extend(local.delete(keys))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert listed(local) == []


@pytest.mark.parametrize(
    ("number", "word"),
    [
        (errno.EACCES, "credentials"),
        (errno.EPERM, "credentials"),
        (errno.ENOTDIR, "misconfigured"),
        (errno.ENOSPC, "unavailable"),
        (errno.EROFS, "unavailable"),
        (errno.EIO, "unavailable"),
        (errno.ESTALE, "unavailable"),
        (errno.EDOM, "unknown"),
        (None, "unknown"),
    ],
)
def test_each_error_of_a_file_system_has_its_word(number: int | None, word: str) -> None:
    assert fault_of(OSError(number, "why") if number else OSError("why")) == word


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become someone else")
def test_a_folder_of_someone_else_is_a_matter_of_credentials(local: ByteStore, folder: Path) -> None:
    keys = put(local, 2)
    for path in (*reversed(folder.parents), folder, *folder.rglob("*")):
        if path.is_relative_to(folder.parent.parent):
            path.chmod(0o755)
    program = (
        "import os, sys\nsys.path[:0] = [os.getcwd()]\nfrom models.bytestore import open_store, StoreFault\n"
        "store = open_store(sys.argv[1])\nos.setuid(65534)\nprint(store.delete(sys.argv[2:]))\n"
        "try:\n    store.put(sys.argv[2], [b'x'])\nexcept StoreFault as error:\n    print(error.fault)\n"
    )
    parents = [parent for parent in folder.parents if not parent.stat().st_mode & 0o001]
    for parent in parents:
        parent.chmod(parent.stat().st_mode | 0o011)
    done = subprocess.run(
        [sys.executable, "-c", program, folder.as_uri(), *keys], check=True, capture_output=True, text=True
    )
    assert done.stdout.splitlines() == [str(dict.fromkeys(keys, "credentials")), "credentials"]

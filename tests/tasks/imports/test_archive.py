"""archive: ZIPs are streams, names are names, counted bytes are what is believed (FAULTS S78, S82)."""

import struct
import zipfile
from pathlib import Path

import pytest

from tasks.imports import archive as module
from tasks.imports.archive import BOMB, ENCRYPTED, Archive
from tasks.imports.parsed import AttachmentUnreadable, UnknownExport
from tasks.imports.window import Damaged
from tests.tasks.imports.exports import zipped


def names(archive: Archive) -> list[str]:
    return [entry.filename for entry in archive.documents()]


def test_documents_are_what_begins_as_json_in_the_order_of_their_names(tmp_path: Path) -> None:
    path = zipped(
        tmp_path / "x",
        {
            "b.json": b"[1]",
            "a.txt": b'\xef\xbb\xbf {"a": 1}',
            "c.json": b"text",
            "photo.png": b"\x89PNG",
            "d/": b"",
        },
    )
    archive = Archive(path)
    assert names(archive) == ["a.txt", "b.json"]
    assert archive.reader(archive.documents()[1])(100) == b"[1]"
    archive.close()


def test_bad_names_are_only_names(tmp_path: Path) -> None:
    """S82: nothing is written, so a path in a name leads nowhere."""
    bad = ["../../up.json", "/abs.json", "a" * 255 + ".json", "C:\\win.json", "nul\x00l.json", "ü.json"]
    with pytest.warns(UserWarning, match="Duplicate name"):
        path = zipped(tmp_path / "x", [(name, b"[]") for name in [*bad, "twice.json", "twice.json"]])
    before = set(tmp_path.rglob("*"))
    archive = Archive(path)
    assert len(names(archive)) == 8
    assert all(archive.reader(entry)(10) == b"[]" for entry in archive.documents())
    assert set(tmp_path.rglob("*")) == before
    archive.close()


def test_attachments_are_found_by_identity_and_by_a_name_that_is_there_once(tmp_path: Path) -> None:
    entries = {
        "file-AbC123-photo.png": b"photo",
        "dalle-generations/file-Dal777-0001.webp": b"dalle",
        "user-1/file_000abc-sanitized.jpg": b"new",
        "one/report.pdf": b"report",
        "one/twin.txt": b"1",
        "two/twin.txt": b"2",
    }
    archive = Archive(zipped(tmp_path / "x", entries))

    def held(identity: str, name: str) -> bytes | None:
        found = archive.find(identity, name)
        return b"".join(found.open()) if found else None

    assert held("file-AbC123", "") == b"photo"
    assert held("file-Dal777", "other.png") == b"dalle"
    assert held("file_000abc", "") == b"new"
    assert held("file-gone99", "report.pdf") == b"report"
    assert held("", "../report.pdf") == b"report"
    assert held("", "twin.txt") is None
    assert held("file-AbC", "") is None
    assert held("", "") is None
    found = archive.find("file-AbC123", "")
    assert found is not None
    assert (found.name, found.size) == ("file-AbC123-photo.png", 5)
    archive.close()


def test_a_bomb_is_refused_by_counted_bytes(tmp_path: Path) -> None:
    path = zipped(
        tmp_path / "x", {"conversations.json": b"[" + b" " * 50_000_000, "photo.png": b"\0" * 50_000_000}
    )
    assert path.stat().st_size < 120_000
    archive = Archive(path)
    read = archive.reader(archive.documents()[0])
    pieces = iter(lambda: read(1 << 20), b"")
    with pytest.raises(Damaged, match=BOMB):
        assert sum(map(len, pieces)) < 30_000_000
    found = archive.find("", "photo.png")
    assert found is not None
    with pytest.raises(AttachmentUnreadable):
        list(found.open())
    archive.close()


def test_all_entries_together_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_UNPACKED", 2500)
    archive = Archive(zipped(tmp_path / "x", {f"{n}.json": b"[" + bytes(range(256)) * 3 for n in range(9)}))
    readers = [archive.reader(entry) for entry in archive.documents()[:4]]
    with pytest.raises(Damaged, match=BOMB):
        assert [len(read(1000)) for read in readers] == []
    archive.close()


def test_entries_over_the_bound_refuse_the_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = zipped(tmp_path / "x", {f"{n}.json": b"[]" for n in range(9)})
    monkeypatch.setattr(module, "MAX_ENTRIES", 8)
    with pytest.raises(UnknownExport, match="too many entries"):
        Archive(path)
    monkeypatch.setattr(module, "MAX_DIRECTORY", 100)
    with pytest.raises(UnknownExport, match="too many entries"):
        Archive(path)


def test_encrypted_entries_are_named_and_not_read(tmp_path: Path) -> None:
    path = zipped(tmp_path / "x", {"conversations.json": b"[]", "photo.png": b"x"})
    data = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = data.find(signature)
        while at >= 0:
            data[at + offset] |= 1
            at = data.find(signature, at + 4)
    path.write_bytes(data)
    archive = Archive(path)
    assert names(archive) == ["conversations.json"]
    with pytest.raises(Damaged, match=ENCRYPTED):
        archive.reader(archive.documents()[0])
    assert archive.find("", "photo.png") is None
    archive.close()


def test_a_method_that_unpacks_without_bound_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("conversations.json", b"[]")
    opened = Archive(path)
    assert names(opened) == ["conversations.json"]
    with pytest.raises(Damaged, match="method"):
        opened.reader(opened.documents()[0])
    opened.close()


def test_zip64_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("a.json", "w", force_zip64=True) as e,
    ):
        e.write(b"[1]")
    opened = Archive(path)
    assert opened.reader(opened.documents()[0])(9) == b"[1]"
    opened.close()


def test_damage_is_told_where_it_is_met(tmp_path: Path) -> None:
    path = zipped(tmp_path / "x", {"a.json": b"[" + bytes(range(256)) * 40})
    data = bytearray(path.read_bytes())
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(UnknownExport, match="damaged"):
        Archive(path)
    data[45:200] = bytes(155)
    path.write_bytes(data)
    opened = Archive(path)
    with pytest.raises(Damaged, match="damaged"):
        opened.reader(opened.entries[0])(1 << 20)
    opened.close()


def test_a_lying_directory_is_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path / "x", {"a.json": b"[]"})
    data = bytearray(path.read_bytes())
    at = data.rfind(b"PK\x05\x06")
    struct.pack_into("<L", data, at + 12, 0xFFFFFFF0)
    path.write_bytes(data)
    with pytest.raises(UnknownExport, match="too many entries"):
        Archive(path)

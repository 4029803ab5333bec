"""The pictures of the documents: one for each line, small, and shown where a page says so."""

from __future__ import annotations

import re
from pathlib import Path

from screens.__main__ import FOLDER, SIZE_MAX
from screens.shots import SHOTS

ROOT = Path(__file__).resolve().parent.parent


def test_there_is_one_picture_for_each_line_and_no_other() -> None:
    names = [shot.name for shot in SHOTS]
    assert len(names) == len(set(names))
    assert {path.stem for path in FOLDER.glob("*.png")} == set(names)


def test_pictures_are_small() -> None:
    for path in FOLDER.glob("*.png"):
        assert path.stat().st_size <= SIZE_MAX, path.name


def test_every_picture_that_a_page_shows_is_there() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for there in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text("utf-8")):
            assert (page.parent / there).is_file(), f"{page.name}: {there}"

"""Names of exported files: whatever they are made of, every system takes them, and no two are one."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.exports.names import Unique, safe


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("Plan the trip", "Plan the trip"),
        ("a/b\\c:d*e?f", "a_b_c_d_e_f"),
        ("../../etc/passwd", "_.._etc_passwd"),
        ("con", "_con"),
        ("LPT1.txt", "_LPT1.txt"),
        ("trailing. . ", "trailing"),
        ("\u202egpj.exe", "gpj.exe"),
        ("a\nb\tc\x00d", "a b cd"),
        ("", "file"),
        ("...", "file"),
        ("???", "file"),
        ("תכנון טיול", "תכנון טיול"),
        ("e\u0301", "é"),
    ],
)
def test_a_name_becomes_one_that_every_system_takes(name: str, made: str) -> None:
    assert safe(name, "file") == made


@given(st.text(max_size=300), st.sampled_from(["", ".md", ".json"]))
def test_no_name_at_all_gets_through_unsafe(name: str, ending: str) -> None:
    made = safe(name, "file", ending)
    assert made
    assert not re.search(r'[<>:"/\\|?*\x00-\x1f\x7f\u202a-\u202e\u2066-\u2069]', made)
    assert made == made.strip()
    assert not made.endswith(".")
    assert len(made.encode()) <= 255
    assert made.endswith(ending)
    assert not re.fullmatch(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?", made)


def test_a_name_is_given_once_however_its_case_is_folded() -> None:
    names = Unique()
    given_names = [names.name(stem, ".md") for stem in ("A", "a", "A", "a (2)", "ﬁ", "fi", "A")]
    folded = [name.casefold() for name in given_names]
    assert len(set(folded)) == len(folded)
    assert given_names[:3] == ["A.md", "a (2).md", "A (3).md"]

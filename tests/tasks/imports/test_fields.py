"""fields: wrong types are missing values, names are base names."""

import pytest

from tasks.imports.fields import (
    base_name,
    count,
    digest,
    first_text,
    identity,
    listing,
    plain,
    record,
    records,
    text,
)


def test_a_value_of_the_wrong_type_is_the_empty_one() -> None:
    for wrong in (None, 1, 1.5, True, "x", [], {}):
        assert record(wrong) == ({} if not isinstance(wrong, dict) else wrong)
        assert listing(wrong) == ([] if not isinstance(wrong, list) else wrong)
        assert text(wrong) == (wrong if isinstance(wrong, str) else "")
    assert records([1, {"a": 1}, None]) == [{"a": 1}]
    assert first_text(None, " ", 3, "found", "later") == "found"


def test_a_size_is_a_number_that_can_be_one() -> None:
    assert count(0) == 0
    assert [count(wrong) for wrong in (-1, True, "1", 1.0, 1 << 63, None)] == [None] * 6


def test_an_identity_is_text_or_a_number_and_a_long_one_is_its_digest() -> None:
    assert identity(None, "", "  ", True, {}, 7) == "7"
    assert identity("a" * 200) == "a" * 200
    long = identity("a" * 201)
    assert long == identity("a" * 201) != identity("a" * 202)
    assert long is not None
    assert long.startswith("sha256:")
    assert identity(10**400) is None


def test_a_digest_tells_where_one_part_ends() -> None:
    assert digest(["ab", "c"]) != digest(["a", "bc"])


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("photo.png", "photo.png"),
        ("../../etc/passwd", "passwd"),
        ("/etc/passwd", "passwd"),
        ("C:\\Users\\me\\photo.png", "photo.png"),
        ("..", "file"),
        ("folder/", "folder"),
        ("", "file"),
        (None, "file"),
        ("a" * 255, "a" * 255),
        ("a" * 300 + ".png", "a" * 251 + ".png"),
    ],
)
def test_a_name_keeps_only_what_follows_its_last_separator(path: object, name: str) -> None:
    assert base_name(path) == name


def test_plain_leaves_what_a_database_takes() -> None:
    odd = {"big": 1 << 70, "nan": float("nan"), "inf": [float("-inf")], "ok": [1, 1.5, True, None, "x"]}
    assert plain(odd) == {"big": str(1 << 70), "nan": None, "inf": [None], "ok": [1, 1.5, True, None, "x"]}

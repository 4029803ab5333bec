"""The id of an imported conversation: stable, the principal's own, its time the export's (PRODUCT.md 6)."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest

from tasks.imports.identity import imported_id
from tasks.imports.parsed import Parsed, ParsedMessage
from tests.tasks.imports.exports import chatgpt, dumped, node, zipped
from tests.tasks.imports.histories import only, put

SECRET = bytes(range(32))
OTHER = bytes(range(1, 33))
AT = datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)


def parsed(**fields: object) -> Parsed:
    message = ParsedMessage("m1", "user_message", {"content": "Hello"})
    return dataclasses.replace(Parsed("chatgpt", "c1", (message,), created_at=AT), **fields)  # type: ignore[arg-type]


def milliseconds(session_id: str) -> int:
    return UUID(session_id).int >> 80


def test_the_same_conversation_has_the_same_id_in_every_run() -> None:
    assert imported_id(parsed(), SECRET, 0) == imported_id(parsed(), SECRET, 0)
    # Known by heart, so that a change of the recipe, which would import every history twice, fails here.
    assert imported_id(parsed(), SECRET, 0) == "018f4cbb-3823-76cc-bc31-c135315684a6"
    assert UUID(imported_id(parsed(), SECRET, 0)).version == 7


def test_whatever_names_the_conversation_is_in_the_id() -> None:
    message = ParsedMessage("m1", "user_message", {"content": "Hello!"})
    ids = {
        imported_id(parsed(), SECRET, 0),
        imported_id(parsed(), SECRET, 1),
        imported_id(parsed(), OTHER, 0),
        imported_id(parsed(format="claude"), SECRET, 0),
        imported_id(parsed(source_id="c2"), SECRET, 0),
        imported_id(parsed(messages=(message,)), SECRET, 0),
    }
    assert len(ids) == 6


@pytest.mark.parametrize("microseconds", [0, 1, 999, 1000, 123_000, 289_000, 999_999])
def test_the_times_bits_are_the_exports_milliseconds(microseconds: int) -> None:
    for second in range(0, 2_000_000_000, 97_654_321):
        created = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=second, microseconds=microseconds)
        expected = second * 1000 + microseconds // 1000
        assert milliseconds(imported_id(parsed(created_at=created), SECRET, 0)) == expected


def test_no_time_is_zero_and_the_bits_of_chance_do_not_depend_on_it() -> None:
    timeless = UUID(imported_id(parsed(created_at=None), SECRET, 0)).int
    assert timeless >> 80 == 0
    assert timeless == UUID(imported_id(parsed(), SECRET, 0)).int & ((1 << 80) - 1)


@pytest.mark.parametrize(
    ("created", "expected"),
    [
        (datetime(1969, 12, 31, tzinfo=UTC), 0),
        (datetime.min.replace(tzinfo=UTC), 0),
        (datetime.max.replace(tzinfo=UTC), 253_402_300_799_999),
    ],
)
def test_the_ends_of_time_fit(created: datetime, expected: int) -> None:
    assert milliseconds(imported_id(parsed(created_at=created), SECRET, 0)) == expected


def test_what_comes_after_the_first_user_message_changes_nothing() -> None:
    hello = ParsedMessage("m1", "user_message", {"content": "Hello"})
    answer = ParsedMessage("m2", "assistant_message", {"content": "Hi"})
    again = ParsedMessage("m3", "user_message", {"content": "More"})
    longer = parsed(messages=(answer, hello, again), title_hint="other", updated_at=AT)
    assert imported_id(longer, SECRET, 0) == imported_id(parsed(), SECRET, 0)


def test_a_conversation_that_no_user_began_has_an_id_too() -> None:
    answer = ParsedMessage("m2", "assistant_message", {"content": "Hi"})
    assert imported_id(parsed(messages=(answer,)), SECRET, 0) != imported_id(parsed(), SECRET, 0)


def test_the_archive_and_the_bare_file_give_one_id(tmp_path: Path) -> None:
    """The archive tells an image's name that the bare file does not; the conversation is the same."""
    image = {
        "content_type": "image_asset_pointer",
        "asset_pointer": "file-service://file-AbCdEfGhIjKlMnOpQrStUvWx",
        "size_bytes": 3,
    }
    nodes = (
        node("q", None, "user", image, "What is it?", children=("a",)),
        node("a", "q", "assistant", "A cat"),
    )
    item = chatgpt(1, *nodes)
    bare = only(put(tmp_path / "conversations.json", item))
    archive = only(
        zipped(
            tmp_path / "export.zip",
            {"conversations.json": dumped(item), "file-AbCdEfGhIjKlMnOpQrStUvWx-holiday.png": b"png"},
        )
    )
    assert bare.messages[0].payload != archive.messages[0].payload
    assert imported_id(bare, SECRET, 0) == imported_id(archive, SECRET, 0)

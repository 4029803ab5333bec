"""naming: what a conversation that was not read is called."""

import pytest

from tasks.imports.naming import name_in, name_of


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ({"title": "Pasta", "conversation_id": "c1", "id": "other"}, "Pasta (c1)"),
        ({"name": "Pasta", "uuid": "u1"}, "Pasta (u1)"),
        ({"id": "c1", "title": "  "}, "c1"),
        ({"title": "Pasta"}, "Pasta"),
        ({"chat": {"title": "Pasta"}}, "Pasta"),
        ({"title": None, "id": []}, "conversation 7"),
        (None, "conversation 7"),
        ("text", "conversation 7"),
    ],
)
def test_a_conversation_is_named_by_title_and_identity_else_by_its_number(value: object, name: str) -> None:
    assert name_of(value, 7) == name


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        (b'{"title": "Pa\\u0073ta", "id": "c1", "mapping": {"title": "no"', "Pasta (c1)"),
        (b'{"uuid": "u1", "name": "Pasta", "chat_messages": [', "Pasta (u1)"),
        (b'{"title": "\\ud800", "mapping": {"id": "node"', "�"),
        (b'{"mapping": {"title": "inner", "id": "node"', "conversation 7"),
        (b'{"title": "\\q"', "conversation 7"),
        (b"", "conversation 7"),
    ],
)
def test_a_broken_text_is_named_by_what_its_head_shows_before_anything_nests(raw: bytes, name: str) -> None:
    assert name_in(raw, 7) == name

"""chatgpt_content: the shapes of a message (FAULTS S78: attachments never cost the text)."""

from typing import Any

import pytest

from tasks.imports.chatgpt_content import content_of
from tasks.imports.files import Found, no_files


def value(content: dict[str, Any], *, fenced: bool = True, metadata: object = None) -> object:
    return content_of({"content": content, "metadata": metadata}, no_files, fenced=fenced).value()


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ({"content_type": "text", "parts": ["one", "", "two", None, 7]}, "one\n\ntwo"),
        ({"content_type": "code", "language": "python", "text": "x = 1"}, "```python\nx = 1\n```"),
        ({"content_type": "code", "language": "unknown", "text": "x = 1"}, "```\nx = 1\n```"),
        ({"content_type": "execution_output", "text": "4"}, "4"),
        ({"content_type": "tether_quote", "title": "T", "url": "u", "text": "words"}, "T\n\nu\n\nwords"),
        ({"content_type": "tether_browsing_display", "result": "found", "summary": None}, "found"),
        ({"content_type": "tether_browsing_display", "result": "", "summary": "short"}, "short"),
        ({"content_type": "a new one", "text": "words"}, "words"),
        (
            {
                "content_type": "multimodal_text",
                "parts": [{"content_type": "audio_transcription", "text": "hi"}],
            },
            "hi",
        ),
        ({}, ""),
    ],
)
def test_each_shape_is_read_for_its_text(content: dict[str, Any], shown: str) -> None:
    assert value(content) == shown


def test_code_that_is_run_is_not_fenced() -> None:
    assert value({"content_type": "code", "language": "python", "text": "x"}, fenced=False) == "x"


POINTED = {
    "content_type": "multimodal_text",
    "parts": [
        {
            "content_type": "image_asset_pointer",
            "asset_pointer": "file-service://file-AbC123",
            "size_bytes": 5,
        },
        "what is this?",
        {"content_type": "image_asset_pointer", "asset_pointer": "sediment://file_000abc"},
    ],
}
LISTED = {
    "attachments": [
        {"id": "file-AbC123", "name": "../cat.jpg", "mime_type": "image/jpeg", "size": 6},
        {"id": "file-Doc456", "name": "report.pdf", "mimeType": "application/pdf"},
        None,
    ]
}


def test_pointers_become_blocks_with_the_names_that_the_attachments_tell() -> None:
    content = content_of({"content": POINTED, "metadata": LISTED}, no_files, fenced=True)
    assert content.value() == [
        {"type": "image", "name": "cat.jpg"},
        {"type": "text", "text": "what is this?"},
        {"type": "image", "name": "file_000abc"},
        {"type": "file", "name": "report.pdf"},
    ]
    assert [each.name for each in content.attachments] == ["cat.jpg", "file_000abc", "report.pdf"]
    assert [each.size for each in content.attachments] == [6, None, None]
    assert all(each.open is None for each in content.attachments)


def test_pointers_are_looked_up_by_identity_and_name() -> None:
    asked: list[tuple[str, str]] = []

    def files(identity: str, name: str) -> Found:
        asked.append((identity, name))
        return Found("entry.png", 3, lambda: iter((b"abc",)))

    content = content_of({"content": POINTED, "metadata": LISTED}, files, fenced=True)
    assert asked == [("file-AbC123", "../cat.jpg"), ("file_000abc", ""), ("file-Doc456", "report.pdf")]
    assert [(each.name, each.size) for each in content.attachments] == [
        ("cat.jpg", 3),
        ("entry.png", 3),
        ("report.pdf", 3),
    ]


def test_a_voice_message_is_its_words_and_its_audio() -> None:
    audio = {"content_type": "audio_asset_pointer", "asset_pointer": "sediment://file_1", "format": "wav"}
    part = {"content_type": "real_time_user_audio_video_asset_pointer", "audio_asset_pointer": audio}
    assert value({"content_type": "multimodal_text", "parts": [part]}) == [{"type": "file", "name": "file_1"}]

"""The contents of a ChatGPT message: some twenty shapes, told apart by `content_type`, read for text and files.

| content_type | read |
|---|---|
| text, multimodal_text, and any other with `parts` | each part: text, image and audio pointers, transcriptions |
| code | `text`, fenced with its `language` where it is shown and not run |
| execution_output, tether_quote, sonic_webpage, system_error | `title`, `url`, `text` |
| tether_browsing_display, tether_browsing_code | `result`, `summary` |
| computer_output | the pointer of its `screenshot` |
| thoughts, reasoning_recap | reasoning, not an answer |

A pointer (`file-service://file-ID`, `sediment://file_ID`) names a file of the archive; `metadata.attachments` tells
its name. Attachments that no pointer showed come after the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tasks.imports.fields import count, first_text, listing, record, records, text
from tasks.imports.files import Files, carried
from tasks.imports.transcript import Content

POINTERS = ("asset_pointer", "audio_asset_pointer", "video_container_asset_pointer")


def reasoning_of(message: dict[str, Any]) -> str | None:
    """The reasoning that a message is; None when it is none."""
    content = record(message.get("content"))
    kind = content.get("content_type")
    if kind == "reasoning_recap":
        return text(content.get("content"))
    if kind != "thoughts":
        return None
    thoughts = [
        (text(each.get("summary")), text(each.get("content"))) for each in records(content.get("thoughts"))
    ]
    return "\n\n".join(part for thought in thoughts for part in thought if part.strip())


def content_of(message: dict[str, Any], files: Files, *, fenced: bool) -> Content:
    """Text and files of a message; `fenced` shows code as Markdown."""
    source = record(message.get("content"))
    attachments = _attachments(message)
    content = Content()
    for piece in _pieces(source, fenced):
        if isinstance(piece, str):
            content.write(piece)
            continue
        content.write(piece.get("text"))
        for pointer in _pointers(piece):
            _point(content, pointer, attachments, files)
    for known in attachments.values():
        name = text(known.get("name"))
        kind = first_text(known.get("mime_type"), known.get("mimeType"))
        content.attach(carried(files, text(known.get("id")), name, kind, count(known.get("size"))))
    return content


def _pieces(source: dict[str, Any], fenced: bool) -> Iterator[str | dict[str, Any]]:
    parts = source.get("parts")
    if isinstance(parts, list):
        yield from (part for part in parts if isinstance(part, str | dict))
        return
    kind = source.get("content_type")
    if kind == "code":
        code = text(source.get("text"))
        language = text(source.get("language"))
        named = language if language.isalnum() and language != "unknown" else ""
        yield f"```{named}\n{code}\n```" if fenced and code.strip() else code
        return
    for key in ("title", "url"):
        if kind in ("tether_quote", "sonic_webpage"):
            yield text(source.get(key))
    yield first_text(source.get("text"), source.get("result"), source.get("summary"), source.get("content"))
    if isinstance(source.get("screenshot"), dict):
        yield source["screenshot"]


def _pointers(part: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The parts that point to a file: this one, or those inside it (a voice message holds its audio)."""
    for key in POINTERS:
        value = part.get(key)
        if isinstance(value, str) and value.strip():
            yield {**part, "asset_pointer": value}
        elif isinstance(value, dict) and text(value.get("asset_pointer")).strip():
            yield value


def _point(content: Content, part: dict[str, Any], attachments: dict[str, Any], files: Files) -> None:
    identity = text(part.get("asset_pointer")).rpartition("://")[2].partition("?")[0].strip()
    known = attachments.pop(identity, {})
    audible = "audio" in text(part.get("content_type")) or bool(part.get("format"))
    kind = first_text(known.get("mime_type"), known.get("mimeType"), "audio/wav" if audible else "image/png")
    size = count(known.get("size"))
    content.attach(
        carried(
            files,
            identity,
            text(known.get("name")),
            kind,
            count(part.get("size_bytes")) if size is None else size,
        )
    )


def _attachments(message: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What the message says it carries, by identity; without one, by its place."""
    listed = listing(record(message.get("metadata")).get("attachments"))
    found: dict[str, dict[str, Any]] = {}
    for place, each in enumerate(listed):
        if isinstance(each, dict):
            found[first_text(each.get("id")) or f"attachment {place + 1}"] = each
    return found

r"""Content blocks as the model APIs write them, which Claude, Open WebUI and ShareGPT-style files share.

| block | is |
|---|---|
| `{"type": "text" \| "input_text" \| "output_text", "text"}` | text |
| `{"type": "image_url", "image_url": {"url"}}`, `{"type": "input_image", "image_url"}` | an image |
| `{"type": "image" \| "document", "source": {"type": "base64", "media_type", "data"}}` | an image or a file |
"""

from __future__ import annotations

from typing import Any

from tasks.imports.fields import base_name, first_text, listing, record, text
from tasks.imports.files import UNKNOWN_TYPE, embedded
from tasks.imports.parsed import Attachment
from tasks.imports.transcript import Content


def content_from(value: object) -> Content:
    """A message's content: text, or a list of texts and blocks."""
    content = Content(text(value))
    for block in listing(value):
        if isinstance(block, str):
            content.write(block)
        elif isinstance(block, dict):
            image = image_of(block)
            if image is None:
                content.write(block.get("text"))
            else:
                content.attach(image)
    return content


def output_of(value: object) -> tuple[Content, object]:
    """A tool's output: as content where it is text or blocks, else (an object, a number) as the value itself."""
    content = content_from(value)
    if content.blocks or value is None or isinstance(value, str):
        return content, None
    return content, value


def image_of(block: dict[str, Any]) -> Attachment | None:
    """The image or file that a block is; None when it is of another kind."""
    kind = text(block.get("type"))
    source = record(block.get("source"))
    name = first_text(block.get("name"), block.get("file_name"), block.get("filename"))
    if kind in ("image_url", "input_image"):
        held = block.get("image_url")
        return from_address(text(held) or text(record(held).get("url")), name, "image/png")
    if kind in ("image", "document", "file") and source:
        media = first_text(source.get("media_type"), "image/png" if kind == "image" else UNKNOWN_TYPE)
        data = text(source.get("data"))
        if data and source.get("type") == "base64":
            return embedded(f"data:{media};base64,{data}", name)
        return from_address(text(source.get("url")), name, media)
    if kind in ("image", "file") and name:
        return Attachment(base_name(name), "image/png" if kind == "image" else UNKNOWN_TYPE)
    return None


def from_address(address: str, name: str, content_type: str) -> Attachment:
    """What an address holds when it is a `data:` one; of any other only the name, for nothing is fetched."""
    held = embedded(address, name)
    if held is not None:
        return held
    path = address.partition("?")[0].partition("#")[0]
    return Attachment(base_name(name, path, content_type.partition("/")[0]), content_type)

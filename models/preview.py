"""PURE: which files may be looked at in place, by what their bytes are and not by what they are called.

| shown as | when |
|---|---|
| an image | it says that it is one of four raster kinds, its first bytes say which, and it is not too large |
| text | it says, or its name says, that it is text, code or data, and it holds no NUL |
| nothing: a download | anything else; SVG and HTML among it, which are programs |
"""

from __future__ import annotations

from typing import Literal

IMAGE_MAX = 20 * 1024 * 1024  # bytes of an image that is shown
TEXT_MAX = 200_000  # bytes of a text that are shown
HEAD = 16  # bytes that tell an image's kind
IMAGES = frozenset({"image/png", "image/jpeg", "image/jpg", "image/gif", "image/webp"})
_TEXTS = frozenset(
    {"application/json", "application/x-ndjson", "application/yaml", "application/x-yaml", "application/toml"}
    | {"application/javascript", "application/sql", "application/x-sh"}
)
_ENDINGS = """
    txt text md markdown rst log csv tsv json jsonl ndjson yaml yml toml ini cfg conf env py js mjs ts tsx jsx css
    c h cc cpp hpp rs go java kt rb php sh bash zsh ps1 sql r jl lua pl swift cs scala ex exs hs ml diff patch tex bib
"""
_NAMES = frozenset(_ENDINGS.split())
_UNKNOWN = frozenset({"", "application/octet-stream"})

Kind = Literal["image", "text", ""]


def kind_of(name: str, content_type: str, size: int) -> Kind:
    """How a file may be shown, as far as its name and type tell; the bytes have the last word."""
    declared = content_type.partition(";")[0].strip().lower()
    if declared in IMAGES:
        return "image" if size <= IMAGE_MAX else ""
    ending = name.rpartition(".")[2].lower()
    if declared in _TEXTS or (declared.startswith("text/") and declared not in {"text/html", "text/xml"}):
        return "text"
    return "text" if declared in _UNKNOWN and ending in _NAMES else ""


def image_type(head: bytes) -> str | None:
    """The media type of the raster image that begins with these `HEAD` bytes; None when it is none of the four."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head[:6] in (b"GIF87a", b"GIF89a"):
        return "image/gif"
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return None

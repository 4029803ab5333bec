"""Open WebUI's answers as one text: `<details type="reasoning">` and its like, told apart from what was said.

An answer is Markdown with blocks in it that the page folds: reasoning, tool calls (name, arguments and result as
escaped attributes), code that was run. `pieces` gives text and blocks in order; a block that is never closed
reaches to the end. Other `<details>` are the author's own and stay text.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass

KINDS = ("reasoning", "tool_calls", "code_interpreter")
_OPENING = re.compile(
    r'<details\s+type="(reasoning|tool_calls|code_interpreter)"((?:\s+[\w-]+(?:="[^"]*")?)*)\s*>'
)
_ATTRIBUTE = re.compile(r'([\w-]+)="([^"]*)"')
_SUMMARY = re.compile(r"\A\s*<summary>[^<]*</summary>")
_QUOTED = re.compile(r"^[ \t]*> ?", re.MULTILINE)
_CLOSING = "</details>"


@dataclass(frozen=True, slots=True)
class Folded:
    """A folded block: its kind, its attributes and its body, unescaped, without its summary."""

    kind: str
    attributes: dict[str, str]
    body: str


def pieces(answer: str) -> Iterator[str | Folded]:
    """The texts and the folded blocks of an answer, in order. Cost: linear."""
    position = 0
    while (opening := _OPENING.search(answer, position)) is not None:
        yield answer[position : opening.start()].strip()
        end = answer.find(_CLOSING, opening.end())
        end = len(answer) if end < 0 else end
        attributes = {key: html.unescape(value) for key, value in _ATTRIBUTE.findall(opening[2])}
        yield Folded(opening[1], attributes, _body(answer[opening.end() : end], opening[1]))
        position = end + len(_CLOSING)
    yield answer[position:].strip() if position else answer


def _body(inner: str, kind: str) -> str:
    unfolded = html.unescape(_SUMMARY.sub("", inner, count=1)).strip()
    # Reasoning is written as a quotation, and only there is the mark not the author's.
    return _QUOTED.sub("", unfolded) if kind == "reasoning" else unfolded

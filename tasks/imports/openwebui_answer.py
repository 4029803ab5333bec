"""How an Open WebUI answer is told: from its `output` items, or from the folded blocks of its text.

| output item | becomes |
|---|---|
| `reasoning` | reasoning |
| `function_call` | tool call |
| `function_call_output` | tool result |
| `message` | the answer |

| folded block | becomes |
|---|---|
| `reasoning` | reasoning |
| `tool_calls` | tool call and result, from its attributes; without them, its body is the result |
| `code_interpreter` | a call of `code_interpreter`, and its output as the result |
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tasks.imports.blocks import content_from, output_of
from tasks.imports.decoding import decode_inner
from tasks.imports.details import Folded
from tasks.imports.fields import text
from tasks.imports.transcript import Content, Transcript


def tell_output(transcript: Transcript, items: list[dict[str, Any]]) -> bool:
    """Tells the items in order; whether the assistant said something in them."""
    spoken = False
    for item in items:
        kind = item.get("type")
        if kind == "reasoning":
            summary = content_from(item.get("summary"))
            transcript.think(content_from(item.get("content")).text() or summary.text())
        elif kind == "function_call":
            transcript.call(
                item.get("call_id") or item.get("id"), text(item.get("name")), item.get("arguments")
            )
        elif kind == "function_call_output":
            output, value = output_of(item.get("output"))
            failed = item.get("status") in ("failed", "error")
            transcript.result(item.get("call_id"), output, failed=failed, value=value)
        elif kind == "message":
            content = content_from(item.get("content"))
            spoken = spoken or bool(content.blocks)
            transcript.say("assistant", content)
    return spoken


def tell_folded(transcript: Transcript, found: Iterable[str | Folded], *, aloud_only: bool) -> None:
    """Tells texts and folded blocks in order; `aloud_only` leaves the folded ones out."""
    for piece in found:
        if isinstance(piece, str):
            transcript.say("assistant", Content(piece))
        elif aloud_only:
            continue
        elif piece.kind == "reasoning":
            transcript.think(piece.body)
        else:
            _tell_call(transcript, piece)


def _tell_call(transcript: Transcript, piece: Folded) -> None:
    given = piece.attributes
    call_id = given.get("id")
    if piece.kind == "code_interpreter":
        transcript.call(call_id, "code_interpreter", piece.body)
        result = given.get("output", "")
    else:
        transcript.call(call_id, given.get("name", ""), _unquoted(transcript, given.get("arguments", "")))
        result = given.get("result", "") or piece.body
    if result:
        answer = _unquoted(transcript, result)
        output, value = output_of(answer)
        transcript.result(call_id, output, value=value)


def _unquoted(transcript: Transcript, written: str) -> object:
    """An attribute is JSON, most often a string of JSON: the outer quotation is taken off."""
    wrapped = decode_inner(f"[{written}]") if written.startswith('"') else decode_inner(written)
    if wrapped is None:
        return written
    transcript.replaced += wrapped.replaced
    if not written.startswith('"'):
        return wrapped.value
    return wrapped.value[0] if len(wrapped.value) == 1 else written

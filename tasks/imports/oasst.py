"""OpenAssistant's message trees: a prompt and ranked replies, replies to replies, no active branch.

The best-ranked reply is taken at each level: the lowest rank; a reply without rank after those with one, the more
reviewed first, then in the order of the file. Deleted replies are left out. Never recursing.
"""

from __future__ import annotations

import math
from typing import Any

from tasks.imports.fields import first_text, identity, record, records, text
from tasks.imports.files import Files, no_files
from tasks.imports.moments import moment
from tasks.imports.parsed import Parsed
from tasks.imports.transcript import Content, Transcript

NAME = "oasst"
ROLES = {"prompter": "user", "assistant": "assistant"}


def recognise(item: dict[str, Any]) -> bool:
    """An object that names a tree and holds its prompt."""
    return "message_tree_id" in item and isinstance(item.get("prompt"), dict)


def parse(item: dict[str, Any], files: Files = no_files) -> Parsed:
    """One conversation. Raises `Unusable`."""
    transcript = Transcript()
    message: dict[str, Any] | None = record(item.get("prompt"))
    while message is not None:
        role = text(message.get("role"))
        transcript.begin(identity(message.get("message_id")), moment(message.get("created_date")))
        transcript.say(ROLES.get(role, role or "user"), Content(text(message.get("text"))))
        message = _best(message.get("replies"))
    created = moment(record(item.get("prompt")).get("created_date"))
    tree_id = first_text(item.get("message_tree_id"))
    return transcript.finish(NAME, identity(tree_id), None, created, None)


def _best(replies: object) -> dict[str, Any] | None:
    kept = [reply for reply in records(replies) if reply.get("deleted") is not True]
    # min() keeps the first among equals: the order of the file.
    return min(kept, key=_standing, default=None)


def _standing(reply: dict[str, Any]) -> tuple[float, float]:
    return _number(reply.get("rank"), math.inf), -_number(reply.get("review_count"), 0)


def _number(value: object, otherwise: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e18:
        return otherwise
    return value

"""One import from beginning to end: read, write, count (PRODUCT.md 6).

imported + already there + skipped + failed = total, each failure named with its reason; one bad conversation
never costs the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog
from sqlalchemy.exc import DataError
from sqlalchemy.orm import Session

from models import accounts
from models.bytestore import StoreFault
from models.errors import Refusal
from tasks.imports.parsed import Broken, Parsed, UnknownExport
from tasks.imports.reading import read_export
from tasks.imports.writing import write_conversation
from tasks.resources import Resources

log = structlog.get_logger()

Progress = Callable[[int, int, "Result"], None]


@dataclass
class Result:
    """The counts, and who failed or was skipped, by name with the reason."""

    imported: int = 0
    already_there: int = 0
    skipped: int = 0
    failed: int = 0
    replaced: int = 0
    failures: list[dict[str, str]] = field(default_factory=list)
    skips: list[dict[str, str]] = field(default_factory=list)

    @property
    def total(self) -> int:
        return self.imported + self.already_there + self.skipped + self.failed

    def document(self) -> dict[str, Any]:
        """What `--json` prints."""
        return {
            "imported": self.imported,
            "already_there": self.already_there,
            "skipped": self.skipped,
            "failed": self.failed,
            "total": self.total,
            "failures": self.failures,
            "skips": self.skips,
            "replaced_characters": self.replaced,
        }

    def fail(self, conversation: str, reason: str) -> None:
        self.failed += 1
        self.failures.append({"conversation": conversation, "reason": reason})


def import_export(
    resources: Resources,
    principal_id: str,
    path: Path,
    *,
    again: bool = False,
    progress: Progress = lambda position, total, result: None,
) -> Result:
    """Imports `path` into a principal's history. `progress` hears bytes read, bytes in all, and the counts so far.

    A file of no known kind counts as one failure. Raises only what the database raises when it is away.
    """
    with Session(resources.engine) as db:
        principal = db.get_one(accounts.Principal, principal_id)
        owner, secret = principal.owner, bytes(principal.import_secret)
    result = Result()
    try:
        export = read_export(path)
        for item in export:
            if isinstance(item, Broken):
                result.fail(item.conversation, item.reason)
            else:
                _import_one(resources, owner, secret, item, again, result)
            progress(export.position, export.total, result)
    except UnknownExport as fault:
        result.fail(path.name, fault.detail)
    log.info(
        "import_ended",
        imported=result.imported,
        already_there=result.already_there,
        skipped=result.skipped,
        failed=result.failed,
    )
    return result


def _import_one(
    resources: Resources, owner: accounts.Owner, secret: bytes, parsed: Parsed, again: bool, result: Result
) -> None:
    result.replaced += parsed.replaced
    name = _name(parsed)
    try:
        written = write_conversation(resources, owner, secret, parsed, again=again)
    except Refusal as refusal:
        result.fail(name, refusal.detail)
    except StoreFault as fault:
        result.fail(name, f"Its files could not be stored: {fault.sentence}")
    except DataError:
        result.fail(name, "PostgreSQL refused a value in it.")
    else:
        setattr(result, written.outcome, getattr(result, written.outcome) + 1)
        if written.reason:
            result.skips.append({"conversation": name, "reason": written.reason})


def _name(parsed: Parsed) -> str:
    return f"{parsed.title_hint} ({parsed.source_id})" if parsed.title_hint else parsed.source_id

"""One import from beginning to end: read, write, count (PRODUCT.md 6).

imported + already there + skipped + failed = total, each failure named with its reason; one bad conversation
never costs the rest.

| what goes wrong | costs |
|---|---|
| a conversation that cannot be read or stored, a file of it that the store refuses | that conversation: failed |
| a fault that nobody foresaw | that conversation; logged by kind and place, without a word of its content |
| PostgreSQL is away, full or read-only | the rest: the counts so far, and `ended_early` says why |

What an import that ended early has written stays; importing the file again goes on where it ended.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import structlog
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.orm import Session

from models import accounts
from models.bytestore import StoreFault
from models.errors import Refusal
from tasks.imports.parsed import Broken, Parsed, UnknownExport
from tasks.imports.reading import read_export
from tasks.imports.writing import Halt, Witness, write_conversation
from tasks.resources import Resources

log = structlog.get_logger()

Progress = Callable[[int, int, "Result"], None]
AWAY = ("08", "25006", "28", "53", "57P", "58")
"""How SQLSTATEs begin that no other conversation would fare better with: no connection, read-only, no sign-in, no
space or memory, shutting down, an input error of its disk."""


@dataclass
class Result:
    """The counts, and who failed or was skipped, by name with the reason. `ended_early` is empty, or why it did.

    `unknown` says that the file as a whole is none that can be imported.
    """

    imported: int = 0
    already_there: int = 0
    skipped: int = 0
    failed: int = 0
    replaced: int = 0
    files_left: int = 0
    ended_early: str = ""
    unknown: bool = False
    failures: list[dict[str, str]] = field(default_factory=list)
    skips: list[dict[str, str]] = field(default_factory=list)

    @property
    def total(self) -> int:
        return self.imported + self.already_there + self.skipped + self.failed

    @property
    def refused(self) -> bool:
        """True when it ended early, or when nothing in the file could be used."""
        return bool(self.ended_early) or 0 < self.failed == self.total

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
            "files_left": self.files_left,
            "ended_early": self.ended_early or None,
        }

    def fail(self, conversation: str, reason: str) -> None:
        self.failed += 1
        self.failures.append({"conversation": conversation, "reason": reason})

    def skip(self, conversation: str, reason: str) -> None:
        self.skipped += 1
        self.skips.append({"conversation": conversation, "reason": reason})


def import_export(
    resources: Resources,
    principal_id: str,
    path: Path,
    *,
    again: bool = False,
    progress: Progress = lambda position, total, result: None,
    witness: Witness | None = None,
    result: Result | None = None,
    name: str = "",
) -> Result:
    """Imports `path` into a principal's history. `progress` hears bytes read, bytes in all, and the counts so far.

    `result` is where an interrupted import of this very file was: as many conversations as it counts are passed over.
    `name` is what the file is called where the path does not say it. A file of no known kind counts as one failure.
    Raises what the database raises when it is away from the start, and the Halt of a witness or of `progress`.
    """
    with Session(resources.engine) as db:
        principal = db.get_one(accounts.Principal, principal_id)
        owner, secret = principal.owner, bytes(principal.import_secret)
    result = result or Result()
    witness = witness or Witness()
    try:
        with read_export(path) as export:
            for item in islice(export, result.total, None):
                if isinstance(item, Broken):
                    result.fail(item.conversation, item.reason)
                else:
                    _import_one(resources, owner, secret, item, again, result, witness)
                progress(export.position, export.total, result)
            progress(export.total, export.total, result)
    except UnknownExport as fault:
        result.unknown = True
        result.fail(name or _file_name(path), fault.detail)
    except DBAPIError as fault:
        result.ended_early = f"PostgreSQL does not answer: {_first_line(fault)}"
    log.info(
        "import_ended",
        imported=result.imported,
        already_there=result.already_there,
        skipped=result.skipped,
        failed=result.failed,
        early=bool(result.ended_early),
    )
    return result


def count_conversations(path: Path, progress: Callable[[int, int], None]) -> tuple[int, str]:
    """How many conversations `import_export` will look at in this file, and the format of the first that can be used.

    `progress` hears bytes read and bytes in all. A file of no known kind has one, of no format.
    """
    total, format = 0, ""  # noqa: A001  the export's
    try:
        with read_export(path) as export:
            for item in export:
                total += 1
                format = format or (item.format if isinstance(item, Parsed) else "")  # noqa: A001
                progress(export.position, export.total)
    except UnknownExport:
        return 1, ""
    return total, format


def _import_one(
    resources: Resources,
    owner: accounts.Owner,
    secret: bytes,
    parsed: Parsed,
    again: bool,
    result: Result,
    witness: Witness,
) -> None:
    """Writes and counts one conversation. Raises DBAPIError when the database is away."""
    name = _name(parsed)
    try:
        written = write_conversation(resources, owner, secret, parsed, again=again, witness=witness)
    except Halt:
        raise
    except Refusal as refusal:
        result.fail(name, refusal.detail)
    except StoreFault as fault:
        result.fail(name, f"its files could not be stored: {fault.sentence}")
    except DBAPIError as fault:
        if _away(fault):
            raise
        _report(fault)
        result.fail(name, f"PostgreSQL refused it ({type(fault.orig).__name__})")
    except Exception as fault:  # noqa: BLE001 - one conversation that no one foresaw never costs the rest
        _report(fault)
        result.fail(name, f"it could not be imported ({type(fault).__name__})")
    else:
        if written.outcome == "imported":
            result.imported += 1
            result.replaced += parsed.replaced
            result.files_left += written.files_left
        elif written.outcome == "already_there":
            result.already_there += 1
        else:
            result.skip(name, written.reason)


def _away(fault: DBAPIError) -> bool:
    state = getattr(fault.orig, "pgcode", None)
    if state is None:  # no answer, so no word of it
        return fault.connection_invalidated or isinstance(fault, OperationalError | InterfaceError)
    return str(state).startswith(AWAY)


def _first_line(fault: DBAPIError) -> str:
    return next(iter(str(fault.orig).strip().splitlines()), "no answer")


def _report(fault: Exception) -> None:
    # No message and no local values: both hold what people said.
    last = traceback.extract_tb(fault.__traceback__)[-1]
    log.error(
        "import_failed",
        error=type(fault).__name__,
        at=f"{Path(last.filename).name}:{last.lineno} {last.name}",
    )


def _name(parsed: Parsed) -> str:
    return f"{parsed.title_hint} ({parsed.source_id})" if parsed.title_hint else parsed.source_id


def _file_name(path: Path) -> str:
    # A name may hold bytes that are no UTF-8, which Python carries as lone surrogates and JSON does not take.
    return (path.name or str(path)).encode("utf-8", "replace").decode()

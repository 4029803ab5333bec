"""`import FILE --user EMAIL`: an export of conversations into a user's history, with a progress bar."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from sqlalchemy.orm import Session

from blueprints.commands.terminal import command, held, json_option, say
from models import accounts
from tasks.imports.importer import Result
from tasks.imports.jobs import import_here

SHOWN = 20  # failures that a person is shown; --json has all


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--user", "email", required=True, metavar="EMAIL", help="Whose history it goes to.")
@click.option("--again", is_flag=True, help="Import again what was deleted here.")
@json_option
@command
def import_file(file: Path, email: str, again: bool, as_json: bool) -> None:
    """Import an export of ChatGPT, Claude, Open WebUI, ShareGPT-style or JSON lines."""
    resources = held()
    with Session(resources.engine) as db:
        principal_id = accounts.user_named(db, email).id
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("Importing", total=None)

        def progress(position: int, total: int, result: Result) -> None:
            bar.update(task, completed=position, total=total, description=f"Imported {result.imported}")

        result = import_here(resources, principal_id, file, again=again, progress=progress)
    say(as_json, result.document(), *map(_printable, _lines(result)))
    if result.ended_early:
        raise click.ClickException(f"{result.ended_early}. Import the file again to go on.")
    if result.refused:
        raise click.exceptions.Exit(1)


def _lines(result: Result) -> list[str]:
    lines = [
        f"{result.imported} imported, {result.already_there} already there, {result.skipped} skipped, "
        f"{result.failed} failed: {result.total} in all."
    ]
    lines += [f"  failed: {one['conversation']}: {one['reason']}" for one in result.failures[:SHOWN]]
    if len(result.failures) > SHOWN:
        lines.append(f"  and {len(result.failures) - SHOWN} more; --json names each.")
    if result.skips:
        lines.append("  Skipped conversations were deleted here; --again imports them.")
    if result.files_left:
        lines.append(f"  {result.files_left} files are damaged or too large; only their names were kept.")
    if result.replaced:
        lines.append(f"  {result.replaced} characters that cannot be stored were replaced.")
    return lines


def _printable(line: str) -> str:
    # A title comes from a stranger's file: in a terminal it moves no cursor and sets no colours.
    return "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in line
    )

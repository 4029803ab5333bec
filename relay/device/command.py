"""`python -m relay.device`: what a person, or a program, does with the memories of a device.

Exit codes: 0 done, 1 refused or done in part (said on standard error), 2 not understood, 3 peer or relay unreachable.
"""

from __future__ import annotations

from pathlib import Path

import click
import platformdirs

from relay.device.asking import confirm_request, keep_request, refused
from relay.device.carrying import export_memories, import_memories
from relay.device.home import make_device
from relay.device.remembering import (
    forget_memories,
    list_memories,
    move_memories,
    recall_words,
    redact_memories,
    remember_text,
)
from relay.device.standing import status, wipe, workspace
from relay.device.terminal import Asked, refusing, say


@click.group()
@click.option(
    "--home",
    type=click.Path(file_okay=False, path_type=Path),
    default=lambda: platformdirs.user_data_path("allgone", appauthor=False),
    envvar="ALLGONE_DEVICE_HOME",
    show_default="a folder of your own",
    help="The device's home directory.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def device(context: click.Context, home: Path, as_json: bool) -> None:
    """Memories of this device, and what was deleted of them.

    \b
    python -m relay.device init --name laptop
    python -m relay.device remember "Ada bakes on Saturdays"
    python -m relay.device recall saturdays
    python -m relay.device forget KEY
    """
    context.obj = Asked(home.expanduser(), as_json)


@device.command("init")
@click.option("--name", required=True, help="What other devices will call it.")
@refusing
def init(name: str) -> None:
    """Make a device in the home directory.

    \b
    python -m relay.device --home ~/laptop init --name laptop
    """
    home = click.get_current_context().obj.home
    make_device(home, name)
    say({"device": name, "home": str(home)}, f"{name} is a device now, at home in {home}.")


for one in (
    remember_text, list_memories, recall_words, forget_memories, redact_memories, move_memories, workspace, wipe,
    export_memories, import_memories, refused, confirm_request, keep_request, status,
):  # fmt: skip
    device.add_command(one)

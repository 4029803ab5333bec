"""`remember`, `memories`, `recall`, `forget`, `redact`, `move`."""

from __future__ import annotations

import json
from collections.abc import Sequence

import click
from sqlalchemy import select

from models.errors import NotFound
from models.memorystore import looking, verbs
from models.memorystore.store import Held, Place, as_held
from models.memorystore.tables import MEMORIES
from models.redaction import MASK
from models.rules import DATASET, WORKSPACE
from relay.device.home import Device
from relay.device.terminal import asked, key_of, line, opened, refusing, say, text_of, told

in_workspace = click.option("--workspace", metavar="W", help="One workspace; all of them without it.")


@click.command("remember")
@click.argument("text")
@click.option("--workspace", default=WORKSPACE, show_default=True, metavar="W", help="Made when it is new.")
@refusing
def remember_text(text: str, workspace: str) -> None:
    """Keep TEXT, or standard input for "-"; prints its key. Secrets in it are masked first.

    \b
    python -m relay.device remember "Ada bakes on Saturdays"
    python -m relay.device remember - --workspace work < notes.txt
    """
    said = text_of(text)
    with opened() as device:
        made = verbs.remember(device.store, said, Place(workspace, DATASET), "typed")
    say({"key": made.key.hex(), "workspace": workspace}, made.key.hex())


@click.command("memories")
@in_workspace
@refusing
def list_memories(workspace: str | None) -> None:
    """List the memories, in the order in which they came here.

    \b
    python -m relay.device --json memories --workspace work
    """
    place = Place(workspace, DATASET) if workspace is not None else None
    with opened() as device:
        # Written as they are read: a million of them are no document to hold.
        if asked().as_json:
            click.echo('{"memories": [', nl=False)
            for number, one in enumerate(looking.memories(device.store, place)):
                click.echo((", " if number else "") + json.dumps(told(one)), nl=False)
            click.echo("]}")
        else:
            for one in looking.memories(device.store, place):
                click.echo(line(one))


@click.command("recall")
@click.argument("words", nargs=-1, required=True)
@in_workspace
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True)
@refusing
def recall_words(words: Sequence[str], workspace: str | None, limit: int) -> None:
    """Find the memories that hold all WORDS, in any script; the last may be only a beginning.

    \b
    python -m relay.device recall bakes satur
    python -m relay.device recall '"on saturdays"'
    """
    with opened() as device:
        found = looking.recall(device.store, " ".join(words), workspace, limit)
    say({"memories": [told(one) for one in found]}, *map(line, found))


@click.command("forget")
@click.argument("keys", metavar="KEY …", nargs=-1, required=True)
@in_workspace
@refusing
def forget_memories(keys: Sequence[str], workspace: str | None) -> None:
    """Delete memories by their keys, here and, at their next sync, on every paired device.

    \b
    python -m relay.device forget 61be55a8e2f6b4e172338bddf184d6dbee29c98853e0a0485ecee7f27b9af0b4
    """
    wanted = [key_of(key) for key in keys]
    with opened() as device:
        places = {one.place for one in _holding(device, wanted, workspace)}
        done = [verbs.forget(device.store, place, wanted) for place in sorted(places)]
    deleted, recorded = sum(one.deleted for one in done), sum(one.recorded for one in done)
    say({"deleted": deleted, "recorded": recorded}, f"{deleted} deleted, {recorded} recorded.")


@click.command("redact")
@click.argument("keys", metavar="KEY …", nargs=-1, required=True)
@click.option(
    "--text", "secret", required=True, metavar="SECRET", help="What is masked; - reads standard input."
)
@in_workspace
@refusing
def redact_memories(keys: Sequence[str], secret: str, workspace: str | None) -> None:
    """Mask SECRET in memories; nothing of it is kept, here or on a paired device, and no record either.

    \b
    python -m relay.device redact KEY --text - < secret.txt
    """
    wanted, hidden = [key_of(key) for key in keys], text_of(secret)
    if not hidden.strip():
        raise click.UsageError("There is nothing in this text to mask.")
    with opened() as device:
        held = _holding(device, wanted, workspace)
        without = [one for one in held if hidden not in one.text]
        if without or not held:
            raise NotFound(
                f"{without[0].key.hex()} does not hold that text. Nothing was changed." if without
                else "There is no such memory here. Nothing was changed."
            )  # fmt: skip
        for one in held:
            verbs.redact(device.store, one.place, one.key, one.text.replace(hidden, MASK))
    say({"deleted": len(held), "recorded": 0}, f"{len(held)} masked.")


@click.command("move")
@click.argument("keys", metavar="KEY …", nargs=-1, required=True)
@click.option("--to", required=True, metavar="W", help="The workspace; made when it is new.")
@in_workspace
@refusing
def move_memories(keys: Sequence[str], to: str, workspace: str | None) -> None:
    """Bring memories into another workspace.

    \b
    python -m relay.device move KEY --to work
    """
    wanted = [key_of(key) for key in keys]
    with opened() as device:
        held = _holding(device, wanted, workspace)
        missing = set(wanted) - {one.key for one in held}
        if missing:
            raise NotFound(f"There is no memory {sorted(missing)[0].hex()} here. Nothing was moved.")
        for one in held:
            verbs.move(device.store, one.place, one.key, to)
    say({"moved": len(held), "workspace": to}, f"{len(held)} moved to {to}.")


def _holding(device: Device, keys: Sequence[bytes], workspace: str | None) -> Sequence[Held]:
    """The memories of some keys, in every workspace or in the one that is named."""
    found = []
    for at in range(0, len(keys), 500):
        rows = select(MEMORIES).where(device.store.mine(MEMORIES), MEMORIES.c.key.in_(keys[at : at + 500]))
        if workspace is not None:
            rows = rows.where(MEMORIES.c.workspace == workspace)
        with device.store.reading() as db:
            found += [as_held(row) for row in db.execute(rows)]
    return found

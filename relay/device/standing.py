"""`workspace`, `wipe`, `status`: how a device stands, and emptying it."""

from __future__ import annotations

import sys

import click
from sqlalchemy import delete, func, select

from models.errors import NotFound
from models.memorystore import looking, verbs
from models.memorystore.store import EVERYWHERE, Place
from models.memorystore.tables import RECORDS, WORKSPACES
from models.memorystore.writing import make_workspace
from models.recorded import Deleting
from models.rules import DATASET
from relay.device.terminal import opened, refusing, say


@click.group("workspace")
def workspace() -> None:
    """Workspaces: the same text in two of them is two memories."""


@workspace.command("list")
@refusing
def list_workspaces() -> None:
    """List them with how many memories each holds."""
    with opened() as device:
        held = looking.workspaces(device.store)
    told = [{"name": name, "memories": count} for name, count in held]
    say({"workspaces": told}, *(f"{name}  {count:,}" for name, count in held))


@workspace.command("create")
@click.argument("name")
@refusing
def create_workspace(name: str) -> None:
    """Make one."""
    verbs.check_workspace(name)
    with opened() as device, device.store.phase("made"):
        make_workspace(device.store, name)
    say({"name": name}, f"{name} is a workspace.")


@workspace.command("remove")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@refusing
def remove_workspace(name: str, yes: bool) -> None:
    """Remove one and the memories in it, on this device alone: no other is told to delete anything."""
    with opened() as device:
        held = dict(looking.workspaces(device.store))
        if name not in held:
            raise NotFound(f"There is no workspace {name} here.")
        sure(yes, f"{held[name]:,} memories of {name} go from this device.")
        gone = verbs.forget_all(device.store, Place(name, DATASET), Deleting.WORKSPACE)
        with device.store.phase("removed") as db:
            db.execute(delete(WORKSPACES).where(device.store.mine(WORKSPACES), WORKSPACES.c.name == name))
    say(
        {"deleted": gone.deleted, "recorded": gone.recorded},
        f"{name} is removed; {gone.deleted:,} memories went.",
    )


@click.command("wipe")
@click.option("--yes", is_flag=True, help="Do not ask.")
@refusing
def wipe(yes: bool) -> None:
    """Empty this device. It stays itself, keeps what it knows of deletions, and tells no other to delete anything.

    A sync would bring back what other devices hold.
    """
    with opened() as device:
        held = looking.workspaces(device.store)
        sure(
            yes,
            f"{sum(count for _, count in held):,} memories go from this device; a sync would bring them back.",
        )
        places = [Place(name, DATASET) for name, _ in held] + [EVERYWHERE]
        gone = [verbs.forget_all(device.store, place, Deleting.WIPE) for place in places]
    deleted = sum(one.deleted for one in gone)
    say(
        {"deleted": deleted, "recorded": 0},
        f"{deleted:,} deleted. A sync would bring back what other devices hold.",
    )


@click.command("status")
@refusing
def status() -> None:
    """How this device stands: what it holds, and how many deletions it remembers."""
    with opened() as device:
        held = looking.workspaces(device.store)
        with device.store.reading() as db:
            count = db.execute(select(func.count()).select_from(RECORDS).where(device.store.mine(RECORDS)))
            records: int = count.scalar_one()
        document = {
            "device": {"id": device.id.hex(), "name": device.name},
            "key_store": device.key_store,
            "workspaces": [{"name": name, "memories": count} for name, count in held],
            "deletion_records": records,
        }
        lines = [f"{device.name}, keys in a {device.key_store} of its home."]
    lines += [f"{name}: {count:,} memories" for name, count in held]
    say(document, *lines, f"{records:,} deletions are remembered.")


def sure(yes: bool, what: str) -> None:
    """Asks before what cannot be undone, where somebody can answer."""
    if not yes and sys.stdin.isatty():
        click.confirm(f"{what} Go on?", abort=True, err=True)

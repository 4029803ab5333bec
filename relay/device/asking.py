"""`refused`, `confirm`, `keep`: deletions that were too many at once, and the user's word on them.

A request's id is made from its pairing and place, so that it is the same each time it is shown.
"""

from __future__ import annotations

from hashlib import sha256

import click

from models.errors import NotFound
from models.memorystore import requests
from models.memorystore.requests import Request
from relay.device.home import Device
from relay.device.terminal import opened, refusing, say


@click.command("refused")
@refusing
def refused() -> None:
    """List what paired devices asked to be deleted and this one kept."""
    with opened() as device:
        held = requests.requests(device.store)
    told = [
        {
            "id": id_of(one),
            "pairing": one.pairing.hex(),
            "workspace": one.place.workspace,
            "count": one.asked,
            "reason": "too_many",
        }
        for one in held
    ]
    lines = (
        f"{id_of(one)}  {one.place.workspace}  kept {one.asked:,} memories: too many at once" for one in held
    )
    say({"requests": told}, *lines)


@click.command("confirm")
@click.argument("request_id", metavar="ID")
@refusing
def confirm_request(request_id: str) -> None:
    """Delete what a refused request asked for, now and without the other device."""
    with opened() as device:
        gone = requests.confirm(device.store, _found(device, request_id))
    say({"deleted": gone.deleted, "recorded": gone.recorded}, f"{gone.deleted:,} deleted.")


@click.command("keep")
@click.argument("request_id", metavar="ID")
@refusing
def keep_request(request_id: str) -> None:
    """Keep what a refused request asked for; it is not asked again."""
    with opened() as device:
        kept = requests.keep(device.store, _found(device, request_id))
    say({"kept": kept}, f"{kept:,} kept.")


def id_of(one: Request) -> str:
    """The id of a request, 16 hex digits."""
    return sha256(b"\0".join([one.pairing, *(part.encode() for part in one.place)])).hexdigest()[:16]


def _found(device: Device, request_id: str) -> Request:
    for one in requests.requests(device.store):
        if id_of(one) == request_id:
            return one
    raise NotFound(f"There is no open request {request_id[:64]!r}. `refused` lists them.")

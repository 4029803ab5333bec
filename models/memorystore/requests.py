"""Deletions that a sync refused as too many at once: what each pairing asks, and the user's yes or no to it.

A yes is applied at once, from the stored keys and times against the copies of this moment, without the peer and
without a charge to the cap. Source: ADR 0176, "the user may confirm"; PRODUCT.md 4.4, Cap.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import and_, delete, func, insert, literal, select, update

from models import rules
from models.memorystore.store import Place, Store
from models.memorystore.tables import GOING, MEMORIES, REQUESTS
from models.memorystore.verbs import Gone
from models.memorystore.writing import record_going, remove_going


class Request(NamedTuple):
    """What one pairing asks of one place: so many memories that are held and older than what was asked."""

    pairing: bytes
    place: Place
    asked: int


def requests(store: Store) -> Sequence[Request]:
    """Every request that waits for an answer."""
    pairs = _of_held(store)
    rows = select(REQUESTS.c.pairing, REQUESTS.c.workspace, REQUESTS.c.dataset, func.count())
    rows = rows.join_from(REQUESTS, MEMORIES, pairs).where(store.mine(REQUESTS), REQUESTS.c.kept == 0)
    groups = (REQUESTS.c.pairing, REQUESTS.c.workspace, REQUESTS.c.dataset)
    with store.reading():
        found = store.db.execute(rows.group_by(*groups).order_by(*groups)).all()
    return [
        Request(pairing, Place(workspace, dataset), count) for pairing, workspace, dataset, count in found
    ]


def confirm(store: Store, request: Request) -> Gone:
    """The user's yes."""
    now = store.clock()
    with store.phase("recorded"):
        store.db.execute(delete(GOING))
        rows = select(
            REQUESTS.c.workspace, REQUESTS.c.dataset, REQUESTS.c.key, MEMORIES.c.logical_id, REQUESTS.c.deleted_at,
            literal(1), literal(0),
        )  # fmt: skip
        chosen = rows.join_from(REQUESTS, MEMORIES, _of_held(store)).where(_one(store, request))
        store.db.execute(insert(GOING).from_select([c.name for c in GOING.c], chosen))
        recorded, _ = record_going(store, now)
        store.db.execute(delete(REQUESTS).where(_one(store, request)))
    with store.phase("deleted"):
        return Gone(remove_going(store), recorded)


def keep(store: Store, request: Request) -> int:
    """The user's no: what was asked stays, and is not asked again; how many keys."""
    with store.phase("kept"):
        return store.db.execute(update(REQUESTS).where(_one(store, request)).values(kept=1)).rowcount


def _of_held(store: Store) -> Any:
    return and_(
        store.mine(MEMORIES),
        MEMORIES.c.workspace == REQUESTS.c.workspace,
        MEMORIES.c.dataset == REQUESTS.c.dataset,
        MEMORIES.c.key == REQUESTS.c.key,
        rules.dominates(REQUESTS.c.deleted_at, MEMORIES.c.recorded_at),
    )


def _one(store: Store, request: Request) -> Any:
    return store.mine(REQUESTS, request.place) & (REQUESTS.c.pairing == request.pairing)

"""What becomes of deletions that a peer asked for: judged as a whole, then recorded and done, or refused.

The one place where a peer makes us delete. Source: ADR 0176; PRODUCT.md 4.3 and 4.4, Cap. The keys that were asked for
stand in `asked`, less those that we did not list.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import and_, delete, exists, func, insert, literal, select

from models import rules
from models.marks import Mark, Verdict, joined, verdict
from models.memorystore.store import MANY, Held, Place, Store, as_held
from models.memorystore.tables import ASKED, ASKED_MARKS, FACTS, GOING, MEMORIES, REQUESTS, SPENT
from models.memorystore.writing import move_row, record_going, remove_going, supersede, write_marks
from relay import effects as ask
from relay.frames import Refused

DAY = timedelta(days=1)


def settle_asked(
    store: Store, pairing: bytes, place: Place, refuse: str | None, *, named: bool
) -> ask.Settled:
    """Judges what was asked as a whole, records, deletes, or refuses. Source: PRODUCT.md 4.3, 4.4 Cap.

    `named`: the other may name, so what it asks no more is no open or kept request of its any longer.
    """
    if refuse:
        with store.reading():
            asked = (
                store.db.execute(delete(table).where(here(table, place))) for table in (ASKED, ASKED_MARKS)
            )
            keys = sum(one.rowcount for one in asked)
        return ask.Settled(0, (Refused(keys, refuse),) if keys else ())
    now = store.clock()
    _follow_marks(store, place, now)
    refused: list[Refused] = []
    with store.recording("judged") as ticket:
        if named:
            _let_go(store, pairing, place)
        future = _choose(store, pairing, place, now)
        if future:
            refused.append(Refused(future, "future"))
        going = store.db.execute(select(func.count()).select_from(GOING)).scalar_one()
        size = store.db.execute(
            select(func.count()).select_from(MEMORIES).where(store.mine(MEMORIES, place))
        ).scalar_one()
        if not rules.within_cap(going, size, _spent(store, place, now)):
            _refuse(store, pairing)
            refused.append(Refused(going, "too_many"))
            going = 0
        elif going:
            record_going(store, now)
            spent = {
                "principal_id": store.principal, "workspace": place.workspace, "dataset": place.dataset,
                "at": now, "count": going,
            }  # fmt: skip
            store.db.execute(insert(SPENT), spent)
        store.db.execute(delete(ASKED).where(here(ASKED, place)))
    with store.removing("deleted", ticket):
        if going:
            remove_going(store)
    return ask.Settled(going, tuple(refused))


def _choose(store: Store, pairing: bytes, place: Place, now: datetime) -> int:
    """Puts into `going` what is to go of what was asked; how many were from the far future instead."""
    waits = exists().where(
        store.mine(REQUESTS), REQUESTS.c.pairing == pairing, REQUESTS.c.workspace == ASKED.c.workspace,
        REQUESTS.c.dataset == ASKED.c.dataset, REQUESTS.c.key == ASKED.c.key,
        REQUESTS.c.deleted_at >= ASKED.c.deleted_at,
    )  # fmt: skip
    really = and_(
        here(ASKED, place),
        rules.dominates(ASKED.c.deleted_at, MEMORIES.c.recorded_at),
        ~waits,
    )
    ahead = rules.too_far_ahead(ASKED.c.deleted_at, now, MEMORIES.c.recorded_at)
    pairs = and_(store.mine(MEMORIES, place), MEMORIES.c.key == ASKED.c.key)
    joins = select(func.count()).select_from(ASKED).join(MEMORIES, pairs)
    future: int = store.db.execute(joins.where(really, ahead)).scalar_one()
    rows = select(
        ASKED.c.workspace, ASKED.c.dataset, ASKED.c.key, MEMORIES.c.logical_id, ASKED.c.deleted_at,
        1 - ASKED.c.marked, ASKED.c.marked,
    )  # fmt: skip
    store.db.execute(delete(GOING))
    chosen = rows.join_from(ASKED, MEMORIES, pairs).where(really, ~ahead)
    store.db.execute(insert(GOING).from_select([c.name for c in GOING.c], chosen))
    return future


def _spent(store: Store, place: Place, now: datetime) -> int:
    lately = select(func.coalesce(func.sum(SPENT.c.count), 0)).where(
        store.mine(SPENT, place), SPENT.c.at > now - DAY
    )
    return int(store.db.execute(lately).scalar_one())


def _refuse(store: Store, pairing: bytes) -> None:
    rows = select(
        literal(store.principal, REQUESTS.c.principal_id.type), literal(pairing, REQUESTS.c.pairing.type),
        GOING.c.workspace, GOING.c.dataset, GOING.c.key, GOING.c.deleted_at, literal(0),
    ).where(literal(True))  # fmt: skip
    new = store.insert(REQUESTS).from_select([c.name for c in REQUESTS.c], rows)
    store.db.execute(
        new.on_conflict_do_update(
            ["principal_id", "pairing", "workspace", "dataset", "key"],
            set_={"deleted_at": new.excluded.deleted_at, "kept": 0},  # deleted again since: asked again
        )
    )
    store.db.execute(delete(GOING))


def _let_go(store: Store, pairing: bytes, place: Place) -> None:
    mine = store.mine(REQUESTS, place) & (REQUESTS.c.pairing == pairing)
    still = exists().where(here(ASKED, place), ASKED.c.key == REQUESTS.c.key)
    store.db.execute(delete(REQUESTS).where(mine, ~still))


def _follow_marks(store: Store, place: Place, now: datetime) -> None:
    """Takes in the other's marks. Those that say "gone" are asked for like deletions: their keys and marks."""
    last = 0
    while some := _told_marks(store, place, last):
        last = some[-1].number
        _follow_some(store, place, some, now)
    with store.reading():
        store.db.execute(delete(ASKED_MARKS).where(here(ASKED_MARKS, place)))


def _told_marks(store: Store, place: Place, last: int) -> Sequence[Any]:
    rows = select(ASKED_MARKS).where(here(ASKED_MARKS, place), ASKED_MARKS.c.number > last)
    with store.reading():
        return store.db.execute(rows.order_by(ASKED_MARKS.c.number).limit(MANY)).all()


def _follow_some(store: Store, place: Place, some: Sequence[Any], now: datetime) -> None:
    told = [(row.logical_id, Mark(row.redacted_at, row.placed_at, row.placed_in)) for row in some]
    known: dict[bytes, Mark] = {}
    moved: list[tuple[Held, Place]] = []
    asked: list[dict[str, Any]] = []
    with store.reading():
        same = MEMORIES.c.logical_id.in_({logical_id for logical_id, _ in told})
        mine: dict[bytes, list[Held]] = defaultdict(list)
        for row in store.db.execute(select(*FACTS).where(store.mine(MEMORIES, place), same)):
            mine[row.logical_id].append(as_held(row))
        for logical_id, mark in told:
            for one in mine[logical_id]:
                what = verdict(mark, place.workspace, one.copy.recorded_at)
                if what is Verdict.GONE:
                    asked.append(
                        {
                            **place._asdict(),
                            "key": one.key,
                            "logical_id": logical_id,
                            "deleted_at": mark.placed_at,
                        }
                    )
                    continue
                known[logical_id] = joined(mark, known.get(logical_id, Mark()))
                if what is Verdict.ELSEWHERE:
                    assert mark.workspace is not None
                    moved.append((one, Place(mark.workspace, place.dataset)))
        if asked:
            rows = [{**one, "marked": 1} for one in asked]
            new = store.insert(ASKED)
            # Asked for by its key as well: by the time of that, and still without a record of it.
            store.db.execute(
                new.on_conflict_do_update(["workspace", "dataset", "key"], set_={"marked": 1}), rows
            )
    if known:
        with store.recording("marked") as ticket:
            write_marks(store, known, now)
        with store.removing("placed", ticket):
            for one, there in moved:
                move_row(store, one, there)
            supersede(store, list(known))


def here(table: Any, place: Place) -> Any:
    """The condition that rows of a session's table are of one place."""
    return (table.c.workspace == place.workspace) & (table.c.dataset == place.dataset)

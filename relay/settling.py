"""What becomes of deletions that a peer asked for: judged as a whole, then recorded and done, or refused.

The one place where a peer makes us delete. Source: ADR 0176; PRODUCT.md 4.3 and 4.4, Cap. The keys that were asked for
stand in `asked`, less those that we did not list.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import and_, delete, exists, func, insert, literal, select

from models import rules
from models.marks import Mark, Verdict, joined, verdict
from models.memorystore.columns import moment
from models.memorystore.store import Held, Place, Store, as_held
from models.memorystore.tables import ASKED, GOING, MEMORIES, REQUESTS, SPENT
from models.memorystore.writing import move_row, record_going, remove_going, supersede, write_marks
from relay import effects as ask
from relay.frames import Marked, Refused

DAY = timedelta(days=1)


def settle_asked(
    store: Store, pairing: bytes, place: Place, told: Sequence[Marked], refuse: str | None
) -> ask.Settled:
    """Judges what was asked as a whole, records, deletes, or refuses. Source: PRODUCT.md 4.3, 4.4 Cap."""
    now = store.clock()
    if refuse:
        with store.phase("refused"):
            keys = store.db.execute(delete(ASKED).where(here(ASKED, place))).rowcount + len(told)
        return ask.Settled(0, (Refused(keys, refuse),) if keys else ())
    gone = _follow_marks(store, place, told, now)
    refused: list[Refused] = []
    with store.phase("judged"):
        future = _choose(store, pairing, place, now, gone)
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
    if going:
        with store.phase("deleted"):
            remove_going(store)
    return ask.Settled(going, tuple(refused))


def _follow_marks(store: Store, place: Place, told: Sequence[Marked], now: datetime) -> dict[bytes, Mark]:
    """Takes in the other's marks. Those that say "gone" are asked for like deletions: their keys and marks."""
    known: dict[bytes, Mark] = {}
    moved: list[tuple[Held, Place]] = []
    gone: dict[bytes, Mark] = {}
    asked: list[dict[str, Any]] = []
    with store.reading():
        for one in told:
            mark = Mark(moment(one.redacted_at), moment(one.placed_at), one.workspace)
            same = store.mine(MEMORIES, place) & (MEMORIES.c.logical_id == one.logical_id)
            for mine in [as_held(row) for row in store.db.execute(select(MEMORIES).where(same)).all()]:
                what = verdict(mark, place.workspace, mine.copy.recorded_at)
                if what is Verdict.GONE:
                    gone[mine.key] = mark
                    row = {"workspace": place.workspace, "dataset": place.dataset, "key": mine.key}
                    asked.append({**row, "deleted_at": mark.placed_at})
                    continue
                known[one.logical_id] = joined(mark, known.get(one.logical_id, Mark()))
                if what is Verdict.ELSEWHERE:
                    assert mark.workspace is not None
                    moved.append((mine, Place(mark.workspace, place.dataset)))
    if known or asked:
        with store.phase("marked"):
            write_marks(store, known, now)
            if asked:
                store.db.execute(store.insert(ASKED).on_conflict_do_nothing(), asked)
        with store.phase("placed"):
            for mine, there in moved:
                move_row(store, mine, there)
            supersede(store, known)
    return gone


def _choose(store: Store, pairing: bytes, place: Place, now: datetime, gone: dict[bytes, Mark]) -> int:
    """Puts into `going` what is to go of what was asked; how many were from the far future instead."""
    waits = exists().where(
        store.mine(REQUESTS), REQUESTS.c.pairing == pairing, REQUESTS.c.workspace == ASKED.c.workspace,
        REQUESTS.c.dataset == ASKED.c.dataset, REQUESTS.c.key == ASKED.c.key,
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
        ASKED.c.workspace, ASKED.c.dataset, ASKED.c.key, MEMORIES.c.logical_id, ASKED.c.deleted_at, literal(1),
        literal(0),
    )  # fmt: skip
    store.db.execute(delete(GOING))
    chosen = rows.join_from(ASKED, MEMORIES, pairs).where(really, ~ahead)
    store.db.execute(insert(GOING).from_select([c.name for c in GOING.c], chosen))
    for key in gone:  # what a mark says is gone leaves a mark, and no hash
        store.db.execute(GOING.update().where(GOING.c.key == key).values(recorded=0, marked=1))
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
            set_={"deleted_at": new.excluded.deleted_at},
        )
    )
    store.db.execute(delete(GOING))


def here(table: Any, place: Place) -> Any:
    """The condition that rows of a session's table are of one place."""
    return (table.c.workspace == place.workspace) & (table.c.dataset == place.dataset)

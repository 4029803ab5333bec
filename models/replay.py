"""Making a restored backup forget what was deleted after it was taken (PRODUCT.md 3.6, last paragraph).

An export holds every tombstone, the id of every account that was closed, and every deletion record sealed under
SECRET_KEY (they are hashes of what was deleted). A replay writes the records first, takes out the memories that they
dominate, then deletes each conversation whose tombstone it brings, all with the original times; so home does not send
deleted memories out again. An account that was closed is closed again, and emptied by the sweep. Replaying twice
changes nothing.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from hashlib import sha256
from typing import Any

import orjson
from cryptography.fernet import Fernet, InvalidToken
from sqlalchemy import func, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from models import closing, runs
from models.accounts import Owner, Principal
from models.append import lock_conversation
from models.base import database_time
from models.errors import Invalid, NotFound
from models.history import Tombstone
from models.ids import is_id
from models.memories import DeletionRecord
from models.purge import delete_conversation
from models.rules import BATCH

HEADER = {"allgone": "tombstones", "version": 1}


def exported(db: Session, secret_key: str) -> Iterator[bytes]:
    """The lines of an export: a header, tombstones, sealed batches of deletion records. Constant memory."""
    yield orjson.dumps(HEADER)
    stones = select(Tombstone).order_by(Tombstone.session_id).execution_options(yield_per=BATCH)
    for stone in db.scalars(stones):
        yield orjson.dumps(
            {
                "session_id": stone.session_id,
                "tenant_id": stone.tenant_id,
                "principal_id": stone.principal_id,
                "deleted_at": stone.deleted_at.isoformat(),
            }
        )
    closed = select(Principal.id, Principal.closed_at).where(Principal.closed_at.is_not(None))
    for account, closed_at in db.execute(closed.order_by(Principal.id)):
        yield orjson.dumps({"account": account, "closed_at": closed_at})
    box = _box(secret_key)
    records = select(DeletionRecord).execution_options(yield_per=BATCH)
    for batch in db.scalars(records).partitions(BATCH):
        yield orjson.dumps({"records": box.encrypt(orjson.dumps([_plain(one) for one in batch])).decode()})


def replay_line(db: Session, line: bytes, secret_key: str) -> str:
    """Replays one line of an export in the caller's transaction; says what it was: header, records,
    account, removed, kept.

    Raises Invalid("file") for a line that no export of this SECRET_KEY holds.
    """
    try:
        value = orjson.loads(line)
        if value == HEADER:
            return "header"
        if "records" in value:
            _replay_records(db, orjson.loads(_box(secret_key).decrypt(value["records"])))
            return "records"
        if "account" in value:
            return _replay_closing(db, value)
        return _replay_tombstone(db, value)
    except InvalidToken:
        raise Invalid("file", "The deletion records were sealed under another SECRET_KEY.") from None
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        raise Invalid("file", "This is no export of tombstones, or it is damaged.") from None


def in_order(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The lines with what `replay_line` must see first in front: the header, then records, then tombstones.

    Raises Invalid("file") when the header is missing.
    """
    held = [line for line in lines if line.strip()]
    if not held or not held[0].startswith(b'{"allgone"'):
        raise Invalid("file", "This is no export of tombstones.")
    yield held[0]
    yield from (line for line in held[1:] if line.startswith(b'{"records"'))
    yield from (line for line in held[1:] if not line.startswith(b'{"records"'))


def _replay_records(db: Session, rows: Sequence[Mapping[str, Any]]) -> None:
    values = [
        {
            **row,
            "key": bytes.fromhex(row["key"]),
            "deleted_at": _time(row, "deleted_at"),
            "raised_at": _time(row, "raised_at"),
        }
        for row in rows
    ]
    write = insert(DeletionRecord).values(values)
    latest = {
        name: func.greatest(getattr(DeletionRecord, name), write.excluded[name])
        for name in ("deleted_at", "raised_at")
    }
    keys = ["principal_id", "workspace", "dataset", "key"]
    db.execute(write.on_conflict_do_update(index_elements=keys, set_=latest))
    for statement in _FORGET_DOMINATED:
        db.execute(text(statement))


def _replay_closing(db: Session, value: Mapping[str, Any]) -> str:
    if not is_id(value["account"]):
        raise ValueError("no id")
    with suppress(NotFound):  # made after the backup was taken
        closing.close(db, value["account"], _time(value, "closed_at"))
    return "account"


def _replay_tombstone(db: Session, value: Mapping[str, Any]) -> str:
    names = ("session_id", "tenant_id", "principal_id")
    if not all(is_id(value[name]) for name in names):
        raise ValueError("not an id")
    owner = Owner(value["tenant_id"], value["principal_id"])
    deleted_at = _time(value, "deleted_at")
    try:
        conversation = lock_conversation(db, owner, value["session_id"])
    except NotFound:
        stone = {name: value[name] for name in names}
        db.execute(insert(Tombstone).values(**stone, deleted_at=deleted_at).on_conflict_do_nothing())
        return "kept"
    if conversation.active_run_id is not None:  # a run of before the restore: its worker is long gone
        runs.end(db, conversation, conversation.active_run_id, "expired", database_time(db))
    delete_conversation(db, owner, value["session_id"])
    mine = Tombstone.session_id == value["session_id"]
    db.execute(update(Tombstone).where(mine).values(deleted_at=deleted_at))
    return "removed"


# Set-based, since a restore may bring back as much as there is. The one comparison of rules.dominates, in SQL.
_FORGET_DOMINATED = (
    """
    DELETE FROM memories m USING deletion_records d
    WHERE (m.principal_id, m.workspace, m.dataset, m.key) = (d.principal_id, d.workspace, d.dataset, d.key)
      AND d.deleted_at >= m.recorded_at
    """,
    """
    DELETE FROM consolidations c USING consolidation_inputs i
    WHERE (c.session_id, c.seq) = (i.session_id, i.seq)
      AND NOT EXISTS (SELECT FROM memories m WHERE m.id = i.memory_id)
    """,
    """
    DELETE FROM consolidation_inputs i
    WHERE NOT EXISTS (SELECT FROM consolidations c WHERE (c.session_id, c.seq) = (i.session_id, i.seq))
    """,
)


def _plain(record: DeletionRecord) -> dict[str, str]:
    return {
        "principal_id": record.principal_id,
        "workspace": record.workspace,
        "dataset": record.dataset,
        "key": record.key.hex(),
        "deleted_at": record.deleted_at.isoformat(),
        "raised_at": record.raised_at.isoformat(),
    }


def _time(row: Mapping[str, Any], name: str) -> datetime:
    at = datetime.fromisoformat(row[name])
    if at.tzinfo is None:
        raise ValueError("a time without a zone")
    return at


def _box(secret_key: str) -> Fernet:
    return Fernet(base64.urlsafe_b64encode(hmac.digest(secret_key.encode(), b"allgone replay v1", sha256)))

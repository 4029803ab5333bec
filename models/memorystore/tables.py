"""The tables as the verbs see them. SQLite's are made by `schema`; home's by `migrations/`.

Every row begins with the principal: at home an account, on a device always NOBODY.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, Integer, LargeBinary, MetaData, Table, Text
from sqlalchemy.types import NullType

from models.memorystore.columns import Moment, Sixteen

NOBODY = b""
_ALL = MetaData()


def _place() -> tuple[Column[bytes], Column[str], Column[str]]:
    return Column("principal_id", Sixteen()), Column("workspace", Text), Column("dataset", Text)


def _facts() -> tuple[Column[Any], ...]:
    return (
        *_place(),
        Column("key", LargeBinary),
        Column("logical_id", Sixteen()),
        Column("text", Text),
        Column("source", Text),
        Column("made_at", Moment()),
        Column("recorded_at", Moment()),
        Column("recorded_device", Sixteen()),
    )


# `id` is in the order of arrival. The facts are what every engine keeps; what one of them keeps beside them is in the
# two tables below, by which rows are written.
MEMORIES = Table("memories", _ALL, Column("id", NullType()), *_facts())
FACTS = tuple(MEMORIES.c[1:])
ON_A_DEVICE = Table("memories", MetaData(), *_facts(), Column("words", Text))
WORKSPACES = Table("workspaces", _ALL, Column("principal_id", Sixteen()), Column("name", Text))
SUMS = Table(
    "memory_sums",
    _ALL,
    *_place(),
    Column("prefix", Text),  # the first two, three or four hex digits of a key
    Column("items", Integer),
    Column("total", LargeBinary),
)
STALE = Table("memory_sums_stale", _ALL, *_place(), Column("prefix", Text))  # of four digits: to be made anew
RECORDS = Table(
    "deletion_records",
    _ALL,
    *_place(),
    Column("key", LargeBinary),
    Column("deleted_at", Moment()),
    Column("raised_at", Moment()),
)
MARKS = Table(
    "memory_marks",
    _ALL,
    Column("principal_id", Sixteen()),
    Column("logical_id", Sixteen()),
    Column("redacted_at", Moment()),
    Column("placed_at", Moment()),
    Column("workspace", Text),
    Column("raised_at", Moment()),
)
# What a pairing asked to be deleted, over the cap: kept until the user says yes, or keep.
REQUESTS = Table(
    "deletion_requests",
    _ALL,
    Column("principal_id", Sixteen()),
    Column("pairing", Sixteen()),
    Column("workspace", Text),
    Column("dataset", Text),
    Column("key", LargeBinary),
    Column("deleted_at", Moment()),
    Column("kept", Integer),
)
# What syncs deleted, of all pairings together: half a sync cannot add up within a day.
SPENT = Table("deletions_spent", _ALL, *_place(), Column("at", Moment()), Column("count", Integer))

# Deletions over both files of a device that began, and those that were finished (`store.Store.recording`).
BEGUN = Table("deletions_begun", _ALL, Column("number", Integer), Column("ticket", LargeBinary))
FINISHED = Table("deletions_finished", _ALL, Column("ticket", LargeBinary))

# -- of one session, in temporary tables: what was listed and what was asked -------------------------------------


def _listed(name: str) -> Table:
    return Table(
        name,
        _ALL,
        Column("workspace", Text),
        Column("dataset", Text),
        Column("number", Integer),
        Column("key", LargeBinary),
        Column("logical_id", Sixteen()),
        Column("made_at", Moment()),
        Column("recorded_at", Moment()),
    )


HEARD = _listed("heard")  # by us, of them
TOLD = _listed("told")  # by us, to them
ASKED = Table(
    "asked",
    _ALL,
    Column("workspace", Text),
    Column("dataset", Text),
    Column("key", LargeBinary),
    Column("logical_id", Sixteen()),
    Column("deleted_at", Moment()),
    Column("marked", Integer),  # 1: by a mark that says "gone", so that no record of its key is written
)
ASKED_MARKS = Table(
    "asked_marks",
    _ALL,
    Column("number", Integer),
    Column("workspace", Text),
    Column("dataset", Text),
    Column("logical_id", Sixteen()),
    Column("redacted_at", Moment()),
    Column("placed_at", Moment()),
    Column("placed_in", Text),
)
# What one verb is about to delete, and what it records of that.
GOING = Table(
    "going",
    _ALL,
    Column("workspace", Text),
    Column("dataset", Text),
    Column("key", LargeBinary),
    Column("logical_id", Sixteen()),
    Column("deleted_at", Moment()),
    Column("recorded", Integer),  # 1: a record of its key
    Column("marked", Integer),  # 1: a mark of its logical ID
)

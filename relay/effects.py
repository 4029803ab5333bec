"""What a swap asks of whoever runs it: frames to send and receive, and acts on a store. PURE.

The agent performs each effect, an act on the store in a transaction of its own, and answers with what the right
column says. All acts may be done twice: a session that is cut anywhere is begun anew, from the manifests.

| effect | does | answer |
|---|---|---|
| Send, Receive | one frame | None; the frame |
| Prepare | finishes deletions that a crash cut off, forgets what an earlier session listed | None |
| Look | opens the summary of a place | a `relay.reconcile.Summary` |
| HeardOf, ToldOf | keeps the items that they, or we, list, in order | None |
| Name | finds what they listed and we deleted and do not hold again | an iterator of portions of Deletion |
| NameMarks | finds the marks of logical IDs that they listed | an iterator of portions of Marked |
| Asked, AskedMarks | keeps what they ask for, less what we did not list | how many we did not list |
| Settle | judges what was asked as a whole, records, deletes, or refuses | Settled |
| Want | finds which of the items they listed we would take | the bits, in the order of HeardOf |
| Give | reads the memories that they want of those we listed, and still hold | an iterator of Body |
| Admit | takes memories in, each past every rule of admission | how many were new or changed |
| Conclude | keeps both reports; the session reached its end | None |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from relay.frames import Deletion, Frame, Marked, Place, Refused, Report
from relay.stream import Body


@dataclass(frozen=True, slots=True)
class Send:
    frame: Frame


@dataclass(frozen=True, slots=True)
class Receive:
    pass


@dataclass(frozen=True, slots=True)
class Prepare:
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Look:
    place: Place


@dataclass(frozen=True, slots=True)
class HeardOf:
    place: Place
    items: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class ToldOf:
    place: Place
    items: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class Name:
    place: Place


@dataclass(frozen=True, slots=True)
class NameMarks:
    place: Place


@dataclass(frozen=True, slots=True)
class Asked:
    place: Place
    deletions: Sequence[Deletion]


@dataclass(frozen=True, slots=True)
class AskedMarks:
    place: Place
    marks: Sequence[Marked]


@dataclass(frozen=True, slots=True)
class Settle:
    """`refuse` is why nothing may be deleted at all, whatever was asked: `direction` or `clock`.

    `named`: they may name, so that what they ask no more they want no more.
    """

    place: Place
    refuse: str | None
    named: bool


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of what was asked: memories deleted here, and those refused with their reasons."""

    deleted: int
    refused: tuple[Refused, ...]


@dataclass(frozen=True, slots=True)
class Want:
    place: Place


@dataclass(frozen=True, slots=True)
class Give:
    place: Place
    bits: bytes


@dataclass(frozen=True, slots=True)
class Admit:
    place: Place
    bodies: Sequence[Body]


@dataclass(frozen=True, slots=True)
class Conclude:
    """`gap` is their clock less ours; `faults` counts what no honest peer sends."""

    here: Report
    there: Report
    sent: int
    gap: timedelta
    faults: int


Effect = (
    Send | Receive | Prepare | Look | HeardOf | ToldOf | Name | NameMarks | Asked | AskedMarks | Settle | Want | Give
    | Admit | Conclude
)  # fmt: skip

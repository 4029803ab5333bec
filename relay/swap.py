"""One sync between two paired devices, as a machine without a socket, a store or a clock. PURE.

`swap` is a generator: it yields effects (`relay/effects.py`) and is sent their answers. Read it from top to bottom;
each phase is one function, and neither side acts on the store before the other's hello.

| phase | who | source |
|---|---|---|
| hello | both | PRODUCT.md 5, Order |
| manifests | by turns, until one has nothing left to say | `relay/reconcile.py` |
| marks and deletions | who opened names first, the other settles and then names | ADR 0176; PRODUCT.md 4.2, 4.3 |
| data | who opened is given first | ADR 0176, "leaves those keys out of what it sends" |
| report | both | PRODUCT.md 5, Order |

A side names only keys, and only logical IDs, that the other listed in this session: the store keeps what was listed,
and finds what to name among nothing else. It names them only when its own copy of the pairing lets it send; what is
named to a side is settled by that side's own copy of the pairing, whatever the other claims.
"""

from __future__ import annotations

import hmac
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

from models.rules import DATASET, EVERYWHERE, RECORDINGS, deletions_wait
from relay.effects import (
    Admit,
    Asked,
    AskedMarks,
    Conclude,
    Effect,
    Give,
    HeardOf,
    Look,
    Name,
    NameMarks,
    Prepare,
    Receive,
    Send,
    Settle,
    Settled,
    ToldOf,
    Want,
)
from relay.fields import BLOB
from relay.frames import (
    VERSION,
    Bye,
    Data,
    Deletions,
    Frame,
    Hello,
    Manifest,
    Marks,
    Place,
    Report,
    Told,
    Wanted,
    portions,
)
from relay.manifest import Faulty
from relay.reconcile import Reconciliation
from relay.stream import Stream, streamed

DELETIONS = "deletions"  # the capability; an older release has it not, and data syncs all the same

T = TypeVar("T")
Machine = Generator[Effect, Any, T]
F = TypeVar("F", bound=Frame)


class Ended(Exception):
    """The other side said Bye; `code` is why."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True)
class Terms:
    """What the two hellos agree on, seen from one side."""

    places: tuple[Place, ...]
    gap: timedelta
    swaps: bool  # both know of deletions
    names: bool  # we may name
    named: bool  # they may name
    refuses: str | None  # why we honour nothing that is named: `direction` or `clock`
    gives: bool
    takes: bool


@dataclass(slots=True)
class Tally:
    """What happened so far on this side."""

    settled: dict[Place, Settled] = field(default_factory=dict)
    received: dict[Place, int] = field(default_factory=dict)
    sent: int = 0
    faults: int = 0


def agreed(mine: Hello, theirs: Hello) -> Terms:
    """The terms of a session. Raises Faulty for a version that we do not speak."""
    if theirs.version < VERSION:
        raise Faulty("a version that we do not speak")
    shared = sorted(set(mine.workspaces) & set(theirs.workspaces))
    places = [Place(name, DATASET) for name in shared]
    if RECORDINGS in mine.capabilities and RECORDINGS in theirs.capabilities:
        places.append(Place(EVERYWHERE, RECORDINGS))
    gap = timedelta(microseconds=theirs.clock - mine.clock)
    waits = deletions_wait(gap)
    return Terms(
        places=tuple(places),
        gap=gap,
        swaps=DELETIONS in mine.capabilities and DELETIONS in theirs.capabilities,
        names=mine.sends and not waits,
        named=theirs.sends and not waits,
        refuses="direction" if not mine.receives else "clock" if waits else None,
        gives=mine.sends and theirs.receives,
        takes=mine.receives and theirs.sends,
    )


def swap(mine: Hello, session_key: bytes, *, opens: bool) -> Machine[Conclude]:
    """One whole sync. `opens` is true for the one side of the two that speaks first.

    `session_key` is known to the two sides of this session alone. Raises Faulty for what no honest peer says, Ended
    when the peer leaves: nothing is half applied, and the next session starts anew.
    """
    theirs = yield from _hellos(mine, opens=opens)
    terms, tally = agreed(mine, theirs), Tally()
    yield Prepare(terms.places)
    if terms.places:
        yield from _manifests(terms, session_key, opens=opens)
        if terms.swaps:
            for ours in (opens, not opens):
                yield from (_name(terms) if ours else _settle(terms, tally))
        for ours in (not opens, opens):
            yield from (_give(terms, tally) if ours else _take(terms, tally))
    return (yield from _reports(terms, tally, opens=opens))


def _hellos(mine: Hello, *, opens: bool) -> Machine[Hello]:
    if opens:
        yield Send(mine)
    theirs = yield from _receive(Hello)
    if not opens:
        yield Send(mine)
    return theirs


def _manifests(terms: Terms, session_key: bytes, *, opens: bool) -> Machine[None]:
    heard: list[bytes] = []
    told: list[bytes] = []
    sides: dict[Place, Reconciliation] = {}
    for place in terms.places:
        summary = yield Look(place)
        own = hmac.digest(session_key, "\0".join(place).encode(), "sha256")
        sides[place] = Reconciliation(summary, own, heard.extend, told.extend)
    turn, silent = 0, False
    while not silent:
        silent = turn > 0  # the first turn asks even when it has nothing to tell
        if opens == (turn % 2 == 0):
            for place, side in sides.items():
                for records, _ in portions(side.begin() if turn == 0 else side.answer()):
                    if told:
                        yield ToldOf(place, tuple(told))
                        told.clear()
                    if records:
                        silent = False
                        yield Send(Manifest(place, records, last=False))
            yield Send(Manifest(terms.places[0], (), last=True))
        else:
            while not (frame := (yield from _receive(Manifest))).last:
                sides[_known(terms, frame.place)].take(frame.records)
                if heard:
                    yield HeardOf(frame.place, tuple(heard))
                    heard.clear()
                silent = False
        turn += 1


def _name(terms: Terms) -> Machine[None]:
    for place in terms.places:
        for marks, last in _marked((yield NameMarks(place)) if terms.names else ()):
            yield Send(Marks(place, tuple(marks), last))
        for deletions, last in _marked((yield Name(place)) if terms.names else ()):
            yield Send(Deletions(place, tuple(deletions), last))


def _settle(terms: Terms, tally: Tally) -> Machine[None]:
    for place in terms.places:
        last = False
        while not last:
            marks = yield from _receive(Marks, place)
            if marks.marks:
                tally.faults += yield AskedMarks(place, marks.marks)
            last = marks.last
        last = False
        while not last:
            named = yield from _receive(Deletions, place)
            if named.deletions:
                tally.faults += yield Asked(place, named.deletions)
            last = named.last
        tally.settled[place] = yield Settle(place, terms.refuses, terms.named)


def _take(terms: Terms, tally: Tally) -> Machine[None]:
    for place in terms.places:
        bits = (yield Want(place)) if terms.takes else b""
        for at in range(0, max(len(bits), 1), BLOB):
            yield Send(Wanted(place, bits[at : at + BLOB], last=at + BLOB >= len(bits)))
    for place in terms.places:
        stream, last, received = Stream(), False, 0
        while not last:
            data = yield from _receive(Data, place)
            last = data.last
            bodies = stream.take(data.part, last=last)
            if bodies and terms.takes:
                received += yield Admit(place, bodies)
        tally.received[place] = received


def _give(terms: Terms, tally: Tally) -> Machine[None]:
    wanted: dict[Place, bytes] = {}
    for place in terms.places:
        bits, last = bytearray(), False
        while not last:
            frame = yield from _receive(Wanted, place)
            bits += frame.bits
            last = frame.last
        wanted[place] = bytes(bits)
    for place, bits_of in wanted.items():
        bodies = (yield Give(place, bits_of)) if terms.gives and any(bits_of) else ()
        for part, last in _marked(streamed(_counted(bodies, tally))):
            yield Send(Data(place, part, last))


def _reports(terms: Terms, tally: Tally, *, opens: bool) -> Machine[Conclude]:
    nothing = Settled(0, ())
    here = Report(
        tuple(
            Told(place, tally.received.get(place, 0), settled.deleted, settled.refused)
            for place in terms.places
            for settled in (tally.settled.get(place, nothing),)
        )
    )
    if opens:
        yield Send(here)
    there = yield from _receive(Report)
    if not opens:
        yield Send(here)
    conclusion = Conclude(here, there, tally.sent, terms.gap, tally.faults)
    yield conclusion
    return conclusion


def _receive(kind: type[F], place: Place | None = None) -> Machine[F]:
    """The next frame, which must be of this kind and, where it is named, of this place."""
    frame: Frame = yield Receive()
    if isinstance(frame, Bye):
        raise Ended(frame.code)
    if not isinstance(frame, kind) or (place is not None and getattr(frame, "place", None) != place):
        raise Faulty("a frame out of its order")
    return frame


def _known(terms: Terms, place: Place) -> Place:
    if place not in terms.places:
        raise Faulty("a place that was not agreed on")
    return place


def _counted(bodies: Sequence[Any] | Iterator[Any], tally: Tally) -> Iterator[Any]:
    for body in bodies:
        tally.sent += 1
        yield body


def _marked(given: Any) -> Iterator[tuple[Any, bool]]:
    """Each of some portions with whether it is the last; one empty portion where there is none."""
    waiting = None
    for portion in given:
        if waiting is not None:
            yield waiting, False
        waiting = portion
    yield (() if waiting is None else waiting), True

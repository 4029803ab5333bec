"""Every number and decision of the two ADRs that needs no database. PURE.

Values come in, values go out; time and chance are arguments. Whoever needs a rule calls it here, so that each
has one home and one test. Sources stand beside each.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

import regex

# -- the index (PRODUCT.md 3.1) ------------------------------------------------------------------------------
PAGE_DEFAULT, PAGE_MAX = 50, 200

# -- runs (PRODUCT.md 3.1, "lease") --------------------------------------------------------------------------
LEASE_DEFAULT, LEASE_MIN, LEASE_MAX = 60, 5, 300  # seconds
RUN_END_STATES = ("succeeded", "failed", "cancelled")  # what a worker may say; `expired` is ours to say

# -- titles (ADR-0050, decision 1; PRODUCT.md 3.3) -----------------------------------------------------------
TITLE_LENGTH = 64  # code points

# -- the outbox (PRODUCT.md 3.6) -----------------------------------------------------------------------------
BACKOFF_FIRST, BACKOFF_MAX = 5.0, 3600.0  # seconds
BATCH = 1000  # keys a claim takes: what one S3 DeleteObjects call carries
INLINE_BUDGET = 2.0  # seconds that a deletion spends on bytes before it answers
RESERVATION = timedelta(hours=6)  # how long an upload may take before its bytes count as nobody's

# -- memories (PRODUCT.md 4.1) -------------------------------------------------------------------------------
WORKSPACE = "default"
DATASET = "memories"
RECORDINGS, EVERYWHERE = (
    "recordings",
    "*",
)  # kept once per device rather than per workspace (ADR 0177): their place
MEMORY_MAX = 100_000  # code points of its text
NAME_MAX = 200  # code points of a workspace, a projection, a tool, a file

# -- the swap of deletions (ADR 0176; PRODUCT.md 4.3, 4.4) ---------------------------------------------------
CAP = 200  # memories that one sync may always delete
AHEAD = timedelta(minutes=5)  # that a deletion's time may be past the receiver's clock
PAST_COPY = timedelta(seconds=1)  # that it may be past the receiver's own copy, whatever the clocks
CLOCK_SHOWN, CLOCK_WAITS = timedelta(seconds=60), timedelta(minutes=10)  # gaps between two clocks
KEPT, KEPT_AT_MOST = (
    timedelta(days=180),
    timedelta(days=400),
)  # a record, or a mark, since it was last raised here

TICK = timedelta(microseconds=1)
EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)

_GRAPHEME = regex.compile(r"\X")
_HIDING = frozenset(
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"  # bidirectional
    "\u200b\u2060\u2061\u2062\u2063\u2064\u206a\u206b\u206c\u206d\u206e\u206f\ufeff"  # of no width
)
_UNREAD = rf"\s\x00-\x1f\x7f-\x9f\ud800-\udfff{''.join(sorted(_HIDING))}"
# More characters that are seen than any title needs, with all that is not seen between them.
_BEGINNING = re.compile(rf"(?:[{_UNREAD}]*[^{_UNREAD}]){{0,1024}}")


def title_of(content: object) -> str:
    """The title that a message's content gives: the normalized prefix of its first non-empty text block.

    NFC; every run of white space to one space; then control, bidirectional and zero-width characters removed,
    runs joined again, trimmed; at most 64 code points, never cut inside a grapheme cluster. "" when there is
    no text, or when its first cluster alone is longer than a title.
    Source: ADR-0050 decision 1; PRODUCT.md 3.3.
    """
    for text in texts(content):
        title = _normalized(text)
        if title:
            return _prefix(title, TITLE_LENGTH)
    return ""


def texts(content: object) -> Sequence[str]:
    """The text blocks of a message's content, in order: the string itself, or each block of type "text"."""
    if isinstance(content, str):
        return [content]
    if not isinstance(content, list):
        return []
    return [
        block["text"]
        for block in content
        if isinstance(block, Mapping) and block.get("type") == "text" and isinstance(block.get("text"), str)
    ]


def lease_end(now: datetime, seconds: int) -> datetime:
    """When a lease taken or renewed at `now` runs out. Source: PRODUCT.md 3.1."""
    return now + timedelta(seconds=min(max(seconds, LEASE_MIN), LEASE_MAX))


def lease_over(now: datetime, lease_expires_at: datetime) -> bool:
    """True when a run counts as dead: its lease end is reached. Source: PRODUCT.md 3.2, last line."""
    return now >= lease_expires_at


def activity(held: datetime, at: datetime, now: datetime) -> datetime:
    """The `updated_at` after an append at `at`: clamped to 1970..now, never backwards. Source: PRODUCT.md 3.2."""
    return max(held, clamped(at, now))


def clamped(at: datetime, now: datetime) -> datetime:
    """An export's time, brought into 1970..now. Source: PRODUCT.md 3.2."""
    return min(max(at, EARLIEST), now)


def backoff(attempts: int, chance: float) -> timedelta:
    """The wait before try `attempts` + 1 of an owed deletion: doubling from 5 s, half to one and a half times.

    `chance` is uniform in [0, 1). The spread is applied after the cap, so that waits stay apart there too
    (FAULTS.md D59), and never exceeds an hour. Source: PRODUCT.md 3.6.
    """
    doubled = BACKOFF_FIRST * 2.0 ** min(max(attempts - 1, 0), 20)
    spread = min(doubled, BACKOFF_MAX / 1.5) * (0.5 + chance)
    return timedelta(seconds=spread)


def key_of(text: str) -> bytes:
    """The key of a masked text: 32 bytes. Source: PRODUCT.md 4.1."""
    return sha256(text.encode()).digest()


def deletion_time(now: Any, newest_copy: Any, later: Callable[[Any, Any], Any] = max) -> Any:
    """The time of a new deletion: max(now, newest copy's `recorded_at` + 1 µs); None where there is no copy.

    With SQL's own `later` it is an expression over columns. Source: PRODUCT.md 4.4, Time.
    """
    return now if newest_copy is None else later(now, newest_copy + TICK)


def copy_time(now: datetime, deletion: datetime | None, held: datetime | None = None) -> datetime:
    """The `recorded_at` of a copy made by an act: max(now, deletion + 1 µs), never below the held copy's.

    So a slow clock loses nothing that its user says again. Source: PRODUCT.md 4.4, Time and Acts.
    """
    stamps = [now]
    if deletion is not None:
        stamps.append(deletion + TICK)
    if held is not None:
        stamps.append(held)
    return max(stamps)


def dominates(deletion: Any, recorded_at: Any) -> Any:
    """True when a deletion removes or refuses a copy recorded at `recorded_at`; at equal times it wins.

    Over two columns it is SQL's comparison: the one for receiver and importer alike. Source: ADR 0176, "the receiver
    deletes its copy when the copy is older"; PRODUCT.md 4.4, Time.
    """
    return deletion >= recorded_at


def within_cap(going: int, size: int, spent: int) -> bool:
    """True when one sync may delete `going` memories of a workspace and dataset that holds `size`.

    `spent` is what all pairings' syncs removed there in the last 24 hours, so that half a sync cannot add up.
    Source: ADR 0176, "at most half (at least up to 200)"; PRODUCT.md 4.4, Cap.
    """
    return going <= max(CAP, size // 2) and spent + going <= max(CAP, (size + spent) // 2)


def too_far_ahead(deletion: Any, now: datetime, recorded_at: Any) -> Any:
    """True when a deletion's time is refused: far past the receiver's clock and past its own copy too.

    Over two columns it is an expression of SQL. Source: PRODUCT.md 4.4, Time.
    """
    return (deletion > now + AHEAD) & (deletion > recorded_at + PAST_COPY)


def deletions_wait(gap: timedelta) -> bool:
    """True when two clocks are too far apart for deletions; data syncs all the same. Source: PRODUCT.md 4.4, Time."""
    return abs(gap) > CLOCK_WAITS


def gap_is_shown(gap: timedelta) -> bool:
    """True when the pairing's list shows how far the clocks are apart. Source: PRODUCT.md 4.4, Time."""
    return abs(gap) > CLOCK_SHOWN


def record_expires(raised_at: datetime, now: datetime, synced_past: bool) -> bool:
    """True when a deletion record or a mark may go.

    `synced_past`: every active pairing that may receive it has had a whole session that began after `raised_at`.
    Source: ADR 0176, "kept 180 days"; PRODUCT.md 4.4, Life of records and marks.
    """
    age = now - raised_at
    return age >= KEPT_AT_MOST or (age >= KEPT and synced_past)


def _normalized(text: str) -> str:
    # Normalizing costs the square of a run of combining marks, and a message may be one such run of megabytes.
    text = _BEGINNING.match(text)[0]  # type: ignore[index]  # it matches the empty text too
    text = " ".join(unicodedata.normalize("NFC", text).split())
    return " ".join("".join(c for c in text if not _unseen(c)).split())


def _unseen(character: str) -> bool:
    # Controls, lone surrogates, and the format characters that reorder or hide text. Those that spell words
    # and emoji (ZWNJ, ZWJ, tags, Arabic number signs) stay.
    return unicodedata.category(character) in {"Cc", "Cs"} or character in _HIDING


def _prefix(title: str, length: int) -> str:
    if len(title) <= length:
        return title
    end = 0
    for cluster in _GRAPHEME.finditer(title):
        if cluster.end() > length:
            break
        end = cluster.end()
    return title[:end].rstrip()

"""The history that the pictures show: Ada's, made through the product's own verbs, at times of its own.

`MOMENT` is what the clock says in every picture, so that a picture changes when the product does and not by the day.
It lies before the database's own time, which no activity may be ahead of.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from sqlalchemy import text
from sqlalchemy.orm import Session

from models import append, artifacts, runs
from models.accounts import Owner
from models.append import Draft
from models.base import database_time
from models.ids import uuid7
from tasks.deletion import delete_now
from tasks.resources import Resources

MOMENT = datetime(2026, 6, 17, 9, 41, tzinfo=UTC)
TALK = "Why does my sourdough collapse after scoring?"
CODE = "Tidy up the script that renames our photos"
BUSY = "Compare the three quotes for the roof"
DOOMED = "Draft an apology to the neighbours"

# Hours before MOMENT, and the first thing that was said.
HISTORY: Sequence[tuple[float, str]] = (
    (0.1, BUSY),
    (0.4, TALK),
    (1.5, CODE),
    (3, DOOMED),
    (20, "Explain compound interest to a ten-year-old"),
    (23, "A vegetarian menu for eight, one of them coeliac"),
    (26, "תכנון טיול של שבוע לגליל עם הילדים"),
    (52, "What to ask at the second viewing of a flat"),
    (70, "Translate the landlord's letter"),
    (75, "SQL: running total per customer, without a subquery"),
    (98, "Names for a shy orange cat"),
    (120, "Is it safe to freeze cooked rice twice?"),
    (122, "Ruhige Spiele für einen Regentag"),
    (150, "Postcard to grandmother, in her own dialect"),
    (160, "Checklist for bleeding radiators"),
    (200, "Which tyres for gravel and a wet commute?"),
    (260, "Summarise the minutes of the housing association"),
    (310, "A polite way to leave a group chat"),
    (390, "Plan two days in Bergen without a car"),
    (420, "Kubernetes probe keeps failing on cold start"),
    (480, "مقارنة بين ثلاث وصفات للكبسة"),
    (560, "Birthday poem that does not rhyme"),
    (640, "Read my blood test results with me"),
    (900, "How to sharpen a Japanese knife"),
    (1100, "Convert the old tax sheets to CSV"),
    (1300, "Speech for Mira's wedding, five minutes at most"),
    (1700, "Why is the sky darker at high altitude?"),
    (1900, "Budget for a year abroad"),
)

ANSWER = """The crust sets before the crumb has finished rising, so the cut has nothing left to open into.
Three things usually cause it, in this order:

1. **Over-proofed.** Press a finger in: if the dent stays, it was ready *half an hour ago*.
2. **A cold oven.** Most home ovens lie by 20 °C. Give the stone 45 minutes.
3. **Cutting straight down.** Hold the blade at a third of a right angle,
   so that one edge becomes a flap.

| kitchen | bulk | proof |
|---------|-----:|------:|
| 19 °C   | 7 h  | 90 min |
| 23 °C   | 5 h  | 60 min |
| 26 °C   | 4 h  | 40 min |

If you want to be exact, work it out from the temperature:

```python
def bulk_hours(kitchen: float) -> float:
    # halves for every 8 degrees above 19
    return 7 * 0.5 ** ((kitchen - 19) / 8)
```
"""

GONE = ("Gift ideas for a colleague", "Compare two broadband offers", "Notes from the dentist")
STAMP = "UPDATE events SET created_at = (SELECT created_at FROM sessions WHERE id = session_id)"


def fill(held: Resources, owner: Owner) -> dict[str, str]:
    """Writes the history; returns the ids by first words."""
    made = {said: _talk(held, owner, MOMENT - timedelta(hours=hours), said) for hours, said in HISTORY}
    for number, said in enumerate(GONE):
        at = MOMENT - timedelta(days=9 * number + 4)
        gone = _talk(held, owner, at, said)
        delete_now(held, owner, gone)
        with held.engine.begin() as connection:
            moved = {"at": at + timedelta(hours=3), "id": gone}
            connection.execute(text("UPDATE tombstones SET deleted_at = :at WHERE session_id = :id"), moved)
    # An event is stamped by the database's clock, which is not the picture's.
    with held.engine.begin() as connection:
        connection.execute(text(STAMP))
    return made


def _talk(held: Resources, owner: Owner, at: datetime, said: str) -> str:
    started = at - timedelta(minutes=4)
    with Session(held.engine) as db, db.begin():
        begun = uuid7(int(started.timestamp() * 1000), secrets.token_bytes(10))
        made = append.open_conversation(
            db, owner, session_id=begun, created_at=started, updated_at=started
        ).id
        append.append(db, owner, made, _drafts(said), at=at)
    if said == TALK:
        _attach(held, owner, made, "starter-log.csv", b"day,temperature\n" * 1200, at)
    if said == BUSY:
        with Session(held.engine) as db, db.begin():
            conversation = append.lock_conversation(db, owner, made)
            runs.start(db, conversation, database_time(db), 300)
    return made


def _drafts(said: str) -> list[Draft]:
    first = Draft("user_message", {"content": said})
    if said != TALK:
        return [first, Draft("assistant_message", {"content": "Gladly. Here is how I would begin."})]
    return [
        first,
        Draft(
            "tool_call",
            {"call_id": "1", "name": "web_search", "arguments": {"query": "scoring angle oven spring"}},
        ),
        Draft("tool_result", {"call_id": "1", "output": "5 results", "status": "ok"}),
        Draft("assistant_message", {"content": ANSWER}),
        Draft("memory_formed", {"text": "Ada bakes on Saturdays, in a kitchen of about 19 °C."}),
        Draft(
            "user_message",
            {"content": "19 °C it is, so seven hours. I will try the flatter cut on Saturday."},
        ),
    ]


def _attach(held: Resources, owner: Owner, talk: str, name: str, data: bytes, at: datetime) -> None:
    with Session(held.engine) as db, db.begin():
        key = artifacts.reserve(db, talk)
    stored = held.store.put(key, [data])
    payload = {
        "artifact_id": key,
        "name": name,
        "content_type": "text/csv",
        "size": stored.size,
        "sha256": stored.sha256.hex(),
    }
    with Session(held.engine) as db, db.begin():
        append.append(db, owner, talk, [Draft("artifact_created", payload)], at=at)
        artifacts.claim(db, key)

"""Which JSON we store: what PostgreSQL can hold, no deeper than every reader can follow (PRODUCT.md 9). PURE.

No NUL and no lone surrogate, in any name or value; at most DEEP lists and objects within one another.
"""

from __future__ import annotations

from models.errors import Invalid

DEEP = 100  # levels: far below where any of the writers, ours or a client's, would give up
_SHOWN = 200  # characters of a place in an error

# Where a value is: the place above it, and the step from there. Spelled only when something is wrong with it.
_Place = tuple["_Place | None", str | int]


def refuse_unstorable(field: str, value: object) -> None:
    """Raises Invalid, naming the place, when a NUL or a lone surrogate is anywhere in a JSON value.

    Costs what the value weighs, however long its names are.
    """
    stack: list[tuple[_Place | None, object]] = [(None, value)]
    while stack:
        place, item = stack.pop()
        if isinstance(item, str):
            _storable(field, place, item)
        elif isinstance(item, dict):
            for name, child in item.items():
                _storable(field, place, name)
                if isinstance(child, str | dict | list):
                    stack.append(((place, name), child))
        elif isinstance(item, list):
            stack.extend(
                ((place, index), child)
                for index, child in enumerate(item)
                if isinstance(child, str | dict | list)
            )


def refuse_deep(field: str, value: object) -> None:
    """Raises Invalid when lists and objects lie more than DEEP within one another."""
    level = [value]
    for _ in range(DEEP):
        level = [
            child
            for item in level
            if isinstance(item, dict | list)
            for child in (item.values() if isinstance(item, dict) else item)
            if isinstance(child, dict | list)
        ]
        if not level:
            return
    raise Invalid(field, f"{field} is nested more than {DEEP} levels deep.")


def _storable(field: str, place: _Place | None, text: str) -> None:
    """One string: a value, or a name in the object at `place`."""
    if "\0" in text:
        raise _invalid(field, place, "holds a NUL character")
    if not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text):
        raise _invalid(field, place, "holds half of a surrogate pair")


def _invalid(field: str, place: _Place | None, what: str) -> Invalid:
    steps: list[str | int] = []
    while place is not None:
        place, step = place
        steps.append(step)
    text = field
    for step in reversed(steps):
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
        if len(text) > _SHOWN:
            text = f"{text[:_SHOWN]}…"
            break
    return Invalid(text or "body", f"{text or 'The body'} {what}.")

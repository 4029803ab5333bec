"""Which JSON PostgreSQL can hold: no NUL and no lone surrogate, in any name or value (PRODUCT.md 9). PURE."""

from __future__ import annotations

from models.errors import Invalid


def refuse_unstorable(field: str, value: object) -> None:
    """Raises Invalid, naming the place, when a NUL or a lone surrogate is anywhere in a JSON value."""
    stack: list[tuple[str, object]] = [(field, value)]
    while stack:
        place, item = stack.pop()
        if isinstance(item, str):
            _storable(place, item)
        elif isinstance(item, dict):
            for name, child in item.items():
                _storable(place, name)
                stack.append((f"{place}.{name}" if place else name, child))
        elif isinstance(item, list):
            stack.extend((f"{place}[{index}]", child) for index, child in enumerate(item))


def _storable(place: str, text: str) -> None:
    """One string: a value, or a name in the object at `place`."""
    if "\0" in text:
        raise Invalid(place or "body", f"{place or 'The body'} holds a NUL character.")
    if not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text):
        raise Invalid(place or "body", f"{place or 'The body'} holds half of a surrogate pair.")

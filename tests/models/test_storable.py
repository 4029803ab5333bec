"""Which JSON PostgreSQL can hold (PRODUCT.md 9)."""

from __future__ import annotations

import pytest

from models.errors import Invalid
from models.storable import refuse_unstorable


def test_what_cannot_be_stored_is_named_by_its_place() -> None:
    refuse_unstorable("f", {"a": [1, None, {"b": "fine"}]})
    with pytest.raises(Invalid) as refusal:
        refuse_unstorable("f", {"a": ["x", {"b": "\0"}]})
    assert refusal.value.details == {"field": "f.a[1].b"}

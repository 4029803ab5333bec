"""Passwords and identities: one password each, an identity for one user alone, and neither for a closed account."""

from __future__ import annotations

import pytest
from sqlalchemy.orm import Session

from models import accounts, closing, ways
from models.errors import InvalidState, NotFound, Unauthorized
from models.ids import new_id
from tests.cast import Cast, Player

ISSUER = "https://id.example"


def test_an_address_is_found_as_written_or_in_small_letters(cast: Cast, db: Session) -> None:
    for typed in ("alice@example.com", "Alice@Example.com", "ALICE@EXAMPLE.COM"):
        found = ways.user_at(db, typed)
        assert found is not None
        assert found.id == cast.alice.id
    for nobody in ("", "alice", "alice@example.com ", "a\0@b", "\ud800@b", "nobody@example.com"):
        assert ways.user_at(db, nobody) is None


def test_a_password_is_set_changed_and_removed(cast: Cast, db: Session) -> None:
    assert ways.password_of(db, cast.alice.id) is None
    for text in ("one", "two"):
        ways.set_password(db, cast.alice.id, text)
        db.expire_all()
        held = ways.password_of(db, cast.alice.id)
        assert held is not None
        assert held.hash == text
    assert ways.password_of(db, cast.bob.id) is None
    for _ in range(2):
        ways.remove_password(db, cast.alice.id)
    db.expire_all()
    assert ways.password_of(db, cast.alice.id) is None


def test_a_rehash_never_brings_an_older_password_back(alice: Player, db: Session) -> None:
    ways.set_password(db, alice.id, "old")
    ways.set_password(db, alice.id, "new")
    ways.rehash_password(db, alice.id, "old", "old under newer parameters")
    ways.rehash_password(db, alice.id, "new", "new under newer parameters")
    db.expire_all()
    held = ways.password_of(db, alice.id)
    assert held is not None
    assert held.hash == "new under newer parameters"


def test_an_identity_signs_one_user_in_and_is_taken_back(cast: Cast, db: Session) -> None:
    assert ways.identified(db, ISSUER, "7") is None
    for _ in range(2):
        ways.link_identity(db, cast.alice.id, ISSUER, "7", "alice@id.example")
    with pytest.raises(InvalidState) as refusal:
        ways.link_identity(db, cast.bob.id, ISSUER, "7", "bob@id.example")
    assert refusal.value.details["reason"] == "identity_taken"
    ways.link_identity(db, cast.bob.id, "https://other.example", "7", "")
    assert ways.identified(db, ISSUER, "7") == cast.alice.id
    assert ways.identified(db, "https://other.example", "7") == cast.bob.id
    (held,) = ways.identities_of(db, cast.alice.owner)
    db.refresh(held)
    assert (held.email, held.used_at is not None) == ("alice@id.example", True)
    for owner, missing in ((cast.bob.owner, held.id), (cast.alice.owner, new_id()), (cast.alice.owner, "no")):
        with pytest.raises(NotFound):
            ways.unlink_identity(db, owner, missing)
    ways.unlink_identity(db, cast.alice.owner, held.id)
    assert ways.identified(db, ISSUER, "7") is None


def test_a_closed_account_gets_no_way_in_and_its_address_names_nobody(cast: Cast, db: Session) -> None:
    ways.set_password(db, cast.alice.id, "one")
    ways.link_identity(db, cast.alice.id, ISSUER, "7", "")
    closing.close(db, cast.alice.id)
    assert ways.password_of(db, cast.alice.id) is None
    assert ways.identified(db, ISSUER, "7") is None
    assert ways.user_at(db, cast.alice.email) is None
    for act in (
        lambda: ways.set_password(db, cast.alice.id, "x"),
        lambda: ways.link_identity(db, cast.alice.id, ISSUER, "8", ""),
        lambda: accounts.create_token(
            db, db.get_one(accounts.Principal, cast.alice.id), "s", accounts.SCOPES
        ),
    ):
        with pytest.raises(Unauthorized):
            act()

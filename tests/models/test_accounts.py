"""Who may ask: users and tokens; what is kept of a secret is its hash."""

from __future__ import annotations

import secrets
from datetime import timedelta

import pytest
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from models import accounts
from models.accounts import SCOPES, Principal, Tenant, Token
from models.errors import Invalid, NotFound
from models.ids import new_id
from tasks.resources import Resources
from tests.cast import Cast, Player
from tests.models.graph import count, traces
from tests.models.racing import at_once


def user(db: Session, email: str, tenant: str = "default") -> Principal:
    return accounts.create_user(db, email, secrets.token_bytes(32), tenant=tenant)


def test_users_of_one_tenant_share_it_and_each_has_a_home_of_its_own(
    resources: Resources, db: Session
) -> None:
    one, other, third = user(db, "a@x.y"), user(db, "b@x.y"), user(db, "c@x.y", "acme")
    assert one.tenant_id == other.tenant_id != third.tenant_id
    assert len({one.device_id, other.device_id, one.id, other.id}) == 4
    assert set(db.scalars(select(Tenant.name))) == {"default", "acme"}
    assert one.owner == accounts.Owner(one.tenant_id, one.id)
    assert not one.operator


ADDRESSES = (
    "", "a", "@", "a@", "@b", "a b@c", "a@b c", "a\0@b", "a@b\n", "a\x1f@b", "\ud800@b", "a@" + "b" * 260, "a\x7f@b",
)  # fmt: skip


def test_what_is_no_address_is_refused_and_names_no_user(resources: Resources, db: Session) -> None:
    for email in ADDRESSES:
        with pytest.raises(Invalid) as refusal:
            user(db, email)
        assert refusal.value.details["field"] == "email"
        assert "\0" not in refusal.value.detail
        assert accounts.find_user(db, email) is None
        with pytest.raises(NotFound):
            accounts.user_named(db, email)
    assert count(resources, "principals") == 0


def test_an_address_is_taken_once_also_by_two_at_once(resources: Resources, cast: Cast, db: Session) -> None:
    with pytest.raises(Invalid) as refusal:
        user(db, cast.alice.email, "another tenant")
    assert refusal.value.details["field"] == "email"
    db.rollback()

    def make() -> str:
        with Session(resources.engine) as session, session.begin():
            return user(session, "new@x.y", "new tenant").id

    outcomes = at_once([make] * 6)
    made = [one for one in outcomes if isinstance(one, str)]
    assert len(made) == 1
    assert {type(one) for one in outcomes if one not in made} <= {Invalid, IntegrityError}


@pytest.mark.parametrize("tenant", ["", " ", "x" * 201, "nul\0", "\ud800"])
def test_a_tenant_needs_a_name_that_can_be_kept(tenant: str, resources: Resources, db: Session) -> None:
    with pytest.raises(Invalid) as refusal:
        user(db, "a@x.y", tenant)
    assert refusal.value.details["field"] == "tenant"


# -- tokens --------------------------------------------------------------------------------------------------


def test_a_token_is_kept_as_its_hash_with_its_scopes_once_each(
    resources: Resources, alice: Player, db: Session
) -> None:
    principal = db.get_one(Principal, alice.id)
    made = accounts.create_token(
        db, principal, "allgone_secret", ["session.read", "session.read"], name="laptop"
    )
    db.commit()
    assert made.hash == accounts.hashed("allgone_secret")
    assert (made.scopes, made.name, made.expires_at, made.revoked_at) == (
        ["session.read"],
        "laptop",
        None,
        None,
    )
    assert traces(resources, "allgone_secret") == set()
    assert list(accounts.tokens_of(db, principal)) == [made]


@pytest.mark.parametrize("scopes", [[], [""], ["session.read", "admin"], ["SESSION.READ"], ["session.read "]])
def test_a_token_has_at_least_one_scope_and_none_that_is_unknown(
    scopes: list[str], alice: Player, db: Session
) -> None:
    with pytest.raises(Invalid) as refusal:
        accounts.create_token(db, db.get_one(Principal, alice.id), "s", scopes)
    assert refusal.value.details["field"] == "scope"


@pytest.mark.parametrize("life", [timedelta(0), timedelta(days=-1), timedelta(days=3651)])
def test_a_token_that_ends_ends_ahead(life: timedelta, alice: Player, db: Session) -> None:
    with pytest.raises(Invalid) as refusal:
        accounts.create_token(db, db.get_one(Principal, alice.id), "s", SCOPES, expires_in=life)
    assert refusal.value.details["field"] == "expires_in"


@pytest.mark.parametrize("name", ["x" * 201, "nul\0", "\ud800"])
def test_a_tokens_name_can_be_kept(name: str, alice: Player, db: Session) -> None:
    with pytest.raises(Invalid) as refusal:
        accounts.create_token(db, db.get_one(Principal, alice.id), "s", SCOPES, name=name)
    assert refusal.value.details["field"] == "name"


def test_a_token_is_revoked_once_and_keeps_its_first_end(alice: Player, db: Session) -> None:
    alice.token()
    token = db.scalars(select(Token)).one()
    first = accounts.revoke_token(db, token.id).revoked_at
    assert first is not None
    assert accounts.revoke_token(db, token.id).revoked_at == first
    for missing in (new_id(), "nonsense", "", "\0"):
        with pytest.raises(NotFound):
            accounts.revoke_token(db, missing)

"""Links and sign-ins: used once, over in time, ended at once; what is kept of a secret is its hash."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from models import sign_ins
from models.accounts import Principal
from models.base import database_time
from models.errors import InvalidState, NotFound, Unauthorized
from models.ids import is_id, new_id
from models.sign_ins import SignIn, SignInLink
from tasks.resources import Resources
from tests.cast import Cast, Player
from tests.models.graph import count, dump, traces
from tests.models.racing import at_once


def test_a_link_signs_its_user_in_once(resources: Resources, alice: Player, db: Session) -> None:
    secret = alice.link()
    whose = sign_ins.link_owner(db, secret)
    assert whose is not None
    assert whose.id == alice.id
    made = sign_ins.use_link(db, secret)
    assert made.principal_id == alice.id
    assert is_id(made.id)
    db.commit()
    assert sign_ins.link_owner(db, secret) is None
    with pytest.raises(Unauthorized):
        sign_ins.use_link(db, secret)
    assert traces(resources, secret) == set()
    found = sign_ins.signed_in(db, made.id)
    assert found is not None
    assert found.id == alice.id


def test_of_many_that_follow_a_link_at_once_one_is_signed_in(resources: Resources, alice: Player) -> None:
    secret = alice.link()

    def follow() -> str:
        with Session(resources.engine) as db, db.begin():
            return sign_ins.use_link(db, secret).id

    outcomes = at_once([follow] * 8)
    assert sum(isinstance(one, Unauthorized) for one in outcomes) == 7
    assert count(resources, "sign_ins") == 1


def test_a_link_is_dead_after_ten_minutes_and_unknown_ones_are_refused_alike(
    alice: Player, db: Session
) -> None:
    secret = alice.link()
    link = db.scalars(select(SignInLink)).one()
    assert timedelta(minutes=9) < link.expires_at - database_time(db) <= timedelta(minutes=10)
    link.expires_at = database_time(db)
    db.flush()
    details = set()
    for dead in (secret, "never", "", "\ud800", "x" * 10_000):
        assert sign_ins.link_owner(db, dead) is None
        with pytest.raises(Unauthorized) as refusal:
            sign_ins.use_link(db, dead)
        details.add(refusal.value.detail)
    assert len(details) == 1


def test_a_sign_in_ends_when_it_is_revoked_or_too_old(
    resources: Resources, alice: Player, db: Session
) -> None:
    one, other = (sign_ins.use_link(db, alice.link()).id for _ in range(2))
    sign_ins.sign_out(db, one)
    assert sign_ins.signed_in(db, one) is None
    assert sign_ins.signed_in(db, other) is not None
    db.execute(update(SignIn).where(SignIn.id == other).values(expires_at=database_time(db)))
    assert sign_ins.signed_in(db, other) is None
    db.commit()
    before = dump(resources)
    for missing in (one, new_id(), "", "nonsense"):
        sign_ins.sign_out(db, missing)
        assert sign_ins.signed_in(db, missing) is None
    db.commit()
    assert dump(resources) == before


# -- links one makes for another device ----------------------------------------------------------------------


def owner_of(db: Session, player: Player) -> Principal:
    return db.get_one(Principal, player.id)


def test_links_that_wait_are_listed_without_their_secret_and_taken_back_at_once(
    resources: Resources, cast: Cast, db: Session
) -> None:
    one, other = "first secret", "second secret"
    for secret in (one, other):
        sign_ins.create_link(db, owner_of(db, cast.alice), secret)
    db.commit()
    first, second = sign_ins.links_of(db, cast.alice.owner)
    assert sign_ins.links_of(db, cast.bob.owner) == []
    with pytest.raises(NotFound):
        sign_ins.revoke_link(db, cast.bob.owner, first.id)
    sign_ins.revoke_link(db, cast.alice.owner, first.id)
    assert sign_ins.links_of(db, cast.alice.owner) == [second]
    with pytest.raises(Unauthorized):
        sign_ins.use_link(db, one)
    sign_ins.use_link(db, other)
    assert sign_ins.links_of(db, cast.alice.owner) == []
    for gone in (first.id, second.id, new_id(), "nonsense", ""):
        with pytest.raises(NotFound):
            sign_ins.revoke_link(db, cast.alice.owner, gone)


def test_a_form_that_is_sent_twice_makes_one_link(alice: Player, db: Session) -> None:
    once = new_id()
    sign_ins.create_link(db, owner_of(db, alice), "a", link_id=once)
    for again in (once, "nonsense", ""):
        with pytest.raises(InvalidState) as refusal:
            sign_ins.create_link(db, owner_of(db, alice), "b", link_id=again)
        assert refusal.value.details["reason"] == "made_already"


def test_links_made_in_a_browser_are_bounded_and_those_of_the_server_are_not(
    alice: Player, db: Session
) -> None:
    for number in range(sign_ins.LINKS_MAX):
        sign_ins.create_link(db, owner_of(db, alice), f"s{number}", link_id=new_id())
    with pytest.raises(InvalidState) as refusal:
        sign_ins.create_link(db, owner_of(db, alice), "more", link_id=new_id())
    assert refusal.value.details["reason"] == "too_many"
    sign_ins.create_link(db, owner_of(db, alice), "by the server's owner")


def test_a_link_that_holds_a_sign_in_back_is_not_listed_and_hands_on_how_it_was_proved(
    alice: Player, db: Session
) -> None:
    then = database_time(db) - timedelta(hours=1)
    sign_ins.create_link(db, owner_of(db, alice), "held", method=sign_ins.PASSWORD, proved_at=then)
    assert sign_ins.links_of(db, alice.owner) == []
    made = sign_ins.use_link(db, "held", "Firefox on Linux")
    assert (made.method, made.browser, made.proved_at) == (sign_ins.PASSWORD, "Firefox on Linux", then)
    assert not made.fresh(database_time(db))
    by_itself = sign_ins.use_link(db, alice.link(), "x" * 1000)
    assert (by_itself.method, by_itself.browser) == (sign_ins.LINK, "x" * 60)
    assert by_itself.proved_at == by_itself.created_at
    assert by_itself.fresh(database_time(db))
    assert not by_itself.fresh(database_time(db) + sign_ins.FRESH)


# -- browsers ------------------------------------------------------------------------------------------------


def test_the_browsers_of_one_are_listed_and_nobody_ends_anothers(cast: Cast, db: Session) -> None:
    alices = [sign_ins.use_link(db, cast.alice.link()) for _ in range(3)]
    bobs = sign_ins.use_link(db, cast.bob.link())
    sign_ins.sign_out(db, alices[0].id)
    assert {one.id for one in sign_ins.sign_ins_of(db, cast.alice.owner)} == {one.id for one in alices[1:]}
    assert not sign_ins.sign_out(db, bobs.id, of=cast.alice.owner)
    assert sign_ins.signed_in(db, bobs.id) is not None
    assert sign_ins.sign_out(db, alices[1].id, of=cast.alice.owner)
    assert not sign_ins.sign_out(db, alices[1].id, of=cast.alice.owner)


def test_signing_out_elsewhere_ends_every_other_browser_and_every_link_that_waits(
    cast: Cast, db: Session
) -> None:
    here, there, far = (sign_ins.use_link(db, cast.alice.link()) for _ in range(3))
    bobs, waiting, bobs_link = sign_ins.use_link(db, cast.bob.link()), cast.alice.link(), cast.bob.link()
    assert sign_ins.sign_out_elsewhere(db, cast.alice.owner, here.id) == 2
    assert [one.id for one in sign_ins.sign_ins_of(db, cast.alice.owner)] == [here.id]
    for ended in (there, far):
        assert sign_ins.signed_in(db, ended.id) is None
    assert sign_ins.link_owner(db, waiting) is None
    assert sign_ins.link_owner(db, bobs_link) is not None
    assert sign_ins.signed_in(db, bobs.id) is not None
    assert sign_ins.sign_out_elsewhere(db, cast.alice.owner, None) == 1


def test_what_has_been_over_for_long_is_forgotten_and_what_is_live_stays(alice: Player, db: Session) -> None:
    waiting = alice.link()
    live, ended, long_ended, expired = (sign_ins.use_link(db, alice.link()).id for _ in range(4))
    now = database_time(db)
    long_ago = now - sign_ins.KEPT - timedelta(minutes=1)
    sign_ins.sign_out(db, ended)
    db.execute(update(SignIn).where(SignIn.id == long_ended).values(revoked_at=long_ago))
    db.execute(update(SignIn).where(SignIn.id == expired).values(expires_at=long_ago))
    db.execute(
        update(SignInLink).where(SignInLink.used_at.is_not(None)).values(expires_at=now - timedelta(1))
    )
    sign_ins.expire(db)
    assert set(db.scalars(select(SignIn.id))) == {live, ended}
    assert len(db.scalars(select(SignInLink)).all()) == 1
    assert sign_ins.link_owner(db, waiting) is not None

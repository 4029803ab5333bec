"""`Idempotency-Key`: one key, one conversation, for a day and a principal; never one that was deleted."""

from __future__ import annotations

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy.orm import Session

from models import idempotency
from models.errors import InvalidState
from models.purge import delete_conversation
from tasks.resources import Resources
from tests.cast import Player
from tests.models.graph import count, rows
from tests.models.racing import all_well, at_once


def create(resources: Resources, player: Player, key: str | None) -> str:
    with Session(resources.engine) as db, db.begin():
        return idempotency.create(db, player.owner, key)


def test_the_same_key_gives_the_same_conversation_and_another_ones_is_its_own(
    resources: Resources, alice: Player, bob: Player
) -> None:
    first = create(resources, alice, "k")
    assert create(resources, alice, "k") == first
    assert (
        len(
            {
                first,
                create(resources, alice, "l"),
                create(resources, bob, "k"),
                create(resources, alice, None),
            }
        )
        == 4
    )
    assert b"k" not in {row[0] for row in rows(resources, "SELECT hash FROM idempotency_keys")}


def test_ten_at_once_are_one(resources: Resources, alice: Player) -> None:
    for turn in range(5):
        made = at_once([lambda key=f"k{turn}": create(resources, alice, key)] * 10)  # type: ignore[misc]
        all_well(made)
        assert len(set(made)) == 1
    assert count(resources, "sessions") == 5


def test_a_deleted_conversation_is_not_made_again_and_after_a_day_a_new_one_is(
    resources: Resources, alice: Player
) -> None:
    first = create(resources, alice, "k")
    with Session(resources.engine) as db, db.begin():
        delete_conversation(db, alice.owner, first)
    with pytest.raises(InvalidState) as refusal:
        create(resources, alice, "k")
    assert refusal.value.details == {"reason": "session_deleted"}
    assert count(resources, "sessions") == 0
    with resources.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE idempotency_keys SET created_at = now() - interval '24 h'")
    assert create(resources, alice, "k") != first


def test_expired_keys_are_dropped_and_others_kept(resources: Resources, alice: Player, db: Session) -> None:
    create(resources, alice, "old")
    with resources.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE idempotency_keys SET created_at = now() - interval '25 h'")
    create(resources, alice, "new")
    assert idempotency.expire(db) == 1
    db.commit()
    assert count(resources, "idempotency_keys") == 1


def test_a_key_goes_by_header_and_a_bad_one_is_named(app: Flask, client: FlaskClient, alice: Player) -> None:
    token = alice.token()
    made = [
        client.post("/v1/sessions", json={}, headers={**token, "Idempotency-Key": "x" * 200})
        for _ in range(2)
    ]
    assert [answer.status_code for answer in made] == [201, 201]
    assert made[0].json == made[1].json
    for bad in ("", "x" * 201, "a\tb", "\x7f"):
        answer = client.post("/v1/sessions", json={}, headers={**token, "Idempotency-Key": bad})
        assert answer.status_code == 400, bad
        assert answer.json is not None
        assert answer.json["details"]["field"] == "Idempotency-Key"

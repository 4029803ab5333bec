"""How query arguments are read off the wire: limits and cursors, whatever their kind (FAULTS.md S58)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from flask.testing import FlaskClient

from blueprints.api.wire import answered, time_of, time_text
from models.cursor import Position, signing_key, write
from models.ids import new_id
from models.settings import Settings
from tests.cast import Cast, Player


def test_a_limit_from_one_to_two_hundred_is_taken(client: FlaskClient, alice: Player) -> None:
    for limit in ("1", "50", "200", "007"):
        assert client.get(f"/v1/sessions?limit={limit}", headers=alice.token()).status_code == 200


def test_fifty_is_the_page_where_none_is_asked_for(client: FlaskClient, alice: Player) -> None:
    for number in range(51):
        alice.converse(f"{number}")
    page = client.get("/v1/sessions", headers=alice.token()).json
    assert page is not None
    assert len(page["data"]) == 50
    assert page["next_cursor"] is not None


LIMITS = (
    "-1", "0", "201", "abc", "1.0", "", " 5", "5 ", "%2B5", "1e2", "0x10", "٣", "５",
    "9" * 5000, "null", "%00", "1&limit=1",
)  # fmt: skip


def test_any_other_limit_is_refused_by_its_name(client: FlaskClient, alice: Player) -> None:
    headers = alice.token()
    for limit in LIMITS:
        answer = client.get(f"/v1/sessions?limit={limit}", headers=headers)
        assert answer.status_code == 400, limit
        assert answer.json is not None
        assert (answer.json["code"], answer.json["details"]) == ("invalid", {"field": "limit"})


def cursor_of(client: FlaskClient, player: Player) -> str:
    for name in ("a", "b"):
        player.converse(name)
    page = client.get("/v1/sessions?limit=1", headers=player.token()).json
    assert page is not None
    cursor = page["next_cursor"]
    assert isinstance(cursor, str)
    return cursor


def test_a_cursor_that_was_not_given_to_the_asker_is_never_page_one(
    client: FlaskClient, cast: Cast, settings: Settings
) -> None:
    mine, theirs = cursor_of(client, cast.alice), cursor_of(client, cast.bob)
    position = Position(datetime(2026, 11, 30, tzinfo=UTC), new_id())
    forged = write(position, cast.alice.id, signing_key("x" * 40))
    odd = (
        theirs, forged, mine[:-1], mine[1:], mine + "A", mine.swapcase(), "", " ", "0", "null", "x" * 10_000, "é" * 20,
        "../../etc", "\0", mine + "=", "AAAA" + mine[4:],
    )  # fmt: skip
    for text in odd:
        answer = client.get("/v1/sessions", query_string={"cursor": text}, headers=cast.alice.token())
        assert answer.status_code == 400, text
        assert answer.json is not None
        assert answer.json["code"] == "invalid_cursor"
        assert "data" not in answer.json
    good = client.get("/v1/sessions", query_string={"cursor": mine}, headers=cast.alice.token())
    assert good.status_code == 200


def test_a_cursor_given_twice_is_refused_by_its_name(client: FlaskClient, alice: Player) -> None:
    mine = cursor_of(client, alice)
    answer = client.get(f"/v1/sessions?cursor={mine}&cursor={mine}", headers=alice.token())
    assert answer.status_code == 400
    assert answer.json is not None
    assert answer.json["details"] == {"field": "cursor"}


def test_arguments_that_nobody_asked_for_change_nothing(client: FlaskClient, alice: Player) -> None:
    alice.converse("a")
    plain, odd = (
        client.get(f"/v1/sessions{query}", headers=alice.token())
        for query in ("", "?offset=1&principal_id=x")
    )
    assert plain.data == odd.data


@pytest.mark.parametrize(
    ("at", "written"),
    [
        (datetime(2026, 11, 30, 12, 0, 0, 1, UTC), "2026-11-30T12:00:00.000001Z"),
        (datetime(1970, 1, 1, tzinfo=UTC), "1970-01-01T00:00:00.000000Z"),
        (datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC), "9999-12-31T23:59:59.999999Z"),
    ],
)
def test_times_are_utc_with_their_microseconds(at: datetime, written: str) -> None:
    assert time_text(at) == written
    assert answered(time_of(at)).get_data(as_text=True) == f'"{written}"'

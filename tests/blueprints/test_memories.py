"""The memories formed in a conversation, listed and deleted there, as a client without a browser sees them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from flask.testing import FlaskClient

from models.append import Draft
from models.ids import new_id
from tasks.resources import Resources
from tests.blueprints.test_conversation import HTMX, main, token
from tests.cast import Player
from tests.models.graph import count, fill, held_texts, memory_id

SignIn = Callable[[FlaskClient, Player], None]


@pytest.fixture
def reader(client: FlaskClient, sign_in: SignIn, alice: Player) -> FlaskClient:
    """Alice at a browser."""
    sign_in(client, alice)
    return client


def test_they_are_listed_and_say_which_were_drawn_from_others(
    reader: FlaskClient, resources: Resources, alice: Player
) -> None:
    filled = fill(resources, alice, "mine")
    page = main(reader.get(f"/conversations/{filled.session_id}").text)
    assert "4 memories formed here" in page
    for words in ("fact 1 mine", "fact 2 mine", "both mine", "alone mine"):
        assert f'aria-label="Delete memory {words}"' in page
    assert page.count("drawn from others") == 2


def test_one_is_deleted_with_what_was_drawn_from_it_and_again_is_no_error(
    reader: FlaskClient, resources: Resources, alice: Player
) -> None:
    filled = fill(resources, alice, "mine")
    first = memory_id(resources, alice, "fact 1 mine")
    address = f"/conversations/{filled.session_id}/memories/{first}/delete"
    question = reader.get(address, headers=HTMX).text
    assert "at their next sync, from your paired devices" in question
    assert "What was drawn from it goes with it." in question
    assert "<html" not in question
    assert "<html" in reader.get(address).text
    beside = reader.post(address, data=token(reader), headers=HTMX)
    assert beside.status_code == 200
    assert "2 memories formed here" in beside.text
    assert "fact 1 mine" not in beside.text
    assert held_texts(resources, alice) == {"typed in", "fact 2 mine", "alone mine"}
    assert count(resources, "deletion_records") == 2
    assert reader.post(address, data=token(reader), headers=HTMX).status_code == 200
    assert count(resources, "deletion_records") == 2
    assert reader.get(address).status_code == 404
    other = memory_id(resources, alice, "fact 2 mine")
    back = reader.post(f"/conversations/{filled.session_id}/memories/{other}/delete", data=token(reader))
    assert back.headers["Location"] == f"/conversations/{filled.session_id}#beside"


def test_it_is_its_owners_and_its_conversations_alone(
    reader: FlaskClient, sign_in: SignIn, resources: Resources, alice: Player, mallory: Player
) -> None:
    talk, other = alice.converse("One"), alice.converse("Two")
    alice.say(talk, Draft("memory_formed", {"text": "kept"}))
    kept = memory_id(resources, alice, "kept")
    stranger = reader.application.test_client()
    sign_in(stranger, mallory)
    for client, path in [
        (stranger, f"/conversations/{talk}/memories/{kept}/delete"),
        (reader, f"/conversations/{other}/memories/{kept}/delete"),
        (reader, f"/conversations/{talk}/memories/{new_id()}/delete"),
        (reader, f"/conversations/{talk}/memories/nonsense/delete"),
        (reader, f"/conversations/nonsense/memories/{kept}/delete"),
    ]:
        assert client.get(path).status_code == 404
        assert client.post(path, data=token(client), headers=HTMX).status_code == 404
    assert reader.post(f"/conversations/{talk}/memories/{kept}/delete").status_code == 403
    assert held_texts(resources, alice) == {"kept"}

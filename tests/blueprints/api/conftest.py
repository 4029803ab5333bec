"""The story that the tests of `/v1` share."""

from __future__ import annotations

import pytest
from flask.testing import FlaskClient

from tests.blueprints.api.story import Story, tell_story
from tests.cast import Player


@pytest.fixture
def story(client: FlaskClient, alice: Player) -> Story:
    """A conversation of alice's that every route has something to say about."""
    return tell_story(client, alice)

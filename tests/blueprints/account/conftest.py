"""A browser of the tests that posts forms as one does: with the token of the page that it has open."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from tests.cast import Player

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
WORDS = "seven purple otters"


@dataclass
class Browser:
    """One browser: its cookie, and the address it comes from."""

    client: FlaskClient
    address: str = "10.1.0.1"
    agent: str = FIREFOX

    def get(self, path: str, **options: Any) -> TestResponse:
        return self._ask("GET", path, **options)

    def post(
        self, path: str, form: dict[str, Any] | None = None, *, page: str = "", **more: Any
    ) -> TestResponse:
        """Posts a form of `page`: the Account page, or the sign-in page for who is not in."""
        opened = self.get(page or "/account")
        if opened.status_code == 303:
            opened = self.get("/sign-in")
        found = re.search(r'name="csrf_token" value="([^"]+)"', opened.text)
        token = found[1] if found else ""
        return self._ask("POST", path, data={"csrf_token": token, **(form or {}), **more})

    def sign_in(self, player: Player) -> Browser:
        assert self.get(f"/sign-in/{player.link()}").status_code == 303
        return self

    def once(self) -> str:
        """The id that the page's forms carry now."""
        found = re.search(r'name="once" value="([^"]+)"', self.get("/account").text)
        assert found
        return found[1]

    def is_in(self) -> bool:
        return self.get("/account").status_code == 200

    def _ask(self, method: str, path: str, **options: Any) -> TestResponse:
        headers = {"User-Agent": self.agent, **options.pop("headers", {})}
        place = {"REMOTE_ADDR": self.address}
        return self.client.open(path, method=method, headers=headers, environ_base=place, **options)


Browsers = Callable[..., Browser]


@pytest.fixture
def browser(app: Flask) -> Browsers:
    """Opens browsers: nobody is signed in, unless a player is named."""

    def open_one(player: Player | None = None, **options: Any) -> Browser:
        made = Browser(app.test_client(), **options)
        return made.sign_in(player) if player else made

    return open_one

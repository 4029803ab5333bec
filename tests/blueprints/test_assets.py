"""The scripts of a page travel as one, and what a browser may keep for good is what will never change."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from flask.testing import FlaskClient

from blueprints.assets import without_remarks
from tests.cast import Player

SignIn = Callable[[FlaskClient, Player], None]


def test_a_pages_scripts_come_in_order_and_without_remarks(
    client: FlaskClient, sign_in: SignIn, alice: Player
) -> None:
    sign_in(client, alice)
    addresses = re.findall(r'<script defer src="([^"]+)"', client.get("/account").text)
    answer = client.get(next(one for one in addresses if "/bundle/" in one))
    assert answer.content_type == "text/javascript; charset=utf-8"
    assert "immutable" in answer.headers["Cache-Control"]
    assert answer.text.index("window.allgone = {") < answer.text.index("allgone.shortcut = ")
    assert not re.search(r"^\s*(//|/\*)", answer.text, re.MULTILINE)
    stale = client.get("/static/bundle/allgone.js+keys.js?v=old")
    assert stale.headers["Cache-Control"] == "no-cache"


@pytest.mark.parametrize(
    "names",
    [
        "",
        "nothing.js",
        "allgone.css+allgone.js",
        "..%2Fapp.py",
        "allgone.js%2F..%2F..%2Fapp.py",
        "allgone.js+" * 40,
        "%00",
    ],
)
def test_what_is_no_script_of_ours_is_not_there(client: FlaskClient, names: str) -> None:
    assert client.get(f"/static/bundle/{names}").status_code == 404


def test_only_lines_that_are_nothing_but_a_remark_go() -> None:
    script = '/* head\n * more\n */\n"use strict";\n  // a remark\nconst a = "// kept"; // kept\n/** one */\nlet b;\n'
    style = "/* a */ .a { color: red }\n.b { color: blue }\n/* b */\n.c { color: green } /* c */\n"
    assert without_remarks(style) == style.replace("/* b */\n", "")
    assert without_remarks(script) == '"use strict";\nconst a = "// kept"; // kept\nlet b;\n'

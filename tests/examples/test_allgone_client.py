"""`examples/allgone_client.py`, as a newcomer runs it and as a program uses it."""

from __future__ import annotations

from collections.abc import Callable


def test_says_what_it_does_from_create_to_delete(run_example: Callable[..., str]) -> None:
    said = [line.split(maxsplit=1) for line in run_example("examples/allgone_client.py").splitlines()]
    words = [word for word, _ in said]
    assert words[0] == "created"
    assert [rest for word, rest in said if word == "streamed"] == [
        "1 user_message",
        "2 assistant_message",
        "3 run_ended",
        "the end: the conversation was deleted",
    ]
    assert ["run", "succeeded"] in said
    assert ["titled", "What does Delete Everywhere leave behind?"] in said
    assert said[-1] == ["asked", "404 not_found"]


def test_every_method_against_the_product(run_example: Callable[..., str]) -> None:
    said = run_example("tests/examples/drive_client.py")
    assert said.splitlines()[-1] == "all is well", said

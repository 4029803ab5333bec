"""`examples/openai_agents_session.py`, driven by the SDK's own Runner and a model on loopback."""

from __future__ import annotations

from collections.abc import Callable


def test_the_sdks_runner_talks_remembers_pops_and_clears(run_example: Callable[..., str]) -> None:
    said = run_example("tests/examples/drive_openai_agents.py")
    assert said.count("well: ") == 6, said

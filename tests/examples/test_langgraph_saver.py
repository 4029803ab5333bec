"""`examples/langgraph_saver.py`, against LangGraph's own conformance suite and with graphs that run."""

from __future__ import annotations

import json
from collections.abc import Callable

CAPABILITIES = {
    "put": 17,
    "put_writes": 10,
    "get_tuple": 10,
    "list": 16,
    "delete_thread": 5,
    "delete_for_runs": 7,
    "copy_thread": 8,
    "prune": 8,
}


def test_conforms_in_full_and_graphs_stop_go_on_prune_and_stay_deleted(
    run_example: Callable[..., str],
) -> None:
    said = run_example("tests/examples/drive_langgraph.py")
    report = json.loads(said.splitlines()[-1])
    assert report["conformance_level"] == "FULL", said
    assert {name: one["tests_failed"] for name, one in report["results"].items()} == dict.fromkeys(
        CAPABILITIES, 0
    )
    assert {name: one["tests_passed"] for name, one in report["results"].items()} == CAPABILITIES
    assert said.count("well: ") == 6

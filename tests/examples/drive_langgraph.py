"""LangGraph's own conformance suite, and graphs, over `examples/langgraph_saver.py`, in the examples' Python.

URL TOKEN: prints the suite's report as one line of JSON, last.
"""

# ruff: noqa: T201  it runs without pytest, and says what it did

from __future__ import annotations

import asyncio
import json
import operator
import sys
import threading
import time
from typing import Annotated, Any, TypedDict

import langgraph_saver
from allgone_client import Allgone, event
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.report import ProgressCallbacks
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from langgraph_saver import AllgoneSaver, ThreadGone


def conformance(client: Allgone) -> dict[str, Any]:
    @checkpointer_test(name="AllgoneSaver")
    async def saver():
        yield AllgoneSaver(client)

    started = time.monotonic()
    report = asyncio.run(validate(saver, progress=ProgressCallbacks.verbose()))
    print(f"conformance: {time.monotonic() - started:.1f} s")
    report.print_report()
    return report.to_dict()


class Talk(TypedDict):
    said: Annotated[list[str], operator.add]


def graph(saver: AllgoneSaver) -> Any:
    builder = StateGraph(Talk)
    builder.add_node("left", lambda state: {"said": ["left"]})
    builder.add_node("right", lambda state: {"said": ["right"]})
    builder.add_node("ask", lambda state: {"said": [interrupt("may I?")]})
    builder.add_edge(START, "left")
    builder.add_edge(START, "right")
    builder.add_edge(["left", "right"], "ask")
    builder.add_edge("ask", END)
    return builder.compile(checkpointer=saver)


def at(name: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": name}}


def sessions_of(client: Allgone, name: str) -> list[str]:
    return [one["id"] for one in client.sessions() if one["title"].endswith(f" {name}")]


def a_graph_stops_and_another_process_goes_on(client: Allgone) -> None:
    stopped = graph(AllgoneSaver(client)).invoke({"said": ["hello"]}, at("talk"))
    assert stopped["__interrupt__"][0].value == "may I?"
    elsewhere = graph(AllgoneSaver(client))
    done = asyncio.run(elsewhere.ainvoke(Command(resume="yes"), at("talk")))
    assert sorted(done["said"]) == ["hello", "left", "right", "yes"]
    history = list(elsewhere.get_state_history(at("talk")))
    assert history[0].values == done
    [first] = [one for one in history if one.metadata["step"] == 0]
    forked = elsewhere.invoke(None, first.config)  # time travel: a fork with values of its own
    assert forked["__interrupt__"]
    assert len(sessions_of(client, "talk")) == 1


def pruning_leaves_one_session_and_a_graph_that_goes_on(client: Allgone) -> None:
    saver = AllgoneSaver(client)
    other = AllgoneSaver(client)  # another process, which still knows the old session
    built = graph(saver)
    built.invoke({"said": ["hello"]}, at("pruned"))
    [old] = sessions_of(client, "pruned")
    assert other.get_tuple(at("pruned"))
    saver.prune(["pruned"])
    [new] = sessions_of(client, "pruned")
    assert new != old
    assert len(list(saver.list(at("pruned")))) == 1
    done = graph(other).invoke(Command(resume="yes"), at("pruned"))
    assert sorted(done["said"]) == ["hello", "left", "right", "yes"]
    assert sessions_of(client, "pruned") == [new]


def a_copy_that_died_is_finished_or_nobodys(client: Allgone) -> None:
    saver = AllgoneSaver(client)
    graph(saver).invoke({"said": ["hello"]}, at("died"))
    [old] = sessions_of(client, "died")
    deleted = saver._delete
    saver._delete = lambda session_id: None  # dies after the copy, before the deletion
    saver.prune(["died"])
    assert len(sessions_of(client, "died")) == 2
    half = client.create_session()["id"]  # dies in the middle of a copy
    run = client.start_run(half, langgraph_saver._title("died"))
    state = {"langgraph": "checkpoint", "ns": "", "id": "ff", "parent": None, "versions": {}, "values": {}}
    client.append(run["id"], [event("checkpoint", state={**state, "checkpoint": {}, "metadata": {}})])
    saver._delete = deleted
    found = AllgoneSaver(client)
    assert len(list(found.list(at("died")))) == 1
    assert old not in sessions_of(client, "died")
    client.append(run["id"], [event("run_ended", status="failed")])
    found.delete_thread("died")
    assert sessions_of(client, "died") == []


def a_deleted_thread_stays_deleted(client: Allgone) -> None:
    saver = AllgoneSaver(client)
    config = graph(saver)
    config.invoke({"said": ["hello"]}, at("deleted"))
    held = saver.get_tuple(at("deleted"))
    assert held is not None
    [session_id] = sessions_of(client, "deleted")
    client.delete_session(session_id)  # as the user does in the browser
    try:
        saver.put_writes(held.config, [("said", ["late"])], "task")
    except ThreadGone:
        pass
    else:
        raise AssertionError("written")
    assert sessions_of(client, "deleted") == []
    assert saver.get_tuple(at("deleted")) is None
    for _ in range(3):  # and the name may be used again, at once
        graph(saver).invoke({"said": ["again"]}, at("deleted"))
        assert len(sessions_of(client, "deleted")) == 1
        saver.delete_thread("deleted")


def large_values_go_beside_the_events_and_with_the_thread(client: Allgone) -> None:
    saver = AllgoneSaver(client)
    large = "ü" * 6_000_000
    graph(saver).invoke({"said": [large]}, at("large"))
    [session_id] = sessions_of(client, "large")
    artifacts = [one for one in client.events(session_id) if one["type"] == "artifact_created"]
    assert artifacts
    read = AllgoneSaver(client).get_tuple(at("large"))
    assert read is not None
    assert read.checkpoint["channel_values"]["said"][0] == large
    saver.copy_thread("large", "larger")
    saver.prune(["large"])
    copied = AllgoneSaver(client).get_tuple(at("larger"))
    assert copied is not None
    assert copied.checkpoint["channel_values"]["said"][0] == large
    saver.delete_thread("large")
    saver.delete_thread("larger")


def writers_at_once_lose_nothing(client: Allgone) -> None:
    savers = [AllgoneSaver(client) for _ in range(3)]
    graph(savers[0]).invoke({"said": ["hello"]}, at("crowd"))
    held = savers[0].get_tuple(at("crowd"))
    assert held is not None
    pruner = AllgoneSaver(client)

    def write(saver: AllgoneSaver, number: int) -> None:
        for count in range(4):
            saver.put_writes(held.config, [("said", [f"{number}.{count}"])], f"task-{number}-{count}")

    writing = [threading.Thread(target=write, args=(one, number)) for number, one in enumerate(savers)]
    for thread in writing:
        thread.start()
    pruner.prune(["crowd"])
    for thread in writing:
        thread.join()
    found = AllgoneSaver(client).get_tuple(held.config)
    assert found is not None
    written = {value[0] for _, channel, value in found.pending_writes or () if channel == "said"}
    assert {f"{number}.{count}" for number in range(3) for count in range(4)} <= written, written
    assert len(sessions_of(client, "crowd")) == 1


def main(url: str, token: str) -> None:
    with Allgone(url, token) as client:
        report = conformance(client)
        for check in (
            a_graph_stops_and_another_process_goes_on,
            pruning_leaves_one_session_and_a_graph_that_goes_on,
            a_copy_that_died_is_finished_or_nobodys,
            a_deleted_thread_stays_deleted,
            large_values_go_beside_the_events_and_with_the_thread,
            writers_at_once_lose_nothing,
        ):
            started = time.monotonic()
            check(client)
            print(f"well: {check.__name__}, {time.monotonic() - started:.1f} s")
    print(json.dumps(report))


if __name__ == "__main__":
    main(*sys.argv[1:])

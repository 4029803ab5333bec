"""The OpenAI Agents SDK's own Runner over `examples/openai_agents_session.py`, in the examples' Python: URL TOKEN.

The model is a stub on loopback that speaks the chat-completions protocol; nothing leaves this machine.
"""

# ruff: noqa: T201, PT017  it runs without pytest, and says what it did

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    Runner,
    Session,
    SessionSettings,
    function_tool,
    set_tracing_disabled,
)
from allgone_client import Allgone, AllgoneError, event
from openai import AsyncOpenAI
from openai_agents_session import AllgoneSession

ASKED: list[list[dict[str, Any]]] = []  # the messages of each request to the model


class Model(BaseHTTPRequestHandler):
    """Looks a city up with the tool when it is asked for the weather, and says how many messages it saw."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        messages = body["messages"]
        ASKED.append(messages)
        last = messages[-1]
        if last["role"] == "user" and "weather" in str(last["content"]):
            function = {"name": "weather", "arguments": json.dumps({"city": "Oslo"})}
            call = {"id": f"call_{len(ASKED)}", "type": "function", "function": function}
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
        else:
            message = {
                "role": "assistant",
                "content": f"I saw {len(messages)} messages, the last: {last['content']}",
            }
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        answer = {"id": "x", "object": "chat.completion", "created": 1, "model": "stub", "choices": [choice]}
        data = json.dumps({**answer, "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@function_tool
def weather(city: str) -> str:
    """What the weather is in a city."""
    return f"It rains in {city}."


def agent(port: int) -> Agent[Any]:
    client = AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none")
    return Agent(
        name="stub",
        instructions="Be brief.",
        tools=[weather],
        model=OpenAIChatCompletionsModel(model="stub", openai_client=client),
    )


def types(client: Allgone, session: AllgoneSession) -> list[str]:
    return [one["type"] for one in client.events(session.session_id)]


async def the_runner_talks_and_remembers(client: Allgone, agent: Agent[Any]) -> None:
    session = AllgoneSession(client)
    assert isinstance(session, Session)
    assert await session.get_items() == []
    first = await Runner.run(agent, "How is the weather in Oslo?", session=session)
    assert first.final_output.endswith("the last: It rains in Oslo.")
    turn = ["user_message", "tool_call", "tool_result", "assistant_message", "run_ended"]
    assert types(client, session) == turn
    row = client.session(session.session_id)
    assert (row["title"], row["active_run_id"]) == ("How is the weather in Oslo?", None)
    assert client.run(row["last_run_id"] or "")["status"] == "succeeded"

    later = AllgoneSession(client, session.session_id)  # another process, another day
    assert await later.get_items() == first.to_input_list()
    second = await Runner.run(agent, "And now?", session=later)
    # instructions, user, call, result, assistant, user
    assert second.final_output == "I saw 6 messages, the last: And now?"
    assert types(client, session) == [*turn, "user_message", "assistant_message", "run_ended"]
    assert await session.get_items() == await later.get_items() == second.to_input_list()
    assert await session.get_items(2) == second.to_input_list()[-2:]
    assert await session.get_items(0) == []
    short = AllgoneSession(client, session.session_id, session_settings=SessionSettings(limit=1))
    assert await short.get_items() == second.to_input_list()[-1:]


async def an_input_may_be_items(client: Allgone, agent: Agent[Any]) -> None:
    session = AllgoneSession(client)
    result = await Runner.run(agent, [{"role": "user", "content": "hello"}], session=session)
    assert await session.get_items() == result.to_input_list()


async def popping_hides_and_clearing_erases(client: Allgone, agent: Agent[Any]) -> None:
    session = AllgoneSession(client)
    await Runner.run(agent, "one", session=session)
    await Runner.run(agent, "two", session=session)
    items = await session.get_items()
    assert len(items) == 4
    other = AllgoneSession(client, session.session_id)
    assert await other.pop_item() == items[3]
    assert await session.pop_item() == items[2]
    assert await other.get_items() == await session.get_items() == items[:2]
    again = await Runner.run(agent, "two, corrected", session=session)
    assert "I saw 4 messages" in again.final_output
    old = session.session_id
    await session.clear_session()
    assert session.session_id == ""
    assert await session.get_items() == []
    assert await session.pop_item() is None
    try:
        await other.get_items()
    except AllgoneError as refused:
        assert refused.code == "not_found"
    else:
        raise AssertionError("it is still there")
    await Runner.run(agent, "three", session=session)
    assert session.session_id not in ("", old)
    assert len(await session.get_items()) == 2


async def any_item_comes_back_as_it_was(client: Allgone, agent: Agent[Any]) -> None:
    items: list[Any] = [
        {
            "role": "user",
            "content": [{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": "x"}],
        },
        {"role": "user", "content": ""},
        {"role": "system", "content": "be kind"},
        {"type": "reasoning", "id": "r1", "summary": [], "encrypted_content": "\u2028ü"},
        {"type": "function_call", "call_id": "c" * 300, "name": "long", "arguments": "{}"},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "b"}]},
        {"type": "message", "role": "assistant", "id": "m", "status": "completed", "content": []},
    ]
    session = AllgoneSession(client)
    await session.add_items([])
    assert session.session_id == ""
    await session.add_items(items[:4])
    assert client.session(session.session_id)["active_run_id"]
    assert await session.pop_item() == items[3]
    await session.add_items(items[3:])
    assert client.session(session.session_id)["active_run_id"] is None
    await session.add_items(items[3:4])  # a turn that the user did not begin
    assert await AllgoneSession(client, session.session_id).get_items() == [*items, items[3]]
    await session.clear_session()  # while its run is active

    spoken = client.create_session()["id"]  # what another client wrote is history too
    run = client.start_run(spoken, "hello")
    client.append(
        run["id"], [event("assistant_message", content="hi"), event("run_ended", status="succeeded")]
    )
    plain = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]
    assert await AllgoneSession(client, spoken).get_items() == plain


async def a_lost_answer_doubles_nothing(client: Allgone, agent: Agent[Any]) -> None:
    session = AllgoneSession(client)
    start, append = client.start_run, client.append

    def losing(ask: Any) -> Any:
        lost: list[bool] = []

        def call(*words: Any, **more: Any) -> Any:
            answer = ask(*words, **more)
            if not lost:
                lost.append(True)
                raise httpx.ReadError("the answer was lost")
            return answer

        return call

    client.start_run, client.append = losing(start), losing(append)  # type: ignore[method-assign]
    try:
        result = await Runner.run(agent, "hello", session=session)
    finally:
        client.start_run, client.append = start, append  # type: ignore[method-assign]
    assert types(client, session) == ["user_message", "assistant_message", "run_ended"]
    assert await session.get_items() == result.to_input_list()


async def a_lease_that_ran_out_costs_nothing(client: Allgone, agent: Agent[Any]) -> None:
    session = AllgoneSession(client, lease_s=5)
    await session.add_items([{"role": "user", "content": "think long"}])
    await asyncio.sleep(5.5)
    await session.add_items([{"role": "assistant", "content": "done"}])
    assert [item["content"] for item in await session.get_items()] == ["think long", "done"]
    assert client.session(session.session_id)["active_run_id"] is None


def main(url: str, token: str) -> None:
    set_tracing_disabled(True)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with Allgone(url, token) as client:
        for check in (
            the_runner_talks_and_remembers,
            an_input_may_be_items,
            popping_hides_and_clearing_erases,
            any_item_comes_back_as_it_was,
            a_lost_answer_doubles_nothing,
            a_lease_that_ran_out_costs_nothing,
        ):
            started = time.monotonic()
            asyncio.run(check(client, agent(server.server_port)))
            print(f"well: {check.__name__}, {time.monotonic() - started:.1f} s")


if __name__ == "__main__":
    main(*sys.argv[1:])

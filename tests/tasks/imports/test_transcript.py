"""transcript: identities, calls and results, contents."""

from datetime import UTC, datetime

import pytest

from tasks.imports import transcript as module
from tasks.imports.parsed import Attachment, Parsed, Unusable
from tasks.imports.transcript import Content, Transcript, numbered

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def finished(transcript: Transcript, source_id: str | None = "c") -> Parsed:
    return transcript.finish("chatgpt", source_id, "title", None, None)


def test_text_alone_is_a_string_and_with_files_it_is_blocks() -> None:
    content = Content("one", " ", "two")
    assert content.value() == "one\n\ntwo"
    content.attach(Attachment("p.png", "image/png"))
    content.attach(Attachment("d.pdf", "application/pdf"))
    assert content.value() == [
        {"type": "text", "text": "one"},
        {"type": "text", "text": "two"},
        {"type": "image", "name": "p.png"},
        {"type": "file", "name": "d.pdf"},
    ]


def test_the_parts_of_one_message_are_told_apart_and_a_repeated_identity_too() -> None:
    transcript = Transcript()
    transcript.begin("m", NOW)
    transcript.say("assistant", Content("one"))
    transcript.call("k", "tool", {})
    transcript.begin("m", NOW)
    transcript.say("user", Content("two"))
    messages = finished(transcript).messages
    assert [message.source_id for message in messages] == ["m", "m/1", "m+2"]
    assert {message.created_at for message in messages} == {NOW}


def test_a_message_without_identity_is_named_by_place_and_text() -> None:
    def ids(*texts: str) -> list[str]:
        transcript = Transcript()
        for text in texts:
            transcript.begin(None, None)
            transcript.say("user", Content(text))
        return [message.source_id for message in finished(transcript).messages]

    short, long = ids("a", "b"), ids("a", "b", "c")
    assert long[:2] == short
    assert short[0].startswith("0:")
    assert ids("a", "x")[1] != short[1]


def test_a_result_finds_its_call_by_identity_else_the_latest() -> None:
    transcript = Transcript()
    transcript.begin("m", None)
    transcript.call("k1", "search", "{}")
    transcript.call(None, "open", '{"a": 1}')
    transcript.result("k1", Content("found"))
    transcript.result(None, Content("opened"), failed=True)
    transcript.call("k1", "search", "plain text")
    transcript.result("k1", Content(), value={"n": 1 << 80})
    payloads = [message.payload for message in finished(transcript).messages]
    assert [payload["call_id"] for payload in payloads] == ["k1", "call-2", "k1", "call-2", "k1+2", "k1+2"]
    assert [payload.get("arguments") for payload in payloads] == [
        {},
        {"a": 1},
        None,
        None,
        "plain text",
        None,
    ]
    assert [payload.get("status") for payload in payloads[2:4]] == ["succeeded", "failed"]
    assert payloads[5]["output"] == {"n": str(1 << 80)}


def test_a_result_without_any_call_stands_alone() -> None:
    transcript = Transcript()
    transcript.begin("m", None)
    transcript.result(None, Content("found"), "search")
    assert finished(transcript).messages[0].payload == {
        "call_id": "result-1",
        "output": "found",
        "status": "succeeded",
        "name": "search",
    }


def test_a_role_that_is_not_ours_is_kept_by_name() -> None:
    transcript = Transcript()
    transcript.begin("m", None)
    transcript.say("critic", Content("hm"))
    transcript.say("user", Content("hi"))
    first = finished(transcript).messages[0]
    assert (first.type, first.payload) == ("message", {"content": "hm", "role": "critic"})


def test_where_nothing_was_said_there_is_no_conversation() -> None:
    transcript = Transcript()
    transcript.begin("m", None)
    transcript.think("hm")
    transcript.say("system", Content("be kind"))
    transcript.say("user", Content("  "))
    with pytest.raises(Unusable, match="no messages"):
        finished(transcript)


def test_messages_over_the_bound_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_MESSAGES", 3)
    transcript = Transcript()
    transcript.begin("m", None)
    for _ in range(3):
        transcript.say("user", Content("hi"))
    with pytest.raises(Unusable, match="more than 3 messages"):
        transcript.say("user", Content("hi"))


def test_a_conversation_without_identity_is_named_by_its_first_exchange() -> None:
    def source_id(*texts: str) -> str:
        transcript = Transcript()
        for number, text in enumerate(texts):
            transcript.begin(None, None)
            transcript.say("assistant" if number % 2 else "user", Content(text))
        return finished(transcript, None).source_id

    assert source_id("q", "a") == source_id("q", "a", "later") != source_id("q", "b")
    assert source_id("q", "a").startswith("#")


def test_the_file_adds_occurrence_and_replacements() -> None:
    transcript = Transcript()
    transcript.begin(None, None)
    transcript.say("user", Content("q"))
    parsed = finished(transcript, None)
    assert numbered(parsed, 2, 3).source_id == f"{parsed.source_id}/2"
    assert numbered(parsed, 0, 3).replaced == 3

"""A ticket lets in the device that signed it, for that request, for a minute; nothing else is one (PRODUCT.md 5)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from relay.admission import GOOD, REMEMBERED, NotAdmitted, host_of, read, sign, verify

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
DEVICE, ROOM, NONCE = b"d" * 16, b"r" * 32, b"n" * 16
SECRET = bytes(range(32))
PUBLIC = Ed25519PrivateKey.from_private_bytes(SECRET).public_key().public_bytes_raw()
REQUEST: dict[str, Any] = {"method": "GET", "host": "allgone.example", "room": ROOM}


def ticket(**changes: Any) -> str:
    return sign(SECRET, DEVICE, **({**REQUEST, "nonce": NONCE, "now": NOW} | changes))


def refusal(header: str, public: bytes = PUBLIC, **changes: Any) -> str | None:
    try:
        verify(read(header), public, **({**REQUEST, "now": NOW} | changes))
    except NotAdmitted as refused:
        return refused.code
    return None


def test_a_ticket_lets_its_device_in() -> None:
    asked = read(ticket())
    assert (asked.device, asked.nonce) == (DEVICE, NONCE)
    assert refusal(ticket()) is None


def test_the_signed_bytes_are_those_that_the_page_describes() -> None:
    """Another implementation builds them by hand, as docs/pairing.md says."""
    at = str(int(NOW.timestamp()) * 1_000_000)
    said = b""
    for part in (b"allgone relay admission v1", b"GET", b"allgone.example", ROOM, DEVICE, NONCE, at.encode()):
        said += len(part).to_bytes(2, "big") + part
    signature = Ed25519PrivateKey.from_private_bytes(SECRET).sign(said).hex()
    assert ticket() == f"Allgone-Device v1.{DEVICE.hex()}.{at}.{NONCE.hex()}.{signature}"


@pytest.mark.parametrize("seconds", [-60, 60])
def test_a_ticket_is_good_for_a_minute_on_each_side_of_the_clock(seconds: int) -> None:
    edge = timedelta(seconds=seconds)
    beyond = edge + timedelta(microseconds=1 if seconds > 0 else -1)
    assert refusal(ticket(), now=NOW + edge) is None
    assert refusal(ticket(), now=NOW + beyond) == "stale"


def test_a_nonce_is_remembered_for_as_long_as_its_ticket_could_pass_again() -> None:
    taken, last = NOW - GOOD, NOW + GOOD  # a clock that is a minute behind takes it first
    assert refusal(ticket(), now=taken) is None
    assert refusal(ticket(), now=last) is None
    assert last - taken <= REMEMBERED


@pytest.mark.parametrize(
    "change",
    [
        {"method": "POST"},
        {"host": "elsewhere.example"},
        {"host": "allgone.example:8000"},
        {"room": b"s" * 32},
    ],
    ids=["method", "host", "port", "room"],
)
def test_a_ticket_for_another_request_is_forged(change: dict[str, Any]) -> None:
    assert refusal(ticket(), **change) == "forged"


def test_another_key_and_what_is_no_key_admit_nobody() -> None:
    other = Ed25519PrivateKey.from_private_bytes(b"x" * 32).public_key().public_bytes_raw()
    for public in (other, b"", b"\0" * 31, b"\xff" * 32, b"\0" * 32):
        assert refusal(ticket(), public) == "forged"


def test_parts_cannot_be_moved_across_their_borders() -> None:
    """Lengths stand before the parts: GE + Tallgone.example is another request than GET + allgone.example."""
    assert refusal(ticket(method="GE", host="Tallgone.example")) == "forged"


@pytest.mark.parametrize(
    "header",
    ["", "Bearer x", "Allgone-Device", "Allgone-Device v1.", "Allgone-Device v2" + ticket()[17:], ticket() + "\n",
     " " + ticket(), ticket().upper(), ticket().replace(".", ".0", 2), ticket().replace("1", "\u0661", 1)],
)  # fmt: skip
def test_what_is_spelled_otherwise_is_malformed(header: str) -> None:
    assert refusal(header) == "malformed"


@given(st.integers(0, len(ticket()) - 1), st.characters(max_codepoint=0x2FF))
def test_no_character_of_a_ticket_can_be_changed(at: int, instead: str) -> None:
    header = ticket()
    changed = header[:at] + instead + header[at + 1 :]
    assert refusal(changed) in (("malformed", "stale", "forged") if changed != header else (None,))


@given(st.text(max_size=300))
def test_any_text_is_a_ticket_or_malformed(header: str) -> None:
    assert refusal(header) == "malformed"


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://Allgone.Example", "allgone.example"), ("wss://allgone.example:443/relay", "allgone.example"),
        ("http://localhost:8000", "localhost:8000"), ("ws://localhost:8000/relay", "localhost:8000"),
        ("http://[::1]:8000", "[::1]:8000"), ("http://[::1]", "[::1]"), ("https://a.example:80", "a.example:80"),
    ],
)  # fmt: skip
def test_the_signed_host_is_one_for_all_spellings_of_a_server(url: str, host: str) -> None:
    assert host_of(url) == host


@pytest.mark.parametrize("url", ["", "/relay", "https://", "https://:443"])
def test_a_url_without_a_host_signs_nothing(url: str) -> None:
    with pytest.raises(ValueError, match="without a host"):
        host_of(url)


@pytest.mark.parametrize("wrong", [{"room": b"r"}, {"nonce": b"n" * 17}])
def test_a_device_signs_no_field_of_another_length(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="another length"):
        ticket(**wrong)

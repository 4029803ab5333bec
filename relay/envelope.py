"""What two ends say to each other through the relay before and around everything else. PURE.

Each message is one binary WebSocket frame: a byte of kind and a body. The machines of pairing and of the channel, which
come with the relay, are generators: they yield Say and Hear (and effects of their own), are sent what was heard, and
know no socket.

| kind | message | from | body |
|---|---|---|---|
| 0x41 | offer | joiner | versions, capabilities, SPAKE2 element |
| 0x42 | answer | inviter | versions, capabilities, SPAKE2 element |
| 0x43 | proof | joiner | confirmation of the key, 32 bytes |
| 0x44 | proof back | inviter | confirmation of the key, 32 bytes |
| 0x45 | handshake | both | a Noise handshake message |
| 0x46 | hello | both | versions, capabilities, nonce: the beginning of a session |
| 0x47 | sealed | both | a Noise transport message |
| 0x48 | refusal | inviter | a code in ASCII; for a person to read, and proof of nothing |
| 1 to 63 | (kept free) | the relay | what the relay itself says to a seat |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MESSAGE_MAX = 65_536  # bytes of one message, kind included: what the relay carries (PRODUCT.md 5, Bounds)
PLAIN_MAX = 65_000  # bytes inside a sealed message
VERSION = 1  # of the handshakes; the frames within have a version of their own

OFFER, ANSWER, PROOF, PROOF_BACK, HANDSHAKE, HELLO, SEALED, REFUSAL = range(0x41, 0x49)
CODE_MAX, CAPABILITIES_MAX = 40, 16


class Failed(Exception):
    """A pairing or a session that ends here; whatever it was about to do is not done.

    `code` is `wrong_code` (of a pairing), `code_gone`, `version`, `out_of_order`, `malformed`, `forged`, `ended` or
    what the other side's refusal says. None holds anything that was sent.
    """

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True)
class Say:
    """Send these bytes to the other end, as one binary frame."""

    message: bytes


@dataclass(frozen=True, slots=True)
class Hear:
    """Wait for the other end's next binary frame; the answer is its bytes."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """The versions from `lowest` to `highest` and the capabilities that a side speaks."""

    lowest: int = VERSION
    highest: int = VERSION
    capabilities: tuple[str, ...] = ()


def wrapped(kind: int, *parts: bytes) -> bytes:
    """A message of ours. Raises ValueError for one that the relay would not carry."""
    message = bytes((kind,)) + b"".join(parts)
    if len(message) > MESSAGE_MAX:
        raise ValueError("a message of ours is too large")
    return message


def unwrapped(kind: int, message: bytes, size: int | None = None) -> bytes:
    """The body of a message that must be of this kind and, where it is given, of this size.

    Raises Failed: `malformed` for a size, `out_of_order` for another kind, and the other side's own code for a refusal.
    """
    if not 0 < len(message) <= MESSAGE_MAX:
        raise Failed("malformed")
    if message[0] == REFUSAL:
        raise Failed(_code(message[1:]))
    if message[0] != kind:
        raise Failed("out_of_order")
    if size is not None and len(message) != 1 + size:
        raise Failed("malformed")
    return message[1:]


def spelled(spoken: Spoken) -> bytes:
    """Versions and capabilities as bytes: lowest, highest, count, then each name behind its length."""
    names = [name.encode("ascii") for name in spoken.capabilities]
    if len(names) > CAPABILITIES_MAX or any(not 0 < len(name) <= CODE_MAX for name in names):
        raise ValueError("capabilities that do not fit")
    return bytes((spoken.lowest, spoken.highest, len(names))) + b"".join(
        bytes((len(name),)) + name for name in names
    )


def read_spoken(body: bytes) -> tuple[Spoken, bytes]:
    """What `spelled` wrote at the beginning of a body, and the rest of the body. Raises Failed("malformed")."""
    if len(body) < 3 or not body[0] <= body[1] or body[2] > CAPABILITIES_MAX:
        raise Failed("malformed")
    names, at = [], 3
    for _ in range(body[2]):
        size = body[at] if at < len(body) else 0
        name = body[at + 1 : at + 1 + size]
        if not 0 < size <= CODE_MAX or len(name) != size or not _is_code(name):
            raise Failed("malformed")
        names.append(name.decode("ascii"))
        at += 1 + size
    if len(set(names)) != len(names):
        raise Failed("malformed")
    return Spoken(body[0], body[1], tuple(names)), body[at:]


def agreed_version(mine: Spoken, theirs: Spoken) -> int:
    """The highest version that both speak. Raises Failed("version")."""
    version = min(mine.highest, theirs.highest)
    if version < max(mine.lowest, theirs.lowest):
        raise Failed("version")
    return version


def bound(label: bytes, parts: Sequence[bytes]) -> bytes:
    """Several values as one, each behind its length in four bytes: what a prologue or a confirmation binds."""
    return b"".join(len(part).to_bytes(4, "big") + part for part in (label, *parts))


def _code(body: bytes) -> str:
    return body.decode("ascii") if 0 < len(body) <= CODE_MAX and _is_code(body) else "malformed"


def _is_code(name: bytes) -> bool:
    return all(byte in b"abcdefghijklmnopqrstuvwxyz0123456789_" for byte in name)

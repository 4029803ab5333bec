"""What a registered device signs to be let in at the relay, and how that is verified. PURE.

A ticket is one HTTP header of the request that opens the socket:

    Authorization: Allgone-Device v1.DEVICE.TIME.NONCE.SIGNATURE

| part | is |
|---|---|
| DEVICE | the device's id, 32 hex digits |
| TIME | microseconds since 1970, in decimal digits |
| NONCE | 16 random bytes, 32 hex digits |
| SIGNATURE | Ed25519 (RFC 8032) over what follows, 128 hex digits |

Signed are, each behind its length in two bytes (big-endian): the words "allgone relay admission v1", method, host,
room (32 bytes), device (16 bytes), nonce, and TIME's digits. The host is the one of PUBLIC_URL, as `host_of` spells
it, and never the Host header: a ticket for one server opens no other.

A ticket is good within 60 s of the verifier's clock, either way, and once: whoever verifies keeps (device, nonce) for
REMEMBERED, which outlives every clock in which the ticket would pass again. Source: PRODUCT.md 5, Admission.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from models.rules import EARLIEST, TICK

SCHEME = "Allgone-Device"
GOOD = timedelta(seconds=60)  # on each side of the verifier's clock
REMEMBERED = 2 * GOOD  # how long (device, nonce) is kept after a ticket was taken
DEVICE_BYTES, NONCE_BYTES, ROOM_BYTES, KEY_BYTES = 16, 16, 32, 32

_PURPOSE = b"allgone relay admission v1"
_WRITTEN = re.compile(
    rf"{SCHEME} v1\.([0-9a-f]{{32}})\.(0|[1-9][0-9]{{0,18}})\.([0-9a-f]{{32}})\.([0-9a-f]{{128}})", re.ASCII
)
_PORTS = {"http": 80, "ws": 80, "https": 443, "wss": 443}


class NotAdmitted(Exception):
    """A ticket that lets nobody in. `code` is `malformed`, `stale` or `forged`."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True)
class Ticket:
    """A device's wish to be let in, as it was signed. `at` is in microseconds since 1970."""

    device: bytes
    at: int
    nonce: bytes
    signature: bytes


def host_of(url: str) -> str:
    """The host that is signed for a server's URL: its name in lower case, and its port unless the scheme implies it.

    http(s) and ws(s) of one server give the same host. Raises ValueError for a URL without a host.
    """
    parts = urlsplit(url)
    if not parts.hostname:
        raise ValueError("a URL without a host")
    name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return name if parts.port in (None, _PORTS.get(parts.scheme)) else f"{name}:{parts.port}"


def sign(
    signing_key: bytes, device: bytes, *, method: str, host: str, room: bytes, nonce: bytes, now: datetime
) -> str:
    """The header's value that lets `device` into `room` (32 bytes) within 60 s of `now`.

    `signing_key` is the device's private key of 32 bytes; `nonce` 16 random bytes, never used again.
    """
    at = (now - EARLIEST) // TICK
    said = _said(method, host, room, device, nonce, at)
    signature = Ed25519PrivateKey.from_private_bytes(signing_key).sign(said)
    return f"{SCHEME} v1.{device.hex()}.{at}.{nonce.hex()}.{signature.hex()}"


def read(header: str) -> Ticket:
    """The ticket that a header's value spells. Raises NotAdmitted("malformed")."""
    found = _WRITTEN.fullmatch(header)
    if found is None:
        raise NotAdmitted("malformed")
    device, at, nonce, signature = found.groups()
    return Ticket(bytes.fromhex(device), int(at), bytes.fromhex(nonce), bytes.fromhex(signature))


def verify(ticket: Ticket, public_key: bytes, *, method: str, host: str, room: bytes, now: datetime) -> None:
    """That the holder of `public_key` (32 bytes) signed this ticket for this request, within 60 s of `now`.

    Whether the device is registered, not revoked, and its nonce new is the caller's to say.
    Raises NotAdmitted: `stale` for its time, `forged` for its signature.
    """
    if abs(ticket.at - (now - EARLIEST) // TICK) > GOOD // TICK:
        raise NotAdmitted("stale")
    said = _said(method, host, room, ticket.device, ticket.nonce, ticket.at)
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(ticket.signature, said)
    except (InvalidSignature, ValueError):
        raise NotAdmitted("forged") from None


def _said(method: str, host: str, room: bytes, device: bytes, nonce: bytes, at: int) -> bytes:
    if (len(room), len(device), len(nonce)) != (ROOM_BYTES, DEVICE_BYTES, NONCE_BYTES):
        raise ValueError("a room, a device or a nonce of another length")
    parts = (_PURPOSE, method.encode(), host.encode(), room, device, nonce, str(at).encode())
    return b"".join(len(part).to_bytes(2, "big") + part for part in parts)

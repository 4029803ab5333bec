"""The Noise protocol, revision 34: Noise_XXpsk0 and Noise_KKpsk0 over 25519, ChaChaPoly and SHA256. PURE.

Only what we speak: a handshake with one pre-shared key, and the transport after it. Names follow the specification
(https://noiseprotocol.org/noise.html); its sections stand beside each. The primitives are those of `cryptography`,
ephemeral keys are arguments, and the tests hold this page to published vectors and to another implementation.

| pattern | known before | messages |
|---|---|---|
| XXpsk0 | nothing | → psk, e · ← e, ee, s, es · → s, se |
| KKpsk0 | each other's static key | → psk, e, es, ss · ← e, ee, se |

Whatever does not decrypt, is too short, too long, out of turn, or holds a public key of low order raises Broken, and
whoever has raised it is of no further use. A message of the transport is at most 65,535 bytes, its tag included.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from hashlib import sha256

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

KEY = 32  # bytes of any key, and of a hash
TAG = 16
MESSAGE_MAX = 65_535  # bytes of a Noise message (3.)
REKEY_EVERY = 256  # messages of one direction under one key: at most 16 MiB
_LAST_NONCE = 2**64 - 1  # kept for the rekey (5.1)

Pattern = tuple[tuple[str, ...], ...]
XXPSK0 = "Noise_XXpsk0_25519_ChaChaPoly_SHA256"
KKPSK0 = "Noise_KKpsk0_25519_ChaChaPoly_SHA256"
PATTERNS: dict[str, Pattern] = {
    XXPSK0: (("psk", "e"), ("e", "ee", "s", "es"), ("s", "se")),
    KKPSK0: (("psk", "e", "es", "ss"), ("e", "ee", "se")),
}
_KNOWN = {KKPSK0}  # both static keys are known before (7.4, pre-messages)


class Broken(Exception):
    """A message that is not the other side's next one, or cannot be told to be; the session is over."""


@dataclass(frozen=True, slots=True)
class Keys:
    """What one side brings: its static and ephemeral private keys, the shared key, and the other's static key.

    Each of 32 bytes; an ephemeral key is random and used once. `remote` is b"" where the pattern brings it.
    """

    static: bytes
    ephemeral: bytes
    psk: bytes
    remote: bytes = b""


class Cipher:
    """One direction: a key and a counter (5.1)."""

    def __init__(self, key: bytes) -> None:
        self._key, self._nonce = ChaCha20Poly1305(key), 0

    def encrypt(self, plain: bytes, ad: bytes = b"") -> bytes:
        """The plain bytes sealed under the next nonce."""
        return self._key.encrypt(self._next(), plain, ad)

    def decrypt(self, sealed: bytes, ad: bytes = b"") -> bytes:
        """The bytes that were sealed under the next nonce. Raises Broken."""
        try:
            return self._key.decrypt(self._next(), sealed, ad)
        except InvalidTag:
            raise Broken("a message that does not decrypt") from None

    def rekey(self) -> None:
        """The next key, which does not tell the last one (4.2, 11.3). The counter goes on."""
        key = self._key.encrypt(_nonce(_LAST_NONCE), bytes(KEY), b"")[:KEY]
        self._key = ChaCha20Poly1305(key)

    def _next(self) -> bytes:
        if self._nonce >= _LAST_NONCE:
            raise Broken("the last nonce is used")
        nonce, self._nonce = _nonce(self._nonce), self._nonce + 1
        return nonce


class Transport:
    """Sealed messages in both directions after a handshake, each under its own key, renewed as it is used.

    `hash` names the handshake to both sides and may be shown; `export` gives secrets that only they know.
    """

    def __init__(self, sends: Cipher, receives: Cipher, handshake_hash: bytes, exporter: bytes) -> None:
        self.hash = handshake_hash
        self._sends, self._receives, self._exporter = sends, receives, exporter
        self._sent = self._received = 0
        self._broken = False

    def seal(self, plain: bytes) -> bytes:
        """The next message to the other side. Raises ValueError for more than fits, Broken after a failure."""
        if len(plain) > MESSAGE_MAX - TAG:
            raise ValueError("more than a message holds")
        self._still_whole()
        sealed = self._sends.encrypt(plain)
        self._sent += 1
        if self._sent % REKEY_EVERY == 0:
            self._sends.rekey()
        return sealed

    def open(self, sealed: bytes) -> bytes:
        """What the other side's next message holds. Raises Broken, and from then on nothing else."""
        self._still_whole()
        try:
            if not TAG <= len(sealed) <= MESSAGE_MAX:
                raise Broken("a message of no possible size")
            plain = self._receives.decrypt(sealed)
        except Broken:
            self._broken = True
            raise
        self._received += 1
        if self._received % REKEY_EVERY == 0:
            self._receives.rekey()
        return plain

    def export(self, label: bytes) -> bytes:
        """A secret of 32 bytes of this handshake alone, one for each label, the same on both sides."""
        return hmac.digest(self._exporter, label, sha256)

    def _still_whole(self) -> None:
        if self._broken:
            raise Broken("this session is over")


class Handshake:
    """One side of a handshake: `write` and `read` by turns, the initiator first, until `done` (5.3).

    Raises ValueError for keys of ours that are none, Broken for a static key of the other side that is none.
    """

    def __init__(self, name: str, keys: Keys, *, initiator: bool, prologue: bytes) -> None:
        sizes = [len(keys.static), len(keys.ephemeral), len(keys.psk), len(keys.remote)]
        if sizes != [KEY, KEY, KEY, KEY if name in _KNOWN else 0]:
            raise ValueError("a key of another length")
        self._initiator, self._psk = initiator, keys.psk
        self._messages = list(PATTERNS[name])
        self._ours = initiator  # whose turn it is
        self._s, self._e = (X25519PrivateKey.from_private_bytes(key) for key in (keys.static, keys.ephemeral))
        self._rs, self._re = keys.remote, b""
        title = name.encode()
        self._hash = title.ljust(KEY, b"\0") if len(title) <= KEY else sha256(title).digest()
        self._chaining = self._hash
        self._cipher: Cipher | None = None
        self._mix_hash(prologue)
        if name in _KNOWN:
            ours, theirs = self._s.public_key().public_bytes_raw(), self._rs
            for key in (ours, theirs) if initiator else (theirs, ours):
                self._mix_hash(key)

    @property
    def remote(self) -> bytes:
        """The other side's static key: b"" until it came."""
        return self._rs

    @property
    def done(self) -> bool:
        """Whether no message is left, so that `transport` may be asked."""
        return not self._messages

    def write(self, payload: bytes = b"") -> bytes:
        """Our next message. Raises Broken when it is not our turn, or for a key of low order."""
        out = b""
        for step in self._turn(ours=True):
            if step == "e":
                out += self._public(self._e.public_key().public_bytes_raw())
            elif step == "s":
                out += self._encrypt(self._s.public_key().public_bytes_raw())
            else:
                self._mix(step)
        out += self._encrypt(payload)
        if len(out) > MESSAGE_MAX:
            raise ValueError("more than a message holds")
        return out

    def read(self, message: bytes) -> bytes:
        """The payload of the other side's next message. Raises Broken for anything that is not that message."""
        if len(message) > MESSAGE_MAX:
            raise Broken("a message of no possible size")
        rest = message
        for step in self._turn(ours=False):
            if step == "e":
                self._re, rest = _cut(rest, KEY)
                self._public(self._re)
            elif step == "s":
                sealed, rest = _cut(rest, KEY + TAG)
                self._rs = self._decrypt(sealed)
            else:
                self._mix(step)
        return self._decrypt(rest)

    def transport(self) -> Transport:
        """What follows the handshake (5.2, Split). Raises Broken before its end."""
        if not self.done:
            raise Broken("a handshake that is not done")
        first, second = _derived(self._chaining, b"", 2)
        sends, receives = (first, second) if self._initiator else (second, first)
        exporter = hmac.digest(self._chaining, b"allgone exporter v1", sha256)
        return Transport(Cipher(sends), Cipher(receives), self._hash, exporter)

    def _turn(self, *, ours: bool) -> tuple[str, ...]:
        if ours is not self._ours or self.done:
            raise Broken("a message out of its turn")
        self._ours = not ours
        return self._messages.pop(0)

    def _mix(self, step: str) -> None:
        if step == "psk":
            self._chaining, hashed, key = _derived(self._chaining, self._psk, 3)
            self._mix_hash(hashed)
            self._cipher = Cipher(key)
            return
        # The first letter is the initiator's key, the second the responder's.
        mine, others = (step[0], step[1]) if self._initiator else (step[1], step[0])
        private = self._e if mine == "e" else self._s
        self._mix_key(_shared(private, self._re if others == "e" else self._rs))

    def _public(self, key: bytes) -> bytes:
        self._mix_hash(key)
        self._mix_key(key)  # since a shared key is in play (9.2)
        return key

    def _mix_key(self, material: bytes) -> None:
        self._chaining, key = _derived(self._chaining, material, 2)
        self._cipher = Cipher(key)

    def _mix_hash(self, data: bytes) -> None:
        self._hash = sha256(self._hash + data).digest()

    def _encrypt(self, plain: bytes) -> bytes:
        assert self._cipher is not None  # each of our patterns begins with a key
        sealed = self._cipher.encrypt(plain, self._hash)
        self._mix_hash(sealed)
        return sealed

    def _decrypt(self, sealed: bytes) -> bytes:
        assert self._cipher is not None
        plain = self._cipher.decrypt(sealed, self._hash)
        self._mix_hash(sealed)
        return plain


def _derived(chaining: bytes, material: bytes, count: int) -> list[bytes]:
    """HKDF as Noise has it (4.3)."""
    key, out = hmac.digest(chaining, material, sha256), [b""]
    for number in range(1, count + 1):
        out.append(hmac.digest(key, out[-1] + bytes((number,)), sha256))
    return out[1:]


def _shared(private: X25519PrivateKey, public: bytes) -> bytes:
    try:
        return private.exchange(X25519PublicKey.from_public_bytes(public))
    except ValueError:  # of low order, so that the secret would be all zeros
        raise Broken("a public key that is none") from None


def _nonce(number: int) -> bytes:
    return bytes(4) + number.to_bytes(8, "little")


def _cut(message: bytes, size: int) -> tuple[bytes, bytes]:
    if len(message) < size:
        raise Broken("a message of no possible size")
    return message[:size], message[size:]

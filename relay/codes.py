"""Pairing codes: made, spelled, read, and what the relay gets to see of one. PURE.

A code is `NN-word-word-word`. NN is its nameplate and leads two devices into one room; the words are its secret, 31
bits of chance, and leave a device only as the password of SPAKE2, which comes with the pairing itself. The relay sees
the room alone, which is made of the nameplate. Source: PRODUCT.md 5, Pairing.

| what | is for |
|---|---|
| `HOME`, `DEVICE` | whose code it is: `pair` and `join` look in rooms of their own, so that the two never meet |
| nameplate | 10 to 99, and a digit more for each time that a tenth of the numbers is taken |
| check words | two words, 20.6 bits of the handshake's hash, shown on both sides for information |
"""

from __future__ import annotations

import difflib
import hmac
import re
import unicodedata
from collections.abc import Collection
from hashlib import sha256
from typing import NamedTuple

from models.errors import Invalid
from relay.codewords import NUMBERS, WORDS

HOME, DEVICE = "home", "device"
SECRET_WORDS, CHECK_WORDS = 3, 2
CHANCE_BYTES = 16  # more than 31 bits by so much that no word is likelier than another
NAMEPLATE_DIGITS = 9  # at most; nobody has so many codes open
_CROWDED = 10  # a nameplate gets a digit more when one in so many is taken
_PARTS = re.compile(r"[\W_]+")


class Code(NamedTuple):
    """A code. Its text is a secret; nothing but the two people and their devices may hold it."""

    nameplate: int
    words: tuple[str, ...]

    @property
    def text(self) -> str:
        """As people read it, and the password of SPAKE2: `47-acorn-velvet-tuba`."""
        return "-".join((str(self.nameplate), *self.words))


def free_nameplate(taken: Collection[int], chance: bytes) -> int:
    """A nameplate that is not among those `taken`, of two digits while nine in ten of those are free.

    `chance` is CHANCE_BYTES random bytes: whoever knows what is taken still cannot say which comes next.
    """
    held = set(taken)
    for digits in range(2, NAMEPLATE_DIGITS + 1):
        first, size = 10 ** (digits - 1), 9 * 10 ** (digits - 1)
        used = sum(first <= one < first + size for one in held)
        if used * _CROWDED <= size:
            return _nth_free(first, held, int.from_bytes(chance, "big") % (size - used))
    raise ValueError("no nameplate is free")


def made(nameplate: int, chance: bytes) -> Code:
    """A code for that nameplate out of CHANCE_BYTES random bytes. Raises ValueError for fewer."""
    return Code(nameplate, _words(chance, SECRET_WORDS))


def read(given: str) -> Code:
    """The code that a person typed: any case, any blanks and dashes between its parts.

    Raises Invalid("code") with a sentence that says which part is wrong, and never the code as a whole.
    """
    parts = [part for part in _PARTS.split(unicodedata.normalize("NFKC", given[:200]).casefold()) if part]
    if len(parts) != 1 + SECRET_WORDS or len(given) > 200:
        raise Invalid("code", "A code is a number and three words, such as 47-acorn-velvet-tuba.")
    number, *words = parts
    if not re.fullmatch(rf"[1-9][0-9]{{1,{NAMEPLATE_DIGITS - 1}}}", number):
        raise Invalid("code", f"A code begins with its number, and {number[:20]!r} is none.")
    for word in words:
        if word not in NUMBERS:
            raise Invalid("code", _no_word(word))
    return Code(int(number), tuple(words))


def room(kind: str, host: str, nameplate: int) -> bytes:
    """The room, of 32 bytes, where the two sides of a code meet: all that the relay sees of it.

    `kind` is HOME or DEVICE, `host` as `admission.host_of` spells the server's.
    """
    return sha256(f"allgone pairing room v1\0{kind}\0{host}\0{nameplate}".encode()).digest()


def check_words(handshake_hash: bytes) -> str:
    """Two words that both sides show: alike when nobody stands between them."""
    return " ".join(_words(hmac.digest(handshake_hash, b"allgone check words v1", "sha256"), CHECK_WORDS))


def _words(chance: bytes, count: int) -> tuple[str, ...]:
    if len(chance) < CHANCE_BYTES:
        raise ValueError("too little chance for a code")
    number, words = int.from_bytes(chance, "big"), []
    for _ in range(count):
        number, at = divmod(number, len(WORDS))
        words.append(WORDS[at])
    return tuple(words)


def _nth_free(first: int, held: set[int], skip: int) -> int:
    number = first
    while skip or number in held:
        skip -= number not in held
        number += 1
    return number


def _no_word(word: str) -> str:
    near = difflib.get_close_matches(word, WORDS, 1)
    hint = f" Is it {near[0]!r}?" if near else ""
    return f"No code has the word {word[:40]!r}.{hint}"

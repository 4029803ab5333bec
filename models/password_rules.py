"""Which passwords are taken, after NIST SP 800-63B-4, 3.1.1.2: long enough, and not one that everybody tries first.

PURE. No rules of composition, no expiry, no hints; blanks and every script count. A password is compared in Unicode
form NFKC, so that it does not depend on the keyboard that typed it.

The list is short on purpose: what stands on the long ones is, at twelve characters, nearly always one of its words
with digits or signs around it, a pattern of the keyboard, or a short piece said again and again; these are refused
by what they are.
"""

from __future__ import annotations

import unicodedata

from models.errors import Invalid

LEAST = 12  # code points
MOST = 256
# What the longest of the common ones are made of, in small letters.
WORDS = frozenset(
    """
    password passwort passw0rd motdepasse contrasena senha wachtwoord parola passord losenord haslo geslo salasana
    letmein welcome willkommen iloveyou ichliebedich teamo princess sunshine football baseball basketball
    liverpool chelsea arsenal barcelona superman batman spiderman pokemon starwars dragon monkey master shadow
    michael jennifer jessica charlie ashley daniel michelle administrator admin administrador root user username
    login guest default changeme changeit secret topsecret trustno1 whatever internet computer samsung google
    facebook hello hellothere qwerty qwertz azerty asdfgh zxcvbn abc abcdef test testing access summer winter
    spring autumn monday friday january december correcthorsebatterystaple correct horse battery staple
    allgone conversation history
    """.split()  # noqa: SIM905  a list of words reads as words
)
ROWS = (
    "01234567890123456789",
    "09876543210987654321",
    "abcdefghijklmnopqrstuvwxyz",
    "zyxwvutsrqponmlkjihgfedcba",
    "qwertyuiopasdfghjklzxcvbnm",
    "qwertzuiopasdfghjklyxcvbnm",
    "azertyuiopqsdfghjklmwxcvbn",
    "1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik9ol0p",
    "1q2w3e4r5t6y7u8i9o0p",
    "q1w2e3r4t5y6u7i8o9p0",
    "zaq12wsxcde34rfvbgt56yhn",
)
PIECE = 4  # characters of a piece that, said again and again, is no password


def normalised(password: str) -> str:
    """The form in which a password is hashed and compared."""
    return unicodedata.normalize("NFKC", password)


def checked(password: str, email: str) -> str:
    """A new password of the user `email`, normalised.

    Raises Invalid("new_password"), with a sentence that says why, for one that is not taken.
    """
    text = normalised(password)
    if len(text) < LEAST:
        raise _no(
            f"A password has at least {LEAST} characters. A few words that only you would put together do well."
        )
    if len(text) > MOST:
        raise _no(f"A password has at most {MOST} characters.")
    if any(unicodedata.category(one) in {"Cc", "Cs", "Cn", "Co"} for one in text):
        raise _no("This password holds a character that not every keyboard can give again.")
    plain = text.casefold()
    local = email.casefold().partition("@")[0]
    named = len(local) >= 3 and local in plain and not _bare(plain.replace(local, " "))
    if named or plain == email.casefold():
        raise _no("This password is made of your address, which is tried first.")
    if _common(plain):
        raise _no(
            "This is one of the passwords that are tried first. Take one that nobody else would think of."
        )
    return text


def _common(plain: str) -> bool:
    letters = "".join(one for one in plain if one.isalnum())
    bare = _bare(plain)
    words = len(bare) * 5 >= len(plain) * 2 and _of_words(
        bare
    )  # with much more around them they count for little
    return words or _repeated(plain) or _along_rows(letters)


def _bare(plain: str) -> str:
    """Without digits and signs: what is left of "Password2024!!" is "password"."""
    return "".join(one for one in plain if one.isalpha())


def _repeated(plain: str) -> bool:
    """One piece of up to four characters, said again and again."""
    return any(plain == (plain[:size] * len(plain))[: len(plain)] for size in range(1, PIECE + 1))


def _of_words(bare: str) -> bool:
    """Nothing but the words of the list, one after the other, at most three."""
    reached = {0}
    for _ in range(3):
        reached |= {at + len(word) for at in reached for word in WORDS if bare.startswith(word, at)}
    return len(bare) in reached


def _along_rows(letters: str) -> bool:
    """Nothing but steps along one row of keys, of digits or of the alphabet, begun anew at most twice."""
    at = 0
    for _ in range(3 if letters else 0):
        at += max((_run(letters, at, row) for row in ROWS), default=0)
    return 0 < len(letters) <= at


def _run(letters: str, at: int, row: str) -> int:
    size = 0
    while at + size < len(letters) and letters[at : at + size + 1] in row:
        size += 1
    return size if size >= 3 or at + size == len(letters) else 0


def _no(said: str) -> Invalid:
    return Invalid("new_password", said)

"""Making and checking passwords' hashes: argon2id by argon2-cffi's own parameters (RFC 9106, low memory).

One hash takes 64 MiB for some 50 ms. So that a flood of sign-ins exhausts neither memory nor threads, few are made
at once in a process, few more wait, and the rest are refused at once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from typing import TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from models.errors import RateLimited

AT_ONCE = 2
WAITING = 4
WAIT_SECONDS = 5.0

R = TypeVar("R")
_hasher = PasswordHasher()
_room = threading.BoundedSemaphore(AT_ONCE + WAITING)
_turn = threading.BoundedSemaphore(AT_ONCE)


def hashed_password(password: str) -> str:
    """argon2's text of a normalised password. Raises RateLimited when too many are at it."""
    return _in_turn(lambda: _hasher.hash(password))


def verified(kept: str | None, password: str) -> bool:
    """Whether a normalised password is the kept one. With none kept it takes as long, and is never so.

    Raises RateLimited when too many are at it.
    """

    def verify() -> bool:
        try:
            return _hasher.verify(kept or _nobodys(), password) and kept is not None
        except (VerificationError, InvalidHashError):
            return False

    return _in_turn(verify)


def outdated(kept: str) -> bool:
    """Whether a hash was made under other parameters than are used now."""
    return _hasher.check_needs_rehash(kept)


def _in_turn(work: Callable[[], R]) -> R:
    busy = RateLimited("Many people are signing in just now. Try again in a few seconds.", retry_after=5)
    if not _room.acquire(blocking=False):
        raise busy
    try:
        if not _turn.acquire(timeout=WAIT_SECONDS):
            raise busy
        try:
            return work()
        finally:
            _turn.release()
    finally:
        _room.release()


@cache
def _nobodys() -> str:
    return _hasher.hash("a password that nobody has")

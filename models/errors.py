"""Every refusal the product can give, one tree, each with a code, a human sentence and its details.

PURE. A code is the word a client's program may branch on (PRODUCT.md 3.1, "Codes"); which HTTP status it
becomes is written once, in `blueprints/errors.py`. The sentence says what happened, what is safe and what
to do; it never holds a title, a text, a key or a token.
"""

from __future__ import annotations

from typing import Any


class Refusal(Exception):
    """Something the caller asked for is not done, and nothing was changed.

    `code` is stable; `detail` is one human sentence; `details` is a small JSON-ready mapping.
    """

    code = "internal"

    def __init__(self, detail: str, **details: Any) -> None:
        super().__init__(detail)
        self.detail = detail
        self.details = details


class Unauthorized(Refusal):
    """No sign-in or token, or one that is unknown, expired or revoked."""

    code = "unauthorized"


class Forbidden(Refusal):
    """The caller is known, but its token lacks the scope, or it is no operator."""

    code = "forbidden"


class NotFound(Refusal):
    """Nothing of that name is the caller's: foreign and missing things cannot be told apart."""

    code = "not_found"


class Invalid(Refusal):
    """A value is not what its place needs; `details["field"]` names the place."""

    code = "invalid"

    def __init__(self, field: str, detail: str, **details: Any) -> None:
        super().__init__(detail, field=field, **details)


class InvalidCursor(Refusal):
    """A cursor that this product did not give to this caller; never answered with page one."""

    code = "invalid_cursor"


class InvalidState(Refusal):
    """Understood and allowed, but not now; `details["reason"]` says why in a stable word."""

    code = "invalid_state"

    def __init__(self, reason: str, detail: str, **details: Any) -> None:
        super().__init__(detail, reason=reason, **details)


class TooLarge(Refusal):
    """A body, batch or file over its bound."""

    code = "too_large"


class RateLimited(Refusal):
    """Too many attempts; `details["retry_after"]` is the wait in seconds."""

    code = "rate_limited"


class Misconfigured(Exception):
    """A setting, a folder or an engine is not usable: the start stops with this one line and exit 1."""

"""Where a reader may be sent after signing in: an address of ours, whatever somebody wrote into a link. PURE."""

from __future__ import annotations

from urllib.parse import urlsplit

HOME = "/"


def safe_place(address: str) -> str:
    """The path and query of an address of ours, for going there after a sign-in; HOME for whatever else.

    Only the path is taken, whatever host it named, and it is one that no browser reads as another host's.
    """
    if len(address) > 2000 or not address.isprintable() or "\\" in address:
        return HOME
    try:
        parts = urlsplit(address)
    except ValueError:
        return HOME
    path = parts.path
    if not path.startswith("/") or path.startswith(("//", "/sign-", "/v1/", "/static/")):
        return HOME
    return path + (f"?{parts.query}" if parts.query else "")

"""What a setting that names a server must look like, and how our clients want it spelled. PURE.

Each function takes the value as it was given, returns it as it is used, and raises Misconfigured with one line
that names the setting and never shows a password.
"""

from __future__ import annotations

import re
from urllib.parse import SplitResult, urlsplit, urlunsplit

from models.errors import Misconfigured

_HOST = re.compile(r"[A-Za-z0-9._:-]{1,253}(%[A-Za-z0-9._-]+)?")
_WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  names wildcards, binds nothing


def host(given: str) -> str:
    """HOST: a name or an address, without brackets, port or scheme."""
    if not _HOST.fullmatch(given):
        raise Misconfigured(f"HOST: {given[:60]!r} is not the name or address of a host")
    return given


def database_url(given: str) -> str:
    """DATABASE_URL as SQLAlchemy reads it: a bare postgresql:// would mean psycopg 3 there (PARTS.md)."""
    parts = _split("DATABASE_URL", given)
    if parts.scheme not in {"postgres", "postgresql", "postgresql+psycopg2"}:
        raise Misconfigured("DATABASE_URL must start with postgresql://")
    if not parts.path.strip("/"):
        raise Misconfigured("DATABASE_URL names no database after the host")
    return _spelled("postgresql+psycopg2", parts)


def redis_url(given: str) -> str:
    """REDIS_URL as its client reads it."""
    parts = _split("REDIS_URL", given)
    scheme = {"valkey": "redis", "valkeys": "rediss"}.get(parts.scheme, parts.scheme)
    if scheme not in {"redis", "rediss", "unix"}:
        raise Misconfigured("REDIS_URL must start with redis://, rediss:// or unix://")
    if scheme == "unix" and len(parts.path) < 2:
        raise Misconfigured("REDIS_URL names no socket after unix://")
    if scheme != "unix" and not re.fullmatch(r"/?|/[0-9]{1,5}", parts.path):
        raise Misconfigured("REDIS_URL has something other than a database's number after the host")
    return _spelled(scheme, parts)


def object_store_url(given: str) -> str:
    """OBJECT_STORE_URL: a folder of this machine, or a bucket whose keys are the AWS settings'."""
    parts = _split("OBJECT_STORE_URL", given)
    if "@" in parts.netloc:
        raise Misconfigured("OBJECT_STORE_URL holds a user or a key; those belong into the AWS_ settings")
    if parts.scheme == "file" and parts.netloc in {"", "localhost"} and parts.path.startswith("/"):
        return given
    if parts.scheme == "s3" and parts.netloc:
        return given
    raise Misconfigured("OBJECT_STORE_URL must be file:///folder or s3://bucket/prefix")


def public_url(given: str) -> str:
    """PUBLIC_URL without a slash at its end: nothing but http or https, a host, and a port."""
    parts = _split("PUBLIC_URL", given)
    plain = parts.path in {"", "/"} and not parts.query and not parts.fragment and "@" not in parts.netloc
    named = parts.hostname is not None and _HOST.fullmatch(parts.hostname)
    if parts.scheme not in {"http", "https"} or not plain or not named:
        raise Misconfigured(f"PUBLIC_URL: {given[:200]!r} is not http(s)://host[:port]")
    return given.rstrip("/")


def issuer(given: str) -> str:
    """OIDC_ISSUER exactly as the provider spells itself: https, or http on this machine."""
    parts = _split("OIDC_ISSUER", given)
    if not parts.hostname or parts.query or parts.fragment or "@" in parts.netloc:
        raise Misconfigured("OIDC_ISSUER is not https://host[:port][/path]")
    if not is_private(given):
        raise Misconfigured(
            "OIDC_ISSUER must start with https://; http:// is for a provider on this machine alone"
        )
    return given


def is_private(url: str) -> bool:
    """Whether what is sent to a URL is read by nobody on the way: https, or this very machine."""
    parts = urlsplit(url)
    return parts.scheme == "https" or (
        parts.scheme == "http" and parts.hostname in {"localhost", "127.0.0.1", "::1"}
    )


def local_url(host: str, port: int) -> str:
    """PUBLIC_URL where none is given: where this process listens, never a wildcard."""
    shown = _WILDCARDS.get(host, host)
    return f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"


def _split(name: str, given: str) -> SplitResult:
    # urlsplit drops tabs and line ends in silence, so they are refused before it sees them.
    try:
        if not given.isprintable():
            raise ValueError
        parts = urlsplit(given)
        _ = parts.port
    except ValueError:
        raise Misconfigured(f"{name} is not a URL") from None
    return parts


def _spelled(scheme: str, parts: SplitResult) -> str:
    # Not by urlunsplit alone: it drops the two slashes of a URL without a host, and our clients need them.
    return f"{scheme}://{urlunsplit(parts._replace(scheme='')).removeprefix('//')}"

"""One protocol for the bytes of artifacts, and the one place that picks what stands behind it.

| URL | store | module |
|---|---|---|
| `file:///folder` | a local directory | `local.py` |
| `s3://bucket/prefix` | anything that speaks the S3 API | `s3.py`, `s3_faults.py` |
| `memory://` | a dictionary of this process, for tests and trials | `memory.py` |

`contract.py` holds the protocol, its faults and the rule for keys. A store is never swapped for another one
when it fails: the caller hears which kind of fault it was, and the outbox keeps what is owed.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from urllib.parse import unquote, urlsplit

from models.bytestore.contract import ByteStore, Fault, Missing, Stored, StoreFault, checked
from models.bytestore.local import LocalStore
from models.bytestore.memory import MemoryStore
from models.errors import Misconfigured

__all__ = ["ByteStore", "Fault", "Missing", "StoreFault", "Stored", "checked", "open_store"]

NOTHING: Mapping[str, str] = MappingProxyType({})


def open_store(url: str, aws: Mapping[str, str] = NOTHING, *, make: bool = True) -> ByteStore:
    """The store that `url` names; `aws` holds the AWS_* settings and is read for `s3://` alone.

    Opens no connection. A local store that was never used is made, unless `make` is False: pass that where
    bytes are known to have been stored already, so that the bare mount point of an unmounted disk is not
    taken for a new store. What is wrong with the store itself is told by `check()` and by each verb.

    Raises Misconfigured for a URL that names no store.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        raise Misconfigured("OBJECT_STORE_URL is not a URL") from None
    if parts.query or parts.fragment:
        raise Misconfigured(
            "OBJECT_STORE_URL takes no ? and no #; write them as %3F and %23 in a folder's name"
        )
    if parts.scheme == "file" and parts.netloc in {"", "localhost"} and parts.path.strip("/"):
        return LocalStore(unquote(parts.path), make=make)
    if parts.scheme == "s3" and parts.netloc:
        from models.bytestore.s3 import S3Store  # boto3 takes a third of a second to import

        return S3Store(parts.netloc, parts.path.strip("/"), aws)
    if parts.scheme == "memory":
        return MemoryStore()
    raise Misconfigured("OBJECT_STORE_URL must be file:///folder or s3://bucket/prefix")

"""The home directory of a device: who it is, its keys, its two SQLite files. Its owner alone can read it.

| file | holds |
|---|---|
| `device.json` | its name, its id of 16 bytes, the format's number |
| `keys.json` | its signing key and its Noise key, made at `init` |
| `memories.sqlite3`, `sync-deletions.sqlite3` | `models/memorystore/` |

A directory that says who it is but has lost its memories is not begun anew in silence: an empty store would look like
a user who deleted everything (FAULTS.md D28).
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from models.errors import Invalid, InvalidState, NotFound
from models.memorystore.opening import DELETIONS, MEMORIES, open_files
from models.memorystore.store import Store
from models.memorystore.verbs import settle
from models.rules import NAME_MAX

FORMAT = 1
IDENTITY, KEYS = "device.json", "keys.json"


@dataclass(frozen=True, slots=True)
class Device:
    """An open device. `key_store` says where its keys are kept."""

    folder: Path
    name: str
    id: bytes
    store: Store
    key_store: str = "file"


def make_device(folder: Path, name: str) -> None:
    """Makes a home directory. Raises Invalid for its name, InvalidState where there is a device already."""
    if not name.strip() or len(name) > NAME_MAX or not name.isprintable():
        raise Invalid("name", f"A device's name has 1 to {NAME_MAX} printable characters.")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if (folder / IDENTITY).exists():
        raise InvalidState("device_exists", f"{folder} is the home of a device already. Nothing was changed.")
    if (folder / MEMORIES).exists() or (folder / DELETIONS).exists():
        raise InvalidState(
            "identity_missing",
            f"{folder} holds memories, but {IDENTITY} is gone. Bring it back from a backup; nothing was changed.",
        )
    if os.name == "posix":
        folder.chmod(0o700)
    signing, noise = Ed25519PrivateKey.generate(), X25519PrivateKey.generate()
    _write(
        folder / KEYS,
        {"signing": signing.private_bytes_raw().hex(), "noise": noise.private_bytes_raw().hex()},
    )
    engine = open_files(folder)
    engine.connect().close()
    engine.dispose()
    for file in folder.iterdir():
        if os.name == "posix":
            file.chmod(0o600)
    # Last, so that what a crash left half made is no device, and can be made anew.
    _write(folder / IDENTITY, {"format": FORMAT, "name": name.strip(), "id": secrets.token_hex(16)})


@contextmanager
def open_device(folder: Path) -> Iterator[Device]:
    """Opens a device, and finishes what a crash left of its deletions.

    Raises NotFound where there is none, InvalidState for one of a newer release and one whose memories are missing.
    """
    try:
        told = json.loads((folder / IDENTITY).read_text("utf-8"))
        number, name, own = told["format"], str(told["name"]), bytes.fromhex(told["id"])
    except FileNotFoundError:
        raise NotFound(f"{folder} is no device's home. Make one with: init --name NAME") from None
    except (OSError, ValueError, KeyError, TypeError):
        raise InvalidState(
            "identity_damaged", f"{folder / IDENTITY} cannot be read. Nothing was changed."
        ) from None
    if number != FORMAT:
        raise InvalidState(
            "newer_release",
            "This home was written by a newer release of Allgone. Update it to open this home.",
        )
    lost = [file for file in (MEMORIES, DELETIONS) if not (folder / file).exists()]
    if lost:
        raise InvalidState(
            "store_missing",
            f"{lost[0]} is missing in {folder}. Nothing was begun anew, and no other device is told of it: bring the "
            "file back from a backup, or make a new device in another folder.",
        )
    engine = open_files(folder)
    try:
        store = Store(engine.connect(), own, lambda: datetime.now(UTC), secrets.token_bytes)
        settle(store)
        yield Device(folder, name, own, store)
        store.db.close()
    finally:
        engine.dispose()


def _write(path: Path, document: Any) -> None:
    """Writes a small file whole or not at all, for its owner alone."""
    beside = path.with_name(f"{path.name}.new")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(document, file, ensure_ascii=False)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)

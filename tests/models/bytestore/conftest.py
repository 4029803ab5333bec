"""One store of each kind, and a way to see all of its bytes that asks the store's own code nothing."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from models.bytestore import ByteStore, open_store
from tests.s3_server import S3Server, shared


@dataclass
class Place:
    """A store under test; `everything` lists each piece of bytes it holds."""

    store: ByteStore
    everything: Callable[[], list[str]]


def new_key() -> str:
    return str(uuid.uuid4())


def listed(store: ByteStore) -> list[str]:
    """The keys that the store tells, sorted."""
    return sorted(key for key, _ in iter(store.keys()))


@pytest.fixture(scope="session")
def s3() -> S3Server:
    return shared()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "a disk" / "objects"


@pytest.fixture
def local(folder: Path) -> ByteStore:
    return open_store(folder.as_uri())


@pytest.fixture(params=["local", "memory", pytest.param("s3", marks=pytest.mark.s3)])
def place(request: pytest.FixtureRequest) -> Place:
    if request.param == "local":
        folder = request.getfixturevalue("folder")
        return Place(
            request.getfixturevalue("local"),
            lambda: sorted(str(path) for path in folder.rglob("*") if path.is_file() and path.name[0] != "."),
        )
    if request.param == "memory":
        memory = open_store("memory://")
        return Place(memory, lambda: listed(memory))
    server: S3Server = request.getfixturevalue("s3")
    bucket = server.bucket()
    return Place(open_store(server.url(bucket), server.aws), lambda: server.everything(bucket))


@pytest.fixture
def store(place: Place) -> ByteStore:
    return place.store

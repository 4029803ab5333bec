"""What every store promises, asked of all three."""

from __future__ import annotations

import hashlib
import os
import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from models.bytestore import ByteStore, Missing, Stored, StoreFault
from models.bytestore.contract import CHUNK
from tests.models.bytestore.conftest import Place, listed, new_key

MIB = 1024 * 1024


def read(store: ByteStore, key: str, start: int = 0, end: int | None = None) -> bytes:
    return b"".join(store.open(key, start, end))


def pieces(total: int, size: int = 192 * 1024) -> Iterator[bytes]:
    """`total` bytes that differ from piece to piece, made on the way."""
    for number, at in enumerate(range(0, total, size)):
        yield number.to_bytes(4, "big").ljust(min(size, total - at), b"\x5a")[: min(size, total - at)]


@pytest.mark.parametrize("size", [0, 1, MIB, 8 * MIB, 20 * MIB + 1])
def test_what_was_put_comes_back_with_its_size_and_digest(store: ByteStore, size: int) -> None:
    key, whole = new_key(), b"".join(pieces(size))
    assert store.put(key, pieces(size)) == Stored(size, hashlib.sha256(whole).digest())
    assert store.size(key) == size
    assert read(store, key) == whole


def test_no_chunk_at_all_is_an_object_of_no_bytes(store: ByteStore) -> None:
    key = new_key()
    assert store.put(key, iter(())).size == 0
    assert read(store, key) == b""
    assert store.size(key) == 0


def test_one_huge_chunk_is_taken_and_given_back_in_small_pieces(store: ByteStore) -> None:
    key, data = new_key(), os.urandom(17 * MIB)
    store.put(key, [data])
    given = list(store.open(key))
    assert b"".join(given) == data
    assert max(map(len, given)) <= CHUNK


@pytest.mark.parametrize(
    ("start", "end"),
    [(0, 10), (3, 7), (9, 10), (4, None), (0, 99), (9, 99), (10, 20), (11, None), (5, 5), (0, 0)],
)
def test_a_range_is_cut_like_a_slice(store: ByteStore, start: int, end: int | None) -> None:
    key = new_key()
    store.put(key, [b"0123456789"])
    assert read(store, key, start, end) == b"0123456789"[start:end]


def test_a_long_range_from_the_middle(store: ByteStore) -> None:
    key, whole = new_key(), b"".join(pieces(3 * MIB))
    store.put(key, [whole])
    assert read(store, key, MIB + 7, 3 * MIB - 5) == whole[MIB + 7 : 3 * MIB - 5]


def test_the_last_write_of_a_key_wins(store: ByteStore) -> None:
    key = new_key()
    store.put(key, [b"a much longer first one"])
    store.put(key, [b"second"])
    assert read(store, key) == b"second"
    assert listed(store) == [key]


def test_keys_tells_each_key_and_when_it_was_written(store: ByteStore) -> None:
    before = datetime.now(UTC) - timedelta(seconds=2)
    wanted = {new_key() for _ in range(7)}
    for key in wanted:
        store.put(key, [b"x"])
    found = list(store.keys())
    assert {key for key, _ in found} == wanted
    assert len(found) == 7
    assert all(before <= time <= datetime.now(UTC) + timedelta(seconds=2) for _, time in found)
    assert all(time.utcoffset() == timedelta(0) for _, time in found)


def test_a_store_that_is_well_says_so_and_is_empty(store: ByteStore) -> None:
    store.check()
    assert listed(store) == []


def test_deleting_1001_keys_takes_them_all_and_nobody_elses(store: ByteStore) -> None:
    there = [new_key() for _ in range(300)]
    neighbour = new_key()
    for key in [*there, neighbour]:
        store.put(key, [b"bytes"])
    never = [new_key() for _ in range(701)]
    assert store.delete(there + never) == {}
    assert listed(store) == [neighbour]
    assert read(store, neighbour) == b"bytes"


def test_deleting_twice_or_nothing_or_the_same_key_twice_is_no_failure(place: Place) -> None:
    key = new_key()
    place.store.put(key, [b"x"])
    assert place.store.delete([]) == {}
    assert place.store.delete([key, key]) == {}
    assert place.store.delete([key]) == {}
    assert place.everything() == []


@pytest.mark.parametrize("sent", [0, 1, 20 * MIB])
def test_a_stream_that_breaks_leaves_nothing_and_its_error_comes_through(place: Place, sent: int) -> None:
    def broken() -> Iterator[bytes]:
        yield from pieces(sent)
        raise ConnectionResetError("the client went away")

    place.store.put(new_key(), [b"another one"])
    before = place.everything()
    with pytest.raises(ConnectionResetError, match="the client went away"):
        place.store.put(new_key(), broken())
    assert place.everything() == before
    assert len(listed(place.store)) == 1


def test_a_stream_that_breaks_leaves_what_was_under_the_key_before(store: ByteStore) -> None:
    def broken() -> Iterator[bytes]:
        yield b"half"
        raise ValueError("the source's own")

    key = new_key()
    store.put(key, [b"whole"])
    with pytest.raises(ValueError, match="the source's own"):
        store.put(key, broken())
    assert read(store, key) == b"whole"


def test_a_missing_object_is_missing_at_the_call(store: ByteStore) -> None:
    with pytest.raises(Missing):
        store.open(new_key())
    with pytest.raises(Missing):
        store.open(new_key(), 5, 5)
    with pytest.raises(Missing):
        store.open(new_key(), 2, 9)
    with pytest.raises(Missing):
        store.size(new_key())


def test_a_deletion_while_an_upload_runs_leaves_no_bytes(place: Place) -> None:
    if type(place.store).__name__ == "MemoryStore":
        pytest.skip("an upload to memory is not in the store before it ends")
    key = new_key()

    def deleted_on_the_way() -> Iterator[bytes]:
        yield from pieces(
            16 * MIB
        )  # two whole parts: moto answers 500 to one more, where AWS says NoSuchUpload
        assert listed(place.store) == [key]
        assert place.store.delete([key]) == {}

    # moto answers 500 to a part of an upload that was aborted, where AWS says NoSuchUpload.
    with pytest.raises((Missing, StoreFault)) as raised:
        place.store.put(key, deleted_on_the_way())
    assert raised.type is Missing or type(place.store).__name__ == "S3Store"
    assert place.everything() == []
    assert listed(place.store) == []


@pytest.mark.parametrize("store_kind", ["local", pytest.param("s3", marks=pytest.mark.s3)])
def test_64_mib_pass_in_constant_memory(request: pytest.FixtureRequest, store_kind: str) -> None:
    if store_kind == "local":
        store: ByteStore = request.getfixturevalue("local")
    else:
        from models.bytestore import open_store

        server = request.getfixturevalue("s3")
        store = open_store(server.url(server.bucket()), server.direct_aws)
    key = new_key()
    store.put(new_key(), [b"x"])  # clients and caches are made before the count
    tracemalloc.start()
    try:
        store.put(key, pieces(64 * MIB))
        _, peak_put = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        total = sum(len(piece) for piece in store.open(key))
        _, peak_open = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert total == 64 * MIB
    assert peak_put < (4 if store_kind == "local" else 24) * MIB
    assert peak_open < 4 * MIB


HOSTILE = [
    "",
    ".",
    "..",
    "../../etc/passwd",
    "/etc/passwd",
    ".allgone-store",
    ".incoming",
    "0190a1b2-0000-7000-8000-0000000000/0",
    "0190a1b2-0000-7000-8000-00000000000",
    "0190a1b2-0000-7000-8000-0000000000000",
    "0190A1B2-0000-7000-8000-000000000000",
    "0190a1b2-0000-7000-8000-00000000000\n",
    "0190a1b2-0000-7000-8000-000000000000\n",
    "0190a1b2-0000-7000-8000-00000000000\0",
    "0190a1b2-0000-7000-8000-0000000000٠0",
    "{0190a1b2-0000-7000-8000-000000000000}",
    "urn:uuid:0190a1b2-0000-7000-8000-000000000000",
    "0190a1b2000070008000000000000000",
]


@pytest.mark.parametrize("key", HOSTILE)
def test_a_key_that_is_no_uuid_reaches_no_store(place: Place, key: str) -> None:
    good = new_key()
    place.store.put(good, [b"x"])
    before = place.everything()
    for attempt in (
        lambda: place.store.put(key, [b"x"]),
        lambda: place.store.open(key),
        lambda: place.store.open(key, 5, 5),
        lambda: place.store.size(key),
        lambda: place.store.delete([good, key]),
    ):
        with pytest.raises(ValueError, match="is not the key of an object"):
            attempt()
    assert place.everything() == before


@pytest.mark.parametrize(("start", "end"), [(-1, None), (-5, -1), (5, 4)])
def test_a_range_that_is_none_is_refused(store: ByteStore, start: int, end: int | None) -> None:
    key = new_key()
    store.put(key, [b"0123456789"])
    with pytest.raises(ValueError, match="is not a range"):
        store.open(key, start, end)

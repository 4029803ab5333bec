"""An S3 API that keeps versions, refuses, half obeys, is not there: every answer has its word."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Literal

import pytest
from botocore import exceptions as boto

from models.bytestore import ByteStore, Missing, StoreFault, open_store
from models.bytestore.s3_faults import fault_of, fault_of_code
from tests.models.bytestore.conftest import listed, new_key
from tests.s3_server import S3Server, free_port

pytestmark = pytest.mark.s3
MIB = 1024 * 1024


@pytest.fixture
def bucket(s3: S3Server) -> str:
    return s3.bucket()


@pytest.fixture
def store(s3: S3Server, bucket: str) -> ByteStore:
    return open_store(s3.url(bucket), s3.aws)


def put(store: ByteStore, number: int) -> list[str]:
    keys = [new_key() for _ in range(number)]
    for key in keys:
        store.put(key, [b"bytes"])
    return keys


def verbs(store: ByteStore) -> list[Callable[[], object]]:
    return [
        store.check,
        lambda: list(store.keys()),
        lambda: store.put(new_key(), [b"x"]),
        lambda: store.put(new_key(), [bytes(9 * MIB)]),
        lambda: store.open(new_key()),
        lambda: store.size(new_key()),
    ]


def refused(store: ByteStore, word: str) -> None:
    """Every verb fails with `word`, and in a sentence that shows no secret."""
    for verb in verbs(store):
        with pytest.raises(StoreFault) as error:
            verb()
        assert error.value.fault == word
        assert error.value.sentence.startswith("The object store s3://")
        assert error.value.sentence.endswith(".")


@pytest.mark.parametrize("number", [1, 1000, 1001, 2500])
def test_n_keys_of_a_bucket_without_versions_are_n_thousandths_of_requests(
    s3: S3Server, store: ByteStore, number: int
) -> None:
    with s3.counting() as seen:
        assert store.delete([new_key() for _ in range(number)]) == {}
    assert seen == {
        "GetBucketVersioning": 1,
        "ListMultipartUploads": 1,
        "DeleteObjects": -(-number // 1000),
    }
    with s3.counting() as seen:
        store.delete([new_key()])
        store.delete([])
    assert seen == {"ListMultipartUploads": 1, "DeleteObjects": 1}


def test_every_version_and_marker_of_a_key_goes(s3: S3Server) -> None:
    bucket = s3.bucket("Enabled")
    store = open_store(s3.url(bucket), s3.aws)
    several, marked, neighbour = new_key(), new_key(), new_key()
    for text in (b"one", b"two", b"three"):
        store.put(several, [text])
        store.put(marked, [text])
    store.put(neighbour, [b"stays"])
    s3.client.delete_object(Bucket=bucket, Key=f"objects/{marked}")
    s3.client.put_object(Bucket=bucket, Key=f"objects/{several}.copy", Body=b"not ours")

    assert listed(store) == sorted([several, marked, neighbour])
    with pytest.raises(Missing):
        store.open(marked)
    assert store.delete([several, new_key(), marked]) == {}
    assert [line.split()[1] for line in s3.everything(bucket)] == sorted(
        [f"objects/{neighbour}", f"objects/{several}.copy"]
    )
    assert b"".join(store.open(neighbour)) == b"stays"


def test_a_bucket_that_no_longer_keeps_versions_still_gives_up_the_old_ones(s3: S3Server) -> None:
    # No delete markers and no later writes here: moto mishandles both once versions are suspended. What it
    # can show is that each key is asked for its versions, and that all of them go.
    bucket = s3.bucket("Enabled")
    store = open_store(s3.url(bucket), s3.aws)
    keys = put(store, 3)
    for key in keys:
        store.put(key, [b"again"])
    s3.set_versioning(bucket, "Suspended")
    assert listed(store) == sorted(keys)
    with s3.counting() as seen:
        assert store.delete([*keys[:2], new_key()]) == {}
    assert (seen["ListObjectVersions"], seen["DeleteObjects"]) == (3, 1)
    assert {line.split()[1] for line in s3.everything(bucket)} == {f"objects/{keys[2]}"}


def test_a_key_with_more_versions_than_one_page_and_one_request_holds(s3: S3Server) -> None:
    bucket = s3.bucket("Enabled")
    store = open_store(s3.url(bucket), s3.direct_aws)
    key, other = new_key(), new_key()
    for _ in range(1003):
        store.put(key, [b"x"])
    store.put(other, [b"x"])
    assert listed(store) == sorted([key, other])
    assert store.delete([key]) == {}
    assert len(s3.everything(bucket)) == 1


def test_versions_that_were_switched_on_a_moment_ago_are_noticed(
    s3: S3Server, store: ByteStore, bucket: str
) -> None:
    store.delete([new_key()])  # the answer "keeps no versions" is known from now on
    s3.set_versioning(bucket, "Enabled")
    (key,) = put(store, 1)
    store.put(key, [b"again"])
    assert store.delete([key]) == {}
    assert s3.everything(bucket) == []


def test_a_prefix_is_a_world_of_its_own(s3: S3Server, bucket: str) -> None:
    one, two, bare = (
        open_store(url, s3.aws) for url in (f"s3://{bucket}/one", f"s3://{bucket}/one/two/", f"s3://{bucket}")
    )
    key = new_key()
    for store in (one, two, bare):
        store.put(key, [b"x"])
        assert listed(store) == [key]
    assert one.delete([key]) == {}
    assert [line.split()[1] for line in s3.everything(bucket)] == sorted([f"one/two/{key}", key])


@pytest.mark.parametrize("versioning", [None, "Enabled"])
def test_half_refused_inside_a_200_is_exactly_that_half(
    s3: S3Server, versioning: Literal["Enabled"] | None
) -> None:
    bucket = s3.bucket(versioning)
    store = open_store(s3.url(bucket), s3.aws)
    keys = put(store, 60)
    with s3.answering("half"):
        left = store.delete(keys)
    assert left == {name.removeprefix("objects/"): "unavailable" for name in s3.half_failed}
    assert len(left) == 30
    assert set(listed(store)) == set(left)
    assert store.delete(keys) == {}
    assert s3.everything(bucket) == []


def test_a_thousand_keys_of_which_half_fail(s3: S3Server, store: ByteStore) -> None:
    keys = [new_key() for _ in range(1500)]
    with s3.answering("half"):
        assert set(store.delete(keys)) == {*keys[1:1000:2], *keys[1001::2]}


@pytest.mark.parametrize("versioning", [None, "Enabled"])
@pytest.mark.parametrize(
    ("answer", "word"), [("unavailable", "unavailable"), ("denied", "credentials"), ("cut", "unavailable")]
)
def test_a_store_that_refuses_everything_keeps_everything(
    s3: S3Server,
    answer: Literal["unavailable", "denied", "cut"],
    word: str,
    versioning: Literal["Enabled"] | None,
) -> None:
    bucket = s3.bucket(versioning)
    fresh, warm = (open_store(s3.url(bucket), s3.aws) for _ in range(2))
    keys = put(warm, 5)
    warm.delete([new_key()])
    before = s3.everything(bucket)
    with s3.answering(answer):
        assert fresh.delete(keys) == dict.fromkeys(keys, word)
        assert warm.delete(keys) == dict.fromkeys(keys, word)
        if versioning is None:
            refused(warm, word)
    assert s3.everything(bucket) == before
    assert warm.delete(keys) == {}


def test_a_failing_listing_of_versions_does_not_cost_a_try_for_each_key(s3: S3Server) -> None:
    store = open_store(s3.url(s3.bucket("Enabled")), s3.aws)
    keys = put(store, 3) + [new_key() for _ in range(997)]
    with s3.counting() as seen, s3.answering("unavailable", only={"ListObjectVersions"}):
        assert store.delete(keys) == dict.fromkeys(keys, "unavailable")
    assert seen["ListObjectVersions"] == 4  # two keys, two attempts each


def test_unfinished_uploads_that_cannot_be_listed_are_not_called_gone(s3: S3Server, store: ByteStore) -> None:
    keys = put(store, 2)
    with s3.answering("denied", only={"ListMultipartUploads"}):
        assert store.delete(keys) == dict.fromkeys(keys, "credentials")
    assert store.delete(keys) == {}


def test_a_bucket_that_is_not_there_is_misconfigured_and_not_made(s3: S3Server) -> None:
    store = open_store("s3://no-such-bucket-of-ours/objects", s3.aws)
    keys = [new_key() for _ in range(3)]
    assert store.delete(keys) == dict.fromkeys(keys, "misconfigured")
    refused(store, "misconfigured")
    assert "no-such-bucket-of-ours" not in [b["Name"] for b in s3.client.list_buckets()["Buckets"]]


def test_a_port_where_nobody_listens_is_unavailable_at_once(s3: S3Server) -> None:
    aws = s3.aws | {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{free_port()}"}
    store = open_store("s3://bucket/objects", aws)
    keys = [new_key() for _ in range(2500)]
    began = time.monotonic()
    assert store.delete(keys) == dict.fromkeys(keys, "unavailable")
    assert time.monotonic() - began < 5
    refused(store, "unavailable")


@pytest.mark.parametrize("endpoint", ["nonsense", "http://"])
def test_an_endpoint_that_is_no_url_is_misconfigured(s3: S3Server, endpoint: str) -> None:
    store = open_store("s3://bucket/objects", s3.aws | {"AWS_ENDPOINT_URL": endpoint})
    (key,) = keys = [new_key()]
    assert store.delete(keys) == {key: "misconfigured"}
    with pytest.raises(StoreFault) as error:
        store.check()
    assert error.value.fault == "misconfigured"


@pytest.mark.parametrize("operation", ["CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload"])
def test_a_long_upload_that_the_store_breaks_off_leaves_nothing(
    s3: S3Server, store: ByteStore, bucket: str, operation: str
) -> None:
    with s3.answering("unavailable", only={operation}), pytest.raises(StoreFault) as error:
        store.put(new_key(), (bytes(MIB) for _ in range(20)))
    assert error.value.fault == "unavailable"
    assert s3.everything(bucket) == []


def test_parts_that_could_not_be_taken_back_are_listed_and_go_with_the_key(
    s3: S3Server, store: ByteStore, bucket: str
) -> None:
    key, other = new_key(), new_key()
    for broken in (key, other):
        ends = {"CompleteMultipartUpload", "AbortMultipartUpload"}
        with s3.answering("unavailable", only=ends), pytest.raises(StoreFault):
            store.put(broken, (bytes(MIB) for _ in range(9)))
    assert len(s3.everything(bucket)) == 2
    assert set(listed(store)) == {key, other}
    with s3.answering("unavailable", only={"AbortMultipartUpload"}):
        assert store.delete([key, new_key()]) == {key: "unavailable"}
    assert store.delete([key]) == {}
    assert [line.split()[1] for line in s3.everything(bucket)] == [f"objects/{other}"]


def test_objects_that_are_not_named_like_ours_are_left_out(
    s3: S3Server, store: ByteStore, bucket: str
) -> None:
    for name in ("objects/notes.txt", f"objects/{new_key()}/x", f"elsewhere/{new_key()}", new_key()):
        s3.client.put_object(Bucket=bucket, Key=name, Body=b"someone's")
    (key,) = put(store, 1)
    assert listed(store) == [key]


def test_a_listing_of_several_pages_tells_each_key_once(s3: S3Server, bucket: str) -> None:
    store = open_store(s3.url(bucket), s3.direct_aws)
    keys = put(store, 1005)
    assert listed(store) == sorted(keys)
    assert store.delete(keys) == {}
    assert s3.everything(bucket) == []


def test_one_store_serves_many_threads_from_its_first_call_on(store: ByteStore) -> None:
    wrong: list[object] = []

    def work() -> None:
        keys = put(store, 5)
        wrong.extend(key for key in keys if b"".join(store.open(key)) != b"bytes")
        wrong.extend(store.delete(keys))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert listed(store) == []


def test_a_forked_child_makes_a_connection_of_its_own(store: ByteStore) -> None:
    keys = put(store, 2)
    child = os.fork()
    if child == 0:
        ok = store.delete(keys[:1]) == {}
        os._exit(0 if ok else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert listed(store) == keys[1:]
    assert b"".join(store.open(keys[1])) == b"bytes"


@pytest.mark.parametrize(
    ("code", "status", "word"),
    [
        ("InvalidAccessKeyId", 403, "credentials"),
        ("SignatureDoesNotMatch", 403, "credentials"),
        ("SomethingNew", 401, "credentials"),
        ("403", 403, "credentials"),
        ("NoSuchBucket", 404, "misconfigured"),
        ("PermanentRedirect", 301, "misconfigured"),
        ("SlowDown", 503, "unavailable"),
        ("RequestTimeout", 400, "unavailable"),
        ("SomethingNew", 500, "unavailable"),
        ("SomethingNew", 429, "unavailable"),
        ("SomethingNew", 400, "unknown"),
        ("", 200, "unknown"),
    ],
)
def test_each_answer_has_its_word(code: str, status: int, word: str) -> None:
    assert fault_of_code(code, status) == word
    answer = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    assert fault_of(boto.ClientError(answer, "DeleteObjects")) == word


@pytest.mark.parametrize(
    ("error", "word"),
    [
        (boto.NoCredentialsError(), "credentials"),
        (boto.EndpointConnectionError(endpoint_url="http://x"), "unavailable"),
        (boto.ConnectTimeoutError(endpoint_url="http://x"), "unavailable"),
        (boto.ReadTimeoutError(endpoint_url="http://x"), "unavailable"),
        (boto.ProfileNotFound(profile="x"), "misconfigured"),
        (boto.NoRegionError(), "misconfigured"),
        (boto.BotoCoreError(), "unknown"),
    ],
)
def test_each_failure_to_answer_has_its_word(error: Exception, word: str) -> None:
    assert fault_of(error) == word

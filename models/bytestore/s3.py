"""Bytes as objects of a bucket that speaks the S3 API: `<prefix>/<key>`, no bucket made by us.

What the access key must be allowed: GetObject, PutObject, DeleteObject, DeleteObjectVersion, ListBucket,
ListBucketVersions, ListBucketMultipartUploads, AbortMultipartUpload, GetBucketVersioning.

Whether the bucket keeps versions is asked before a deletion, at most once in VERSIONING_S, since its owner
may switch that on at any time; within that time `s3_deletion.py` notices by the answers. A bucket where
versions are suspended still holds the old ones and is treated as one that keeps them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from models.bytestore.contract import CHUNK, Fault, Missing, Stored, StoreFault, check_range, checked, is_key
from models.bytestore.s3_client import Bucket
from models.bytestore.s3_deletion import delete_objects
from models.bytestore.s3_faults import ERRORS, code_of, fault_of, is_absent, is_no_such_operation, store_fault
from models.bytestore.s3_upload import Upload

VERSIONING_S = 60.0


class S3Store:
    """The ByteStore of one prefix of one bucket. Connects at the first call."""

    def __init__(self, bucket: str, prefix: str, aws: Mapping[str, str]) -> None:
        """`prefix` has no slash at its ends and may be empty; `aws` holds the usual AWS_* variables."""
        self._bucket = Bucket(bucket, aws)
        self._prefix = f"{prefix}/" if prefix else ""
        self._where = f"s3://{bucket}/{prefix}"
        self._versioning: tuple[float, bool] | None = None

    def put(self, key: str, chunks: Iterable[bytes]) -> Stored:
        checked([key])
        upload = Upload(self._bucket, self._prefix + key)
        digest, size = sha256(), 0
        try:
            for chunk in chunks:  # what the source raises is the caller's, and passes
                digest.update(chunk)
                size += len(chunk)
                try:
                    upload.add(chunk)
                except ERRORS as error:
                    raise self._absent_or_fault(key, error) from error
            try:
                upload.finish()
            except ERRORS as error:
                raise self._absent_or_fault(key, error) from error
        except BaseException:
            upload.abort()
            raise
        return Stored(size, digest.digest())

    def open(self, key: str, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        check_range(start, end)
        if start == end:
            self.size(key)  # for Missing; the API has no empty range
            return iter(())
        wanted = (
            {} if (start, end) == (0, None) else {"Range": f"bytes={start}-{'' if end is None else end - 1}"}
        )
        checked([key])
        try:
            body = self._bucket.call("get_object", Key=self._prefix + key, **wanted)["Body"]
        except ERRORS as error:
            if code_of(error) in {"InvalidRange", "416"}:
                return iter(())
            raise self._absent_or_fault(key, error) from error
        return self._pieces(body)

    def size(self, key: str) -> int:
        checked([key])
        try:
            return int(self._bucket.call("head_object", Key=self._prefix + key)["ContentLength"])
        except ERRORS as error:
            if is_absent(error):
                self.check()  # the answer to a HEAD does not tell a missing object from a missing bucket
            raise self._absent_or_fault(key, error) from error

    def delete(self, keys: Sequence[str]) -> dict[str, Fault]:
        wanted = checked(keys)
        if not wanted:
            return {}
        try:
            versioned = self._versioned(VERSIONING_S)
        except ERRORS as error:
            return dict.fromkeys(wanted, fault_of(error))
        names = [self._prefix + key for key in wanted]
        left = delete_objects(self._bucket, self._prefix, names, versioned=versioned)
        return {name.removeprefix(self._prefix): fault for name, fault in left.items()}

    def keys(self) -> Iterator[tuple[str, datetime]]:
        try:
            unfinished = dict(self._unfinished())
            yield from unfinished.items()
            last = ""  # versions of one key may reach over two pages, and come in the order of keys
            for key, modified in self._stored():
                if key != last and key not in unfinished:
                    yield key, modified
                last = key
        except ERRORS as error:
            raise store_fault(self._where, error) from error

    def check(self) -> None:
        try:
            self._bucket.call("list_objects_v2", Prefix=self._prefix, MaxKeys=1)
        except ERRORS as error:
            raise store_fault(self._where, error) from error

    def _versioned(self, age: float) -> bool:
        """Whether the bucket keeps or kept versions, as it was known at most `age` seconds ago."""
        now = time.monotonic()
        if self._versioning is None or now - self._versioning[0] >= age:
            try:
                status = self._bucket.call("get_bucket_versioning").get("Status")
            except ERRORS as error:
                if not is_no_such_operation(error):
                    raise
                status = None  # a server that knows no versions keeps none
            self._versioning = now, status is not None
        return self._versioning[1]

    def _stored(self) -> Iterator[tuple[str, datetime]]:
        """Keys in order, the newest of each first; a key comes once for each page that has versions of it."""
        if not self._versioned(0):
            for page in self._bucket.pages("list_objects_v2", Prefix=self._prefix):
                yield from self._ours(page.get("Contents", ()), "LastModified")
            return
        for page in self._bucket.pages("list_object_versions", Prefix=self._prefix):
            entries = [*page.get("Versions", ()), *page.get("DeleteMarkers", ())]
            newest: dict[str, datetime] = {}
            for key, modified in self._ours(entries, "LastModified"):
                newest[key] = max(modified, newest.get(key, modified))
            yield from sorted(newest.items())

    def _unfinished(self) -> Iterator[tuple[str, datetime]]:
        try:
            for page in self._bucket.pages("list_multipart_uploads", Prefix=self._prefix):
                yield from self._ours(page.get("Uploads", ()), "Initiated")
        except ERRORS as error:
            if not is_no_such_operation(error):
                raise

    def _ours(self, entries: Iterable[dict[str, Any]], when: str) -> Iterator[tuple[str, datetime]]:
        for entry in entries:
            key = entry["Key"].removeprefix(self._prefix)
            if is_key(key):
                yield key, entry[when].astimezone(UTC)

    def _pieces(self, body: Any) -> Iterator[bytes]:
        try:
            yield from body.iter_chunks(CHUNK)
        except ERRORS as error:
            raise store_fault(self._where, error) from error
        finally:
            body.close()

    def _absent_or_fault(self, key: str, error: Exception) -> Missing | StoreFault:
        return Missing(key) if is_absent(error) else store_fault(self._where, error)

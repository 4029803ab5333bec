"""One object on its way into a bucket: a single request when it is small, parts when it is not."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from models.bytestore.s3_client import Bucket
from models.bytestore.s3_faults import ERRORS

PART = 8 * 1024 * 1024  # the API takes 5 MiB to 5 GiB, 10,000 parts at most: 78 GiB an object


class Upload:
    """`add` bytes, then `finish`; `abort` in every other case. Holds one part, for a moment twice."""

    def __init__(self, bucket: Bucket, name: str) -> None:
        self._bucket = bucket
        self._name = name
        self._waiting = bytearray()
        self._upload: str | None = None
        self._parts: list[dict[str, Any]] = []

    def add(self, data: bytes) -> None:
        """Takes `data`, and sends each part that is full."""
        self._waiting += data
        while len(self._waiting) >= PART:
            part = bytes(memoryview(self._waiting)[:PART])
            del self._waiting[:PART]
            self._send(part)

    def finish(self) -> None:
        """Sends the rest; the object is there when this returns."""
        if self._upload is None:
            self._bucket.call("put_object", Key=self._name, Body=bytes(self._waiting))
            return
        if self._waiting:
            self._send(bytes(self._waiting))
        self._bucket.call(
            "complete_multipart_upload",
            Key=self._name,
            UploadId=self._upload,
            MultipartUpload={"Parts": self._parts},
        )

    def abort(self) -> None:
        """Takes back the parts that were sent. When that fails too, a deletion of the key does it later."""
        if self._upload is not None:
            with suppress(*ERRORS):
                self._bucket.call("abort_multipart_upload", Key=self._name, UploadId=self._upload)

    def _send(self, part: bytes) -> None:
        if self._upload is None:
            self._upload = self._bucket.call("create_multipart_upload", Key=self._name)["UploadId"]
        number = len(self._parts) + 1
        answer = self._bucket.call(
            "upload_part", Key=self._name, UploadId=self._upload, PartNumber=number, Body=part
        )
        self._parts.append({"PartNumber": number, "ETag": answer["ETag"]})

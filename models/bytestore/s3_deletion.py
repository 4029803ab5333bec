"""Every byte of many objects out of a bucket, and an honest list of those that stayed.

| bucket | requests for n objects |
|---|---|
| never kept versions | ceil(n / 1000) DeleteObjects |
| keeps or kept versions | a ListObjectVersions for each, and DeleteObjects for 1000 versions at a time |

before them, one ListMultipartUploads: the parts of an upload that died are bytes, too. An answer of 200 holds
a verdict for each object; one that is not named there is "unknown", never gone. A plain delete whose answer
speaks of a delete marker met versions that nobody knew of: those objects go the second way at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from models.bytestore.contract import Fault
from models.bytestore.s3_client import Bucket
from models.bytestore.s3_faults import (
    ABSENT,
    ERRORS,
    fault_of,
    fault_of_code,
    is_absent,
    is_answer,
    is_no_such_operation,
)

BATCH = 1000  # what one DeleteObjects takes
PATIENCE = 2  # listings that fail in a row before the rest is left to the next try

Left = dict[str, Fault]


def delete_objects(bucket: Bucket, prefix: str, names: Sequence[str], *, versioned: bool) -> Left:
    """Deletes the objects `names`, all under `prefix`; answers those that are not gone. Raises nothing."""
    left = _abort_uploads(bucket, prefix, names)
    if versioned:
        return left | _delete_versions(bucket, names)
    plain, marked = _delete_plain(bucket, names)
    return left | plain | _delete_versions(bucket, marked)


def _abort_uploads(bucket: Bucket, prefix: str, names: Sequence[str]) -> Left:
    wanted, left = set(names), Left()
    try:
        for page in bucket.pages("list_multipart_uploads", Prefix=prefix):
            for upload in page.get("Uploads", ()):
                if upload["Key"] in wanted:
                    left |= _abort(bucket, upload["Key"], upload["UploadId"])
    except ERRORS as error:
        if not is_no_such_operation(error):
            left |= dict.fromkeys(names, fault_of(error))
    return left


def _abort(bucket: Bucket, name: str, upload: str) -> Left:
    try:
        bucket.call("abort_multipart_upload", Key=name, UploadId=upload)
    except ERRORS as error:
        return {} if is_absent(error) else {name: fault_of(error)}
    return {}


def _delete_plain(bucket: Bucket, names: Sequence[str]) -> tuple[Left, list[str]]:
    left, marked = Left(), list[str]()
    for at in range(0, len(names), BATCH):
        batch = names[at : at + BATCH]
        try:
            failed, markers = _delete_batch(bucket, [{"Key": name} for name in batch])
        except ERRORS as error:
            if not is_answer(error):
                return left | dict.fromkeys(names[at:], fault_of(error)), marked
            failed, markers = dict.fromkeys(batch, fault_of(error)), []
        left |= failed
        marked += markers
    return left, marked


def _delete_versions(bucket: Bucket, names: Sequence[str]) -> Left:
    left, waiting, failures = Left(), list[dict[str, str]](), 0
    for at, name in enumerate(names):
        try:
            waiting += _versions(bucket, name)
            failures = 0
        except ERRORS as error:
            failures += 1
            left[name] = fault_of(error)
            if failures == PATIENCE or not is_answer(error):
                left |= dict.fromkeys(names[at:], fault_of(error))
                break
        while len(waiting) >= BATCH:
            left |= _delete_waiting(bucket, waiting[:BATCH])
            del waiting[:BATCH]
    return left | _delete_waiting(bucket, waiting)


def _versions(bucket: Bucket, name: str) -> list[dict[str, str]]:
    return [
        {"Key": name, "VersionId": entry["VersionId"]}
        for page in bucket.pages("list_object_versions", Prefix=name)
        for kind in ("Versions", "DeleteMarkers")
        for entry in page.get(kind, ())
        if entry["Key"] == name
    ]


def _delete_waiting(bucket: Bucket, versions: list[dict[str, str]]) -> Left:
    if not versions:
        return {}
    try:
        return _delete_batch(bucket, versions)[0]
    except ERRORS as error:
        return dict.fromkeys((version["Key"] for version in versions), fault_of(error))


def _delete_batch(bucket: Bucket, objects: list[dict[str, str]]) -> tuple[Left, list[str]]:
    """One DeleteObjects: what it left, and which plain names got a delete marker in place of a deletion."""
    answer: dict[str, Any] = bucket.call("delete_objects", Delete={"Objects": objects, "Quiet": False})
    deleted, errors = answer.get("Deleted", ()), answer.get("Errors", ())
    left: Left = dict.fromkeys((entry["Key"] for entry in objects), "unknown")
    for entry in deleted:
        left.pop(entry["Key"], None)
    for entry in errors:
        if entry["Code"] in ABSENT:
            left.pop(entry["Key"], None)
    left |= {entry["Key"]: fault_of_code(entry["Code"]) for entry in errors if entry["Code"] not in ABSENT}
    return left, [entry["Key"] for entry in deleted if entry.get("DeleteMarker") and "VersionId" not in entry]

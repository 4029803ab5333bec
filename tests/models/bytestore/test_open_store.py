"""Which URL opens which store, and which is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from models.bytestore import open_store
from models.errors import Misconfigured


@pytest.mark.parametrize(
    ("url", "kind"),
    [("memory://", "MemoryStore"), ("s3://bucket", "S3Store"), ("s3://bucket/a/prefix/", "S3Store")],
)
def test_a_url_opens_its_store(url: str, kind: str) -> None:
    assert type(open_store(url)).__name__ == kind


def test_a_folder_may_have_blanks_and_signs_in_its_name(tmp_path: Path) -> None:
    folder = tmp_path / "a b" / "ü?#%20"
    open_store(folder.as_uri()).check()
    assert folder.is_dir()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "objects",
        "/var/objects",
        "file://",
        "file:///",
        "file://host/folder",
        "s3://",
        "s3:///prefix",
        "http://x/y",
        "s3://bucket/p?versionId=1",
        "file:///folder#x",
        "s3://[bucket/x",
    ],
)
def test_a_url_that_names_no_store_is_refused_in_one_line(url: str) -> None:
    with pytest.raises(Misconfigured, match=r"^OBJECT_STORE_URL [^\n]+$"):
        open_store(url)


def test_a_local_store_never_imports_the_client_of_s3() -> None:
    program = (
        "import sys\nfrom models.bytestore import open_store\nopen_store('memory://')\n"
        "assert not {'boto3', 'botocore'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)

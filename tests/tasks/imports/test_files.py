"""files: names always, bytes where the export holds them."""

import base64

import pytest

from tasks.imports.bounds import MAX_ATTACHMENT
from tasks.imports.files import Found, carried, embedded, extracted, no_files
from tasks.imports.parsed import Attachment, AttachmentUnreadable


def data_of(attachment: Attachment | None) -> bytes | None:
    assert attachment is not None
    return b"".join(attachment.open()) if attachment.open else None


def test_a_file_that_is_not_there_keeps_its_name() -> None:
    found = carried(no_files, "file-1", "../photo.png", "image/png", 12)
    assert found == Attachment("photo.png", "image/png", 12)
    assert found.open is None


def test_a_file_that_is_there_brings_its_bytes_and_their_number() -> None:
    held = Found("file-1-photo.png", 3, lambda: iter((b"ab", b"c")))
    found = carried(lambda *_: held, "file-1", "", "", 999)
    assert (found.name, found.size, data_of(found)) == ("file-1-photo.png", 3, b"abc")


def test_a_file_over_the_bound_keeps_only_its_name() -> None:
    held = Found("big.bin", MAX_ATTACHMENT + 1, lambda: iter(()))
    assert carried(lambda *_: held, "file-1", "big.bin", "", None).open is None


def test_a_data_address_is_unpacked_each_time_it_is_opened() -> None:
    body = bytes(range(256)) * 9000
    found = embedded("data:image/jpeg;base64," + base64.b64encode(body).decode(), "")
    assert found is not None
    assert (found.name, found.content_type, found.size) == ("image.jpeg", "image/jpeg", len(body))
    assert data_of(found) == data_of(found) == body


def test_a_data_address_without_base64_is_percent_encoded_text() -> None:
    assert data_of(embedded("data:,a%20b", "note.txt")) == b"a b"


def test_an_address_of_another_kind_is_not_embedded() -> None:
    assert embedded("https://example.com/photo.png", "photo.png") is None


def test_a_damaged_data_address_is_unreadable_when_it_is_opened() -> None:
    with pytest.raises(AttachmentUnreadable):
        data_of(embedded("data:image/png;base64,!!!!", "photo.png"))
    missing = embedded("data:image/png;base64", "photo.png")
    assert missing is not None
    assert missing.open is None


def test_extracted_text_is_the_bytes_under_the_files_name() -> None:
    found = extracted("Grüße", "folder/letter.pdf")
    assert (found.name, found.content_type, found.size) == ("letter.pdf", "text/plain", 7)
    assert data_of(found) == "Grüße".encode()

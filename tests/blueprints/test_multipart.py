"""A form with a file, read as it comes: every byte, in constant memory, and nothing of what is no such form."""

from __future__ import annotations

import io
import random
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from flask import Flask, request
from werkzeug.exceptions import RequestEntityTooLarge

from blueprints import multipart
from blueprints.multipart import FIELD_MAX, OVERHEAD, read_form
from models.errors import Invalid, TooLarge

BOUNDARY = "x-boundary"
MOST = 10_000_000


def body(*parts: tuple[str, bytes], end: bool = True) -> bytes:
    """Parts as (the rest of their Content-Disposition, their content)."""
    lines = b"".join(
        b"--%b\r\nContent-Disposition: form-data; %b\r\n\r\n%b\r\n"
        % (BOUNDARY.encode(), name.encode(), content)
        for name, content in parts
    )
    return lines + (b"--%b--\r\n" % BOUNDARY.encode() if end else b"")


FIELD, FILE = 'name="csrf_token"', 'name="file"; filename="a.json"'


class Made(io.RawIOBase):
    """A body that is made while it is read."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._held = pieces, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._held = self._held or next(self._pieces, b"")
        taken = self._held[: len(buffer)]
        buffer[: len(taken)] = taken
        self._held = self._held[len(taken) :]
        return len(taken)


@pytest.fixture
def asked(app: Flask) -> Any:
    """`read_form` of a body."""

    def ask(
        data: bytes, most: int = MOST, length: int | None = None, kind: str = ""
    ) -> tuple[dict[str, str], str, bytes]:
        environ = {
            "CONTENT_LENGTH": str(len(data) if length is None else length),
            "CONTENT_TYPE": kind or f"multipart/form-data; boundary={BOUNDARY}",
        }
        with app.test_request_context(
            "/", method="POST", input_stream=io.BytesIO(data), environ_overrides=environ
        ):
            form = read_form(request, most, "too large")
            return form.fields, form.file_name, b"".join(form.chunks)

    return ask


def test_fields_before_the_file_and_every_byte_of_it(asked: Any) -> None:
    data = random.Random(1).randbytes(300_000) + b"\r\n--x-bound\r\n--x-boundary\x00" + b"\r\n" * 70_000
    fields, name, got = asked(
        body((FIELD, b"secret"), ('name="again"', b"yes"), (FILE, data), ('name="later"', b"1"))
    )
    assert fields == {"csrf_token": "secret", "again": "yes"}
    assert name == "a.json"
    assert got == data


@pytest.mark.parametrize("size", [0, 1, 262_143, 262_144, 262_145, 524_288])
def test_files_around_the_size_of_a_piece(asked: Any, size: int) -> None:
    data = b"\r" * size
    assert asked(body((FIELD, b"s"), (FILE, data)))[2] == data


def test_without_a_file_there_is_no_name_and_no_byte(asked: Any) -> None:
    assert asked(body((FIELD, b"s"))) == ({"csrf_token": "s"}, "", b"")
    assert asked(body((FIELD, b"s"), ('name="file"; filename=""', b""))) == ({"csrf_token": "s"}, "", b"")


@pytest.mark.parametrize("cut", [10, 60, 90, 150, 180])
def test_a_form_that_was_cut_off_is_never_taken_for_a_whole_one(asked: Any, cut: int) -> None:
    whole = body((FIELD, b"s"), (FILE, b"[" + b"x" * 60 + b"]"))
    with pytest.raises(Invalid):
        asked(whole[:cut], length=len(whole))
    with pytest.raises(Invalid):
        asked(body((FIELD, b"s"), (FILE, b"abc"), end=False))


def test_what_is_too_large_is_refused_at_once_or_while_it_comes(asked: Any) -> None:
    with pytest.raises(TooLarge, match="too large"):
        asked(b"", most=100, length=101 + OVERHEAD)
    with pytest.raises(TooLarge, match="too large"):
        asked(body((FIELD, b"s"), (FILE, b"x" * 101)), most=100)
    assert len(asked(body((FIELD, b"s"), (FILE, b"x" * 100)), most=100)[2]) == 100
    with pytest.raises(TooLarge):
        asked(body((FIELD, b"s" * (FIELD_MAX + 1)), (FILE, b"x")))


@pytest.mark.parametrize(
    "kind",
    [
        "text/plain",
        "multipart/form-data",
        "multipart/form-data; boundary=",
        "application/x-www-form-urlencoded",
    ],
)
def test_another_kind_of_body_is_refused(asked: Any, kind: str) -> None:
    with pytest.raises(Invalid) as refusal:
        asked(b"file=x", kind=kind)
    assert refusal.value.details["field"] == "Content-Type"


@pytest.mark.parametrize(
    "data",
    [
        b"no form at all",
        b"--x-boundary\r\nX: y\r\n\r\nz\r\n--x-boundary--",
        b'--x-boundary\r\nContent-Disposition: form-data; name="\xff"\r\n\r\nz\r\n--x-boundary--',
        body(*[(f'name="f{n}"', b"") for n in range(multipart.PARTS_MAX + 2)]),
    ],
)
def test_what_is_no_form_is_refused(asked: Any, data: bytes) -> None:
    with pytest.raises((Invalid, RequestEntityTooLarge)):
        asked(data)


def test_headers_without_an_end_fill_no_memory(asked: Any) -> None:
    with pytest.raises(RequestEntityTooLarge):
        asked(b"--x-boundary\r\nContent-Disposition: form-data; x=" + b"y" * 2_000_000)


def test_a_file_of_any_size_is_read_in_constant_memory(app: Flask) -> None:
    pieces, piece = 400, b"\r\n" + b"z" * 262_142
    head, tail = body((FIELD, b"s"), (FILE, b""), end=False)[:-2], f"\r\n--{BOUNDARY}--\r\n".encode()

    def made() -> Iterator[bytes]:
        yield head
        for _ in range(pieces):
            yield piece
        yield tail

    environ = {
        "CONTENT_LENGTH": str(len(head) + pieces * len(piece) + len(tail)),
        "CONTENT_TYPE": f"multipart/form-data; boundary={BOUNDARY}",
        "wsgi.input": Made(made()),
    }
    with app.test_request_context("/", method="POST", environ_overrides=environ):
        form = read_form(request, 1 << 30, "too large")
        tracemalloc.start()
        read = sum(len(chunk) for chunk in form.chunks)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert read == pieces * len(piece)
    assert peak < 4_000_000

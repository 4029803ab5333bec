"""A form with one file, read as it comes: its fields first, then the file's bytes, piece by piece, in constant memory.

Flask's own reading of a form spools the file to the disk of the web process before a view sees any of it. Here the
fields that stand before the file are read at once, and `chunks` gives the file's bytes while they arrive (RFC 7578).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from flask import Request
from werkzeug.http import parse_options_header
from werkzeug.sansio.multipart import Data, Epilogue, Event, Field, File, MultipartDecoder, NeedData

from blueprints.api.body import CUT_OFF, check_whole, cut_off
from models.errors import Invalid, TooLarge

CHUNK = 256 * 1024
FIELD_MAX = 64 * 1024  # bytes of all fields together
PARTS_MAX = 20
OVERHEAD = FIELD_MAX + 16 * 1024  # what a body has beside its file

MALFORMED = "The form came in a shape that this page does not send. Load the page again, then try once more."


@dataclass(frozen=True)
class Form:
    """The fields before the file, the file's name as it was given ("" when none was chosen), and its bytes.

    `chunks` raises TooLarge over the bound, and Invalid when the body ends too early.
    """

    fields: dict[str, str]
    file_name: str
    chunks: Iterator[bytes]


def read_form(request: Request, most: int, too_large: str) -> Form:
    """Reads a form up to its file, which has at most `most` bytes; `too_large` is what is said of a larger one.

    Raises TooLarge at once when the body's own length tells, and Invalid for what is no such form.
    """
    announced = request.content_length
    if announced is not None and announced > most + OVERHEAD:
        raise TooLarge(too_large)
    request.max_content_length = most + OVERHEAD
    kind, options = parse_options_header(request.content_type)
    boundary = options.get("boundary", "")
    if kind != "multipart/form-data" or not 0 < len(boundary) <= 200:
        raise Invalid("Content-Type", MALFORMED)
    events = _events(request, boundary.encode("latin-1", "replace"))
    fields: dict[str, str] = {}
    name, value, size = "", b"", 0
    for event in events:
        if isinstance(event, File):
            return Form(fields, event.filename, _file(events, most, too_large))
        if isinstance(event, Field):
            name, value = event.name, b""
        elif isinstance(event, Data):
            value, size = value + event.data, size + len(event.data)
            if size > FIELD_MAX:
                raise TooLarge(MALFORMED)
            if not event.more_data:
                fields[name] = value.decode("utf-8", "replace")
    return Form(fields, "", iter(()))


def _file(events: Iterator[Event], most: int, too_large: str) -> Iterator[bytes]:
    left, whole = most, False
    for event in events:
        if isinstance(event, Data) and not whole:
            left -= len(event.data)
            if left < 0:
                raise TooLarge(too_large)
            if event.data:
                yield event.data
            whole = not event.more_data
        # What comes behind the file is read to its end, so that a body that was cut off is told from a whole one.


def _events(request: Request, boundary: bytes) -> Iterator[Event]:
    """The events of the body, up to its end; a body without its last boundary was cut off."""
    # What it keeps between two pieces is a header or the beginning of a boundary; more than that is no form of ours.
    decoder = MultipartDecoder(boundary, max_form_memory_size=2 * CHUNK, max_parts=PARTS_MAX)
    read = 0
    try:
        while True:
            data = request.stream.read(CHUNK)
            read += len(data)
            if not data:
                break
            decoder.receive_data(data)
            while not isinstance(event := decoder.next_event(), NeedData):
                yield event
                if isinstance(event, Epilogue):
                    return
        check_whole(read)
        decoder.receive_data(None)
        while not isinstance(event := decoder.next_event(), NeedData | Epilogue):
            yield event
    except CUT_OFF:
        raise cut_off() from None
    except ValueError:
        raise (cut_off() if decoder.complete else Invalid("body", MALFORMED)) from None

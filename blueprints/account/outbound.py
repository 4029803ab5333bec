"""Requests to somebody else's server, within bounds: each step, the whole, the size, and how many at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import requests
from requests.adapters import HTTPAdapter
from urllib3.exceptions import HTTPError

STEP_SECONDS = (3.05, 5.0)  # to connect; between two reads
BYTES_MAX = 256 * 1024

R = TypeVar("R")


class Late(Exception):
    """The work was not done in time (`too_slow`), or not begun (`busy`)."""


class Bounded(HTTPAdapter):
    """Reads an answer whole, within its bounds, or not at all."""

    def send(self, request: requests.PreparedRequest, *args: Any, **options: Any) -> requests.Response:
        """As HTTPAdapter's own. Raises requests' ConnectionError for an answer that is too large."""
        # Compressed bytes would say nothing about the size of what they become.
        request.headers["Accept-Encoding"] = "identity"
        answer = super().send(request, **{**options, "stream": True, "timeout": STEP_SECONDS})
        body = b""
        try:
            while chunk := answer.raw.read1(BYTES_MAX + 1 - len(body), decode_content=False):
                body += chunk
                if len(body) > BYTES_MAX:
                    raise requests.ConnectionError("the answer is too large")
        except (OSError, HTTPError) as fault:
            raise requests.ConnectionError("the answer broke off, or is too large") from fault
        finally:
            answer.close()
        answer._content = body
        answer._content_consumed = True
        return answer


def in_time(room: threading.BoundedSemaphore, seconds: float, work: Callable[[], R]) -> R:
    """Does `work` beside the caller, who waits no longer than `seconds`, whatever the other end does.

    Work that is late goes on alone, and keeps its place in `room` until it has ended. Raises Late, and whatever
    `work` raises.
    """
    if not room.acquire(blocking=False):
        raise Late("busy")
    done = threading.Event()
    found: list[R] = []
    faults: list[BaseException] = []

    def run() -> None:
        try:
            found.append(work())
        except BaseException as fault:  # noqa: BLE001  raised again by the caller, who waits
            faults.append(fault)
        finally:
            room.release()
            done.set()

    threading.Thread(target=run, name="outbound", daemon=True).start()
    if not done.wait(seconds):
        raise Late("too_slow")
    if faults:
        raise faults[0]
    return found[0]

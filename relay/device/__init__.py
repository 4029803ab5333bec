"""A device: memories in one home directory, its own identity, and the command of `python -m relay.device`.

    from relay.device import open_device, remember, recall

    with open_device(Path("~/.allgone").expanduser()) as device:
        remember(device.store, "Ada bakes on Saturdays", Place("default", "memories"), "my app")

The verbs are those of `models.memorystore`: each takes the open device's `store`. Needs neither Flask nor PostgreSQL
nor Redis. One device may be open in several processes; each verb is a transaction of its own.
"""

from models.memorystore.looking import memories, recall, workspaces
from models.memorystore.requests import confirm, keep, requests
from models.memorystore.store import Held, Place
from models.memorystore.verbs import (
    Gone,
    Remembered,
    admit,
    forget,
    forget_all,
    move,
    redact,
    remember,
    settle,
)
from relay.device.home import Device, make_device, open_device

__all__ = [
    "Device",
    "Gone",
    "Held",
    "Place",
    "Remembered",
    "admit",
    "confirm",
    "forget",
    "forget_all",
    "keep",
    "make_device",
    "memories",
    "move",
    "open_device",
    "recall",
    "redact",
    "remember",
    "requests",
    "settle",
    "workspaces",
]

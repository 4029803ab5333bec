"""Errors of the file system, in the words of `contract.py` and in a sentence for the operator."""

from __future__ import annotations

import errno

from models.bytestore.contract import Fault, StoreFault

KNOWN: dict[Fault, str] = {
    "credentials": "EACCES EPERM",
    "misconfigured": "ENOENT ENOTDIR EISDIR ELOOP ENAMETOOLONG",
    "unavailable": """ENOSPC EDQUOT EFBIG EROFS EIO EMFILE ENFILE ENOMEM EBUSY ESTALE ENODEV ENXIO ETIMEDOUT
        EHOSTDOWN EAGAIN""",
}
FAULTS = {getattr(errno, name): fault for fault, names in KNOWN.items() for name in names.split()}
ADVICE: dict[Fault, str] = {
    "credentials": "the folder must belong to the user that runs this process",
    "misconfigured": "no store is there; is its disk mounted, and is OBJECT_STORE_URL right?",
    "unavailable": "the disk is full, read-only or failing",
    "unknown": "see the system's log",
}


def fault_of(error: OSError) -> Fault:
    """Which of the four words an error of the file system is."""
    return FAULTS.get(error.errno or 0, "unknown")


def store_fault(root: str, error: OSError) -> StoreFault:
    """The fault to raise for `error` in the store at `root`."""
    fault = fault_of(error)
    what = error.strerror or type(error).__name__
    return StoreFault(fault, f"The object store in {root} cannot be used: {what}; {ADVICE[fault]}.")

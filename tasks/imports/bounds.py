"""How much of a stranger's file is taken in: every bound of the importer, in one place.

An export is untrusted input of any size. Memory stays near the size of its largest conversation, whatever the
size of the file; what is over a bound is reported by name, and costs nothing but itself.
"""

from __future__ import annotations

CHUNK = 1 << 20
"""Bytes read at once."""

MAX_ITEM = 256 << 20
"""Bytes of JSON of one conversation; a longer one is broken."""

MAX_NESTING = 200
"""Levels of JSON in one conversation. Below the 254 that orjson writes, so that what is stored can be served."""

MAX_MESSAGES = 100_000
"""Messages on the active branch of one conversation."""

MAX_ATTACHMENT = 256 << 20
"""Bytes of one attachment; of a larger one the name is kept and the bytes are not."""

MAX_ID = 200
"""Characters of an identity taken from an export; a longer one is replaced by its digest."""

MAX_NAME = 255
"""Characters of the name of an attachment or a conversation; a longer one is cut, its extension kept."""

MAX_SCOUTED = 100
"""Items looked at before a file without a single conversation among them is called unknown."""

MAX_RECOVERY = 40_000_000
"""Steps of the scanner, about 20 seconds, that may be spent in one file on finding the next conversation behind a
broken one. Steps and not bytes: text costs one in thirty bytes, brackets made to cost one a byte."""

MAX_ENTRIES = 200_000
"""Entries of a ZIP archive."""

MAX_DIRECTORY = 24 << 20
"""Bytes of a ZIP archive's central directory, which the standard library reads as a whole."""

MAX_UNPACKED = 16 << 30
"""Bytes that all entries of one archive may unpack to, counted while they are read."""

MAX_RATIO = 200
"""Unpacked bytes for one packed byte, beyond the first `FREE_UNPACKED`. Exports reach 10, made-up ones 100."""

FREE_UNPACKED = 1 << 20
"""Bytes that may be unpacked before the ratio is asked."""

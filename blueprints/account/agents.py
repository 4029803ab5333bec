"""What a browser calls itself, in four words at most: enough to recognise one's own, too little to track anybody.

PURE. The User-Agent header is a claim; what is made of it is shown to the reader alone, and nothing depends on it.
"""

from __future__ import annotations

# The first that is found counts: most browsers name the ones that they descend from as well.
BROWSERS = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("FxiOS/", "Firefox"),
    ("Firefox/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("CrOS", "ChromeOS"),
    ("Windows", "Windows"),
    ("Macintosh", "Mac"),
    ("Linux", "Linux"),
)


def browser_of(user_agent: str) -> str:
    """Such as "Firefox on Linux"; the half that is known, or "" when neither is."""
    browser = next((name for mark, name in BROWSERS if mark in user_agent), "")
    system = next((name for mark, name in SYSTEMS if mark in user_agent), "")
    return f"{browser} on {system}" if browser and system else browser or system

"""What browsers say of themselves becomes a few words."""

from __future__ import annotations

import pytest

from blueprints.account.agents import browser_of

CHROME = "AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0"


@pytest.mark.parametrize(
    ("user_agent", "words"),
    [
        ("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox on Linux"),
        (f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {CHROME} Safari/537.36", "Chrome on Windows"),
        (f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {CHROME} Safari/537.36 Edg/142.0", "Edge on Windows"),
        (f"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) {CHROME} Safari/537.36 OPR/120.0", "Opera on Mac"),
        (f"Mozilla/5.0 (Linux; Android 15; Pixel 9) {CHROME} Mobile Safari/537.36", "Chrome on Android"),
        (f"Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) {CHROME} Safari/537.36", "Chrome on ChromeOS"),
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Mobile Safari/604.1",
            "Safari on iPhone",
        ),
        ("Mozilla/5.0 (iPad; CPU OS 18_0 like Mac OS X) FxiOS/140.0 Mobile Safari/604.1", "Firefox on iPad"),
        ("Mozilla/5.0 (Linux; Android 14) SamsungBrowser/27.0 Chrome/125.0", "Samsung Internet on Android"),
        ("curl/8.14", ""),
        ("", ""),
        ("Something of Linux", "Linux"),
        ("<script>alert(1)</script>", ""),
    ],
)
def test_a_browser_is_named_by_its_family_and_its_system(user_agent: str, words: str) -> None:
    assert browser_of(user_agent) == words

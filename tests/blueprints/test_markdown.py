"""Strangers' Markdown: what it becomes, and what it never becomes."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from time import process_time

import pytest

from blueprints.markdown import allowed, rendered

TAGS = {"a", "blockquote", "br", "code", "div", "em", "hr", "pre", "s", "span", "strong"}
TAGS |= {"h3", "h4", "h5", "h6", "li", "ol", "p", "ul", "table", "tbody", "td", "th", "thead", "tr"}
ATTRIBUTES = {"href", "rel", "class", "tabindex", "data-language", "start"}


class Seen(HTMLParser):
    """Collects what a browser would build."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.links: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links += [value or "" for name, value in attrs if name == "href"]


def test_what_people_write_is_rendered() -> None:
    html = rendered(
        "**bold** _em_ ~~gone~~ `code`\n\n1. one\n2. two\n\n> quote\n\n| a | b |\n|---|--:|\n| 1 | 2 |"
    )
    for part in (
        "<strong>bold</strong>",
        "<em>em</em>",
        "<s>gone</s>",
        "<code>code</code>",
        "<li>one</li>",
        "<blockquote>",
        "<th>a</th>",
        '<td class="right">2</td>',
    ):
        assert part in html


def test_code_is_coloured_by_classes_alone() -> None:
    html = rendered("```python\ndef f(): return '<b>'\n```")
    assert '<span class="k">def</span>' in html
    assert "&lt;b&gt;" in html
    assert "style" not in html


@pytest.mark.parametrize("language", ["", "nosuchlanguage", 'python" onload=x', "<script>", "a" * 500])
def test_any_word_after_a_fence_is_harmless(language: str) -> None:
    seen = Seen(rendered(f"```{language}\nx = 1\n```"))
    assert seen.tags <= TAGS
    assert seen.attributes <= ATTRIBUTES


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "<a href='javascript:alert(1)'>x</a>",
        "[x](javascript:alert(1))",
        "[x](JaVaScRiPt:alert(1))",
        "[x](java\nscript:alert(1))",
        "[x](&#106;avascript:alert(1))",
        "[x](data:text/html,<script>alert(1)</script>)",
        "[x](vbscript:x)",
        "[x](file:///etc/passwd)",
        "[x](//evil.example/x)",
        "[x](/conversations)",
        "![x](javascript:alert(1))",
        "![x](data:image/svg+xml,<svg onload=alert(1)>)",
        "![x](https://tracker.example/pixel.gif)",
        "<javascript:alert(1)>",
        "[x]: javascript:alert(1)\n\n[x]",
        '[x](https://a.example "title\\" onmouseover=alert(1)")',
        "<svg/onload=alert(1)>",
        '[a](https://e.example/"onmouseover=alert(1))',
        "| a |\n|:-:|\n| <b onclick=x> |",
    ],
)
def test_nothing_that_acts_gets_through(text: str) -> None:
    seen = Seen(rendered(text))
    assert seen.tags <= TAGS
    assert seen.attributes <= ATTRIBUTES
    assert all(re.match(r"(?:https?://|mailto:)", link) for link in seen.links)


def test_a_link_out_says_nothing_about_us() -> None:
    assert 'rel="noopener noreferrer nofollow"' in rendered("[x](https://example.org/a?b=1&c=2)")
    assert 'href="https://example.org/"' in rendered("see https://example.org/")


def test_an_image_is_its_words_and_a_link() -> None:
    html = rendered("![a cat](https://example.org/cat.png)")
    assert "<img" not in html
    assert ">a cat</a>" in html
    # Inside a link there is one link only.
    assert rendered("[![a cat](https://example.org/c.png)](https://example.org)").count("<a ") == 1


def test_headings_stand_below_the_messages_own_without_gaps() -> None:
    html = rendered("### first\n\n# second\n\n###### third")
    assert re.findall(r"<(h\d)>", html) == ["h3", "h3", "h4"]


def test_a_persons_line_ends_are_kept() -> None:
    assert "<br" in rendered("one\ntwo", breaks=True)
    assert "<br" not in rendered("one\ntwo")


@pytest.mark.parametrize(
    "text",
    [
        "[" * 50_000,
        "*" * 50_000,
        "> " * 20_000,
        "- " * 20_000,
        "`" * 50_000,
        "![" * 20_000,
        "|" * 30_000,
        "<" * 50_000,
        "&" * 50_000,
        "a@" * 20_000,
        "http://" * 10_000,
        "x" * 2_000_000,
    ],
)
def test_no_text_takes_for_ever(text: str) -> None:
    began = process_time()
    rendered(text)
    assert process_time() - began < 5


def test_addresses_that_may_be_followed() -> None:
    assert [allowed(url) for url in ("https://a.example", "http://a", "mailto:a@b.example")] == [True] * 3
    assert [allowed(url) for url in ("javascript:1", "/x", "//x.example", "ftp://x", "http://[", "")] == [
        False
    ] * 6

"""Strangers' Markdown: what it becomes, and what it never becomes."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from time import process_time

import pytest

from blueprints.markdown import Own, allowed, rendered

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


def test_an_image_from_elsewhere_says_where_it_leads() -> None:
    html = rendered("![a cat](https://pics.example.org/cat.png)")
    assert '<span class="where">(pics.example.org)</span>' in html
    assert "<img" not in html


def test_an_image_of_the_conversations_own_is_shown_and_a_file_is_linked() -> None:
    def own(address: str) -> Own | None:
        return {
            "sandbox:/mnt/data/plot.png": Own("/conversations/c/artifacts/1", True),
            "artifact:2": Own("/conversations/c/artifacts/2", False),
        }.get(address)

    html = rendered("![a plot](sandbox:/mnt/data/plot.png) [report](artifact:2)", own=own)
    assert '<img class="own" src="/conversations/c/artifacts/1/picture" alt="a plot" loading="lazy">' in html
    assert '<a href="/conversations/c/artifacts/2" download>report</a>' in html
    none = rendered("![x](sandbox:/none.png) [y](artifact:none) ![z](/v1/artifacts/1)")
    assert "href" not in none
    assert "<img" not in none


@pytest.mark.parametrize(
    "math", ["$a_1 * b_2 * c$", r"\(x_1 * y_2 *z\)", r"\[ a*b*c \]", "$$\na_1*b*c\n$$", "\\[\na*b*c\n\\]"]
)
def test_math_is_left_as_it_was_written(math: str) -> None:
    html = rendered(f"before *so*\n\n{math}")
    assert math in html
    assert html.count("<em>") == 1


def test_amounts_of_money_are_no_math() -> None:
    assert "math" not in rendered("It costs $5 or $6, and *more* than $7.")


def test_tasks_and_footnotes_have_names() -> None:
    html = rendered("- [x] done\n- [ ] open\n\nsee[^1]\n\n[^1]: a note", mark="7-0")
    assert 'role="img" aria-label="Done"' in html
    assert 'role="img" aria-label="To do"' in html
    assert "<input" not in html
    assert 'href="#fn-7-0-1"' in html
    assert 'id="fn-7-0-1"' in html
    assert 'aria-label="Back to the text"' in html


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
        "$" * 50_000,
        "$a " * 16_000,
        "$$\n" * 16_000,
        "\\(" * 25_000,
        "\\[ x " * 10_000,
        "[^a]: " * 8_000,
        "[^a]" * 12_000,
        "- [ ] x\n" * 6_000,
        "http://" * 10_000,
        "x" * 2_000_000,
    ],
)
def test_no_text_takes_for_ever(text: str) -> None:
    began = process_time()
    rendered(text)
    assert (
        process_time() - began < 20
    )  # what took for ever took minutes; a busy machine stretches a processor's seconds


def test_addresses_that_may_be_followed() -> None:
    assert [allowed(url) for url in ("https://a.example", "http://a", "mailto:a@b.example")] == [True] * 3
    assert [allowed(url) for url in ("javascript:1", "/x", "//x.example", "ftp://x", "http://[", "")] == [
        False
    ] * 6

"""Markdown of strangers into HTML that can do nothing: text, emphasis, lists, tables, code, and links out.

What it refuses to make, whatever the text says: HTML of the text's own (it is shown as text), images (their
alternative text becomes a link, so that nothing is fetched from elsewhere), addresses that are not http, https or
mailto, styles and scripts. Code is highlighted by classes. Headings are lowered under the message's own, without
gaps, so that a page's outline stays one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererProtocol
from markdown_it.token import Token
from markupsafe import Markup, escape
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

SCHEMES = ("http", "https", "mailto")
REL = "noopener noreferrer nofollow"
TEXT_MAX = 50_000  # characters; a longer text is shown as it is, since Markdown's time has no bound
CODE_MAX = 10_000  # characters of a block that is highlighted
MESSAGE_HEADING = 2  # the level of the heading that a message stands under

_formatter: HtmlFormatter[str] = HtmlFormatter(nowrap=True)


def rendered(text: str, *, breaks: bool = False) -> Markup:
    """The safe HTML of `text`; with `breaks` each line end is kept, as a person typed it."""
    if len(text) > TEXT_MAX:
        return verbatim(text)
    parser = _spoken if breaks else _plain
    tokens = parser.parse(text)
    _lower_headings(tokens)
    return Markup(parser.renderer.render(tokens, parser.options, {}))  # noqa: S704 - the renderer escapes


def verbatim(text: str) -> Markup:
    """The text as it is, line for line."""
    return Markup('<pre class="plain" tabindex="0">{}</pre>').format(text)


def allowed(url: str) -> bool:
    """True for an absolute http or https address, or a mailto one."""
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        return False
    return parts.scheme.lower() in SCHEMES and bool(parts.netloc or parts.scheme.lower() == "mailto")


def _parser(*, breaks: bool) -> MarkdownIt:
    options = {"html": False, "linkify": True, "breaks": breaks, "maxNesting": 20}
    parser = MarkdownIt("commonmark", options).enable(["table", "strikethrough", "linkify"])
    parser.validateLink = allowed  # type: ignore[method-assign]
    # "example.com" and "report.pdf" are words, not addresses.
    parser.linkify.set({"fuzzy_link": False, "fuzzy_email": False})  # type: ignore[union-attr]
    parser.add_render_rule("link_open", _link_open)
    parser.add_render_rule("image", _image)
    parser.add_render_rule("fence", _fence)
    parser.add_render_rule("code_block", _fence)
    parser.add_render_rule("table_open", lambda *_: '<div class="table" tabindex="0"><table>\n')
    parser.add_render_rule("table_close", lambda *_: "</table></div>\n")
    for cell in ("th_open", "td_open"):
        parser.add_render_rule(cell, _cell)
    return parser


def _link_open(_self: RendererProtocol, tokens: Sequence[Token], index: int, *_: Any, **__: Any) -> str:
    return f'<a href="{escape(tokens[index].attrGet("href") or "")}" rel="{REL}">'


def _image(_self: RendererProtocol, tokens: Sequence[Token], index: int, *_: Any, **__: Any) -> str:
    token = tokens[index]
    address = str(token.attrGet("src") or "")
    words = escape(token.content.strip() or "image")
    if not allowed(address):
        return f'<span class="image">{words}</span>'
    open_links = sum(token.nesting for token in tokens[:index] if token.type.startswith("link_"))
    if open_links:  # an image inside a link: one link is enough
        return f'<span class="image">{words}</span>'
    return f'<a class="image" href="{escape(address)}" rel="{REL}">{words}</a>'


def _fence(_self: RendererProtocol, tokens: Sequence[Token], index: int, *_: Any, **__: Any) -> str:
    token = tokens[index]
    language = token.info.split(maxsplit=1)[0] if token.info.strip() else ""
    label = f' data-language="{escape(language[:30])}"' if language else ""
    # Focusable, so that a wide block scrolls by keyboard too.
    return f'<pre class="code" tabindex="0"{label}><code>{_coloured(token.content, language)}</code></pre>\n'


def _coloured(code: str, language: str) -> str:
    if language and len(code) <= CODE_MAX:
        try:
            return highlight(code, get_lexer_by_name(language, stripnl=False), _formatter)
        except ClassNotFound:
            pass
    return str(escape(code))


def _cell(_self: RendererProtocol, tokens: Sequence[Token], index: int, *_: Any, **__: Any) -> str:
    # The parser aligns by a style attribute, which the policy of our pages refuses.
    token = tokens[index]
    side = str(token.attrGet("style") or "").rpartition(":")[2]
    return f'<{token.tag} class="{side}">' if side in {"left", "right", "center"} else f"<{token.tag}>"


def _lower_headings(tokens: Sequence[Token]) -> None:
    level = MESSAGE_HEADING
    for token in tokens:
        if token.type == "heading_open":
            level = min(int(token.tag[1]) + MESSAGE_HEADING, level + 1, 6)
        if token.type in {"heading_open", "heading_close"}:
            token.tag = f"h{level}"


_plain = _parser(breaks=False)
_spoken = _parser(breaks=True)

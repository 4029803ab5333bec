"""Markdown of strangers into HTML that can do nothing: text, lists, tables, code, footnotes, math, and links out.

What it refuses to make, whatever the text says: HTML of the text's own (it is shown as text), images from elsewhere
(their alternative text becomes a link that says where it leads, so that nothing is fetched), addresses that are not
http, https or mailto, styles and scripts. An image or a link that means a file of the conversation's own is that
file. Code is highlighted by classes. Math is left as it was written. Headings are lowered under the message's own,
without gaps, so that a page's outline stays one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, MutableMapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererProtocol
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markupsafe import Markup, escape
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.footnote import footnote_plugin
from mdit_py_plugins.tasklists import tasklists_plugin
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

SCHEMES = ("http", "https", "mailto")
REL = "noopener noreferrer nofollow"
TEXT_MAX = 50_000  # characters; a longer text is shown as it is, since Markdown's time has no bound
CODE_MAX = 10_000  # characters of a block that is highlighted
MESSAGE_HEADING = 2  # the level of the heading that a message stands under

_BRACKETS = {"\\(": "\\)", "\\[": "\\]"}
_OURS = re.compile(
    r"(?:artifact|attachment|sandbox):|/v1/artifacts/|/conversations/[^/]+/artifacts/", re.IGNORECASE
)
_formatter: HtmlFormatter[str] = HtmlFormatter(nowrap=True)


class Own(NamedTuple):
    """A file of the conversation: its address, and whether it may be shown as an image."""

    href: str
    shown: bool


def rendered(
    text: str, *, breaks: bool = False, mark: str = "", own: Callable[[str], Own | None] = lambda _: None
) -> Markup:
    """The safe HTML of `text`; with `breaks` each line end is kept, as a person typed it.

    `mark` keeps the ids of footnotes apart on one page; `own` finds the file that an address means.
    """
    if len(text) > TEXT_MAX:
        return verbatim(text)
    parser = _spoken if breaks else _plain
    env: dict[str, Any] = {"docId": mark, "own": own}
    tokens = parser.parse(text, env)
    _lower_headings(tokens)
    return Markup(parser.renderer.render(tokens, parser.options, env))  # noqa: S704 - the renderer escapes


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


def _ours(url: str) -> bool:
    """Whether an address may mean a file of the conversation; which one, its renderer asks."""
    return bool(_OURS.match(url))


def _parser(*, breaks: bool) -> MarkdownIt:
    options = {"html": False, "linkify": True, "breaks": breaks, "maxNesting": 20}
    parser = MarkdownIt("commonmark", options).enable(["table", "strikethrough", "linkify"])
    parser.use(footnote_plugin, inline=False).use(tasklists_plugin)
    parser.use(
        dollarmath_plugin, allow_labels=False, allow_space=False, allow_digits=False, allow_blank_lines=False
    )
    parser.inline.ruler.before("escape", "bracket_math", _bracket_math)
    parser.validateLink = lambda url: allowed(url) or _ours(url)  # type: ignore[method-assign]
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
    for math in ("math_inline", "math_inline_double", "math_block"):
        parser.add_render_rule(math, _math)
    parser.add_render_rule("html_inline", _box)  # raw HTML is off, so that only a task's box is one
    parser.add_render_rule("footnote_anchor", _back)
    parser.add_render_rule("footnote_block_open", lambda *_: '<hr><ol class="footnotes">\n')
    parser.add_render_rule("footnote_block_close", lambda *_: "</ol>\n")
    return parser


def _link_open(
    _self: RendererProtocol, tokens: Sequence[Token], index: int, _options: Any, env: MutableMapping[str, Any]
) -> str:
    address = str(tokens[index].attrGet("href") or "")
    if allowed(address):
        return f'<a href="{escape(address)}" rel="{REL}">'
    own = env["own"](address)
    return "<a>" if own is None else f'<a href="{escape(own.href)}" download>'


def _image(
    _self: RendererProtocol, tokens: Sequence[Token], index: int, _options: Any, env: MutableMapping[str, Any]
) -> str:
    token = tokens[index]
    address = str(token.attrGet("src") or "")
    words = escape(token.content.strip() or "image")
    own = None if allowed(address) or not address else env["own"](address)
    if own is not None and own.shown:
        return f'<img class="own" src="{escape(own.href)}/picture" alt="{words}" loading="lazy">'
    open_links = sum(token.nesting for token in tokens[:index] if token.type.startswith("link_"))
    if open_links or (own is None and not allowed(address)):  # inside a link: one link is enough
        return f'<span class="image">{words}</span>'
    if own is not None:
        return f'<a class="image" href="{escape(own.href)}" download>{words}</a>'
    where = escape(urlsplit(address).hostname or address.partition(":")[2])
    link = f'<a class="image" href="{escape(address)}" rel="{REL}">{words}</a>'
    return f'{link} <span class="where">({where})</span>'


def _bracket_math(state: StateInline, silent: bool) -> bool:
    r"""`\(…\)` and `\[…\]`, as the model APIs write math, up to the nearest end."""
    opening = state.src[state.pos : state.pos + 2]
    if opening not in _BRACKETS:
        return False
    end = state.src.find(_BRACKETS[opening], state.pos + 2, state.posMax)
    if end < 0 or not state.src[state.pos + 2 : end].strip():
        return False
    if not silent:
        token = state.push("math_inline", "math", 0)
        token.content, token.markup = state.src[state.pos + 2 : end], opening
    state.pos = end + 2
    return True


def _math(_self: RendererProtocol, tokens: Sequence[Token], index: int, *_: Any, **__: Any) -> str:
    token = tokens[index]
    closing = _BRACKETS.get(token.markup, token.markup)
    text = escape(f"{token.markup}{token.content}{closing}")
    if token.type == "math_block":
        return f'<pre class="math" tabindex="0">{text}</pre>\n'
    return f'<span class="math" dir="ltr">{text}</span>'


def _box(_self: RendererProtocol, tokens: Sequence[Token], index: int, *_: Any, **__: Any) -> str:
    done = 'checked="checked"' in tokens[index].content
    return f'<span class="box{" done" if done else ""}" role="img" aria-label="{"Done" if done else "To do"}"></span>'


def _back(self: Any, tokens: Sequence[Token], index: int, options: Any, env: MutableMapping[str, Any]) -> str:
    name = self.rules["footnote_anchor_name"](tokens, index, options, env)
    times = tokens[index].meta["subId"]
    place = f"{name}:{times}" if times > 0 else name
    return f' <a href="#fnref{escape(place)}" class="back" aria-label="Back to the text">↩</a>'


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

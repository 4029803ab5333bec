"""What a result shows of a text: pieces of it, each marked when it is what was asked for. PURE.

PostgreSQL's own marking knows nothing of pairs of characters, so the marks are made here, by the same words as the
index. A piece is plain text: whoever shows it escapes it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from models.words import TEXT_MAX, Term, Word, folded, plain, words

LENGTH = 160  # characters of a snippet, near enough
LEAD = 40  # of them before the first mark
_SPACE = re.compile(r"\s+")
# What Markdown writes around words. It is for the eye of a renderer; in a line of plain text it is in the way.
_MARKUP = re.compile(
    r"^[ \t]*(?:```.*|~~~.*|#{1,6}(?=\s)|>(?=\s?)|[-*+](?=\s)|(?:[ \t]*:?-{3,}:?[ \t]*·?)+$)"  # at a line's beginning
    r"|(?<![\w*])\*{1,3}(?=\S)|(?<=\S)\*{1,3}(?![\w*])|(?<!\w)__(?=\S)|(?<=\S)__(?!\w)|`+",  # around words
    re.MULTILINE,
)
_ROW = re.compile(r"^[ \t]*\|(.*?)\|?[ \t]*$", re.MULTILINE)
_CELLS = re.compile(r"[ \t]*\|[ \t]*")
_LINK = re.compile(r"!?\[([^\[\]\n]{0,200})\]\([^()\s]{0,500}\)")

Span = tuple[int, int]


class Piece(NamedTuple):
    """A part of a text; `hit` when it is to be marked."""

    text: str
    hit: bool


def marked(text: str, terms: Sequence[Term]) -> list[Piece]:
    """The whole text in pieces."""
    text = plain(text)
    return _pieces(text, [span for span, _ in _hits(text, terms)], 0, len(text))


def snippet(text: str, terms: Sequence[Term], length: int = LENGTH) -> list[Piece]:
    """About `length` characters around the place where most of the terms stand together; else its beginning.

    White space becomes one space; where the text goes on, there is an ellipsis.
    """
    raw = plain(text[:TEXT_MAX])
    text = bare(raw)
    hits = _hits(text, terms)
    if not hits:  # what was asked for is in the markup itself: an address, the name of a language
        text, hits = raw, _hits(raw, terms)
    start = _opening(text, _densest(hits, length - LEAD) if hits else 0)
    end = min(len(text), start + length)
    if end < len(text) and (cut := text.rfind(" ", start + length // 2, end)) > 0:
        end = cut
    pieces = _pieces(text, [span for span, _ in hits], start, end)
    told = [Piece(_SPACE.sub(" ", piece.text), piece.hit) for piece in pieces]
    if start > 0:
        told.insert(0, Piece("…", False))
    if end < len(text):
        told.append(Piece("…", False))
    return told


def bare(text: str) -> str:
    """A message's text without what Markdown writes around its words; dots between the cells of a table."""
    text = _ROW.sub(lambda row: _CELLS.sub(" · ", row[1].strip()), text)
    return _MARKUP.sub("", _LINK.sub(r"\1", text))


def said(text: str, terms: Sequence[Term]) -> list[str]:
    """The words of a text that are asked for, each spelling once, as they stand there: for marking them in a page."""
    text = plain(text[:TEXT_MAX])
    return sorted({text[start:end] for (start, end), _ in _hits(text, terms)})


def _hits(text: str, terms: Sequence[Term]) -> list[tuple[Span, int]]:
    """The places of the terms in a plain text, in order, each with the number of its term."""
    characters = folded(text)
    if isinstance(characters, str):
        held, starts = list(words(characters)), None
    else:
        held = list(words("".join(characters)))
        starts = [0, *accumulate(map(len, characters))]
    found = []
    for number, term in enumerate(terms):
        for at in range(len(held)):
            end = _end(held, at, term)
            if end is not None:
                found.append(((held[at].start, end), number))
    found.sort()
    if starts is None:
        return found
    # From places in the folded text to the characters that they were folded from.
    return [
        ((bisect_right(starts, start) - 1, bisect_right(starts, end - 1)), number)
        for (start, end), number in found
    ]


def _end(held: Sequence[Word], at: int, term: Term) -> int | None:
    """Where the term ends when it begins with the word `at`; None when it does not."""
    end = None
    last = len(term.words) - 1
    for number, (wanted, offset) in enumerate(term.words):
        if at + offset >= len(held):
            return None
        word = held[at + offset]
        if word.text == wanted:
            end = word.end
        elif number == last and term.open and word.text.startswith(wanted):
            end = word.start + len(wanted)
        else:
            return None
    return end


def _densest(hits: Sequence[tuple[Span, int]], width: int) -> int:
    """The start of the first hit with the most terms within `width` characters of it."""
    best, most = hits[0][0][0], 0
    for at, ((start, _), _) in enumerate(hits):
        near: set[int] = set()
        for (_, end), number in hits[at : at + 50]:
            if end > start + width:
                break
            near.add(number)
        if len(near) > most:
            best, most = start, len(near)
    return best


def _opening(text: str, hit: int) -> int:
    """Where a snippet begins that shows the place `hit`: at a word, not far before it."""
    if hit <= LEAD:
        return 0
    space = text.find(" ", hit - LEAD, hit)
    return space + 1 if space >= 0 else hit - LEAD // 4


def _pieces(text: str, spans: Sequence[Span], start: int, end: int) -> list[Piece]:
    pieces, at = [], start
    for first, last in spans:
        first, last = max(first, at), min(last, end)
        if first >= last:
            continue
        if at < first:
            pieces.append(Piece(text[at:first], False))
        pieces.append(Piece(text[first:last], True))
        at = last
    if at < end:
        pieces.append(Piece(text[at:end], False))
    return pieces

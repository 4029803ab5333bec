"""Words of a text, as search keeps them and as it is asked for them. PURE.

One way of cutting a text into words serves the index, the query and the marks in what was found, so the three
always agree, and PostgreSQL's `simple` way of comparing words is enough for any script:

| script | a word is |
|---|---|
| most | a run of letters, marks and digits |
| written without spaces, and Hangul, whose words grow endings | each two neighbours of a run, and its last one |

Case, accents, width and what is not seen are folded away first, character by character, so that a word's place in
the folded text gives its place in the text itself. Emoji, signs and punctuation are no words.

A word of the index begins with four characters that stand for its principal (`tag`). So the words of one reader
lie together in the index, and neither a look-up nor a prefix ever walks over another's. Two principals may share a
tag: whoever asks the index still names the principal.
"""

from __future__ import annotations

import base64
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import NamedTuple

import regex

TEXT_MAX = 100_000  # characters of one message that are searched
WORD_MAX = 64  # characters of a word that count
QUERY_MAX = 400  # characters of a query that count
TERMS_MAX = 16  # words and phrases of a query that count
PREFIX_MIN = 2  # characters from which on the last word of a query stands for all that begin with it
SHORT = 20_000  # characters, below which no tsvector can be too large
VECTOR_MAX = 900_000  # bytes; PostgreSQL's own bound on a tsvector is a mebibyte
PLACES_MAX = 255  # of one word in one message: PostgreSQL keeps no more

_MARKS = regex.compile(
    "[\u0300-\u036f\u0483-\u0487\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20f0\ufe20-\ufe2f"  # Latin, Greek, Cyrillic
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"  # Hebrew points
    "\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed]"  # Arabic points, the kashida
)
_HIDDEN = regex.compile(
    r"[\p{Cf}\ufe00-\ufe0f\u034f]"
)  # joiners, soft hyphens, directions, variants of a form
_ALIKE = str.maketrans(
    {
        "ø": "o", "ł": "l", "đ": "d", "ð": "d", "ħ": "h", "ŧ": "t", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th",
        "ى": "ي", "ی": "ي", "ک": "ك", "ة": "ه",
    }
)  # fmt: skip
_HALF_WIDTH = re.compile("[\uff66-\uff9f]+")
_UNSPACED = (
    "\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
    "\u3041-\u30ff\u31f0-\u31ff\U0001b000-\U0001b16f"  # kana
    "\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7ff"  # Hangul
    "\u0e01-\u0eff\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f\u1780-\u17ff"  # Thai, Lao, Myanmar, Khmer
)
_RUN = re.compile(f"[{_UNSPACED}]+")
_WORD = re.compile(f"([{_UNSPACED}]+)|([^ {_UNSPACED}]+)")
_SPACED_WORD = re.compile("[^ ]+")
_PLAIN_WORD = re.compile("[a-z0-9]+")
_NO_WORD = regex.compile(r"[^\p{L}\p{M}\p{N}]")
_ASKED = re.compile(r'["“”„«»]([^"“”„«»]*)["“”„«»]|(\S+)')


class Word(NamedTuple):
    """A word and its place: `start` and `end` are characters of the folded text. `part` says that others overlap it."""

    text: str
    start: int
    end: int
    part: bool = False


@dataclass(frozen=True, slots=True)
class Term:
    """Words that must follow one another: each with how many words it comes after the first.

    `open` says that the last of them stands for every word that begins with it.
    """

    words: tuple[tuple[str, int], ...]
    open: bool = False


def tag(principal_id: str) -> str:
    """The four letters or digits that a principal's words begin with."""
    return base64.b64encode(sha256(principal_id.encode()).digest()[:3], altchars=b"xy").decode()


def plain(text: str) -> str:
    """The text in the one spelling that `fold` and `words` are meant for; what a reader sees of it is the same."""
    if text.isascii():
        return text
    return _HALF_WIDTH.sub(
        lambda found: unicodedata.normalize("NFKC", found[0]), unicodedata.normalize("NFC", text)
    )


def folded(text: str) -> list[str] | str:
    """What each character of a `plain` text counts as, in order: mostly one character, sometimes none or several."""
    if text.isascii():
        return text.lower()
    return [_FOLDED[character] for character in text]


def words(text: str) -> Iterator[Word]:
    """The words of a folded text, in order; a word's place in that order is its place in the index, from 1."""
    found: re.Match[str]
    for found in _pattern(text).finditer(text):
        start, end = found.span()
        if found.re is not _WORD or found[1] is None:
            yield Word(text[start : min(end, start + WORD_MAX)], start, end)
            continue
        for at in range(start, end - 1):
            yield Word(text[at : at + 2], at, at + 2, True)
        yield Word(text[end - 1 : end], end - 1, end, True)


def vector(texts: Sequence[str], of: str) -> str:
    """A message's words as PostgreSQL reads a tsvector, each beginning with the tag `of`; "" when it has none.

    Of a long message the first TEXT_MAX characters count. Never more than PostgreSQL takes.
    """
    text = "".join(folded(plain("\n".join(texts)[:TEXT_MAX])))[:TEXT_MAX]
    if len(text) > SHORT:
        return _long_vector(text, of)
    pattern = _pattern(text)
    # The same as `words`, without their places in the text: each append does this.
    found = _cut(text) if pattern is _WORD else pattern.findall(text)
    return " ".join([f"{of}{word[:WORD_MAX]}:{place}" for place, word in enumerate(found, start=1)])


def asked(text: str) -> tuple[Term, ...]:
    """What a reader asks for: every term must be in a message. Empty when there is no word in it.

    "Quoted words" follow one another; so do the parts of one word such as e-mail. The last word is open.
    """
    terms: list[Term] = []
    last = None
    for quoted, bare in _ASKED.findall(text[:QUERY_MAX]):
        term = _term(bare or quoted)
        if term is not None and term not in terms:
            terms.append(term)
            last = bare and len(terms) - 1
    terms = terms[:TERMS_MAX]
    if last not in (None, "") and last < len(terms) and _opens(terms[last]):
        terms[last] = replace(terms[last], open=True)
    return tuple(terms)


def tsquery(terms: Sequence[Term], of: str) -> str:
    """The terms as PostgreSQL reads a tsquery. Words are letters, marks and digits: there is nothing to escape."""
    return " & ".join(f"({_phrase(term, of)})" for term in terms)


def _term(text: str) -> Term | None:
    held = list(enumerate(words("".join(folded(plain(text))))))
    if not held:
        return None
    # The last character of a run is asked for alone only where it is all there is of the run: any place that has it
    # begins a word of the index with it. A longer run is told by its pairs.
    kept = [
        (word, at)
        for at, word in held
        if not (word.part and len(word.text) == 1 and at and held[at - 1][1].end == word.end)
    ][:TERMS_MAX]
    first, final = kept[0][1], kept[-1][0]
    return Term(tuple((word.text, at - first) for word, at in kept), open=final.part and len(final.text) == 1)


def _opens(term: Term) -> bool:
    word = term.words[-1][0]
    return len(word) >= PREFIX_MIN and not _RUN.match(word)


def _phrase(term: Term, of: str) -> str:
    pieces = []
    before = 0
    for number, (word, at) in enumerate(term.words, start=1):
        if number > 1:
            pieces.append(f"<{at - before}>")
        star = ":*" if term.open and number == len(term.words) else ""
        pieces.append(f"'{of}{word}'{star}")
        before = at
    return " ".join(pieces)


def _long_vector(text: str, of: str) -> str:
    places: dict[str, list[int]] = {}
    size = 0
    for place, word in enumerate(words(text), start=1):
        held = places.get(word.text)
        if held is None:
            size += len(of) + 4 * len(word.text) + 8
            if size > VECTOR_MAX:
                break
            places[word.text] = [place]
        elif len(held) < PLACES_MAX:
            size += 2
            held.append(place)
    return " ".join([f"{of}{word}:{','.join(map(str, held))}" for word, held in places.items()])


def _cut(text: str) -> list[str]:
    found: list[str] = []
    for run, word in _WORD.findall(text):
        if run:
            found += [run[at : at + 2] for at in range(len(run) - 1)]
        found.append(run[-1:] or word)
    return found


def _pattern(text: str) -> re.Pattern[str]:
    """What finds the words of a folded text: the quickest that finds all of them."""
    if text.isascii():
        return _PLAIN_WORD
    return _WORD if _RUN.search(text) else _SPACED_WORD


class _Folded(dict[str, str]):
    """What a character counts as, worked out at its first use: what is part of no word is a blank, or nothing."""

    def __missing__(self, character: str) -> str:
        wide = unicodedata.normalize("NFKC", character).casefold()
        bare = unicodedata.normalize("NFC", _MARKS.sub("", unicodedata.normalize("NFKD", wide)))
        told = _NO_WORD.sub(" ", _HIDDEN.sub("", bare.translate(_ALIKE)))
        self[character] = told
        return told


_FOLDED = _Folded()

"""What a result shows: the words that were asked for are marked, in any script, and the text itself is unchanged."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.snippets import LENGTH, Piece, marked, snippet
from models.words import asked, plain


def shown(pieces: Sequence[Piece]) -> str:
    return "".join(f"[{piece.text}]" if piece.hit else piece.text for piece in pieces)


@pytest.mark.parametrize(
    ("said", "query", "expected"),
    [
        ("A plan for Norway", "norway", "A plan for [Norway]"),
        ("A plan for Norway", "nor", "A plan for [Nor]way"),
        ("Plan, plan, planner", "plan x", "[Plan], [plan], planner"),
        ("Crème brûlée in Łódź", "lodz brulee", "Crème [brûlée] in [Łódź]"),
        ("e\u0301te\u0301 ici", "été", "[été] ici"),
        ("Große Straße!", "strasse", "Große [Straße]!"),
        ("the ﬁne print", "fine", "the [ﬁne] print"),
        ("私は東京都へ行く", "東京都", "私は[東京都]へ行く"),
        ("私は東京都へ行く", "京", "私は東[京]都へ行く"),
        ("学校: 학교에서", "학교", "学校: [학교]에서"),
        ("ภาษาไทย", "ไทย", "ภาษา[ไทย]"),
        ("مُحَمَّد هنا", "محمد", "[مُحَمَّد] هنا"),
        ("New York, new yorker", '"new york"', "[New York], new yorker"),
        ("write foo_bar()", "foo_bar", "write [foo_bar]()"),
        ("👍 ok 👍🏽", "ok", "👍 [ok] 👍🏽"),
        ("<b>bold</b> & more", "bold", "<b>[bold]</b> & more"),
        ("nothing here", "else", "nothing here"),
        ("", "else", ""),
    ],
)
def test_what_was_asked_for_is_marked(said: str, query: str, expected: str) -> None:
    assert shown(marked(said, asked(query))) == expected


def test_a_snippet_is_cut_around_the_place_that_has_most_of_the_terms() -> None:
    said = "tent " + "filler words here " * 50 + "we took\n\n the\ttent to Norway" + " and more of it" * 50
    told = shown(snippet(said, asked("tent norway")))
    assert told.startswith("…")
    assert told.endswith("…")
    assert "we took the [tent] to [Norway] and more" in told
    assert len(told) < LENGTH + 20


def test_a_short_text_is_shown_whole_and_a_text_without_the_words_from_its_beginning() -> None:
    assert shown(snippet("Just this.", asked("this"))) == "Just [this]."
    told = shown(snippet("first words " * 100, asked("absent")))
    assert told.startswith("first words")
    assert told.endswith("…")


def test_a_snippet_of_a_script_without_spaces_is_cut_too() -> None:
    told = shown(snippet("東" * 500 + "京都" + "大" * 500, asked("京都")))
    assert "[京都]" in told
    assert len(told) < LENGTH + 10


def test_a_snippet_of_a_message_of_four_megabytes_is_quick() -> None:
    for said, query in (("word " * 800_000, "word"), ("東京" * 1_300_000, "東京"), ("é" * 2_000_000, "e")):
        began = time.perf_counter()
        snippet(said, asked(query))
        assert time.perf_counter() - began < 5  # a bound for a busy machine


@settings(deadline=None)
@given(st.text(max_size=300), st.text(max_size=40))
def test_the_pieces_are_the_text(said: str, query: str) -> None:
    terms = asked(query)
    assert "".join(piece.text for piece in marked(said, terms)) == plain(said)
    assert all(piece.text for piece in marked(said, terms))
    snippet(said, terms)


@settings(deadline=None)
@given(st.text(max_size=100), st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=20))
def test_what_the_index_finds_is_marked(said: str, word: str) -> None:
    terms = asked(word)
    pieces = marked(f"{said} {word} {said}", terms)
    assert any(piece.hit for piece in pieces) == bool(terms)

"""Words in any script: index and query cut them the same way, and nothing that a reader types is an error."""

from __future__ import annotations

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text
from sqlalchemy.orm import Session

from models.words import QUERY_MAX, TERMS_MAX, TEXT_MAX, asked, folded, plain, tag, tsquery, vector, words

OF = "aB3x"


def cut(said: str) -> list[str]:
    return [word.text for word in words("".join(folded(plain(said))))]


def found(db: Session, said: str, query: str) -> bool:
    """Whether PostgreSQL finds a message by a query, as the index would."""
    terms = asked(query)
    assert terms, query
    statement = text("SELECT CAST(:words AS tsvector) @@ CAST(:query AS tsquery)")
    values = {"words": vector([said], OF), "query": tsquery(terms, OF)}
    return bool(db.execute(statement, values).scalar_one())


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("Hello, World!", ["hello", "world"]),
        (
            "naïve Straße ŒUVRE Łódź İstanbul ﬁn ２０２６",
            ["naive", "strasse", "oeuvre", "lodz", "istanbul", "fin", "2026"],
        ),
        ("e\u0301te\u0301", ["ete"]),
        ("Привет, ёлка", ["привет", "елка"]),
        ("Ἀθῆναι ΟΔΟΣ οδός", ["αθηναι", "οδοσ", "οδοσ"]),
        ("مُحَمَّد كتابـــي", ["محمد", "كتابي"]),
        ("שָׁלוֹם", ["שלום"]),
        ("می\u200cخواهم", ["ميخواهم"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("東京都", ["東京", "京都", "都"]),
        ("東", ["東"]),
        ("iPhone用ケース", ["iphone", "用ケ", "ケー", "ース", "ス"]),
        ("한국어", ["한국", "국어", "어"]),
        ("ｶﾞｲﾄﾞ ガイド", ["ガイ", "イド", "ド", "ガイ", "イド", "ド"]),
        ("ไทย", ["ไท", "ทย", "ย"]),
        ("e-mail foo_bar v2 don't", ["e", "mail", "foo", "bar", "v2", "don", "t"]),
        ("👍🏽 ❤️ 🇳🇴 … —!?", []),
        ("\0\ud800", []),
    ],
)
def test_a_text_is_cut_into_words(said: str, expected: list[str]) -> None:
    assert cut(said) == expected


@pytest.mark.parametrize(
    ("said", "query"),
    [
        ("A plan for Norway", "norway"),
        ("A plan for Norway", "NORW"),
        ("A plan for Norway", "norway plan"),
        ("Übermäßig naïve façade", "ubermassig facade"),
        ("uber", "über"),
        ("Поедем в Осло", "осло"),
        ("Ёлка", "елка"),
        ("مُحَمَّد يكتب", "محمد"),
        ("私は東京都へ行く", "東京"),
        ("私は東京都へ行く", "京都へ"),
        ("私は東京都へ行く", "都"),
        ("私は東京都へ行く", "く"),
        ("我在北京学习", "北京 学习"),
        ("학교에서 친구를 만났다", "친구 학교"),
        ("학교에서", "교에"),
        ("ผมชอบภาษาไทยมาก", "ภาษา"),
        ("ຂ້ອຍຮັກລາວ", "ລາວ"),
        ("ខ្ញុំស្រលាញ់ខ្មែរ", "ខ្មែរ"),
        ("write to me.too@example.com", "me.too@example.com"),
        ("call foo_bar(x)", "foo_bar"),
        ("New York is large", '"new york"'),
        ("東京 大阪", '"東京 大阪"'),
        ("mi casa", "“mi casa”"),
        ("Łódź", "lodz"),
        ("👍 well done", "done 👍"),
    ],
)
def test_what_was_said_is_found(db: Session, said: str, query: str) -> None:
    assert found(db, said, query)


@pytest.mark.parametrize(
    ("said", "query"),
    [
        ("A plan for Norway", "sweden"),
        ("A plan for Norway", "norway sweden"),
        ("York is new", '"new york"'),
        ("A plan for Norway", "plan nor way"),
        ("planning", "plan it"),  # only the last word stands for others
        ("a cat", "c"),  # and not when it is one letter
        ("東の京", "東京"),
        ("大阪 東京", '"東京 大阪"'),
        ("mail the e", "e-mail"),
    ],
)
def test_what_was_not_said_is_not_found(db: Session, said: str, query: str) -> None:
    assert not found(db, said, query)


def test_another_principals_words_are_other_words(db: Session) -> None:
    one, two = tag("01a22e47-8b90-7ae1-b489-ffb774f5986a"), tag("01a22e47-8b91-7c2b-8e8b-f6a3d2a1abe0")
    assert one != two
    assert len(one) == 4
    assert one.isalnum()
    statement = text("SELECT CAST(:words AS tsvector) @@ CAST(:query AS tsquery)")
    values = {"words": vector(["secret"], one), "query": tsquery(asked("sec"), two)}
    assert db.execute(statement, values).scalar_one() is False


@pytest.mark.parametrize(
    "query", ["", " ", '"', '""', "& | ! <-> :* ( ) '", "\\'", "\0", "👍", "?!", "\ud800"]
)
def test_a_query_without_a_word_asks_for_nothing(query: str) -> None:
    assert asked(query) == ()


def test_a_query_is_bounded() -> None:
    assert len(asked("x" * 10_000)) == 1
    assert len(asked(" ".join(f"word{n}" for n in range(5_000)))) == TERMS_MAX
    assert len(asked("東" * QUERY_MAX)[0].words) == TERMS_MAX


@pytest.mark.parametrize(
    "said",
    [
        "word " * 800_000,
        "東京都へ行く" * 600_000,
        "".join(chr(0x4E00 + n % 20_000) for n in range(0, 4_000_000, 7)),
        "".join(chr(0x20000 + n * 7 % 40_000) for n in range(1_000_000)),
        "\ufdfa" * 1_300_000,
        "\ufdfa" * 19_000,
        "a" * 4_000_000,
        " ".join(f"w{n}" for n in range(500_000)),
    ],
    ids=[
        "one word",
        "a phrase",
        "Han",
        "rare Han",
        "a ligature",
        "a ligature, short",
        "one letter",
        "many words",
    ],
)
def test_a_message_of_four_megabytes_is_bounded_and_never_an_error(db: Session, said: str) -> None:
    began = time.perf_counter()
    made = vector([said], OF)
    assert time.perf_counter() - began < 5  # a bound for a busy machine
    assert db.execute(text("SELECT length(CAST(:words AS tsvector))"), {"words": made}).scalar_one() > 0


def test_a_long_message_is_found_by_its_first_and_by_a_late_word(db: Session) -> None:
    said = " ".join(["alpha", *(f"w{n}" for n in range(14_000)), "omega"])
    assert len(said) < TEXT_MAX
    assert found(db, said, "alpha")
    assert found(db, said, "omega")
    assert found(db, said, '"w13998 w13999"')


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=200), st.text(max_size=60))
def test_no_text_and_no_query_is_an_error_of_the_database(db: Session, said: str, query: str) -> None:
    made = vector([said], OF)
    assert [piece.partition(":")[0][4:] for piece in made.split(" ") if piece] == cut(said)
    terms = asked(query)
    assert all(word and not set(word) & set("'\\:&|!()<> \0") for term in terms for word, _ in term.words)
    values = {"words": made, "query": tsquery(terms, OF)}
    db.execute(text("SELECT CAST(:words AS tsvector) @@ CAST(:query AS tsquery)"), values).scalar_one()


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.text(st.characters(categories=["L", "M", "N", "Zs"]), min_size=1, max_size=30), st.text(max_size=20)
)
def test_any_text_is_found_by_itself(db: Session, said: str, around: str) -> None:
    if asked(said):
        assert found(db, f"{around} {said} {around}", said)

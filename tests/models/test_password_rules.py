"""Which passwords are taken: by length and by how often they are tried, never by what they are composed of."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from models.errors import Invalid
from models.password_rules import LEAST, MOST, checked, normalised

EMAIL = "marianne.dashwood@example.com"


def refusal(password: str, email: str = EMAIL) -> str:
    with pytest.raises(Invalid) as refused:
        checked(password, email)
    assert refused.value.details == {"field": "new_password"}
    return refused.value.detail


@pytest.mark.parametrize(
    "password",
    [
        "seven purple otters",
        "all in small letters",
        "929104772613",  # only digits
        "vGz!8qLwpE2#",
        "пароль для Марианны",
        "密码密码很长的一个句子呢吗",
        "🦦🦩🐙🦜🦥🦔🦡🐋🐬🦈🦭🐊",
        "  blanks at both ends  ",
        "secretary of defence",
        "x" * 11 + "kettle",
        "tr0ub4dor&three kettles" * 10,
    ],
)
def test_any_long_enough_password_is_taken_whatever_it_is_made_of(password: str) -> None:
    assert checked(password, EMAIL) == unicodedata.normalize("NFKC", password)


def test_the_length_counts_characters_at_both_ends() -> None:
    odd = "kjh3 9dk2-vs"
    assert len(odd) == LEAST
    assert checked(odd, EMAIL) == odd
    assert "at least 12" in refusal(odd[:-1])
    assert "at least 12" in refusal("")
    long = ("kettle of otters %d " * 40)[:MOST]
    assert checked(long, EMAIL) == long
    assert "at most 256" in refusal(long + "x")
    assert "at most 256" in refusal("ﷺ" * 20)  # one character that is eighteen once it is normalised


@pytest.mark.parametrize(
    "password",
    [
        "passwordpassword", "Password2024!!", "p a s s w o r d 1 2", "PASSWORD12345",
        "Welcome123456", "administrator",
        "123456789012", "111111111111", "abcabcabcabc", "qwertyuiop12", "qwertyuiop[]", "1q2w3e4r5t6y",
        "1qaz2wsx3edc",
        "iloveyou1234", "letmeinletmein", "changeme12345", "correct horse battery staple", "abcdefghijkl",
        "987654321098",
        "qwertz123456", "azertyuiop12", "hello1234567", "............",
        "ｐａｓｓｗｏｒｄ１２３４",  # full width: the same keys
    ],
)  # fmt: skip
def test_what_is_tried_first_is_refused(password: str) -> None:
    assert "tried first" in refusal(password)


@pytest.mark.parametrize(
    "password", [EMAIL, EMAIL.upper(), "marianne.dashwood", "Marianne.Dashwood1811", "1811marianne.dashwood!"]
)
def test_ones_own_address_is_no_password(password: str) -> None:
    assert "your address" in refusal(password)


def test_a_short_name_before_the_at_forbids_nothing() -> None:
    assert checked("a kettle of otters", "a@example.com") == "a kettle of otters"


@pytest.mark.parametrize("odd", ["\0", "\ud800", "\n", "\x7f", "\ue000"])
def test_what_no_keyboard_gives_again_is_refused(odd: str) -> None:
    assert "keyboard" in refusal(f"a kettle {odd} of otters")


def test_it_does_not_matter_which_keyboard_typed_it() -> None:
    composed, decomposed = "caf\u00e9 of the otters", "cafe\u0301 of the otters"
    assert checked(composed, EMAIL) == checked(decomposed, EMAIL)
    assert normalised(composed) == normalised(decomposed)


@given(st.text(max_size=300))
@example("0" * 300)
@example("ab" * 150)
def test_any_text_is_taken_or_refused_in_words(password: str) -> None:
    try:
        taken = checked(password, EMAIL)
    except Invalid:
        return
    assert LEAST <= len(taken) <= MOST
    assert taken == normalised(taken)
    taken.encode()

"""Secrets are masked whole before anything is hashed or stored, and masking again changes nothing."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.redaction import MASK, masked

A1, A2, A3 = "abcdefghijklmnopqrstuvwxyz0123456789", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789abcdef" * 4
# Put together here, so that no scanner of this repository takes a line for a leak.
SECRETS = {
    "AWS key id": "AKIA" + "QWERTYUIOPASDFGH",
    "AWS session key id": "ASIA" + "QWERTYUIOPASDFGH",
    "GitHub": "gh" + "p_" + A1,
    "GitHub, longer": "gh" + "p_" + A1 + "MORE",
    "GitLab": "glpat" + "-" + A1[:20],
    "Slack": "xox" + "b-123456789012-123456789012-" + A1[:24],
    "Stripe": "sk_" + "live_" + A1[:24],
    "SendGrid": "SG." + A1[:22] + "." + A1 + A1[:7],
    "PyPI": "pypi-" + "AgEIcHlwaS5vcmc" + A1 * 2,
    "OpenAI": "sk-" + A1[:20] + "T3BlbkFJ" + A1[:20],
    "Twilio": "SK" + A3[:32],
    "Mailchimp": A3[:32] + "-us12",
    "Telegram": "110201543:" + A1[:35],
    "Discord": "M" + A1[:23] + "." + A1[:6] + "." + A1[:27],
    "Square": "sq0" + "csp-" + A1 + A1[:7],
    "Artifactory": "AKC" + A1,
    "GitHub, fine-grained": "github_" + "pat_" + A1[:22] + "_" + A1,
    "npm, granular": "npm" + "_" + A1[:36],
    "Anthropic": "sk-" + "ant-api03-" + A1 + "AA",
    "Hugging Face": "hf" + "_" + A1[:34],
    "Google": "AI" + "za" + A1[:35],
    "ours": "allgone" + "_" + A1 + A1[:7],
    "JWT": "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0In0." + "dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
    "private key": "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nabc=\n-----END RSA PRIVATE KEY-----",
    "OpenSSH key": "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1r\n-----END OPENSSH PRIVATE KEY-----",
    "private key, cut off": "-----BEGIN PRIVATE KEY-----\nMIIEow\nabc",
}
PASSWORDS = ("hunter2", "p:a:s:s", "p@ss@word", "[brackets]", "ünïcode", "a&b=c;d", "%40%3A")


@pytest.mark.parametrize("kind", SECRETS)
def test_each_kind_is_masked_whole_and_the_words_around_it_stay(kind: str) -> None:
    assert masked(f"before {SECRETS[kind]} after") == (
        f"before {MASK}" if kind.endswith("cut off") else f"before {MASK} after"
    )
    assert masked(SECRETS[kind]) == MASK


@pytest.mark.parametrize("kind", SECRETS)
def test_two_beside_each_other_are_both_masked(kind: str) -> None:
    for between in (" ", "\n") if kind == "Artifactory" else (" ", "\n", ", ", ";"):
        left = masked(SECRETS[kind] + between + SECRETS[kind])
        assert SECRETS[kind][-6:] not in left, left


@pytest.mark.parametrize("kind", SECRETS)
def test_quotes_and_full_stops_around_it_do_not_hide_it(kind: str) -> None:
    for text in (
        f'key = "{SECRETS[kind]}"',
        f"It is {SECRETS[kind]}.",
        f"token:{SECRETS[kind]}",
        f"({SECRETS[kind]})",
    ):
        if kind == "Artifactory" and not text.startswith(("key", "token")):
            continue  # the detector wants an end of the word
        left = masked(text)
        assert SECRETS[kind][-6:] not in left, left
        assert MASK in left


@pytest.mark.parametrize("password", PASSWORDS)
def test_the_password_of_a_url_is_masked_and_the_address_stays(password: str) -> None:
    said = f"see postgresql://alice:{password}@db.example.com:5432/app?x=1 today"
    assert masked(said) == f"see postgresql://alice:{MASK}@db.example.com:5432/app?x=1 today"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I like tea, and my cat is called Schrödinger.",
        "Mail alice@example.com or see https://example.com:8080/path@here?q=a:b@c",
        "http://localhost:8000 @alice",
        "a commit 3f786850e387550fdab836ed7e6dc881de23001b and 550e8400-e29b-41d4-a716-446655440000",
        "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
        "The API said sk-1, ghp_short and AKIA.",
    ],
)
def test_plain_words_stay_as_they_are(text: str) -> None:
    assert masked(text) == text


pieces = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        [*SECRETS.values(), MASK, "://u:p@h", "://", "@", ":", "=", '"', " ", "\n", "AKC", "eyJ", "key"]
    ),
)


@given(st.lists(pieces, max_size=8).map("".join))
def test_masking_again_changes_nothing(text: str) -> None:
    once = masked(text)
    assert masked(once) == once


@pytest.mark.parametrize(
    "piece", ["eyJ", "/", "sk-", "://a:", "AKC", " ", "-----BEGIN PRIVATE KEY", "aws", "//:_authToken"]
)
def test_no_text_keeps_the_detectors_busy(piece: str) -> None:
    """60 kB of slashes took half a minute once; the bound is far from both."""
    began = time.process_time()
    masked(piece * (60_000 // len(piece)))
    assert time.process_time() - began < 5


def test_a_secret_longer_than_the_detectors_reach_is_masked_whole() -> None:
    long_claims = "eyJhbGciOiJIUzI1NiJ9" + ".eyJ" + A1 * 100 + "." + A1
    assert masked(f"before {long_claims} after") == f"before {MASK} after"

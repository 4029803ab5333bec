"""Masks secrets in a memory's text before it is hashed or stored (PRODUCT.md 4.1).

ADR 0176: "redaction runs before IDs are made".

detect-secrets' named detectors find them; its entropy plugins are left out, since they drown prose in false
alarms. Masking twice gives what masking once gave, so an admission may run it again.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module

MASK = "[redacted]"

# The entropy detectors (Base64HighEntropyString, HexHighEntropyString) and the keyword one are not named here.
DETECTORS = (
    "artifactory.ArtifactoryDetector",
    "aws.AWSKeyDetector",
    "azure_storage_key.AzureStorageKeyDetector",
    "cloudant.CloudantDetector",
    "discord.DiscordBotTokenDetector",
    "github_token.GitHubTokenDetector",
    "gitlab_token.GitLabTokenDetector",
    "ibm_cloud_iam.IbmCloudIamDetector",
    "ibm_cos_hmac.IbmCosHmacDetector",
    "jwt.JwtTokenDetector",
    "mailchimp.MailchimpDetector",
    "npm.NpmDetector",
    "openai.OpenAIDetector",
    "pypi_token.PypiTokenDetector",
    "sendgrid.SendGridDetector",
    "slack.SlackDetector",
    "softlayer.SoftlayerDetector",
    "square_oauth.SquareOAuthDetector",
    "stripe.StripeDetector",
    "telegram_token.TelegramBotTokenDetector",
    "twilio.TwilioKeyDetector",
)
# What detect-secrets has no detector for yet: the shapes that their makers publish for secret scanners.
OURS = (
    r"github_pat_[0-9A-Za-z_]{22,255}",  # GitHub, fine-grained personal access token
    r"npm_[0-9A-Za-z]{36}",  # npm, granular access token
    r"sk-ant-[0-9A-Za-z_-]{20,255}",  # Anthropic
    r"hf_[0-9A-Za-z]{30,255}",  # Hugging Face
    r"AIza[0-9A-Za-z_-]{35}",  # Google API key
    r"allgone_[0-9A-Za-z_-]{40,255}",  # a token of this product
)
# A private key is found by its whole block, not by its first line as detect-secrets does.
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\Z)",
    re.DOTALL,
)
# The password of a URL alone, so that the address around it still says where (detect-secrets: basic_auth). It ends
# at the last @ before a slash, since people paste passwords that hold one.
_PASSWORD_IN_URL = re.compile(
    r"(://[^:/?#\[\]@!$&'()*+,;=\s]+:)(?!\[redacted\]@[^@/?#\s]*(?:[/?#\s]|\Z))[^/?#\s]+(@)"
)
# Some detectors stop before a secret's end: at a fixed length, or before the signature of a JWT.
_REST = r"(?:(?<=[A-Za-z0-9_+/=.-])(?:[A-Za-z0-9_+/=-]|\.(?=[A-Za-z0-9_+/=-]))+)?"
_REACH = 512  # characters that one part of a detector's expression may cover; _REST takes what is beyond
_TOKEN = re.compile(r"\\.|\[(?:\\.|[^\]\\])+\]|\{(?P<open>[0-9]+),\}|[*+]|.", re.DOTALL)
# And some take the character beside it along, which may be what the next secret is found by.
_BEFORE, _AFTER = " \t\r\n\f\v\"'=:", " \t\r\n\f\v\"'"


def masked(text: str) -> str:
    """`text` with each secret replaced by MASK; the same text when there is none."""
    while (again := _masked_once(text)) != text:  # each round leaves less that is no mask
        text = again
    return text


def _masked_once(text: str) -> str:
    text = _PRIVATE_KEY.sub(MASK, text)
    for pattern in _patterns():
        text = pattern.sub(_mask, text)
    return _PASSWORD_IN_URL.sub(rf"\1{MASK}\2", text)


def _mask(match: re.Match[str]) -> str:
    found = match.group(0)
    before = found[: len(found) - len(found.lstrip(_BEFORE))]
    after = found[len(found.rstrip(_AFTER)) :]
    return before + MASK + after


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    # The detectors' own expressions, not their answers: an answer is a group of the match, and for some
    # detectors that is the prefix of the secret and not the secret.
    found: list[re.Pattern[str]] = []
    for name in DETECTORS:
        module, kind = name.split(".")
        denylist = getattr(import_module(f"detect_secrets.plugins.{module}"), kind).denylist
        found.extend(re.compile(f"(?:{_bounded(one.pattern)}){_REST}", one.flags) for one in denylist)
    found.extend(re.compile(pattern) for pattern in OURS)
    return tuple(found)


def _bounded(pattern: str) -> str:
    # An expression without a bound tries each place of a long line against the whole rest of it: 60 kB of
    # slashes took half a minute. A class is one token, so that what is inside it stays.
    def bound(token: re.Match[str]) -> str:
        if token["open"] is not None:
            return f"{{{token['open']},{_REACH}}}"
        return {"*": f"{{0,{_REACH}}}", "+": f"{{1,{_REACH}}}"}.get(token[0], token[0])

    return _TOKEN.sub(bound, pattern)

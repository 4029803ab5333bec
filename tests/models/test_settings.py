"""The settings: the defaults first, then where values come from, then each malformed one by its name."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest
from redis import Redis
from sqlalchemy import make_url

from models.errors import Misconfigured
from models.settings import OURS, SECRETS, Settings, kept_secret, load, socket_folder

SECRET = "s" * 40


@pytest.fixture
def at(tmp_path: Path) -> dict[str, str]:
    """The one setting that every load here needs: a folder of its own."""
    return {"ALLGONE_DATA_DIR": str(tmp_path / "data")}


def test_a_start_without_settings_uses_the_embedded_engines_in_its_folder(at: dict[str, str]) -> None:
    settings = load(at)
    assert settings.data_dir == Path(at["ALLGONE_DATA_DIR"])
    assert (settings.host, settings.port, settings.public_url) == ("127.0.0.1", 8000, "http://127.0.0.1:8000")
    assert (settings.embedded_database, settings.embedded_redis, settings.https) == (True, True, False)
    assert (settings.trusted_proxies, settings.owner_email) == (0, "owner@localhost")
    assert settings.object_store_url == (settings.data_dir / "objects").as_uri()
    assert make_url(settings.database_url).query["host"] == str(socket_folder(settings.data_dir))
    assert stat.S_IMODE(settings.data_dir.stat().st_mode) == 0o700


def test_the_secrets_that_nobody_gave_are_made_once_and_kept_for_the_owner_alone(at: dict[str, str]) -> None:
    first, second = load(at), load(at)
    assert first == second
    assert len(first.secret_key) >= 32
    for name in ("secret.key", "postgres.password"):
        assert stat.S_IMODE((first.data_dir / name).stat().st_mode) == 0o600
    assert sorted(path.name for path in first.data_dir.iterdir()) == ["postgres.password", "secret.key"]


def test_two_first_starts_at_once_keep_one_secret(tmp_path: Path) -> None:
    path, found = tmp_path / "secret", set()
    starts = [
        threading.Thread(target=lambda n=n: found.add(kept_secret(path, f"{n:040}"))) for n in range(16)
    ]
    for start in starts:
        start.start()
    for start in starts:
        start.join()
    assert len(found) == 1
    assert [entry.name for entry in tmp_path.iterdir()] == ["secret"]


def test_settings_cannot_be_changed(at: dict[str, str]) -> None:
    with pytest.raises(AttributeError):
        load(at).port = 1  # type: ignore[misc]


def test_no_secret_shows_in_the_representation(at: dict[str, str]) -> None:
    given = {
        "DATABASE_URL": "postgresql://u:hunter2@h/db",
        "REDIS_URL": "redis://:hunter2@h",
        "SECRET_KEY": "hunter2" * 6,
        "AWS_SECRET_ACCESS_KEY": "hunter2",
    }
    assert "hunter2" not in repr(load(at | given)) + str(load(at | given))


# -- where values come from ----------------------------------------------------------------------------------


def test_the_environment_wins_over_the_file(at: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("PORT=9000\nHOST=0.0.0.0\n# a comment\nOWNER_EMAIL='me@example.com'\n")
    settings = load(at | {"PORT": "9001"}, file)
    assert (settings.port, settings.host, settings.owner_email) == (9001, "0.0.0.0", "me@example.com")
    assert load(at, tmp_path / "missing").port == 8000


@pytest.mark.parametrize("name", SECRETS)
def test_each_secret_is_read_from_the_file_that_its_name_file_names(
    name: str, at: dict[str, str], tmp_path: Path
) -> None:
    if name.startswith("OIDC_"):  # means nothing without a provider
        at |= {"OIDC_ISSUER": "https://id.example", "OIDC_CLIENT_ID": "here"}
    value = {"DATABASE_URL": "postgresql://u:p@h/db", "REDIS_URL": "redis://h:1"}.get(name, SECRET)
    file = tmp_path / "secret"
    file.write_text(value + "\n")
    direct, from_file = load(at | {name: value}), load(at | {f"{name}_FILE": str(file)})
    assert direct == from_file
    with pytest.raises(Misconfigured, match=f"^{name} and {name}_FILE are both set"):
        load(at | {name: value, f"{name}_FILE": str(file)})
    with pytest.raises(Misconfigured, match=f"^{name}_FILE: cannot read"):
        load(at | {f"{name}_FILE": str(tmp_path / "missing")})


def test_names_that_look_like_ours_and_are_not_are_refused(at: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"^ALLGONE_DATADIR is no setting"):
        load(at | {"ALLGONE_DATADIR": "x"})
    file = tmp_path / ".env"
    file.write_text("PRT=8000\n")
    with pytest.raises(Misconfigured, match=r"^\.env: PRT is no setting"):
        load(at, file)
    load(at | {"PATH": "/bin", "LANG": "C", "DATABASE": "x"})


@pytest.mark.parametrize("content", [b"\xff\xfe", b"PORT=8\xff"])
def test_a_file_that_is_no_text_is_one_line(content: bytes, at: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_bytes(content)
    with pytest.raises(Misconfigured, match=r"^\.env: "):
        load(at, file)


# -- what the values become ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        "postgres://u:p%40ss@h:5433/db?sslmode=require",
        "postgresql://u:p%40ss@h:5433/db?sslmode=require",
        "postgresql+psycopg2://u:p%40ss@h:5433/db?sslmode=require",
    ],
)
def test_every_spelling_of_a_database_becomes_psycopg2s(given: str, at: dict[str, str]) -> None:
    settings = load(at | {"DATABASE_URL": given})
    assert settings.database_url == "postgresql+psycopg2://u:p%40ss@h:5433/db?sslmode=require"
    assert not settings.embedded_database
    assert make_url(settings.database_url).password == "p@ss"


def test_sockets_may_be_named_for_both_engines(at: dict[str, str]) -> None:
    settings = load(
        at | {"DATABASE_URL": "postgresql:///db?host=/run/pg", "REDIS_URL": "unix:///run/redis.sock"}
    )
    url = make_url(settings.database_url)
    assert (url.drivername, url.database, url.query["host"]) == ("postgresql+psycopg2", "db", "/run/pg")
    assert Redis.from_url(settings.redis_url).connection_pool.connection_kwargs["path"] == "/run/redis.sock"
    assert not settings.embedded_redis


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("redis://h:1/2", "redis://h:1/2"),
        ("rediss://h", "rediss://h"),
        ("valkey://h", "redis://h"),
        ("valkeys://:p@h/1", "rediss://:p@h/1"),
    ],
)
def test_valkey_is_spelled_as_its_client_wants_it(given: str, read: str, at: dict[str, str]) -> None:
    assert load(at | {"REDIS_URL": given}).redis_url == read


@pytest.mark.parametrize(
    ("host", "shown"),
    [
        ("0.0.0.0", "http://127.0.0.1:8000"),
        ("::", "http://[::1]:8000"),
        ("::1", "http://[::1]:8000"),
        ("allgone.example", "http://allgone.example:8000"),
    ],
)
def test_links_never_say_a_wildcard_address(host: str, shown: str, at: dict[str, str]) -> None:
    assert load(at | {"HOST": host}).public_url == shown


def test_cookies_are_secure_exactly_when_readers_come_by_https(at: dict[str, str]) -> None:
    settings = load(at | {"PUBLIC_URL": "https://allgone.example/"})
    assert (settings.public_url, settings.https) == ("https://allgone.example", True)


def test_a_data_folder_is_made_with_its_parents_and_may_hold_blanks(tmp_path: Path) -> None:
    deep = tmp_path / "a b" / ("x" * 100) / "ü"
    settings = load({"ALLGONE_DATA_DIR": str(deep)})
    assert settings.data_dir == deep
    assert deep.is_dir()
    assert len(os.fsencode(socket_folder(deep) / ".s.PGSQL.5432.lock")) <= 107
    assert socket_folder(deep) != socket_folder(deep.parent)


# -- each malformed setting, in one line that names it -------------------------------------------------------

MALFORMED = [
    ("HOST", "not a host"), ("HOST", "http://x"), ("HOST", "a/b"), ("HOST", "a\nb"), ("HOST", "[::1]"),
    ("PORT", "0"), ("PORT", "65536"), ("PORT", "-1"), ("PORT", "80.0"), ("PORT", "eighty"), ("PORT", "８０"),
    ("PORT", " 80"), ("PORT", "9" * 5000),
    ("DATABASE_URL", "mysql://h/db"), ("DATABASE_URL", "postgresql://h"), ("DATABASE_URL", "postgresql://h/"),
    ("DATABASE_URL", "postgresql://h:port/db"), ("DATABASE_URL", "postgresql://[h/db"), ("DATABASE_URL", "db"),
    ("DATABASE_URL", "postgresql+psycopg://h/db"), ("DATABASE_URL", "postgresql://h:99999/db"),
    ("REDIS_URL", "http://h"), ("REDIS_URL", "h:6379"), ("REDIS_URL", "redis://[h"), ("REDIS_URL", "redis://h:port"),
    ("REDIS_URL", "redis://h:99999"), ("REDIS_URL", "redis://h/zero"), ("REDIS_URL", "unix://"),
    ("OBJECT_STORE_URL", "/folder"), ("OBJECT_STORE_URL", "file://host/x"), ("OBJECT_STORE_URL", "s3://"),
    ("OBJECT_STORE_URL", "s3://["), ("OBJECT_STORE_URL", "gs://b"), ("OBJECT_STORE_URL", "s3://key:secret@bucket"),
    ("SECRET_KEY", "2short"), ("SECRET_KEY", "x" * 31),
    ("PUBLIC_URL", "allgone.example"), ("PUBLIC_URL", "ftp://h"), ("PUBLIC_URL", "http://h/path"),
    ("PUBLIC_URL", "http://h?q"), ("PUBLIC_URL", "http://h#f"), ("PUBLIC_URL", "http://u@h"),
    ("PUBLIC_URL", "http://h:port"), ("PUBLIC_URL", "http://[h"), ("PUBLIC_URL", "http://h\n"), ("PUBLIC_URL", "https://"),
    ("PUBLIC_URL", "http://a b"),
    ("TRUSTED_PROXIES", "-1"), ("TRUSTED_PROXIES", "11"), ("TRUSTED_PROXIES", "yes"), ("TRUSTED_PROXIES", "1.0"),
    ("OWNER_EMAIL", "owner"), ("OWNER_EMAIL", "@h"), ("OWNER_EMAIL", "a@"), ("OWNER_EMAIL", "a b@h"),
    ("OWNER_EMAIL", "a\x01@h"), ("OWNER_EMAIL", "a" * 300 + "@h"),
    ("OIDC_ISSUER", "id.example"), ("OIDC_ISSUER", "http://id.example"), ("OIDC_ISSUER", "https://id.example/?q"),
    ("OIDC_ISSUER", "https://user@id.example"), ("OIDC_ISSUER", "https://["), ("OIDC_ISSUER", "https://id.example#f"),
    ("OIDC_CLIENT_ID", "x"), ("OIDC_CLIENT_SECRET", "x"), ("OIDC_NAME", "x"),
    *((name, "\0") for name in OURS if name != "ALLGONE_DATA_DIR"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), MALFORMED)
def test_a_malformed_setting_is_refused_in_one_line_that_names_it(
    name: str, value: str, at: dict[str, str]
) -> None:
    # What is wrong with an issuer shows beside the client that it needs.
    beside = {"OIDC_CLIENT_ID": "c"} if name == "OIDC_ISSUER" else {}
    with pytest.raises(Misconfigured) as refusal:
        load(at | beside | {name: value})
    line = str(refusal.value)
    assert line.startswith(name)
    assert "\n" not in line
    assert len(line) < 500
    assert name != "SECRET_KEY" or not value.strip("\0") or value not in line


def test_an_empty_setting_counts_as_absent(at: dict[str, str]) -> None:
    assert load(at | {name: "" for name in OURS if name != "ALLGONE_DATA_DIR"}) == load(at)


def test_a_data_folder_that_cannot_be_one_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for bad in (str(file), str(file / "below"), "a\0b", "x" * 300, "/proc/nobody/x"):
        with pytest.raises(Misconfigured, match=r"^ALLGONE_DATA_DIR"):
            load({"ALLGONE_DATA_DIR": bad})


@pytest.mark.parametrize("content", [b"", b" \n", b"\xff\xfe", b"short"])
def test_a_kept_secret_that_was_damaged_is_named_and_never_replaced(
    content: bytes, at: dict[str, str]
) -> None:
    """A new one would silently sign everybody out and lose what is sealed under the old one."""
    kept = load(at).data_dir / "secret.key"
    kept.write_bytes(content)
    with pytest.raises(Misconfigured, match=r"^ALLGONE_DATA_DIR: .*secret\.key"):
        load(at)
    assert kept.read_bytes() == content


def test_a_kept_secret_that_cannot_be_read_is_named(at: dict[str, str]) -> None:
    kept = load(at).data_dir / "secret.key"
    kept.unlink()
    kept.mkdir()
    with pytest.raises(Misconfigured, match=r"^ALLGONE_DATA_DIR: .*secret\.key"):
        load(at)


def test_every_setting_is_a_field_or_a_folder_of_the_object(at: dict[str, str]) -> None:
    fields = set(Settings.__dataclass_fields__)
    assert {name.lower().removeprefix("allgone_") for name in OURS} <= fields


def test_an_identity_provider_is_told_whole_and_named_by_its_host_unless_it_has_a_name(
    at: dict[str, str],
) -> None:
    assert load(at).oidc_issuer == load(at).oidc_name == ""
    told = {"OIDC_ISSUER": "https://id.example/realm/", "OIDC_CLIENT_ID": "here"}
    plain = load(at | told)
    assert (plain.oidc_issuer, plain.oidc_client_id) == ("https://id.example/realm/", "here")
    assert (plain.oidc_client_secret, plain.oidc_name) == ("", "id.example")
    whole = load(at | told | {"OIDC_CLIENT_SECRET": "hush hush", "OIDC_NAME": "Example ID"})
    assert (whole.oidc_client_secret, whole.oidc_name) == ("hush hush", "Example ID")
    assert "hush hush" not in repr(whole)
    assert load(at | told | {"OIDC_ISSUER": "http://127.0.0.1:9000"}).oidc_issuer == "http://127.0.0.1:9000"
    for missing, name in (("OIDC_CLIENT_ID", "OIDC_CLIENT_ID"), ("OIDC_ISSUER", "OIDC_CLIENT_ID")):
        with pytest.raises(Misconfigured, match=rf"^{name}"):
            load(at | {key: value for key, value in told.items() if key != missing})
    with pytest.raises(Misconfigured, match=r"^OIDC_NAME"):
        load(at | told | {"OIDC_NAME": "x" * 61})

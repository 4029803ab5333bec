"""The one frozen object that holds every setting (PRODUCT.md 2, "settings").

Read once at the start from the environment and `.env` (the environment wins). A value that is malformed, a
secret that cannot be read and a name that looks like ours but is not end the start with one line that names
it. Secrets are masked in `repr`, so that no log or traceback shows one.

| name | default | meaning |
|---|---|---|
| ALLGONE_DATA_DIR | var | folder of the embedded engines, objects and kept secrets |
| HOST, PORT | 127.0.0.1, 8000 | where the web process listens |
| DATABASE_URL | embedded | PostgreSQL; setting it switches the embedded one off |
| REDIS_URL | embedded | Redis or Valkey; setting it switches the embedded one off |
| OBJECT_STORE_URL | file in the data folder | `file:///…` or `s3://bucket/prefix` |
| SECRET_KEY | made and kept in the data folder | signs cursors and cookies, seals what is kept |
| PUBLIC_URL | http://HOST:PORT | what links and codes say; never the Host header |
| TRUSTED_PROXIES | 0 | how many proxies in front are believed about the client's address |
| OWNER_EMAIL | owner@localhost | who the first start makes |
| OIDC_ISSUER, OIDC_CLIENT_ID, OIDC_CLIENT_SECRET, OIDC_NAME | none | an identity provider that signs users in |
| IMPORT_MAX_MIB | 4096 | the largest export that the Import page takes |

Each secret is also read from the file that NAME_FILE names: DATABASE_URL, REDIS_URL, SECRET_KEY,
OIDC_CLIENT_SECRET and the AWS ones.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote, urlsplit

from dotenv import dotenv_values

from models import addresses
from models.errors import Misconfigured

OURS = (
    "ALLGONE_DATA_DIR",
    "HOST",
    "PORT",
    "DATABASE_URL",
    "REDIS_URL",
    "OBJECT_STORE_URL",
    "SECRET_KEY",
    "PUBLIC_URL",
    "TRUSTED_PROXIES",
    "OWNER_EMAIL",
    "OIDC_ISSUER",
    "OIDC_CLIENT_ID",
    "OIDC_CLIENT_SECRET",
    "OIDC_NAME",
    "IMPORT_MAX_MIB",
)
AWS_SECRETS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
SECRETS = ("DATABASE_URL", "REDIS_URL", "SECRET_KEY", "OIDC_CLIENT_SECRET", *AWS_SECRETS)
MIN_SECRET_LENGTH = 32


@dataclass(frozen=True)
class Settings:
    """What this process was told, checked. Paths are absolute; URLs are complete."""

    data_dir: Path
    host: str
    port: int
    database_url: str = field(repr=False)
    redis_url: str = field(repr=False)
    object_store_url: str
    secret_key: str = field(repr=False)
    public_url: str
    trusted_proxies: int
    owner_email: str
    oidc_issuer: str  # "" without a provider
    oidc_client_id: str
    oidc_client_secret: str = field(repr=False)
    oidc_name: str  # what the button says
    import_max_mib: int
    embedded_database: bool
    embedded_redis: bool
    aws: Mapping[str, str] = field(repr=False, default_factory=dict)

    @property
    def https(self) -> bool:
        """True when readers reach us by https, so that cookies are `Secure` exactly then."""
        return self.public_url.startswith("https://")


def load(environ: Mapping[str, str], env_file: Path | None = None) -> Settings:
    """The settings of `environ` laid over `env_file`; makes the data folder and SECRET_KEY when there are none.

    Raises Misconfigured, with one line that names the setting, for anything that cannot be used.
    """
    values = _gathered(environ, env_file)
    data_dir = _folder(values.get("ALLGONE_DATA_DIR") or "var")
    host = addresses.host(values.get("HOST") or "127.0.0.1")
    port = _integer("PORT", values.get("PORT") or "8000", 1, 65_535)
    return Settings(
        data_dir=data_dir,
        host=host,
        port=port,
        database_url=_database_url(values, data_dir),
        redis_url=_redis_url(values, data_dir),
        object_store_url=_object_store_url(values, data_dir),
        secret_key=_secret_key(values, data_dir),
        public_url=_public_url(values, host, port),
        trusted_proxies=_integer("TRUSTED_PROXIES", values.get("TRUSTED_PROXIES") or "0", 0, 10),
        owner_email=_email("OWNER_EMAIL", values.get("OWNER_EMAIL") or "owner@localhost"),
        **_provider(values),
        import_max_mib=_integer("IMPORT_MAX_MIB", values.get("IMPORT_MAX_MIB") or "4096", 1, 1 << 20),
        embedded_database=not values.get("DATABASE_URL"),
        embedded_redis=not values.get("REDIS_URL"),
        aws=_aws(values),
    )


def socket_folder(data_dir: Path) -> Path:
    """Where the embedded engines keep their Unix sockets: a path short enough for the 107 bytes of one.

    Inside the data folder when that is short; else under the system's folder for short-lived files, named
    by the owner and the data folder so that two data folders run side by side.
    """
    inside = data_dir / "run"
    # libpq reads a comma in `host` as a list, so such a folder is too long for it at any length.
    if len(os.fsencode(inside / ".s.PGSQL.5432.lock")) <= 100 and "," not in str(inside):
        return inside
    # /tmp and not TMPDIR: two terminals with different ones must find the same engines.
    name = sha256(os.fsencode(data_dir)).hexdigest()[:16]
    return Path("/tmp") / f"allgone-{os.getuid()}-{name}"  # noqa: S108  made 0700, ours, and no link, or refused


def kept_secret(path: Path, make: str) -> str:
    """The secret kept at `path`, or `make` written there (0600, whole or not at all) when there is none.

    Raises Misconfigured for one that cannot be read or was damaged: a new one in its place would lose, without
    a word, whatever was sealed or signed under the old one.
    """
    with suppress(FileNotFoundError):
        return _kept(path)
    try:
        temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(make)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(temporary, path)  # two first starts at once: one secret wins, both read it
        except FileExistsError:
            pass
        finally:
            temporary.unlink()
        return _kept(path)
    except OSError as fault:
        raise Misconfigured(
            f"ALLGONE_DATA_DIR: cannot keep a secret in {path.parent}: {fault.strerror}"
        ) from None


def _kept(path: Path) -> str:
    try:
        secret = path.read_text("ascii").strip()
    except FileNotFoundError:
        raise
    except (OSError, UnicodeDecodeError):
        secret = ""
    if len(secret) < MIN_SECRET_LENGTH:
        raise Misconfigured(f"ALLGONE_DATA_DIR: {path} cannot be read, or holds no secret; restore it")
    return secret


def _gathered(environ: Mapping[str, str], env_file: Path | None) -> dict[str, str]:
    values: dict[str, str] = {}
    if env_file is not None and env_file.is_file():
        for name, value in _lines(env_file).items():
            if not _known(name):
                raise Misconfigured(f"{env_file.name}: {name} is no setting of Allgone; see docs/settings.md")
            values[name] = value or ""
    for name, value in environ.items():
        if _known(name):
            values[name] = value
        elif name.startswith("ALLGONE_"):
            raise Misconfigured(f"{name} is no setting of Allgone; see docs/settings.md")
    for name in SECRETS:
        path = values.pop(f"{name}_FILE", "")
        if path and values.get(name):
            raise Misconfigured(f"{name} and {name}_FILE are both set; keep one")
        if path:
            try:
                values[name] = Path(path).read_text("utf-8").strip()
            except (OSError, UnicodeDecodeError) as fault:
                raise Misconfigured(f"{name}_FILE: cannot read {path}: {fault}") from None
    for name, value in values.items():
        if "\0" in value:
            raise Misconfigured(f"{name} holds a NUL character")
    return values


def _lines(env_file: Path) -> Mapping[str, str | None]:
    try:
        return dotenv_values(env_file)
    except (OSError, UnicodeDecodeError):
        raise Misconfigured(f"{env_file.name}: cannot be read as text") from None


def _known(name: str) -> bool:
    return name in OURS or name.startswith("AWS_") or name.removesuffix("_FILE") in SECRETS


def _folder(text: str) -> Path:
    try:
        path = Path(text).expanduser().resolve()
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
    except (OSError, RuntimeError, ValueError) as fault:
        raise Misconfigured(f"ALLGONE_DATA_DIR: {text!r} cannot be used as a folder: {fault}") from None
    return path


def _integer(name: str, text: str, low: int, high: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 9 and low <= int(text) <= high):
        raise Misconfigured(f"{name}: {text[:60]!r} is not a whole number from {low} to {high}")
    return int(text)


def _email(name: str, text: str) -> str:
    local, at, domain = text.partition("@")
    if (
        not (at and local and domain)
        or any(c.isspace() for c in text)
        or not text.isprintable()
        or len(text) > 254
    ):
        raise Misconfigured(f"{name}: {text[:60]!r} is not an e-mail address")
    return text


def _database_url(values: Mapping[str, str], data_dir: Path) -> str:
    given = values.get("DATABASE_URL")
    if given:
        return addresses.database_url(given)
    # The cluster's superuser and its kept password: SCRAM over a socket in a folder of the owner's.
    password = kept_secret(data_dir / "postgres.password", secrets.token_urlsafe(32))
    return f"postgresql+psycopg2://allgone:{password}@/allgone?host={quote(str(socket_folder(data_dir)))}"


def _redis_url(values: Mapping[str, str], data_dir: Path) -> str:
    given = values.get("REDIS_URL")
    if given:
        return addresses.redis_url(given)
    return f"unix://{quote(str(socket_folder(data_dir) / 'valkey.sock'))}"


def _object_store_url(values: Mapping[str, str], data_dir: Path) -> str:
    given = values.get("OBJECT_STORE_URL")
    return addresses.object_store_url(given) if given else (data_dir / "objects").as_uri()


def _secret_key(values: Mapping[str, str], data_dir: Path) -> str:
    given = values.get("SECRET_KEY")
    if not given:
        return kept_secret(data_dir / "secret.key", secrets.token_urlsafe(48))
    if len(given) < MIN_SECRET_LENGTH:
        raise Misconfigured(f"SECRET_KEY is shorter than {MIN_SECRET_LENGTH} characters")
    return given


def _public_url(values: Mapping[str, str], host: str, port: int) -> str:
    given = values.get("PUBLIC_URL")
    return addresses.public_url(given) if given else addresses.local_url(host, port)


def _provider(values: Mapping[str, str]) -> dict[str, str]:
    given = {name: values.get(name, "") for name in OURS if name.startswith("OIDC_")}
    if not given["OIDC_ISSUER"]:
        if others := [name for name, value in given.items() if value]:
            raise Misconfigured(f"{others[0]} is set and OIDC_ISSUER is not")
        return {name.lower(): "" for name in given}
    if not given["OIDC_CLIENT_ID"]:
        raise Misconfigured("OIDC_CLIENT_ID is not set, and OIDC_ISSUER is")
    given["OIDC_ISSUER"] = addresses.issuer(given["OIDC_ISSUER"])
    name = given["OIDC_NAME"] or str(urlsplit(given["OIDC_ISSUER"]).hostname)
    if not name.isprintable() or len(name) > 60:
        raise Misconfigured("OIDC_NAME is no name of at most 60 printable characters")
    return {key.lower(): value for key, value in {**given, "OIDC_NAME": name}.items()}


def _aws(values: Mapping[str, str]) -> dict[str, str]:
    held = {name: value for name, value in values.items() if name.startswith("AWS_")}
    for name, value in held.items():
        if name.startswith("AWS_ENDPOINT_URL") and value:
            parts = urlsplit(value)
            if parts.scheme not in {"http", "https"} or not parts.netloc:
                raise Misconfigured(f"{name} must start with http:// or https:// and name a host")
    return held

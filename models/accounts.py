"""Who may ask: tenants, principals, tokens, sign-in links and sign-ins.

A secret that we hand out (token, link, sign-in) is 32 random bytes; only its SHA-256 is kept, which is enough
for a secret nobody can guess, and makes a read of the database worth nothing to a thief.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256

from sqlalchemy import ARRAY, Boolean, ForeignKey, Index, Text, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Mapped, Session, mapped_column

from models.base import Base, Id, IdKey, database_time
from models.errors import Invalid, NotFound, Unauthorized
from models.ids import is_id, new_id

SCOPES = (
    "session.read",
    "session.write",
    "run.write",
    "approval.write",
    "artifact.read",
    "artifact.write",
    "memory.read",
    "memory.write",
)
LINK_LIFE = timedelta(minutes=10)
SIGN_IN_LIFE = timedelta(days=30)
TOKEN_PREFIX = "allgone_"  # noqa: S105  what secret scanners look for


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose a thing is: every verb of history takes one, so that no query forgets the principal."""

    tenant_id: str
    principal_id: str


class Tenant(Base):
    """An organisation; its name is unique."""

    __tablename__ = "tenants"
    id: Mapped[IdKey]
    name: Mapped[str] = mapped_column(Text, unique=True)
    created_at: Mapped[datetime]


class Principal(Base):
    """A user (or service) of a tenant, named by an e-mail address; one history and one home each."""

    __tablename__ = "principals"
    id: Mapped[IdKey]
    tenant_id: Mapped[str] = mapped_column(Id(), ForeignKey("tenants.id"), index=True)
    email: Mapped[str] = mapped_column(Text, unique=True)
    operator: Mapped[bool] = mapped_column(Boolean, default=False)
    # Keys the random bits of imported ids, so that a tombstone recognises a re-import and reveals nothing.
    import_secret: Mapped[bytes]
    device_id: Mapped[str] = mapped_column(Id())  # this account's home, as the device that records memories
    created_at: Mapped[datetime]

    @property
    def owner(self) -> Owner:
        return Owner(self.tenant_id, self.id)


class Token(Base):
    """A bearer token of `/v1`: its hash, its scopes, its end."""

    __tablename__ = "tokens"
    id: Mapped[IdKey]
    principal_id: Mapped[str] = mapped_column(Id(), ForeignKey("principals.id"), index=True)
    tenant_id: Mapped[str] = mapped_column(Id())  # beside the principal, so that asking takes one row
    name: Mapped[str] = mapped_column(Text, default="")
    hash: Mapped[bytes] = mapped_column(unique=True)
    scopes: Mapped[list[str]] = mapped_column(ARRAY(Text))
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]  # to the minute


class SignInLink(Base):
    """A one-time link: used once, within ten minutes."""

    __tablename__ = "sign_in_links"
    hash: Mapped[bytes] = mapped_column(primary_key=True)
    principal_id: Mapped[str] = mapped_column(Id(), ForeignKey("principals.id"), index=True)
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]


class SignIn(Base):
    """One browser that is signed in; revocable, unlike the cookie that names it."""

    __tablename__ = "sign_ins"
    id: Mapped[IdKey]
    principal_id: Mapped[str] = mapped_column(Id(), ForeignKey("principals.id"))
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None]
    __table_args__ = (Index("ix_sign_ins_principal_id", "principal_id"),)


def hashed(secret: str) -> bytes:
    """What is kept of a secret that was handed out: 32 bytes."""
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()


def create_user(
    db: Session, email: str, import_secret: bytes, *, tenant: str = "default", operator: bool = False
) -> Principal:
    """A new principal of `tenant`, which is made when it is new. `import_secret` is 32 random bytes.

    Raises Invalid("email") when the address is malformed or taken.
    """
    local, at, domain = email.partition("@")
    if not (at and local and domain) or len(email) > 254 or not email.isprintable() or " " in email:
        raise Invalid("email", f"{email!r} is not an e-mail address.")
    if not tenant.strip() or len(tenant) > 200 or not tenant.isprintable():
        raise Invalid("tenant", "A tenant's name has 1 to 200 printable characters.")
    if find_user(db, email) is not None:
        raise Invalid("email", f"{email} is already a user.")
    now = database_time(db)
    db.execute(insert(Tenant).values(id=new_id(), name=tenant, created_at=now).on_conflict_do_nothing())
    row = select(Tenant.id).where(Tenant.name == tenant)
    principal = Principal(
        id=new_id(),
        tenant_id=db.execute(row).scalar_one(),
        email=email,
        operator=operator,
        import_secret=import_secret,
        device_id=new_id(),
        created_at=now,
    )
    db.add(principal)
    db.flush()
    return principal


def find_user(db: Session, email: str) -> Principal | None:
    """The principal of that address, or None."""
    if not email.isprintable():  # such as a NUL or a lone surrogate, which the database cannot be asked about
        return None
    return db.execute(select(Principal).where(Principal.email == email)).scalar_one_or_none()


def user_named(db: Session, email: str) -> Principal:
    """The principal of that address; raises NotFound."""
    found = find_user(db, email)
    if found is None:
        raise NotFound(f"There is no user {email!r}.")
    return found


def create_token(
    db: Session,
    principal: Principal,
    secret: str,
    scopes: Sequence[str],
    *,
    name: str = "",
    expires_in: timedelta | None = None,
) -> Token:
    """A token for `principal` that the caller makes as TOKEN_PREFIX and 32 random bytes, and shows once.

    Raises Invalid for an unknown scope, none at all, or an end that is not ahead.
    """
    unknown = sorted(set(scopes) - set(SCOPES))
    if unknown or not scopes:
        raise Invalid("scope", f"A scope is one of {', '.join(SCOPES)}; not {', '.join(unknown) or 'none'}.")
    if expires_in is not None and not timedelta(0) < expires_in <= timedelta(days=3650):
        raise Invalid("expires_in", "A token's life is more than nothing and at most 3650 days.")
    if len(name) > 200 or not name.isprintable():
        raise Invalid("name", "A token's name has at most 200 printable characters.")
    now = database_time(db)
    token = Token(
        id=new_id(),
        principal_id=principal.id,
        tenant_id=principal.tenant_id,
        name=name,
        hash=hashed(secret),
        scopes=sorted(set(scopes)),
        created_at=now,
        expires_at=now + expires_in if expires_in is not None else None,
    )
    db.add(token)
    db.flush()
    return token


def tokens_of(db: Session, principal: Principal) -> Sequence[Token]:
    """Every token of a principal, revoked and expired ones too, oldest first."""
    return db.scalars(select(Token).where(Token.principal_id == principal.id).order_by(Token.id)).all()


def revoke_token(db: Session, token_id: str) -> Token:
    """Ends a token at once; again is no error. Raises NotFound."""
    token = db.get(Token, token_id) if is_id(token_id) else None
    if token is None:
        raise NotFound(f"There is no token {token_id!r}.")
    token.revoked_at = token.revoked_at or database_time(db)
    return token


def create_link(db: Session, principal: Principal, secret: str) -> SignInLink:
    """A sign-in link good once within ten minutes; `secret` is what its URL carries."""
    link = SignInLink(
        hash=hashed(secret), principal_id=principal.id, expires_at=database_time(db) + LINK_LIFE, used_at=None
    )
    db.add(link)
    db.flush()
    return link


def link_owner(db: Session, secret: str) -> Principal | None:
    """Whose sign-in an unused, unexpired link would be, without using it."""
    now = database_time(db)
    wanted = select(Principal).join(SignInLink, SignInLink.principal_id == Principal.id)
    usable = wanted.where(
        SignInLink.hash == hashed(secret), SignInLink.used_at.is_(None), SignInLink.expires_at > now
    )
    return db.execute(usable).scalar_one_or_none()


def use_link(db: Session, secret: str) -> SignIn:
    """Consumes a link and signs its principal in: of two that follow it at once, one succeeds.

    Raises Unauthorized when the link is unknown, used or over ten minutes old; all three alike.
    """
    now = database_time(db)
    taken = db.execute(
        update(SignInLink)
        .where(SignInLink.hash == hashed(secret), SignInLink.used_at.is_(None), SignInLink.expires_at > now)
        .values(used_at=now)
        .returning(SignInLink.principal_id)
    ).scalar_one_or_none()
    if taken is None:
        raise Unauthorized("This sign-in link was used already or is over 10 minutes old. Ask for a new one.")
    sign_in = SignIn(id=new_id(), principal_id=taken, created_at=now, expires_at=now + SIGN_IN_LIFE)
    db.add(sign_in)
    db.flush()
    return sign_in


def signed_in(db: Session, sign_in_id: str) -> Principal | None:
    """The principal of a sign-in that is neither expired nor revoked."""
    if not is_id(sign_in_id):
        return None
    live = (
        select(Principal)
        .join(SignIn, SignIn.principal_id == Principal.id)
        .where(
            SignIn.id == sign_in_id,
            SignIn.revoked_at.is_(None),
            SignIn.expires_at > database_time(db),
        )
    )
    return db.execute(live).scalar_one_or_none()


def sign_out(db: Session, sign_in_id: str) -> None:
    """Revokes a sign-in at once; again, or of an unknown one, is no error."""
    if is_id(sign_in_id):
        db.execute(
            update(SignIn)
            .where(SignIn.id == sign_in_id, SignIn.revoked_at.is_(None))
            .values(revoked_at=database_time(db))
        )

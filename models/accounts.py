"""Who may ask: tenants, principals and tokens. How a browser signs in is `models/sign_ins.py`.

A secret that we hand out (token, link, sign-in) is 32 random bytes; only its SHA-256 is kept, which is enough
for a secret nobody can guess, and makes a read of the database worth nothing to a thief.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256

from sqlalchemy import ARRAY, Boolean, ForeignKey, Index, Text, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Mapped, Session, mapped_column

from models.base import Base, Id, IdKey, database_time
from models.errors import Invalid, InvalidState, NotFound, Unauthorized
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
TOKENS_MAX = 100  # live ones of one principal
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
    # When its holder closed the account; its row stays, without an address, so that a restored backup can be told.
    closed_at: Mapped[datetime | None]
    emptied_at: Mapped[datetime | None]  # when nothing of it was left
    emptying_until: Mapped[datetime | None]  # the lease of the job that empties it (models/closing.py)
    __table_args__ = (
        # What is to be emptied is found at once among any number of users.
        Index(
            "ix_principals_emptying",
            "closed_at",
            postgresql_where=text("closed_at IS NOT NULL AND emptied_at IS NULL"),
        ),
    )

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

    def alive(self, now: datetime) -> bool:
        """Whether it lets anybody in at that moment."""
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > now)


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
    mine = select(Principal).where(Principal.email == email, Principal.closed_at.is_(None))
    return db.execute(mine).scalar_one_or_none()


def set_operator(db: Session, principal: Principal, operator: bool) -> None:
    """Whether a principal may see the operator's pages. Raises InvalidState("last_operator") for the last one."""
    others = select(Principal.id).where(
        Principal.operator, Principal.closed_at.is_(None), Principal.id != principal.id
    )
    if principal.operator and not operator and not db.scalars(others.with_for_update()).all():
        raise InvalidState("last_operator", "This is the last operator. Make another one first.")
    principal.operator = operator
    db.flush()


def user_named(db: Session, email: str) -> Principal:
    """The principal of that address; raises NotFound."""
    found = find_user(db, email)
    if found is None:
        raise NotFound(f"There is no user {email!r}.")
    return found


def hold_open(db: Session, principal_id: str) -> None:
    """Keeps an account from being closed until the transaction ends: for whatever lets somebody in.

    Raises Unauthorized when it was closed, also when that happened a moment ago.
    """
    # KEY SHARE, as a foreign key takes it: it waits for `closing.close`, and then sees what that wrote.
    wanted = select(Principal.closed_at).where(Principal.id == principal_id)
    row = db.execute(wanted.with_for_update(read=True, key_share=True)).one_or_none()
    if row is None or row[0] is not None:
        raise Unauthorized("This account was closed.")


def create_token(
    db: Session,
    principal: Principal,
    secret: str,
    scopes: Sequence[str],
    *,
    name: str = "",
    expires_in: timedelta | None = None,
    token_id: str | None = None,
) -> Token:
    """A token for `principal` that the caller makes as TOKEN_PREFIX and 32 random bytes, and shows once.

    `token_id` is given by a form that must not make a second token when a browser sends it again.
    Raises Invalid for an unknown scope, none at all, or an end that is not ahead; InvalidState("made_already")
    for an id that is taken, InvalidState("too_many") at TOKENS_MAX live ones.
    """
    unknown = sorted(set(scopes) - set(SCOPES))
    if unknown or not scopes:
        raise Invalid("scope", f"A scope is one of {', '.join(SCOPES)}; not {', '.join(unknown) or 'none'}.")
    if expires_in is not None and not timedelta(0) < expires_in <= timedelta(days=3650):
        raise Invalid("expires_in", "A token's life is more than nothing and at most 3650 days.")
    if len(name) > 200 or not name.isprintable():
        raise Invalid("name", "A token's name has at most 200 printable characters.")
    hold_open(db, principal.id)
    if token_id is not None and (not is_id(token_id) or db.get(Token, token_id) is not None):
        raise InvalidState("made_already", "This form was sent already: its token was made, and shown then.")
    now = database_time(db)
    if sum(one.alive(now) for one in tokens_of(db, principal)) >= TOKENS_MAX:
        raise InvalidState("too_many", f"{TOKENS_MAX} tokens are live. Revoke one that you no longer use.")
    token = Token(
        id=token_id or new_id(),
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


def revoke_token(db: Session, token_id: str, *, of: Owner | None = None) -> Token:
    """Ends a token (of one principal, when named) at once; again is no error. Raises NotFound."""
    token = db.get(Token, token_id) if is_id(token_id) else None
    if token is None or (of is not None and token.principal_id != of.principal_id):
        raise NotFound(f"There is no token {token_id!r}.")
    token.revoked_at = token.revoked_at or database_time(db)
    return token

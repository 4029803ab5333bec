"""How a browser is signed in: by a link that works once, by a password, or by an identity provider.

A *sign-in* is one browser that is signed in. It remembers how it began, in which browser, and when its holder last
proved who they are: a link that one makes for another device hands that moment on, so that a browser left open
cannot make itself look fresh.

| verb | does |
|---|---|
| create_link, use_link | a link: made, and followed once |
| begin | a sign-in, however its holder proved who they are |
| signed_in, sign_ins_of | who that is; where else they are |
| sign_out, sign_out_elsewhere | ends one; ends all others, and the links that nobody followed |
| expire | forgets what has been over for a month |
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, ForeignKey, Index, Text, delete, func, or_, select, update
from sqlalchemy.orm import Mapped, Session, mapped_column

from models.accounts import Owner, Principal, hashed, hold_open
from models.base import Base, Id, IdKey, database_time
from models.errors import InvalidState, NotFound, Unauthorized
from models.ids import is_id, new_id

LINK, PASSWORD, PROVIDER = METHODS = ("link", "password", "provider")
LINK_LIFE = timedelta(minutes=10)
SIGN_IN_LIFE = timedelta(days=30)
FRESH = timedelta(minutes=15)  # how long a proof of who one is counts for changing how one signs in
LINKS_MAX = 20  # unused ones of one principal
KEPT = timedelta(days=30)  # of sign-ins that are over


class SignInLink(Base):
    """A one-time link: used once, within ten minutes. `method` is how its user had proved who they are."""

    __tablename__ = "sign_in_links"
    hash: Mapped[bytes] = mapped_column(primary_key=True)
    id: Mapped[str] = mapped_column(Id(), unique=True)
    principal_id: Mapped[str] = mapped_column(Id(), ForeignKey("principals.id"), index=True)
    method: Mapped[str] = mapped_column(Text)
    proved_at: Mapped[datetime | None]  # NULL: following the link is the proof
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]


class SignIn(Base):
    """One browser that is signed in; revocable, unlike the cookie that names it."""

    __tablename__ = "sign_ins"
    id: Mapped[IdKey]
    principal_id: Mapped[str] = mapped_column(Id(), ForeignKey("principals.id"))
    method: Mapped[str] = mapped_column(Text)
    browser: Mapped[str] = mapped_column(Text)  # such as "Firefox on Linux"; "" when it did not say
    created_at: Mapped[datetime]
    proved_at: Mapped[datetime]  # when its holder last proved who they are
    seen_at: Mapped[datetime]  # when it last opened a page, to five minutes
    expires_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None]
    __table_args__ = (Index("ix_sign_ins_principal_id", "principal_id"),)

    def fresh(self, now: datetime) -> bool:
        """Whether its holder proved who they are lately enough to change how they sign in."""
        return now - self.proved_at <= FRESH


def create_link(
    db: Session,
    principal: Principal,
    secret: str,
    *,
    link_id: str | None = None,
    method: str = LINK,
    proved_at: datetime | None = None,
) -> SignInLink:
    """A sign-in link good once within ten minutes; `secret` is what its URL carries.

    `link_id` is given by a form that must not make a second link when a browser sends it again. Raises
    InvalidState("made_already") for one that is taken, InvalidState("too_many") at LINKS_MAX unused links.
    """
    hold_open(db, principal.id)
    if link_id is not None:
        taken = select(SignInLink.id).where(SignInLink.id == link_id)
        if not is_id(link_id) or db.execute(taken).first():
            raise InvalidState(
                "made_already", "This form was sent already: its link was made, and shown then."
            )
        if len(links_of(db, principal.owner)) >= LINKS_MAX:
            raise InvalidState("too_many", f"{LINKS_MAX} links wait to be used. Revoke one, or wait.")
    link = SignInLink(
        hash=hashed(secret),
        id=link_id or new_id(),
        principal_id=principal.id,
        method=method,
        proved_at=proved_at,
        expires_at=database_time(db) + LINK_LIFE,
        used_at=None,
    )
    db.add(link)
    db.flush()
    return link


def links_of(db: Session, owner: Owner) -> Sequence[SignInLink]:
    """The links that can still be followed, oldest first; those that only hold a sign-in back are not shown."""
    mine = select(SignInLink).where(SignInLink.principal_id == owner.principal_id, SignInLink.method == LINK)
    usable = mine.where(SignInLink.used_at.is_(None), SignInLink.expires_at > database_time(db))
    return db.scalars(usable.order_by(SignInLink.expires_at)).all()


def revoke_link(db: Session, owner: Owner, link_id: str) -> None:
    """Takes a link back at once. Raises NotFound for one that is not there, was used, or is somebody else's."""
    mine = (
        SignInLink.id == link_id,
        SignInLink.principal_id == owner.principal_id,
        SignInLink.used_at.is_(None),
    )
    gone = (
        db.execute(delete(SignInLink).where(*mine).returning(SignInLink.id)).first()
        if is_id(link_id)
        else None
    )
    if gone is None:
        raise NotFound("There is no such link. It may have been used or be over.")


def link_owner(db: Session, secret: str) -> Principal | None:
    """Whose sign-in an unused, unexpired link would be, without using it."""
    now = database_time(db)
    wanted = select(Principal).join(SignInLink, SignInLink.principal_id == Principal.id)
    usable = wanted.where(
        SignInLink.hash == hashed(secret), SignInLink.used_at.is_(None), SignInLink.expires_at > now
    )
    return db.execute(usable).scalar_one_or_none()


def use_link(db: Session, secret: str, browser: str = "") -> SignIn:
    """Consumes a link and signs its principal in: of two that follow it at once, one succeeds.

    Raises Unauthorized when the link is unknown, used or over ten minutes old; all three alike.
    """
    # The account before the link, as a closing takes them.
    whose = db.execute(select(SignInLink.principal_id).where(SignInLink.hash == hashed(secret)))
    if (principal_id := whose.scalar_one_or_none()) is not None:
        hold_open(db, principal_id)
    now = database_time(db)
    taken = db.execute(
        update(SignInLink)
        .where(SignInLink.hash == hashed(secret), SignInLink.used_at.is_(None), SignInLink.expires_at > now)
        .values(used_at=now)
        .returning(SignInLink.principal_id, SignInLink.method, SignInLink.proved_at)
    ).one_or_none()
    if taken is None:
        raise Unauthorized("This sign-in link was used already or is over 10 minutes old. Ask for a new one.")
    return begin(db, taken[0], taken[1], browser, proved_at=taken[2])


def begin(
    db: Session, principal_id: str, method: str, browser: str, *, proved_at: datetime | None = None
) -> SignIn:
    """A new sign-in of a principal who has just proved who they are, or did so at `proved_at`.

    Raises Unauthorized when the account was closed.
    """
    hold_open(db, principal_id)
    now = database_time(db)
    sign_in = SignIn(
        id=new_id(),
        principal_id=principal_id,
        method=method,
        browser=browser[:60],
        created_at=now,
        proved_at=proved_at or now,
        seen_at=now,
        expires_at=now + SIGN_IN_LIFE,
    )
    db.add(sign_in)
    db.flush()
    return sign_in


def signed_in(db: Session, sign_in_id: str) -> Principal | None:
    """The principal of a sign-in that is neither expired nor revoked."""
    if not is_id(sign_in_id):
        return None
    wanted = select(Principal).join(SignIn, SignIn.principal_id == Principal.id)
    return db.execute(wanted.where(SignIn.id == sign_in_id, *_live(db))).scalar_one_or_none()


def sign_ins_of(db: Session, owner: Owner) -> Sequence[SignIn]:
    """Every browser in which a principal is signed in now, the last seen first."""
    mine = select(SignIn).where(SignIn.principal_id == owner.principal_id, *_live(db))
    return db.scalars(mine.order_by(SignIn.seen_at.desc(), SignIn.id.desc())).all()


def sign_out(db: Session, sign_in_id: str, *, of: Owner | None = None) -> bool:
    """Revokes a sign-in (of one principal, when named) at once; False when there was none to revoke."""
    if not is_id(sign_in_id):
        return False
    wanted = update(SignIn).where(SignIn.id == sign_in_id, SignIn.revoked_at.is_(None))
    if of is not None:
        wanted = wanted.where(SignIn.principal_id == of.principal_id)
    done = db.execute(wanted.values(revoked_at=database_time(db)).returning(SignIn.id))
    return done.first() is not None


def sign_out_elsewhere(db: Session, owner: Owner, here: str | None) -> int:
    """Revokes every sign-in of a principal but `here`, and every link not yet followed; returns how many browsers."""
    now = database_time(db)
    others = (SignIn.principal_id == owner.principal_id, SignIn.revoked_at.is_(None), SignIn.expires_at > now)
    revoke = update(SignIn).where(*others).values(revoked_at=now).returning(SignIn.id)
    if here is not None:
        revoke = revoke.where(SignIn.id != here)
    ended = db.execute(revoke).all()
    unused = (SignInLink.principal_id == owner.principal_id, SignInLink.used_at.is_(None))
    db.execute(delete(SignInLink).where(*unused))
    return len(ended)


def expire(db: Session) -> None:
    """Forgets links that are over, and sign-ins that have been over for a month."""
    now = database_time(db)
    db.execute(delete(SignInLink).where(SignInLink.expires_at < now))
    over = func.least(SignIn.expires_at, func.coalesce(SignIn.revoked_at, SignIn.expires_at))
    db.execute(delete(SignIn).where(or_(over < now - KEPT)))


def _live(db: Session) -> tuple[ColumnElement[bool], ...]:
    return (SignIn.revoked_at.is_(None), SignIn.expires_at > database_time(db))

"""The Account page, and the questions that it asks before something that cannot be undone.

Every form of it posts and comes back here: by a redirect with a word of `DONE`, or as the page itself with what was
wrong beside the field. `shown` is a secret that was just made; it is in that one answer, which no cache keeps.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from flask import Response, make_response, redirect, render_template, request, url_for
from werkzeug.wrappers import Response as BaseResponse

from blueprints import access, days
from blueprints.account.routes import account
from blueprints.database import resources, transaction
from blueprints.sidebar import listed
from models import accounts, sign_ins, ways
from models.accounts import SCOPES
from models.base import database_time
from models.ids import new_id

account.add_app_template_filter(lambda at: days.dated(at, days.zone()), "day")

# What each scope lets a program do, in the reader's words.
SCOPE_WORDS = {
    "session.read": "Read your conversations, their runs and approvals",
    "session.write": "Open and delete conversations",
    "run.write": "Start and stop runs, and write what happens in them",
    "approval.write": "Decide approvals in your name",
    "artifact.read": "Download files",
    "artifact.write": "Add files",
    "memory.read": "Read your memories",
    "memory.write": "Add and delete memories",
}
LIVES = (("30", "30 days"), ("90", "90 days"), ("365", "One year"), ("", "No end"))
LIFE = "90"  # what the form offers first
ENDED_SHOWN = 20
METHOD_WORDS = {
    sign_ins.LINK: "By a link",
    sign_ins.PASSWORD: "With your password",
    sign_ins.PROVIDER: "Through your provider",
}
# What the page says after a redirect, and in which part of it.
DONE = {
    "token-revoked": ("tokens", "The token is revoked. Whatever used it is refused from now on."),
    "link-revoked": ("links", "The link is taken back. It signs nobody in."),
    "signed-out": ("browsers", "That browser is signed out."),
    "signed-out-elsewhere": (
        "browsers",
        "Every other browser is signed out, and links that nobody had followed are taken back.",
    ),
    "identity-linked": ("provider", "The account is linked. It signs you in from now on."),
    "identity-unlinked": ("provider", "The account is unlinked. It signs you in no longer."),
    "password-set": ("password", "Your password is set. You can sign in with it from now on."),
    "password-changed": (
        "password",
        "Your password is changed. Every other browser is signed out; tokens go on working.",
    ),
    "password-removed": ("password", "Your password is removed. You sign in by a link."),
}


@account.get("/account")
@access.signed_in_only
def page() -> str:
    """The page; `?done=` says what was just done."""
    return rendered(done=DONE.get(request.args.get("done", "")))


@account.get("/account/<any(tokens,links,browsers,password,identities):part>")
@access.signed_in_only
def part_of_page(part: str) -> BaseResponse:
    """The address of a form, opened by hand or after a reload: the page itself. Nothing is shown or made again."""
    return redirect(url_for("account.page", _anchor=part), 303)


def rendered(**told: Any) -> str:
    """The page as it stands now. `told` is what this answer adds: shown, faults, values, done."""
    owner = access.owner()
    with transaction() as db:
        now = database_time(db)
        principal = db.get_one(accounts.Principal, owner.principal_id)
        tokens = accounts.tokens_of(db, principal)
        here = db.get(sign_ins.SignIn, access.signed_in_id())
        context = {
            "principal": principal,
            "tokens": [one for one in tokens if one.alive(now)],
            "ended": [one for one in reversed(tokens) if not one.alive(now)][:ENDED_SHOWN],
            "links": sign_ins.links_of(db, owner),
            "browsers": sign_ins.sign_ins_of(db, owner),
            "here": access.signed_in_id(),
            "fresh": here is not None and here.fresh(now),
            "provider": resources().settings.oidc_name,
            "identities": ways.identities_of(db, owner),
            "password": ways.password_of(db, owner.principal_id),
        }
        return render_template(
            "account/page.html",
            **{"done": None, "shown": None, "faults": {}, "values": {}, **context, **told},
            words=SCOPE_WORDS,
            scopes=[(scope, SCOPE_WORDS[scope]) for scope in SCOPES],
            lives=LIVES,
            life=LIFE,
            methods=METHOD_WORDS,
            once=new_id(),
            **listed(owner),
        )


def answered(status: int = 200, **told: Any) -> Response:
    """The page as the answer to a form. Browsers keep none of it: every answer is `no-store` (headers.py)."""
    return make_response(rendered(**told), status)


def back(part: str, done: str) -> BaseResponse:
    """To the page, which says what was done."""
    return redirect(url_for("account.page", done=done, _anchor=part), 303)


def question(
    title: str, sentences: list[str], action: str, button: str, *, name: str = "", part: str = ""
) -> str:
    """A question before something that cannot be undone: for the page's dialog, or as a page of its own.

    `name` is somebody's text that the question is about.
    """
    template = "account/_question.html" if request.headers.get("HX-Request") else "account/question.html"
    return render_template(
        template, title=title, sentences=sentences, action=action, button=button, name=name, part=part
    )


def ended_at(token: accounts.Token) -> datetime | None:
    """When a token that is over ended."""
    ends = [at for at in (token.revoked_at, token.expires_at) if at is not None]
    return min(ends) if ends else None

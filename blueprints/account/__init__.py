"""A reader's own account, and signing in (PRODUCT.md 7, "Sign-in link" and "Account page").

| route | does |
|---|---|
| `GET /sign-in` | every way in that this installation has |
| `GET /sign-in/<secret>` | follows a one-time link |
| `POST /sign-in` | the answer to "sign in as someone else?" |
| `POST /sign-in/password` | signs in by address and password |
| `GET /sign-in/provider`, `…/answer` | to an identity provider, and back from it |
| `POST /sign-out` | ends this browser's sign-in |
| `GET /account` | the page: tokens, links, browsers, password, closing |
| `POST /account/tokens`, `…/<id>/revoke` | makes a token, shown in the answer and never again; ends one |
| `POST /account/links`, `…/<id>/revoke` | makes a link for another device, likewise; takes one back |
| `POST /account/browsers/<id>/sign-out`, `/account/browsers/sign-out` | ends one sign-in; all but this one |
| `POST /account/password`, `…/remove` | sets, changes, removes the password |
| `POST /account/identities`, `…/<id>/unlink` | links an account at the provider, once confirmed; unlinks it |
| `GET`, `POST /account/close`; `GET /closed/<receipt>` | closes the account; says what is left of it |

Everything that changes something is a POST with a CSRF token, and has a page that asks first where it cannot be
undone. A form that makes a secret carries the id of what it makes, so that a browser that sends it again makes
nothing.
"""

from blueprints.account import browsers, closing, identities, links, page, password, sign_in, tokens
from blueprints.account.routes import account

__all__ = ["account", "browsers", "closing", "identities", "links", "page", "password", "sign_in", "tokens"]

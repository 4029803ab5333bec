"""The Import page: a file in, how far it is, what became of it, and all of it undone (PRODUCT.md 6).

| route | answers |
|---|---|
| `GET /import` | the page: a place for a file, and the imports so far |
| `POST /import` | takes a form with a file, streamed; 303 to its import, or `HX-Redirect` |
| `POST /import/example` | a conversation of ours, imported at once; 303 to it |
| `GET /import/<id>` | one import: progress, then result |
| `GET /import/<id>/progress` | that part of it; 204 while it is as shown (`?seen=`) |
| `POST /import/<id>/stop`, `/again`, `/forget` | ends it; imports the kept file once more; takes it off the list |
| `GET /import/<id>/undo` | what an undo would remove, and the question |
| `POST /import/<id>/undo` | queues the undo |

htmx gets a part, a browser without scripts a whole page, from the same route by one test of `HX-Request`.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

from flask import Blueprint, Response, current_app, make_response, redirect, render_template, request, url_for
from sqlalchemy.orm import Session
from werkzeug.wrappers import Response as BaseResponse

from blueprints import access
from blueprints.database import resources, transaction
from blueprints.errors import answer
from blueprints.multipart import Form, read_form
from blueprints.sidebar import listed
from models import import_requests
from models.accounts import Owner
from models.bytestore import StoreFault
from models.errors import Invalid, Refusal
from models.imports import FAILURES_MAX, Import
from tasks.imports import jobs
from tasks.imports.arriving import arrive
from tasks.outbox import drain_later

EXAMPLE = Path(jobs.__file__).with_name("example.json")
FEW = 5  # conversations named on an import's page
DRAINED = 32 * 1024 * 1024  # bytes of a refused form that are read, so that its sender hears why
FORMATS = {
    "chatgpt": "ChatGPT",
    "claude": "Claude",
    "openwebui": "Open WebUI",
    "sharegpt": "ShareGPT-style",
    "oasst": "OpenAssistant",
}
NO_FILE = (
    "No file was chosen, so nothing was imported. Choose the file that the export gave you, then try again."
)
FULL = (
    "The file could not be kept: the store of this server is full or does not answer. Nothing was imported, and "
    "nothing here was changed. Try again later, or tell whoever runs this server."
)

imports = Blueprint("imports", __name__, url_prefix="/import")


@imports.get("")
@access.signed_in_only
def page() -> str:
    """The Import page."""
    return _page()


@imports.post("")
@access.signed_in_only
def receive() -> Response | BaseResponse:
    """Takes a file in and queues its import. Raises Refusal; where no script runs, the page says why it was refused."""
    owner = access.owner()
    try:
        import_id = _receive(owner)
    except Refusal as refusal:
        _drain()
        if request.headers.get("HX-Request"):
            raise
        return make_response(
            _page(refusal.detail), answer(refusal.code, refusal.detail, refusal.details).status_code
        )
    except StoreFault:
        _drain()
        if request.headers.get("HX-Request"):
            return answer("internal", FULL, {"retry_after": 60}, 503)
        return make_response(_page(FULL), 503)
    jobs.work_later(resources(), import_id)
    return _to(".one", import_id=import_id)


@imports.post("/example")
@access.signed_in_only
def example() -> BaseResponse:
    """Imports the example at once, as any file is, and leads to it."""
    owner = access.owner()
    with transaction() as db:
        import_requests.refuse_many(db, owner)
        made = import_requests.create(
            db,
            owner.principal_id,
            kind="example",
            file_name="Example conversation",
            size=EXAMPLE.stat().st_size,
            again=True,
        )
        import_id = made.id
    jobs.work_on(resources(), import_id, EXAMPLE)
    with transaction() as db:
        found = import_requests.example(db, owner)
    if found is None:
        return _to(".one", import_id=import_id)
    return _to("talk.page", session_id=found)


@imports.get("/<import_id>")
@access.signed_in_only
def one(import_id: str) -> str:
    """One import: how far it is, or what became of it. Raises NotFound."""
    owner = access.owner()
    with transaction() as db:
        return render_template("import/one.html", **_told(db, owner, import_id), **listed(owner))


@imports.get("/<import_id>/progress")
@access.signed_in_only
def progress(import_id: str) -> str | Response:
    """The part of that page which changes. Raises NotFound."""
    with transaction() as db:
        told = _told(db, access.owner(), import_id)
        if request.args.get("seen") == told["stamp"]:
            return Response(status=204)
        return render_template("import/_live.html", **told)


@imports.post("/<import_id>/stop")
@access.signed_in_only
def stop(import_id: str) -> BaseResponse:
    """Asks an import, or an undo, to end where it is. Raises NotFound."""
    with transaction() as db:
        import_requests.cancel(db, access.owner(), import_id)
    drain_later(resources())
    return _to(".one", import_id=import_id)


@imports.post("/<import_id>/again")
@access.signed_in_only
def again(import_id: str) -> BaseResponse:
    """Imports the same file once more; with `deleted`, what was deleted here as well. Raises NotFound, InvalidState."""
    with transaction() as db:
        deleted = bool(request.form.get("deleted"))
        made = import_requests.repeat(db, access.owner(), import_id, again=deleted).id
    jobs.work_later(resources(), made)
    return _to(".one", import_id=made)


@imports.get("/<import_id>/undo")
@access.signed_in_only
def ask(import_id: str) -> str:
    """What an undo would remove, and the question. Raises NotFound."""
    owner = access.owner()
    with transaction() as db:
        told = {
            "row": import_requests.find(db, owner, import_id),
            "left": import_requests.made_by(db, owner, import_id),
            "continued": import_requests.continued(db, owner, import_id),
        }
        part = "_" if request.headers.get("HX-Request") else ""
        return render_template(f"import/{part}undo.html", **told)


@imports.post("/<import_id>/undo")
@access.signed_in_only
def undo(import_id: str) -> BaseResponse:
    """Queues the removal of what this import made. Raises NotFound, InvalidState."""
    with transaction() as db:
        import_requests.begin_undo(db, access.owner(), import_id)
    jobs.work_later(resources(), import_id)
    return _to(".one", import_id=import_id)


@imports.post("/<import_id>/forget")
@access.signed_in_only
def forget(import_id: str) -> BaseResponse:
    """Takes an import off the list, with its file where that is still kept. Raises NotFound, InvalidState."""
    with transaction() as db:
        import_requests.forget(db, access.owner(), import_id)
    drain_later(resources())
    return _to(".page")


@imports.app_template_filter("number")
def number(count: int) -> str:
    """A count in words: "1,204"."""
    return f"{count:,}"


@imports.app_template_global("import_max")
def import_max() -> int:
    """The largest file that is taken, in bytes."""
    return resources().settings.import_max_mib << 20


@imports.app_template_filter("export_format")
def export_format(name: str | None) -> str:
    """The kind of export in words; "" for one that is not known."""
    return FORMATS.get(name or "", "")


def _receive(owner: Owner) -> str:
    most = import_max()
    size = current_app.jinja_env.filters["size"]
    too_large = (
        f"This file is larger than this server takes, which is {size(most)}. Nothing was imported. Some exports can be "
        "asked for in parts; whoever runs this server can raise the bound, or import the file by the command line."
    )
    form = _checked(read_form(request, most, too_large))
    return arrive(resources(), owner, form.file_name, form.chunks, again=bool(form.fields.get("again")))


def _checked(form: Form) -> Form:
    access.check_form(form.fields.get("csrf_token", ""))
    if not form.file_name:
        raise Invalid("file", NO_FILE)
    return form


def _drain() -> None:
    """Reads on in a refused form, within reason: a connection that is closed under a sender loses the answer."""
    left = DRAINED
    try:
        while left > 0 and (data := request.stream.read(256 * 1024)):
            left -= len(data)
    except Exception:  # noqa: BLE001  whatever it is, the answer is another
        return


def _page(fault: str = "") -> str:
    owner = access.owner()
    with transaction() as db:
        told = {
            "rows": import_requests.listed(db, owner),
            "deleted_some": import_requests.deleted_some(db, owner),
        }
        return render_template("import/page.html", fault=fault, **told, **listed(owner))


def _told(db: Session, owner: Owner, import_id: str) -> dict[str, Any]:
    row = import_requests.find(db, owner, import_id)
    told: dict[str, Any] = {"row": row, "failures_max": FAILURES_MAX, "left": 0, "newest": (), "failures": ()}
    told["ahead"] = import_requests.ahead(db, row) if row.state == "queued" else 0
    if row.over:
        told["left"] = import_requests.made_by(db, owner, import_id)
        told["newest"] = import_requests.newest(db, owner, import_id, FEW)
        told["failures"] = import_requests.failures(db, import_id)
        # What was read whole and could not be written may be written at another time; what is damaged stays so.
        told["retry"] = any(one.session_id for one in told["failures"])
    # Of what the page shows while it is watched; the page itself has a fresh token for its forms each time.
    shown = (
        row.state,
        told["ahead"],
        row.cancel_requested,
        row.error,
        row.position,
        row.total,
        row.done,
        row.removed,
    )
    return {**told, "stamp": sha256(repr(shown).encode()).hexdigest()[:16], "said": _said(row)}


def _said(row: Import) -> str:
    """What is announced when it is over."""
    match row.state:
        case "done":
            return (
                f"Import finished. {number(row.imported)} of {number(row.total)} conversations were imported."
            )
        case "failed":
            return "This import did not succeed."
        case "stopped":
            return "Import stopped. What was imported until then stays."
        case "undone":
            return f"Import undone. {number(row.removed)} conversations were deleted."
        case _:
            return ""


def _to(endpoint: str, **values: Any) -> BaseResponse:
    there = url_for(endpoint, **values)
    if request.headers.get("HX-Request"):
        response = make_response("", 200)
        response.headers["HX-Redirect"] = there
        return response
    return redirect(there, 303)

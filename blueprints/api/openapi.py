"""The OpenAPI 3.1 document of `/v1` and its readable page, both written out of the declarations that validate.

They need no token, and are not counted among the sixteen.
"""

from __future__ import annotations

from functools import cache
from http import HTTPStatus
from typing import Any

import orjson
from flask import Blueprint, Response, render_template
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from blueprints.api import views
from blueprints.api.artifacts import OCTETS
from blueprints.api.contract import OPERATIONS, Operation, View
from blueprints.errors import STATUS
from models.accounts import SCOPES

VERSION = "0.2.0"
EVERYWHERE = ("unauthorized", "forbidden")
PROBLEM = {"$ref": "#/components/schemas/Problem"}
HEADERS = {  # what each is for, and its schema; Accept is said by `content`, and OpenAPI ignores it as a parameter
    "Idempotency-Key": (
        "The same key gives the same conversation for 24 hours.",
        {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]+$"},
    ),
    "Last-Event-ID": (
        "The stream resumes above this seq; a page starts where `after` says.",
        {"type": "string", "pattern": "^[0-9]{0,18}$"},
    ),
    "Range": ("One range of bytes; what is no such range is answered with the whole.", {"type": "string"}),
}
LINKS = {  # what an id of an answer is good for: operation → (parameter of a path, place in the answer, operations)
    "create_session": (
        "session_id",
        "/id",
        ("show_session", "list_events", "start_run", "create_artifact", "delete_session"),
    ),
    "start_run": ("run_id", "/id", ("show_run", "append_events", "cancel_run")),
    "create_artifact": ("artifact_id", "/id", ("read_artifact",)),
    "create_memory": ("memory_id", "/id", ("delete_memory",)),
    "list_approvals": ("approval_id", "/data/0/id", ("decide_approval",)),
}
NOTES = {
    "too_large": "A body over its bound.",
    "invalid": "A value that is not what its place needs; `details.field` names it.",
    "invalid_cursor": "A cursor that was not given to this caller.",
    "invalid_state": "Not now; `details.reason` says why.",
    "not_found": "Missing, deleted or somebody else's: they cannot be told apart.",
    "unauthorized": "No token, or one that is unknown, expired or revoked.",
    "forbidden": "The token lacks the scope.",
    "rate_limited": "Too many attempts; `Retry-After` says how long to wait.",
}

openapi = Blueprint("openapi", __name__, url_prefix="/v1")


@openapi.get("/openapi.json")
def document_json() -> Response:
    """The document."""
    return Response(document_bytes(), content_type="application/json")


@openapi.get("/docs")
def reference() -> str:
    """The readable page."""
    return render_template("reference.html", document=document())


def document_bytes() -> bytes:
    """The document as it is committed in docs/openapi.json."""
    return orjson.dumps(document(), option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n"


@cache
def document() -> dict[str, Any]:
    """OpenAPI 3.1, from the declarations in `contract.OPERATIONS`."""
    paths: dict[str, dict[str, Any]] = {}
    for declared in OPERATIONS:
        paths.setdefault(f"/v1{declared.path}", {})[declared.method.lower()] = _operation(declared)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Allgone",
            "version": VERSION,
            "description": "One conversation history for every client. Delete a conversation once, and it is gone.",
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": _schemas(),
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": f"A token with scopes: {', '.join(SCOPES)}.",
                }
            },
        },
    }


def _operation(declared: Operation) -> dict[str, Any]:
    words = (declared.view.__doc__ or "").strip()
    told: dict[str, Any] = {
        "operationId": declared.name,
        "summary": words.splitlines()[0],
        "description": "\n".join(line.strip() for line in words.splitlines())
        + f"\n\nScope: `{declared.scope}`.",
        "parameters": [*_in_path(declared), *_in_query(declared), *_in_headers(declared)],
        "responses": {**_answers(declared), **_refusals(declared)},
    }
    if isinstance(declared.body, str):
        told["requestBody"] = {
            "required": False,  # nothing is an artifact of no bytes
            "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}},
        }
    elif declared.body is not None:
        schema = {"$ref": f"#/components/schemas/{declared.body.__name__}"}
        required = any(field.is_required() for field in declared.body.model_fields.values())
        told["requestBody"] = {"required": required, "content": {"application/json": {"schema": schema}}}
    return told


def _in_path(declared: Operation) -> list[dict[str, Any]]:
    names = [part[1:-1] for part in declared.path.split("/") if part.startswith("{")]
    schema = {"type": "string", "format": "uuid", "description": "UUIDv7; any other text is 404."}
    return [{"name": name, "in": "path", "required": True, "schema": schema} for name in names]


def _in_query(declared: Operation) -> list[dict[str, Any]]:
    if declared.query is None:
        return []
    properties = declared.query.model_json_schema()["properties"]
    return [{"name": name, "in": "query", "schema": _said(schema)} for name, schema in properties.items()]


def _said(schema: dict[str, Any]) -> dict[str, Any]:
    # What may be absent is null to the model; a query has no null to say.
    kinds = [one for one in schema.get("anyOf", []) if one != {"type": "null"}]
    if len(kinds) != 1:
        return schema
    rest = {key: value for key, value in schema.items() if key not in ("anyOf", "default")}
    return {**rest, **kinds[0]}


def _in_headers(declared: Operation) -> list[dict[str, Any]]:
    named = [(name, *HEADERS[name]) for name in declared.headers if name != "Accept"]
    return [
        {"name": name, "in": "header", "description": told, "schema": schema} for name, told, schema in named
    ]


def _answers(declared: Operation) -> dict[str, Any]:
    told: dict[str, Any] = {}
    for status, view in declared.answers.items():
        answer: dict[str, Any] = {"description": HTTPStatus(status).phrase}
        if isinstance(view, str):
            answer["content"] = {"*/*": {"schema": {"type": "string", "format": "binary"}}}
        elif view is views.Problem:
            answer["content"] = {"application/problem+json": {"schema": PROBLEM}}
        elif view is not None:
            schema = {"$ref": f"#/components/schemas/{view.__name__}"}
            answer["content"] = {"application/json": {"schema": schema}}
            if "Accept" in declared.headers:
                answer["content"]["text/event-stream"] = {"schema": {"type": "string"}}
        if status in (200, 201) and declared.name in LINKS:
            answer["links"] = _links(*LINKS[declared.name])
        told[str(status)] = answer
    return told


def _links(parameter: str, place: str, operations: tuple[str, ...]) -> dict[str, Any]:
    return {
        name: {"operationId": name, "parameters": {f"path.{parameter}": f"$response.body#{place}"}}
        for name in operations
    }


def _refusals(declared: Operation) -> dict[str, Any]:
    told: dict[str, Any] = {}
    bounded = ("too_large",) if declared.body is not None else ()
    for code in dict.fromkeys((*EVERYWHERE, *declared.refuses, *bounded, "rate_limited")):
        status = str(STATUS[code])
        note = f"`{code}`: {NOTES[code]}"
        if status in told:
            told[status]["description"] += f" {note}"
        else:
            told[status] = {
                "description": note,
                "content": {"application/problem+json": {"schema": PROBLEM}},
            }
    if declared.body is not None and not isinstance(declared.body, str):
        told["415"] = {
            "description": "`invalid`: the body is not application/json.",
            "content": {"application/problem+json": {"schema": PROBLEM}},
        }
    if OCTETS in (declared.body, *declared.answers.values()):
        told["503"] = {
            "description": "`internal`: the store that keeps files does not answer; nothing was lost or added.",
            "content": {"application/problem+json": {"schema": PROBLEM}},
        }
    return told


def _schemas() -> dict[str, Any]:
    given = {one.body for one in OPERATIONS if isinstance(one.body, type)}
    answered: set[type[BaseModel]] = {
        view for one in OPERATIONS for view in one.answers.values() if isinstance(view, type)
    }
    named = sorted((given | answered | {views.Problem}), key=lambda model: model.__name__)
    modes = [(model, "serialization" if issubclass(model, View) else "validation") for model in named]
    _, top = models_json_schema(modes, ref_template="#/components/schemas/{model}")  # type: ignore[arg-type]
    schemas: dict[str, Any] = top["$defs"]
    return schemas

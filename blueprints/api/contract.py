"""What `/v1` takes and gives: each operation is declared once, and the declaration validates, serves and documents.

An operation names its method, path, scope, query and body models, answers and refusals. `serve` asks for the token
first, then reads the query and the body by those very models, then calls the view; `openapi.py` writes the document
out of the same declarations. So neither can say what the other does not do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, TypeVar
from urllib.parse import parse_qsl

from flask import Blueprint, Response, request
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationError

from blueprints import access
from blueprints.api.body import json_body
from models.errors import Invalid
from models.storable import refuse_unstorable

IdGiven = Annotated[str, AfterValidator(str.lower)]
"""An id in a body or query, printed in capitals or not, as in a path."""

M = TypeVar("M", bound=BaseModel)

FIELD_MAX = 300  # characters of a place that an error names: a name in a body may be of any length
BODY_MAX = 1024 * 1024  # bytes, where an operation does not say otherwise

v1 = Blueprint("v1", __name__, url_prefix="/v1")


class Given(BaseModel):
    """What a caller sends: nothing is coerced, and a name that is not known is refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


def _whole(value: object) -> object:
    # Only plain digits: the model's own reading would take "1.0", " 5" and digits of other scripts too.
    if isinstance(value, str) and not (value.isascii() and value.isdigit() and len(value) <= 20):
        raise ValueError("it is not a whole number")
    return value


WHOLE = BeforeValidator(_whole)
"""Goes last on a whole number of a query, so that its bounds stay in the document."""


class Asked(BaseModel):
    """Query arguments: text that stands for a number is one; names that are not known are ignored."""

    model_config = ConfigDict(extra="ignore")


class View(BaseModel):
    """What we answer; for the document alone, since what we build ourselves needs no check."""


@dataclass(frozen=True)
class Operation:
    """One of the sixteen. `answers` maps a status to its view (None: no body, text: a media type)."""

    method: str
    path: str
    scope: str
    view: Callable[..., Response]
    answers: Mapping[int, type[View] | str | None]
    refuses: tuple[str, ...]
    query: type[Asked] | None = None
    body: type[Given] | str | None = None
    body_max: int | None = BODY_MAX
    headers: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.view.__name__


OPERATIONS: list[Operation] = []


def operation(
    method: str,
    path: str,
    *,
    scope: str,
    answers: Mapping[int, type[View] | str | None],
    refuses: tuple[str, ...] = (),
    query: type[Asked] | None = None,
    body: type[Given] | str | None = None,
    body_max: int | None = BODY_MAX,
    headers: tuple[str, ...] = (),
) -> Callable[[Callable[..., Response]], Callable[..., Response]]:
    """Declares a view as one operation of `/v1`; `path` is written as OpenAPI writes it."""

    def declare(view: Callable[..., Response]) -> Callable[..., Response]:
        declared = Operation(method, path, scope, view, answers, refuses, query, body, body_max, headers)
        OPERATIONS.append(declared)
        rule = path.replace("{", "<").replace("}", ">")
        serving = partial(serve, declared)
        v1.add_url_rule(rule, endpoint=view.__name__, view_func=serving, methods=[method])
        return view

    return declare


def serve(declared: Operation, **path: str) -> Response:
    """One request of an operation: who asks, what is asked, the answer. Raises Refusal."""
    owner = access.bearer(declared.scope)
    # One more than may be, so that a body without a Content-Length that goes on is told from one that ends.
    request.max_content_length = declared.body_max and declared.body_max + 1
    # Some clients print ids in capitals; a 404 would make their mirrors prune what is there.
    given: dict[str, Any] = {name: value.lower() for name, value in path.items()}
    if declared.query is not None:
        given["query"] = _query(declared.query)
    if isinstance(declared.body, type):
        given["body"] = _validated(declared.body, json_body(declared.body_max))
    return declared.view(owner, **given)


def _query(model: type[Asked]) -> Asked:
    try:
        given = parse_qsl(request.query_string.decode(), keep_blank_values=True, errors="strict")
    except ValueError:
        raise Invalid("query", "The query is not UTF-8.") from None
    values: dict[str, str] = {}
    for name, value in given:
        if name not in model.model_fields:
            continue
        if name in values:
            raise Invalid(name, f"{name} is given more than once.")
        if name != "cursor":  # which has its own refusal
            refuse_unstorable(name, value)
        values[name] = value
    return _validated(model, values)


def _validated(model: type[M], value: object) -> M:
    try:
        return model.model_validate(value)
    except ValidationError as fault:
        first = fault.errors(include_url=False, include_context=False, include_input=False)[0]
        field = place(first["loc"])[:FIELD_MAX]
        raise Invalid(field or "body", f"{field or 'The body'}: {first['msg']}.") from None


def place(steps: tuple[int | str, ...]) -> str:
    """How an error names a place: `events[2].payload.name`."""
    text = ""
    for step in steps:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text

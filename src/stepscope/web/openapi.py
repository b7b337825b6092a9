"""The OpenAPI 3.1 document (https://spec.openapis.org/oas/v3.1.1.html), generated from the table of operations."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import msgspec

from stepscope._version import __version__
from stepscope.model.api.rest_api import Problem
from stepscope.web import problems
from stepscope.web.operation import JSON

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.web.operation import Operation
    from stepscope.web.parameters import Parameter

_ALWAYS = {
    400: "A parameter is unknown, invalid or given twice.",
    401: "The token is missing or wrong.",
    403: "Unknown host name, or a page of another origin.",
    414: "The address is too long.",
}
_REFUSALS = {
    404: "Not found.",
    409: "Not possible at present.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    422: "The session is damaged, or of a newer version.",
    429: "Too many streams are open.",
}
_ABOUT = (
    "Everything that stepscope's page shows and does. Times are int64 nanoseconds since session start, ratios are 0 to "
    "1, and names contain units. Within a version, fields are only ever added."
)


@cache
def document(operations: Sequence[Operation]) -> bytes:
    """The document of these operations, as JSON."""
    kinds = {kind for op in operations for kind in (op.answer, op.body) if kind is not None} | {Problem}
    ordered = sorted(kinds, key=lambda kind: kind.__name__)
    refs, schemas = msgspec.json.schema_components(ordered, ref_template="#/components/schemas/{name}")
    known = dict(zip(ordered, refs, strict=True))
    paths: dict[str, dict[str, object]] = {}
    for operation in operations:
        paths.setdefault(operation.prefix + operation.path, {})[operation.method.lower()] = _described(operation, known)
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {"title": "stepscope", "version": __version__, "description": _ABOUT},
            "paths": paths,
            "components": {
                "schemas": schemas,
                "securitySchemes": {
                    "bearer": {"type": "http", "scheme": "bearer"},
                },
            },
            "security": [{"bearer": []}],
        }
    )


def _described(operation: Operation, known: dict[type[msgspec.Struct], dict[str, object]]) -> dict[str, object]:
    content: dict[str, object] = {}
    for media in operation.media:
        kind = operation.answer if media == JSON else None
        content[media] = {"schema": known[kind]} if kind is not None else {}
    problem = {problems.MEDIA: {"schema": known[Problem]}}
    refusals = {**_ALWAYS, **{status: _REFUSALS[status] for status in operation.refusals}}
    described: dict[str, object] = {
        "operationId": operation.name,
        "summary": operation.about,
        "tags": [operation.tag],
        "parameters": [_parameter(p) for p in operation.parameters],
        "responses": {
            str(operation.status): {"description": operation.about, "content": content},
            **{str(status): {"description": text, "content": problem} for status, text in sorted(refusals.items())},
        },
    }
    if operation.body is not None:
        described["requestBody"] = {"required": True, "content": {JSON: {"schema": known[operation.body]}}}
    return described


def _parameter(parameter: Parameter) -> dict[str, object]:
    schema = parameter.schema()
    if parameter.default is not None:
        schema["default"] = parameter.default
    return {
        "name": parameter.name,
        "in": parameter.where,
        "required": parameter.where == "path" or parameter.default is None,
        "description": parameter.about,
        "schema": schema,
    }

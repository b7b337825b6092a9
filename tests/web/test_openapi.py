"""The OpenAPI document, and what the server answers to whatever it allows and forbids."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from hypothesis.strategies import sampled_from
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import negative_data_rejection

from stepscope.web.application import DESCRIBED, OPERATIONS
from stepscope.web.job_operations import METRICS
from stepscope.web.openapi import document
from stepscope.web.operation import PREFIX

from .conftest import TOKEN

if TYPE_CHECKING:
    from starlette.testclient import TestClient
    from starlette.types import ASGIApp

    from stepscope.web.operation import Operation

    from .recorded import Recorded

EXAMPLES = 8
"""Of each operation and kind, allowed and forbidden."""


HEADERS = {"Authorization": f"Bearer {TOKEN}", "Host": "127.0.0.1:7330"}
UNHURRIED = settings(
    max_examples=EXAMPLES,
    derandomize=True,
    deadline=None,
    database=None,
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def api(app: ASGIApp, client: TestClient) -> Any:
    """The document as the server sends it, but for the token, which every request here has: else nearly everything
    that is forbidden would be refused for a wrong token (test_guard has those).
    """
    said = client.get(f"{PREFIX}/openapi.json").json()
    del said["security"], said["components"]["securitySchemes"]
    loaded = schemathesis.openapi.from_dict(said)
    loaded.app = app
    return loaded


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("operation", (*OPERATIONS, METRICS), ids=lambda operation: operation.name)
def test_every_answer_is_as_described(
    api: Any, client: TestClient, recorded: Recorded, operation: Operation, mode: GenerationMode
) -> None:
    """What is allowed is answered as described, what is not is refused, and nothing fails; most of the cases meet the
    recorded session."""
    described = api[operation.prefix + operation.path][operation.method]
    build = client.get(f"{recorded.url}/timeline?wait_s=10").json()["build"]

    @settings(UNHURRIED)
    @given(case=described.as_strategy(generation_mode=mode), known=sampled_from([True, True, False]))
    def every(case: schemathesis.Case[Any], known: bool) -> None:
        if known and re.fullmatch("[0-9a-f]{16}", str(case.path_parameters.get("key", ""))):
            case.path_parameters["key"] = recorded.key
        if known and re.fullmatch("[0-9a-f]{20}", str((case.query or {}).get("build", ""))):
            case.query["build"] = build
        answer = case.call(headers=HEADERS)
        # an address that is too long is a refusal, too: the check knows other statuses only
        if answer.status_code == HTTPStatus.REQUEST_URI_TOO_LONG:
            case.validate_response(answer, excluded_checks=[negative_data_rejection])
        else:
            case.validate_response(answer)

    try:
        every()
    except Unsatisfiable:
        assert mode is GenerationMode.NEGATIVE
        assert not operation.parameters


def test_the_document_is_whole(client: TestClient) -> None:
    """Every operation once, with its parameters; every reference leads somewhere."""
    said = client.get(PREFIX + "/openapi.json").json()
    assert said["openapi"].startswith("3.1")
    described = {(path, method.upper()) for path, methods in said["paths"].items() for method in methods}
    assert described == {(op.prefix + op.path, op.method) for op in DESCRIBED}
    assert {"/metrics", f"{PREFIX}/jobs/{{pid}}/events"} <= said["paths"].keys()
    names = [op["operationId"] for methods in said["paths"].values() for op in methods.values()]
    assert len(names) == len(set(names))
    for path, methods in said["paths"].items():
        for operation in methods.values():
            in_path = {p["name"] for p in operation["parameters"] if p["in"] == "path"}
            assert in_path == set(re.findall(r"{(\w+)}", path))
    referred = set(re.findall(rb'"#/components/schemas/([^"]+)"', document(DESCRIBED)))
    assert {name.decode() for name in referred} <= said["components"]["schemas"].keys()
    assert [name for name in said["components"]["schemas"] if not name.isidentifier()] == []  # two are called alike

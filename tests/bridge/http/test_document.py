"""The OpenAPI document: complete enough to generate clients from it (ruling J9)."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from bridge.http.wire.document import meaning
from bridge.operations.idempotency import KeyReusedError
from bridge.operations.pipelines.runs import ActiveRunError
from tests.written import ROOT, keep
from workflows.model.errors import ServiceError

pytestmark = pytest.mark.ruling("J9")
PAGE = ROOT / "cli/topics/errors.md"
FREE = {"/healthz", "/readyz"}
STARTS = {
    "/v1/agents/{name}/ask",
    "/v1/agents/{name}/implement",
    "/v1/agents/{name}/review",
    "/v1/orchestrate",
    "/v1/pipelines/{name}/run",
}


def operations(document: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [(path, method, each) for path, item in document["paths"].items() for method, each in item.items()]


def test_the_endpoints_of_the_spec_and_of_the_ruling_are_there(document: dict[str, Any]) -> None:
    assert {f"{method.upper()} {path}" for path, method, _ in operations(document)} == {
        "GET /healthz",
        "GET /readyz",
        "GET /metrics",
        "POST /v1/pipelines/{name}/run",
        "GET /v1/runs/{run_id}",
        "POST /v1/memory/recall",
        "GET /v1/jobs/{job_id}",
        "POST /v1/agents/{name}/ask",
        "POST /v1/agents/{name}/implement",
        "POST /v1/agents/{name}/review",
        "POST /v1/orchestrate",
        "GET /v1/jobs",
        "GET /v1/trees",
        "GET /v1/runs",
        "GET /v1/jobs/{job_id}/tree",
        "GET /v1/jobs/{job_id}/events",
        "GET /v1/jobs/{job_id}/gate",
        "GET /v1/jobs/{job_id}/log",
        "GET /v1/reviews",
        "POST /v1/jobs/{job_id}/resume",
        "POST /v1/jobs/{job_id}/kill",
        "POST /v1/jobs/{job_id}/dismiss",
        "POST /v1/jobs/{job_id}/drop",
        "POST /v1/jobs/{job_id}/merge",
        "POST /v1/jobs/{job_id}/resolve",
        "POST /v1/jobs/{job_id}/revise",
        "POST /v1/jobs/{job_id}/review",
        "POST /v1/jobs/{job_id}/retry",
        "POST /v1/jobs/{job_id}/publish",
        "POST /v1/runs/{run_id}/cancel",
    }


def test_every_operation_declares_what_can_go_wrong(document: dict[str, Any]) -> None:
    for path, method, operation in operations(document):
        statuses = set(operation["responses"])
        assert {"200", "400", "401", "403", "405", "413", "429", "500", "503"} <= statuses, path
        assert "422" not in statuses
        assert ("415" in statuses) is (method == "post"), path
        for status in statuses - {"200", "204", "304"}:
            content = operation["responses"][status]["content"]["application/json"]
            assert content["schema"] == {"$ref": "#/components/schemas/Error"}
            assert set(content["example"]) == {"error", "code", "request_id"}


def codes() -> Iterator[type[ServiceError]]:
    """Yield every class with a code of its own, of the bridge and of all packages."""
    left: list[type[ServiceError]] = [ServiceError]
    while left:
        kind = left.pop()
        left += kind.__subclasses__()
        if "code" in vars(kind) and kind.__module__.startswith(
            ("bridge.http", "bridge.operations", "workflows.errors")
        ):
            yield kind


def test_the_manual_lists_the_errors_as_their_classes_tell_them() -> None:
    rows = sorted((kind.status, kind.code, meaning(kind)) for kind in codes() if kind is not ServiceError)
    table = "\n".join(["| status | code | means |", "|---|---|---|", *(f"| {a} | `{b}` | {c} |" for a, b, c in rows)])
    text, count = re.subn(
        r"(<!-- errors -->\n).*?(?=\n<!-- end -->)", lambda at: at[1] + table, PAGE.read_text(), flags=re.DOTALL
    )
    assert count == 1
    keep(PAGE, text)


def test_what_an_error_s_class_says_is_what_the_document_says(document: dict[str, Any]) -> None:
    description = document["paths"]["/v1/pipelines/{name}/run"]["post"]["responses"]["409"]["description"]
    assert description.split(" `")[0] == f"`{ActiveRunError.code}`: {meaning(ActiveRunError)}"
    assert f"`{KeyReusedError.code}`: {meaning(KeyReusedError)}" in description
    assert document["paths"]["/v1/jobs"]["get"]["responses"]["429"]["headers"] == {
        "Retry-After": {"schema": {"type": "string"}}
    }


def test_names_are_good_for_generated_clients(document: dict[str, Any]) -> None:
    names = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(set(names)) == len(names)
    assert all(name.isidentifier() and name.islower() for name in names)


def test_the_token_is_wanted_wherever_it_is(document: dict[str, Any]) -> None:
    assert document["security"] == [{"bearer": []}]
    assert document["components"]["securitySchemes"]["bearer"]["scheme"] == "bearer"
    assert {path for path, _, operation in operations(document) if operation.get("security") == []} == FREE


def test_whatever_starts_something_takes_a_key(document: dict[str, Any]) -> None:
    taking = {
        path
        for path, _, operation in operations(document)
        if any(each["name"].lower() == "idempotency-key" for each in operation.get("parameters", ()))
    }
    assert taking >= STARTS

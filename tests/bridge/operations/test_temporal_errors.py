"""Temporal's errors become the service's own, in one place (ruling K6)."""

from pathlib import Path

import pytest
from temporalio.client import WorkflowUpdateFailedError, WorkflowUpdateRPCTimeoutOrCancelledError
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from activities.host.admission import NotAdmittedError
from activities.settings.home import Home
from activities.store.registry import host_rows
from bridge.operations.service import Service
from bridge.operations.temporal import (
    InvalidError,
    NoWorkerError,
    NoWorkflowError,
    OrderDeclinedError,
    client_of,
    translate_errors,
)
from workflows.model.errors import RefusedError, ServiceError, UnreachableError

pytestmark = pytest.mark.ruling("K6")


def raised(error: BaseException) -> ServiceError:
    with pytest.raises(ServiceError) as translated, translate_errors("Temporal did not accept the schedule"):
        raise error
    return translated.value


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (RPCStatusCode.NOT_FOUND, NoWorkflowError),
        (RPCStatusCode.INVALID_ARGUMENT, InvalidError),
        (RPCStatusCode.FAILED_PRECONDITION, NoWorkerError),  # three workflow tasks in a row failed or timed out
        (RPCStatusCode.UNAVAILABLE, UnreachableError),
        (RPCStatusCode.PERMISSION_DENIED, UnreachableError),
    ],
)
def test_whatever_a_call_ends_with_is_a_sentence_with_a_command(
    status: RPCStatusCode, kind: type[UnreachableError]
) -> None:
    error = raised(RPCError("no such thing", status, b""))
    assert type(error) is kind
    assert error.message == "Temporal did not accept the schedule: no such thing"
    assert (error.hint, error.exit_code, error.status) == ("service daemon status", 5, 503)


def test_a_workflow_that_says_no_is_quoted_with_its_reason() -> None:
    no = ApplicationError("the round is over", {"commands": ["service attention"]}, type="round_over")
    error = raised(WorkflowUpdateFailedError(no))
    assert isinstance(error, OrderDeclinedError)
    assert isinstance(error, RefusedError)
    assert (error.message, error.kind, error.data) == (
        "the round is over",
        "round_over",
        {"commands": ["service attention"]},
    )


def test_a_workflow_that_broke_is_quoted_too() -> None:
    error = raised(WorkflowUpdateFailedError(ValueError("broken")))
    assert isinstance(error, OrderDeclinedError)
    assert (error.message, error.kind, error.data) == ("broken", None, {})


def test_no_worker_is_told_apart_from_no_server() -> None:
    assert isinstance(raised(WorkflowUpdateRPCTimeoutOrCancelledError()), NoWorkerError)


def test_what_is_none_of_temporals_passes_as_it_is() -> None:
    with pytest.raises(KeyError), translate_errors():
        raise KeyError("ours")


@pytest.mark.ruling("Q1")
async def test_a_home_without_the_key_of_its_fleet_orders_nothing(bare_home: Home, tmp_path: Path) -> None:
    bare_home.ensure().config.write_text(f'[store]\nurl = "sqlite:///{tmp_path}/fleet.db"\n')
    service = Service(bare_home)
    host_rows.form(service.store, host_rows.Cluster("f" * 64, "service", host_rows.release()))
    with pytest.raises(NotAdmittedError, match="that of its store's hosts is ffffffffffff"):
        await client_of(service)

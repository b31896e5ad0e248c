"""A foreign Temporal server: its missing parts, those that are made, and those that are only reported."""

import subprocess
import time
from collections.abc import AsyncIterator
from datetime import timedelta
from shlex import split
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode
from temporalio.testing import WorkflowEnvironment

from activities import cluster
from activities.cluster import NotPreparedError, Survey
from activities.cluster_commands import ServerNamespace, commands, removal
from bridge.daemon.server import find_program
from tests.waiting import PATIENCE
from workflows.model.errors import UnreachableError
from workflows.temporal import search

pytestmark = pytest.mark.ruling("engine:cluster")


@pytest_asyncio.fixture(scope="module")
async def address() -> AsyncIterator[str]:
    """Start a server without any setup for the service."""
    async with await WorkflowEnvironment.start_local(
        dev_server_existing_path=str(find_program()),
        dev_server_log_level="error",
        dev_server_startup_timeout=timedelta(seconds=PATIENCE),
    ) as environment:
        yield environment.client.service_client.config.target_host


@pytest_asyncio.fixture
async def client(address: str) -> Client:
    """Connect to a namespace that does not exist yet."""
    return await Client.connect(address, namespace=f"ns-{uuid4().hex[:8]}")


async def test_what_is_missing_is_named_with_the_command_that_makes_it(client: Client, address: str) -> None:
    with pytest.raises(NotPreparedError) as lacking:
        await cluster.require(client)
    assert lacking.value.message == f"the namespace {client.namespace} does not exist at {address}"
    assert lacking.value.hint == "service cluster init"
    elsewhere = await Client.connect(address, namespace="default")
    with pytest.raises(NotPreparedError, match=f"the search attributes {', '.join(search.NAMES)} are missing"):
        await cluster.require(elsewhere)


async def test_all_of_it_is_made_once_and_found_there_afterwards(client: Client) -> None:
    name, all_names = client.namespace, ", ".join(search.NAMES)
    waits: list[str] = []
    made = await cluster.make(client, None, waits.append)
    place = client.service_client.config.target_host
    assert waits == [
        f"waiting until {place} knows the namespace {name}",
        f"waiting until {place} can search by {len(search.NAMES)} new attributes",
    ]
    assert made.said == (
        f"created the namespace {name}, which keeps ended workflows for 30d",
        f"created {len(search.NAMES)} search attributes: {all_names}",
    )
    assert made.by_hand == ()
    seen = await cluster.require(client)
    assert (seen.retention, dict(seen.missing), dict(seen.wrong)) == (timedelta(days=30), {}, {})
    again = await cluster.make(client, None)
    assert again.said == (
        f"the namespace {name} existed; it keeps ended workflows for 30d",
        f"{len(search.NAMES)} search attributes existed: {all_names}",
    )


@pytest.mark.ruling("Q1")
@pytest.mark.parametrize(
    ("call", "what"),
    [
        ("describe_workflow_execution", "history"),
        ("describe_task_queue", "matching"),
        ("count_workflow_executions", "visibility"),
    ],
)
async def test_a_service_behind_the_frontend_that_does_not_answer_is_named(
    client: Client, address: str, monkeypatch: pytest.MonkeyPatch, call: str, what: str
) -> None:
    await cluster.make(client, None)
    await cluster.probe(client)
    asked = getattr(client.workflow_service, call)

    async def away(request: Any, **options: Any) -> Any:
        if "7" in getattr(getattr(request, "execution", None), "workflow_id", "7"):  # one host of several
            raise RPCError("no hosts are available", RPCStatusCode.UNAVAILABLE, b"")
        return await asked(request, **options)

    monkeypatch.setattr(client.workflow_service, call, away)
    says = f"{address} takes calls, but its {what} service does not answer: no hosts are available"
    with pytest.raises(UnreachableError, match=says):
        await cluster.probe(client)


async def test_a_retention_that_is_there_changes_only_when_asked_for(client: Client) -> None:
    await cluster.make(client, timedelta(days=3))
    assert (await cluster.make(client, None)).said[0].endswith("for 3d")
    changed = (await cluster.make(client, timedelta(days=9))).said[0]
    assert changed.endswith("it keeps ended workflows for 9d now, 3d before")
    assert (await cluster.survey(client)).retention == timedelta(days=9)


async def test_an_attribute_of_another_type_is_named_and_left_to_its_owner(client: Client, address: str) -> None:
    where = ("--address", address, "--namespace", client.namespace)
    operator(*("namespace", "create", *where))
    operator(*("search-attribute", "create", *where, "--name", "SvcRepo", "--type", "Int"))
    made = await cluster.make(client, None)
    assert "the search attribute SvcRepo is Int there and must be Keyword" in made.said
    assert made.by_hand[-1] == "service cluster init"
    with pytest.raises(NotPreparedError, match="SvcRepo is Int there") as wrong:
        await cluster.require(client)
    assert wrong.value.hint == made.by_hand[0]
    typed(made.by_hand[0])
    await cluster.make(client, None)
    await cluster.require(client)


async def test_what_may_not_be_made_is_printed_as_commands_that_make_it(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: Any, **__: Any) -> None:
        raise RPCError("Request unauthorized.", RPCStatusCode.PERMISSION_DENIED, b"")

    monkeypatch.setattr(client.workflow_service, "register_namespace", refuse)
    monkeypatch.setattr(client.operator_service, "add_search_attributes", refuse)
    made = await cluster.make(client, None)
    assert made.said[-1].endswith("Request unauthorized.")
    create, add = made.by_hand
    typed(create)
    assert (await cluster.make(client, None)).by_hand == (add,)
    typed(add)
    assert (await cluster.make(client, None)).by_hand == ()
    await cluster.require(client)


async def test_who_may_not_list_attributes_finds_them_by_the_names_of_the_namespace(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: Any, **__: Any) -> None:
        raise RPCError("unknown service", RPCStatusCode.UNIMPLEMENTED, b"")

    await cluster.make(client, None)
    monkeypatch.setattr(client.operator_service, "list_search_attributes", refuse)
    await cluster.require(client)


async def test_a_caller_who_may_not_even_look_is_told_to_look_at_the_key(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: Any, **__: Any) -> None:
        raise RPCError("Request unauthorized.", RPCStatusCode.PERMISSION_DENIED, b"")

    monkeypatch.setattr(client.workflow_service, "describe_namespace", refuse)
    with pytest.raises(UnreachableError, match="Request unauthorized") as refused:
        await cluster.require(client)
    assert "API key" in refused.value.hint


def test_temporal_cloud_is_told_in_the_words_of_its_own_program() -> None:
    server = ServerNamespace("shop.a1b2c.tmprl.cloud:7233", "shop.a1b2c")
    missing = {"SvcRepo": "Keyword", "SvcPullRequest": "Int"}
    create, add = commands(Survey(server, there=False, missing=missing), timedelta(days=30))
    assert create == (
        "tcld namespace create --namespace shop --region REGION --retention-days 30 --auth-method api_key"
    )
    assert add == (
        "tcld namespace search-attributes add --namespace shop.a1b2c"
        " --search-attribute SvcRepo=Keyword --search-attribute SvcPullRequest=Int"
    )
    assert removal(server, ("SvcRepo",)).endswith("in Temporal Cloud: SvcRepo")


async def test_why_a_start_was_not_taken_is_what_the_server_lacks_or_its_own_words(client: Client) -> None:
    why = await cluster.refusal_of(client, ValueError("no mapping for SvcRoot"), "the job")
    assert isinstance(why, NotPreparedError)
    await cluster.make(client, None)
    why = await cluster.refusal_of(client, ValueError("too busy"), "the job")
    assert why.message == "Temporal did not accept the job: too busy"


def operator(*words: str) -> None:
    typed(" ".join(("temporal", "operator", *words)))


def typed(command: str) -> None:
    """Run a printed command, with the program that is installed here."""
    program, *words = split(command)
    assert program == "temporal"
    deadline = time.monotonic() + PATIENCE
    while True:
        done = subprocess.run([str(find_program()), *words], capture_output=True, text=True, timeout=60, check=False)
        if done.returncode == 0:
            return
        # A new namespace is not known everywhere yet.
        assert "is not found" in done.stderr, done.stderr
        assert time.monotonic() < deadline, done.stderr


@pytest.mark.ruling("Q7")
@pytest.mark.parametrize("flag", ["true", "false"])
async def test_a_server_says_whether_it_sends_cancellations_to_workers(flag: str) -> None:
    async with await WorkflowEnvironment.start_local(
        dev_server_existing_path=str(find_program()),
        dev_server_log_level="error",
        dev_server_startup_timeout=timedelta(seconds=PATIENCE),
        dev_server_extra_args=["--dynamic-config-value", f"frontend.WorkerCommandsEnabled={flag}"],
    ) as environment:
        assert await cluster.sends_cancellations(environment.client) is (flag == "true")

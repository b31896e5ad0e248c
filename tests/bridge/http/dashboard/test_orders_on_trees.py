"""Orders from the pages reach a tree that really runs, and their results are shown (rulings M3, G2, D4)."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import pytest
import pytest_asyncio
from temporalio.client import Client

from activities.runs.os_processes import identity
from activities.settings import ready
from activities.settings.home import Home
from activities.store import job_rows, tree_rows
from bridge.operations.jobs import jobs
from bridge.operations.orders import attention, trees
from bridge.operations.service import Service
from tests.activities.git.conftest import run_git
from tests.bridge import seeds
from tests.bridge.http.dashboard import planted
from tests.bridge.http.dashboard.surfer import Shown, Surfer
from tests.bridge.seeds import ROOT
from tests.temporal.host import Host, an_input, ended, script, serving
from tests.tree.simulator import delegation
from tests.waiting import soon, until
from workflows.model.rows import Records
from workflows.model.states import JobState, TaskState, WaitsFor
from workflows.temporal.delegation_tree import DelegationTree
from workflows.tree.state import TreeMemory

pytestmark = pytest.mark.ruling("M3")

TWO = (delegation("a"), delegation("b", deps=("a",)))


@pytest_asyncio.fixture
async def real(home: Home, client: Client) -> AsyncIterator[Service]:
    """Create a service with Temporal, on a queue of its own."""
    where = f'[temporal]\naddress = "{client.service_client.config.target_host}"\nnamespace = "default"\n'
    home.config.write_text(f'{where}task_queue = "page-{uuid4().hex[:8]}"\n')
    made = Service(home)
    yield made
    made.store.dispose()


def recording(service: Service, host: Host) -> Host:
    """Store the rows that the tree writes."""

    async def write(records: Records) -> None:
        job_rows.write(service.store, records)

    host.before_write = write
    return host


@asynccontextmanager
async def playing(service: Service, client: Client, host: Host) -> AsyncIterator[tuple[str, Surfer]]:
    """Start a tree, and open its page as Ann."""
    queue = service.settings.temporal.task_queue
    async with serving(client, queue, recording(service, host)), Surfer(service) as ann:
        await ann.enter()
        yield await trees.start(service, an_input(), queue), ann


def state_of(service: Service, root: str) -> TaskState:
    return jobs.tree(service, root).task.state


async def blocked(client: Client, root: str) -> None:
    """Wait until the workflow has ended: it would still accept an order before that."""
    closed = await soon(ended(client.get_workflow_handle_for(DelegationTree.run, root)))
    assert closed.task_state is TaskState.BLOCKED


async def send(ann: Surfer, page: str, action: str, button: str | None = None) -> Shown:
    shown = await ann.open(page)
    return await ann.send(shown.form(action), button)


@pytest.mark.ruling("G2")
async def test_a_graceful_kill_lets_what_runs_finish(real: Service, client: Client) -> None:
    host = Host(script({"root": TWO}), held={"a"})
    async with playing(real, client, host) as (root, ann):
        await host.until_running("a")
        shown = await send(ann, f"/ui/trees/{root}", f"/ui/trees/{root}/kill", "End the task")
        assert "The task is being ended. What runs finishes" in shown.words
        await until(lambda: jobs.tree(real, root).task.waits_for is WaitsFor.RUNS)
        shown = await ann.open(f"/ui/trees/{root}")
        assert "It is being ended" in shown.words
        assert [words for _, _, words in shown.form(f"/ui/trees/{root}/kill").buttons] == ["End the task now"]
        host.release("a")
        await until(lambda: state_of(real, root) is TaskState.CANCELLED)
        page_words = (await ann.open(f"/ui/trees/{root}")).words
    assert "a" in host.ended
    assert host.cancelled == []
    assert "ann@desk, on the page" in page_words, "who ended it"


@pytest.mark.ruling("G2")
@pytest.mark.parametrize("page", ["/ui/trees/{}", "/ui/jobs/{}"])
async def test_a_kill_now_stops_the_agents(real: Service, client: Client, page: str) -> None:
    host = Host(script({"root": TWO}), held={"a"})
    async with playing(real, client, host) as (root, ann):
        await host.until_running("a")
        await send(ann, page.format(root), f"/ui/trees/{root}/kill", "End the task now")
        await until(lambda: state_of(real, root) is TaskState.CANCELLED)
    assert host.cancelled == ["a"]


@pytest.mark.ruling("D4")
async def test_a_blocked_tree_is_opened_again_by_a_retry(real: Service, client: Client) -> None:
    host = Host(script({"root": (delegation("a", failure_policy="block_parent"),), "a": ["failed", "approved"]}))
    async with playing(real, client, host) as (root, ann):
        await blocked(client, root)
        tree_rows.keep(real.store, TreeMemory.model_validate(host.kept[-1]), "h")
        retry = f"/ui/jobs/{root}.1/retry"
        for page in (f"/ui/trees/{root}", f"/ui/jobs/{root}.1"):
            assert (await ann.open(page)).form(retry)
        shown = await send(ann, "/ui/", retry)
        assert f"{root}.1 runs again" in shown.words
        await until(lambda: state_of(real, root) is TaskState.DONE)
        job = await ann.open(f"/ui/jobs/{root}.1")
        assert 'data-waiting="0"' in (await ann.open("/ui/")).html
    assert jobs.get(real, f"{root}.1").attempt == 2
    assert jobs.get(real, f"{root}.1").state is JobState.SUCCEEDED
    assert "ann@desk" in job.words + str(jobs.events(real, root))


@pytest.mark.ruling("D4")
async def test_a_blocked_tree_is_given_up(real: Service, client: Client) -> None:
    host = Host(script({"root": (delegation("a", failure_policy="block_parent"),), "a": "failed"}))
    async with playing(real, client, host) as (root, ann):
        await blocked(client, root)
        dismiss = f"/ui/trees/{root}/dismiss"
        assert (await ann.open("/ui/")).form(dismiss)
        shown = await send(ann, f"/ui/trees/{root}", dismiss)
        assert "The task is given up" in shown.words
    assert state_of(real, root) is TaskState.CANCELLED
    assert "dismissed by ann@desk, on the page" in shown.words


@pytest.mark.ruling("M1", "C6")
async def test_a_tree_whose_work_nobody_can_do_is_ended_from_the_first_page(real: Service, client: Client) -> None:
    host = Host(script({"root": (delegation("a", agent="nobody"),), "corrective": TWO}), held={"corrective"})
    async with playing(real, client, host) as (root, ann):
        await host.until_running("corrective")
        await until(lambda: attention.number(real) == 1)
        shown = await send(ann, "/ui/", f"/ui/trees/{root}/kill", "End the task")
        assert f"{root} : The task is being ended" in shown.words
        await until(lambda: jobs.tree(real, root).task.waits_for is WaitsFor.RUNS)
        host.release("corrective")
        await until(lambda: state_of(real, root) is TaskState.CANCELLED)
        assert 'data-waiting="0"' in (await ann.open("/ui/")).html
    assert (host.cancelled, "a" in host.names) == ([], False)


FIRST, SECOND, TASK = f"{ROOT}.1", f"{ROOT}.2", f"service/{seeds.TASK}"


@pytest.mark.ruling("M1", "I5")
async def test_legs_of_a_conflict_are_merged_and_dropped_on_the_first_page(
    service: Service, ann: Surfer, tmp_path: Path
) -> None:
    repo = planted.clashing(service, tmp_path)
    shown = await ann.open("/ui/")
    shown = await ann.send(shown.form(f"/ui/jobs/{FIRST}/merge"))
    assert f"{FIRST} : is merged into {TASK}" in shown.words
    assert run_git(repo, "show", f"{TASK}:limiter.py") == "limit = 2"
    assert not [form for form in shown.read.forms if f"/{FIRST}/" in form.action], "nothing is left to do with it"
    refused = await ann.send(shown.form(f"/ui/jobs/{SECOND}/merge"))
    assert (refused.status, "conflicts with part a" in refused.words) == (409, True)
    refused = await ann.send(shown.form(f"/ui/jobs/{SECOND}/drop"))
    assert (refused.status, "dropping it loses them" in refused.words) == (409, True)
    shown = await ann.send(shown.form(f"/ui/jobs/{SECOND}/drop"), force="yes")
    assert f"service/{SECOND} is dropped" in shown.words
    assert f"git -C {repo} branch service/{SECOND}" in shown.words
    assert not run_git(repo, "branch", "--list", f"service/{SECOND}")


@pytest.mark.ruling("M1", "I5")
@pytest.mark.parametrize("page", ["/ui/", f"/ui/jobs/{FIRST}"])
async def test_a_leg_that_was_merged_by_hand_is_said_to_be_there(
    service: Service, ann: Surfer, tmp_path: Path, page: str
) -> None:
    repo = planted.clashing(service, tmp_path)
    shown = await ann.open(page)
    form = shown.form(f"/ui/jobs/{FIRST}/merge")
    run_git(repo, "branch", TASK, f"service/{FIRST}")
    shown = await ann.send(form)
    assert (shown.status, f"was already merged into {TASK}" in shown.words) == (200, True)
    assert form.action not in [each.action for each in shown.read.forms]


async def test_temporal_leads_back_to_the_page_while_a_bridge_runs(real: Service, client: Client) -> None:
    queue = real.settings.temporal.task_queue
    before = await trees.start(real, an_input(), queue)
    here = ready.Ready(pid=os.getpid(), identity=identity(os.getpid()), address="127.0.0.1:8791")
    real.home.bridge_ready.write_text(here.model_dump_json())
    after = await trees.start(real, an_input(), queue)
    texts = []
    for root in (before, after):
        texts.append(await (await client.get_workflow_handle(root).describe()).static_details())
        await client.get_workflow_handle(root).terminate()
    terminal = "In a terminal: `service job tree {} --watch`"
    assert texts[0] == terminal.format(before)
    assert texts[1] == f"{terminal.format(after)}\n\nOn the page: http://127.0.0.1:8791/ui/trees/{after}"

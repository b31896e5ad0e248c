"""Attacks on a service through its Temporal server without the key: nothing of them is trusted (N1)."""

import json
import os
import shutil
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.client import ActivityFailureError, Client, WorkflowFailureError, WorkflowQueryFailedError
from temporalio.common import RawValue, RetryPolicy
from temporalio.converter import ActivitySerializationContext
from temporalio.exceptions import ActivityError, ApplicationError
from temporalio.service import RPCError
from temporalio.worker import Worker

from activities.sealing.converter import binding_of, seals_of
from activities.settings.home import Home
from bridge.daemon.server import find_program
from bridge.operations.temporal import translate_errors
from tests.temporal.books import Books
from tests.temporal.host import Handle, Host, an_input, ended, script, serving, start
from tests.temporal.people import asking, failed_tasks, over, waits
from tests.temporal.pipeline_stage import pipeline_host
from tests.temporal.server import runs, speaking
from tests.temporal.strangers import (
    LyingHost,
    closed_as,
    completed_by_a_stranger,
    input_of,
    lying,
    order,
    payload,
    signal_in,
)
from tests.tree.simulator import delegation, outcome
from tests.waiting import soon
from workflows.model.errors import UnreachableError
from workflows.temporal.calls import agents_queue
from workflows.temporal.delegation_tree import DelegationTree
from workflows.temporal.messages import TreeStart
from workflows.temporal.runner import WORKFLOWS
from workflows.temporal.seals import UNSEALED, UnsealedError
from workflows.tree.reducer import root_run

pytestmark = pytest.mark.ruling("N1")

SOMEBODY = "64321"
"""An account of this machine that is unrelated to the service."""


def as_somebody(command: list[str]) -> list[str]:
    """Run as another account if possible, else as a client without a key."""
    if os.geteuid() == 0 and shutil.which("setpriv"):
        return ["setpriv", f"--reuid={SOMEBODY}", f"--regid={SOMEBODY}", "--clear-groups", *command]
    return command


def a_tree_that_runs(command: tuple[str, ...], queue: str) -> TreeStart:
    worker = {"name": "dev", "runtime": "shell", "command": command, "capabilities": ("ask",)}
    tree = an_input(worker=worker, action="ask", repo="acme/shop")
    return TreeStart(input=tree, host=queue)


def started_by_program(client: Client, queue: str, tree: TreeStart) -> None:
    """Run `temporal workflow start` as another account."""
    program = str(find_program())
    where = ["--address", client.service_client.config.target_host, "--namespace", client.namespace]
    what = ["--type", "DelegationTree", "--workflow-id", tree.input.root_job_id, "--task-queue", queue]
    plain = ["--disable-config-file", "--disable-config-env", "--input", tree.model_dump_json()]
    done = subprocess.run(
        as_somebody([program, "workflow", "start", *where, *what, *plain]),
        capture_output=True,
        text=True,
        cwd="/",
        env={"PATH": os.environ["PATH"], "HOME": "/"},
    )
    assert done.returncode == 0, done.stderr


async def test_a_tree_that_another_account_starts_runs_nothing_and_says_why(
    client: Client, queue: str, home: Home, tmp_path: Path
) -> None:
    """The workers are the daemon's. With the key, an equal tree runs its command: the test can fail."""
    host, proof = pipeline_host(client, queue, home, tmp_path), tmp_path / "proof"
    forged, ours = (a_tree_that_runs(("sh", "-c", f"echo x >> {proof}; exit 1"), queue) for _ in range(2))
    async with host.working():
        started_by_program(client, queue, forged)
        status, why = await closed_as(client, forged.input.root_job_id)
        assert status == "FAILED"
        assert "it has no seal of this service" in why
        assert "service agent ask" in why
        assert not proof.exists()
        assert await failed_tasks(client.get_workflow_handle(forged.input.root_job_id)) == 0
        await ended(await start(client, queue, ours))
        assert proof.read_text().startswith("x")


GARBAGE: dict[str, list[Any]] = {
    "nothing": [],
    "two values": [{}, {}],
    "no seal": [payload({"input": {}, "host": "h"})],
    "a seal of zeros": [payload({"input": {}, "host": "h"}, seal=bytes(16))],
    "an empty seal": [payload({"input": {}, "host": "h"}, seal=b"")],
    "a long seal": [payload({"input": {}, "host": "h"}, seal=b"x" * 5000)],
    "a false encryption": [RawValue(Payload(metadata={"encoding": b"binary/encrypted"}, data=b"x" * 40))],
    "another encoding": [RawValue(Payload(metadata={"encoding": b"no/such", "seal": b"x"}, data=b"x"))],
    "no metadata": [RawValue(Payload(data=b"{}"))],
}


@pytest.mark.parametrize("workflow", ["DelegationTree", "Delegation", "PipelineRun", "PipelineFiring", "Notify"])
async def test_no_workflow_begins_with_what_is_not_sealed(client: Client, queue: str, workflow: str) -> None:
    host = Host(script({}))
    async with serving(client, queue, host):
        for kind, what in GARBAGE.items():
            name = f"{workflow}-{kind}-{queue}"
            await speaking(client).start_workflow(workflow, args=what, id=name, task_queue=queue)
        closed = {kind: await closed_as(client, f"{workflow}-{kind}-{queue}") for kind in GARBAGE}
    assert {kind: status for kind, (status, _) in closed.items()} == dict.fromkeys(GARBAGE, "FAILED")
    assert [kind for kind, (_, why) in closed.items() if "its input has no valid seal" not in why] == []
    assert not host.runs
    assert not host.written


async def test_what_one_workflow_was_started_with_starts_no_other(client: Client, queue: str) -> None:
    """Neither does one that is named as if a schedule had started it."""
    host = Host(script({}))
    async with serving(client, queue, host):
        tree = await start(client, queue)
        await ended(tree)
        copied = RawValue(await input_of(client, tree.id))
        ran = len(host.runs)
        for name in (f"other-{queue}", f"{tree.id}-2026-11-20T20:55:37Z", f"firing-{tree.id}-2026-11-20T20:55:37Z"):
            await speaking(client).start_workflow("DelegationTree", copied, id=name, task_queue=queue)
            status, why = await closed_as(client, name)
            assert status == "FAILED"
            assert "or of another place" in why
    assert len(host.runs) == ran


async def test_what_somebody_else_says_of_a_job_is_not_believed(client: Client, queue: str) -> None:
    """A stranger polls the host's queue; the job it took has failed, and nothing is approved."""
    host, liar = Host(script({})), LyingHost()
    flows = runs(client)
    trees = Worker(client, task_queue=queue, workflows=WORKFLOWS, activities=host.activities, workflow_runner=flows)
    async with trees, lying(speaking(client), agents_queue(queue), liar):
        tree = await start(client, queue)
        closed, books = await over(tree, host)
    assert liar.seen
    assert closed.decision is None
    assert closed.task_state == "blocked"
    assert "the answer has no valid seal (it has no seal of this service)" in books.jobs[tree.id].reason
    assert await failed_tasks(tree) == 0


async def test_what_somebody_else_says_a_child_came_to_is_not_believed(client: Client, queue: str) -> None:
    """A stranger takes the child's task from the service's queue while no worker runs, and completes the child."""
    host = Host(script({"root": (delegation("a"),)}), held={"a"})
    async with serving(client, queue, host):
        tree = await start(client, queue)
        await host.until_running("a")
        child = host.run("a").job_id
    await completed_by_a_stranger(speaking(client), queue, child, outcome(host.run("a"), "approved"))
    host.release("a")
    async with serving(client, queue, host):
        await ended(tree)
    books = Books(host.written)
    assert "the answer has no valid seal (it has no seal of this service)" in books.jobs[child].reason
    assert books.jobs[child].decision is None


async def test_an_empty_completion_is_no_result(client: Client, queue: str) -> None:
    """An activity is completed by its id, without a result."""
    host = Host(script({}), held={"root"})
    async with serving(client, queue, host):
        tree = await start(client, queue)
        await host.until_running("root")
        [pending] = (await tree.describe()).raw_description.pending_activities
        given = speaking(client).get_async_activity_handle(
            workflow_id=tree.id, run_id=None, activity_id=pending.activity_id
        )
        await given.complete()
        closed = await ended(tree)
        host.release("root")
    assert closed.decision is None
    assert "it is empty" in closed.reason


async def test_a_good_outcome_of_another_attempt_is_not_believed(client: Client, queue: str) -> None:
    """Copied from the tree's own history, the outcome has a valid seal for this workflow."""
    first = Host(script({"root": None}))
    async with serving(client, queue, first):
        tree = await start(client, queue)
        await ended(tree)
        copied = next(
            event.activity_task_completed_event_attributes.result.payloads[0]
            for event in (await tree.fetch_history()).events
            if event.HasField("activity_task_completed_event_attributes")
            and b'"attempt"' in event.activity_task_completed_event_attributes.result.payloads[0].data
        )
        again = json.loads(copied.data) | {"attempt": 7, "decision": "approved", "state": "succeeded"}
        place = binding_of(ActivitySerializationContext("default", None, "run_job", None, tree.id, None, False))
        seals = seals_of(client.data_converter)
        assert seals is not None
        sealed = seals.seal(payload(again).payload, place)
    liar = LyingHost(lambda run: RawValue(sealed))
    start_again = TreeStart(input=an_input().model_copy(update={"root_job_id": tree.id}), host=queue)
    flows = runs(client)
    trees = Worker(client, task_queue=queue, workflows=WORKFLOWS, activities=first.activities, workflow_runner=flows)
    async with trees, lying(speaking(client), agents_queue(queue), liar):
        closed = await ended(await start(client, queue, start_again))
    assert closed.decision is None
    assert "attempt 7: it is rejected" in closed.reason


async def test_a_host_runs_nothing_that_somebody_else_orders(client: Client, queue: str) -> None:
    host = Host(script({}))
    async with serving(client, queue, host):
        tree = await start(client, queue)
        await ended(tree)
        ran = len(host.runs)
        scheduled = next(
            event.activity_task_scheduled_event_attributes.input.payloads[0]
            for event in (await tree.fetch_history()).events
            if event.HasField("activity_task_scheduled_event_attributes")
        )
        given: dict[str, list[object]] = {
            "unsealed": [RawValue(Payload(metadata={"encoding": b"json/plain"}, data=scheduled.data))],
            "copied": [RawValue(scheduled)],
            "nothing": [],
        }
        for kind, what in given.items():
            with pytest.raises(WorkflowFailureError) as caught:
                await order(speaking(client), f"forger-{kind}-{queue}", "run_job", agents_queue(queue), *what)
            assert isinstance(caught.value.cause, ActivityError)
            assert len(host.runs) == ran, kind


async def test_an_activity_that_no_workflow_ordered_is_not_run(client: Client, queue: str) -> None:
    host, run = Host(script({})), root_run(an_input())
    async with serving(client, queue, host):
        begun = await speaking(client).start_activity(
            "run_job",
            run,
            id=f"alone-{queue}",
            task_queue=agents_queue(queue),
            start_to_close_timeout=timedelta(seconds=60),
            retry_policy=RetryPolicy(maximum_attempts=1),
        )
        with pytest.raises(ActivityFailureError) as caught:
            await soon(begun.result())
    assert "Failed decoding arguments" in str(caught.value.__cause__)
    assert not host.runs


async def test_what_a_worker_without_the_key_answers_is_not_believed(client: Client, queue: str) -> None:
    """A stranger's worker plays the whole task: queries to it fail with that reason."""
    host = Host(asking({}, "root"))
    stranger = speaking(client)
    async with serving(stranger, queue, host):
        tree = await start(stranger, queue)
        await waits(host)
        asked: Handle = client.get_workflow_handle_for(DelegationTree.run, tree.id)
        with pytest.raises(UnsealedError, match="it has no seal of this service"):
            await asked.query(DelegationTree.state)
        with (
            pytest.raises(UnreachableError, match="Temporal's answer has no valid seal") as refused,
            translate_errors(),
        ):
            await asked.query(DelegationTree.state)
        assert refused.value.hint == "service doctor"
        await tree.signal("resume", {"verb": "answer", "text": "blue"})
        await ended(tree)
        with pytest.raises(UnsealedError):
            await asked.result()


async def test_a_tree_of_a_release_without_seals_is_ended_and_says_what_to_type(client: Client, queue: str) -> None:
    """The tree does not hang: the first worker with seals that continues it ends it."""
    host, plain = Host(asking({}, "root")), speaking(client)
    async with serving(plain, queue, host):
        tree = await start(plain, queue)
        await waits(host)
    async with serving(client, queue, host):
        await tree.signal("resume", {"verb": "answer", "text": "red"})
        status, why = await closed_as(client, tree.id)
        assert status == "TERMINATED"
        assert "a release without seals" in why
        assert "service agent ask" in why
        with pytest.raises((WorkflowQueryFailedError, RPCError)):
            await tree.query(DelegationTree.state)


@pytest.mark.parametrize("name", ["resume", "kill"])
async def test_a_message_with_a_false_seal_is_refused_and_told(client: Client, queue: str, name: str) -> None:
    host = Host(lambda run: asking({}, "root")(run))
    value = {"verb": "answer", "text": "red"} if name == "resume" else {"immediate": True}
    async with serving(client, queue, host):
        other, tree = await start(client, queue), await start(client, queue)
        await waits(host, rounds=2)
        await other.signal(name, value)
        stranger, copied = speaking(client).get_workflow_handle(tree.id), await signal_in(other, name)
        for false in (payload(value, seal=bytes(16)), RawValue(copied)):
            await stranger.signal(name, false)

        def told() -> list[str]:
            events = Books(host.written).events.values()
            return [each.message for each in events if each.kind == "resume_refused" and each.job_id == tree.id]

        await host.until(lambda: len(told()) == 2)
        assert all("its seal is not of this service home, or of another place" in each for each in told())
        assert await failed_tasks(tree) == 0
        await tree.signal("kill")
        await ended(tree)
        await ended(other)


async def test_a_retry_is_not_taken_from_somebody_without_the_key(client: Client, queue: str) -> None:
    host = Host(asking({}, "root"))
    async with serving(client, queue, host):
        tree = await start(client, queue)
        await waits(host)
        stranger = speaking(client).get_workflow_handle(tree.id)
        with pytest.raises(Exception) as caught:  # noqa: PT011 - its cause is looked at
            await stranger.execute_update("retry", {"actor": "ann", "job_id": tree.id})
        cause = getattr(caught.value, "cause", None)
        assert isinstance(cause, ApplicationError)
        assert (cause.type, cause.message) == (UNSEALED, "it has no seal of this service")
        await tree.signal("kill")
        await ended(tree)

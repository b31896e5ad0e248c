"""Actions of the Temporal program on a tree: terminate, reset, delete; detected, reported, and continued."""

import asyncio
import json
import subprocess
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import update
from temporalio.client import WorkflowExecutionStatus, WorkflowHandle

from activities import ended_outside
from activities.ended_outside import OutsideWatch
from activities.host import heartbeat
from activities.host.context import Context
from activities.sealing import seal_key
from activities.sealing.converter import sealing_converter
from activities.store import attempt_rows, event_rows, job_rows, outbox, round_rows, schema, writers
from activities.store.leader import Chore, Leader
from bridge.daemon.server import find_program
from bridge.operations.home import seal_keys
from bridge.operations.orders import attention, new_jobs, resume, trees
from bridge.operations.pipelines import definitions
from cli.main import main
from tests.bridge import seeds
from tests.keys import turn
from tests.temporal.pipeline_stage import PipelineHost
from tests.temporal.server import speaking
from tests.waiting import until
from workflows.model import ids
from workflows.model.errors import RefusedError
from workflows.model.orders import ResumeOrder
from workflows.model.rows import Records, TaskRecord
from workflows.model.states import JobState, TaskState
from workflows.temporal import calls, search

REASON = "by hand, for a test"


async def temporal(host: PipelineHost, verb: str, workflow_id: str, *words: str) -> None:
    """Run the program as an operator types it."""
    command = [str(find_program()), "workflow", verb, "--workflow-id", workflow_id, *words]
    config = host.client.service_client.config
    command += ["--address", config.target_host, "--namespace", host.client.namespace]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr


async def ask(host: PipelineHost, message: str, action: str = "ask") -> str:
    return await new_jobs.start(host.service, new_jobs.NewJob("dev", action, message, "acme/shop"))


def answer(root: str) -> ResumeOrder:
    return ResumeOrder(actor="ann", channel="cli", job_id=root, verb="answer", text="q: this one")


def task(host: PipelineHost, root: str) -> TaskRecord:
    row = job_rows.task_of(host.service.store, root)
    assert row is not None
    return row


async def until_state(host: PipelineHost, root: str, *states: TaskState) -> TaskRecord:
    await host.until(lambda: task(host, root).state in states)
    return task(host, root)


def lookout(host: PipelineHost) -> OutsideWatch:
    """Return the worker's housekeeping."""
    store = host.service.store
    leader = Leader(store, Chore.SETTLE_ENDED_WORKFLOWS)
    return OutsideWatch(host.client, Context(host.service.home, host.service.settings, store), leader)


async def until_seen(host: PipelineHost, root: str) -> None:
    """Look again until it is seen: a list of workflows may lag behind."""
    seen = lookout(host)

    async def closed() -> bool:
        await seen.check()
        return root not in job_rows.open_trees(host.service.store)

    await until(closed)


@pytest.mark.long
@pytest.mark.ruling("engine:outside", "G2")
async def test_a_terminated_tree_is_found_told_and_goes_on(host: PipelineHost) -> None:
    async with host.working():
        root = await ask(host, "STAY")
        await host.until(lambda: host.there("held"))
        await temporal(host, "terminate", root, "--reason", REASON)
        await until_seen(host, root)
        ended, job = task(host, root), job_rows.get(host.service.store, root)
        assert job is not None
        assert ended.state is TaskState.BLOCKED
        assert ended.reason.startswith("terminated from outside by ")
        assert REASON in ended.reason
        assert ended.next == job.next == f"service job retry {root}"
        assert (job.state, job.reason) == (JobState.CANCELLED, ended.reason)
        last = event_rows.of_tree(host.service.store, root)[-1]
        assert last.kind == "tree_lost"
        assert outbox.get(host.service.store, last.event_id) is not None
        log = host.service.home.root / "notifications.jsonl"
        await host.until(lambda: log.exists() and "tree_lost" in log.read_text())
        # Its agent ends at the next heartbeat, since no workflow waits for it.
        await host.until(lambda: attempt_rows.get(host.service.store, root, 1).ended_at is not None)  # type: ignore[union-attr]

        host.touch("go")
        retried = await trees.retry(host.service, root, actor="ann")
        assert retried.reopened
        done = await until_state(host, root, TaskState.DONE)
    again = job_rows.get(host.service.store, root)
    assert again is not None
    assert (done.state, again.state, again.attempt) == (TaskState.DONE, JobState.SUCCEEDED, 2)
    kinds = [event.kind for event in event_rows.of_tree(host.service.store, root)]
    assert kinds.count("tree_lost") == kinds.count("tree_taken_up") == 1
    assert attention.find(host.service).blocked == ()


@pytest.mark.long
@pytest.mark.ruling("engine:outside")
async def test_a_paused_tree_that_was_terminated_asks_again_when_it_is_taken_up(host: PipelineHost) -> None:
    async with host.working():
        root = await ask(host, "ask a person")
        await until_state(host, root, TaskState.AWAITING_HUMAN)
        await temporal(host, "terminate", root, "--reason", REASON)
        with pytest.raises(RefusedError, match=REASON) as refused:
            await resume.resume(host.service, answer(root))
        assert refused.value.hint == f"service job retry {root}"
        assert round_rows.open_rounds(host.service.store, root=root) == []
        await trees.retry(host.service, root, actor="ann")
        await until_state(host, root, TaskState.AWAITING_HUMAN)
        await host.until(lambda: bool(round_rows.open_rounds(host.service.store, root=root)))
        await resume.resume(host.service, answer(root))
        await until_state(host, root, TaskState.DONE)


@pytest.mark.long
@pytest.mark.ruling("engine:outside")
async def test_a_deleted_tree_ends_and_says_how_to_start_anew(host: PipelineHost) -> None:
    async with host.working():
        root = await ask(host, "ask a person")
        await until_state(host, root, TaskState.AWAITING_HUMAN)
        await temporal(host, "delete", root, "--yes")
        await until_gone(host, root)
        await until_seen(host, root)
        ended = task(host, root)
        assert (ended.state, ended.reason) == (TaskState.CANCELLED, ended_outside.NOBODY)
        with pytest.raises(RefusedError) as refused:
            await trees.retry(host.service, root, actor="ann")
        assert refused.value.hint == "service agent ask dev 'ask a person' --repo acme/shop"
        with pytest.raises(RefusedError, match="nothing to end"):
            await trees.kill(host.service, root, actor="ann", immediate=False)


async def until_gone(host: PipelineHost, workflow_id: str) -> None:
    async def gone() -> bool:
        end = await ended_outside.ending_of(host.client, workflow_id)
        return bool(end and end.gone)

    await until(gone, "the server did not delete it")


async def is_over(tree: WorkflowHandle[Any, Any]) -> bool:
    return (await tree.describe()).status is not WorkflowExecutionStatus.RUNNING


@pytest.mark.ruling("engine:outside", "engine:dismiss")
async def test_a_terminated_tree_is_killed_for_good(host: PipelineHost) -> None:
    async with host.working():
        root = await ask(host, "STAY")
        await host.until(lambda: host.there("held"))
        await temporal(host, "terminate", root, "--reason", REASON)
        killed = await trees.kill(host.service, root, actor="ann", immediate=False)
        assert killed.over
        assert task(host, root).state is TaskState.CANCELLED
        assert REASON in task(host, root).reason
        with pytest.raises(RefusedError, match="nothing to end"):
            await trees.kill(host.service, root, actor="ann", immediate=False)


@pytest.mark.ruling("Q7")
async def test_a_kill_reaches_an_agent_before_its_next_heartbeat(
    host: PipelineHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat, "BEAT", timedelta(hours=1))
    monkeypatch.setattr(calls, "HEARTBEAT", timedelta(hours=3))
    async with host.working():
        root = await ask(host, "STAY")
        await host.until(lambda: host.there("held"))
        await trees.kill(host.service, root, actor="ann", immediate=True)
        await until_state(host, root, TaskState.CANCELLED)


@pytest.mark.long
@pytest.mark.ruling("engine:outside.reset")
@pytest.mark.parametrize("while_paused", [True, False])
async def test_a_reset_tree_goes_on_and_its_rows_with_it(host: PipelineHost, while_paused: bool) -> None:
    """Reset to before its question; or, once it is done, to before its answer took effect."""
    async with host.working():
        root = await ask(host, "ask a person")
        await until_state(host, root, TaskState.AWAITING_HUMAN)
        events = len(event_rows.of_tree(host.service.store, root))
        if not while_paused:
            await resume.resume(host.service, answer(root))
            await until_state(host, root, TaskState.DONE)
        await temporal(host, "reset", root, "--type", "FirstWorkflowTask", "--reason", REASON)
        # The recorded outcome of its first run is found again; then it asks again.
        await host.until(lambda: len(event_rows.of_tree(host.service.store, root)) > events + (not while_paused))
        await until_state(host, root, TaskState.AWAITING_HUMAN)
        waiting = round_rows.open_rounds(host.service.store, root=root)
        assert [each.number for each in waiting] == [1]
        await resume.resume(host.service, answer(root))
        done = await until_state(host, root, TaskState.DONE)
        jobs = job_rows.tree(host.service.store, root)
    assert {job.state for job in jobs} == {JobState.SUCCEEDED}
    recorded = event_rows.of_tree(host.service.store, root)
    assert len({event.event_id for event in recorded}) == len(recorded)
    assert [event.kind for event in recorded].count("round_opened") == 2
    assert done.ended_at is not None


@pytest.mark.ruling("engine:outside.reset")
async def test_a_root_job_that_runs_while_its_tree_is_reset_goes_on(host: PipelineHost) -> None:
    """Its agent is not stopped for a run of the workflow that was given up: the new run waits for it."""
    async with host.working():
        root = await ask(host, "STAY")
        await host.until(lambda: host.there("held") and (host.folder / "held").read_text())
        agent = (host.folder / "held").read_text()
        await temporal(host, "reset", root, "--type", "FirstWorkflowTask", "--reason", REASON)
        await until(lambda: waited_for(host, root))
        host.touch("go")
        await until_state(host, root, TaskState.DONE)
    job, run = job_rows.get(host.service.store, root), attempt_rows.get(host.service.store, root, 1)
    assert job is not None
    assert run is not None
    assert (job.state, job.attempt, run.outcome and run.outcome["state"]) == (JobState.SUCCEEDED, 1, "succeeded")
    assert (host.folder / "held").read_text() == agent, "it was started once"


async def waited_for(host: PipelineHost, root: str) -> bool:
    """A call of the new run beats, so the one of the run before has gone."""
    described = await host.client.get_workflow_handle(root).describe()
    pending = described.raw_description.pending_activities
    return any(each.activity_type.name == "run_job" and each.HasField("heartbeat_details") for each in pending)


ASKS = """\
name: p
repo: acme/shop
stages:
  - {id: think, kind: agent, agent: dev, action: ask, prompt: ask a person}
  - {id: after, kind: shell, command: "true", needs: [think]}
"""


@pytest.mark.long
@pytest.mark.ruling("engine:outside.reset", "K1")
@pytest.mark.parametrize("cancelled", [False, True])
async def test_the_tree_of_a_stage_is_taken_up_by_a_reset_pipeline_run(host: PipelineHost, cancelled: bool) -> None:
    """The run shows again that it waits, and the tree's end or the cancellation reaches the other."""
    await host.add(ASKS)
    async with host.working():
        run_id = await host.run()
        await host.until_state(run_id, "awaiting_human")
        root = host.show(run_id).stages[0].job_id or ""
        workflow_id = ids.workflow_id(host.name)
        first = await host.client.get_workflow_handle(root).describe()
        await temporal(host, "reset", workflow_id, "--type", "FirstWorkflowTask", "--reason", REASON)
        run = host.client.get_workflow_handle(workflow_id)
        await until(lambda: paused(run))
        if cancelled:
            await definitions.cancel(host.service, run_id, actor="ann")
        else:
            await resume.resume(host.service, answer(root))
        shown = await host.until_over(run_id)
        await until(lambda: is_over(run))
    last = await host.client.get_workflow_handle(root).describe()
    assert last.run_id == first.run_id, "the task was started once"
    ended = "cancelled" if cancelled else "succeeded"
    assert (shown.state, host.states(run_id)) == (ended, {"think": ended, "after": ended})
    assert {job.attempt for job in job_rows.tree(host.service.store, root)} == {1}


async def paused(run: WorkflowHandle[Any, Any]) -> bool:
    return (await run.describe()).typed_search_attributes.get(search.STATE) == "awaiting_human"


@pytest.mark.ruling("engine:dismiss", "D4")
async def test_a_blocked_task_is_dismissed(host: PipelineHost) -> None:
    async with host.working():
        root = await ask(host, "decide: failed", "implement")
        await until_state(host, root, TaskState.BLOCKED)
        assert [each.root_job_id for each in attention.find(host.service).blocked] == [root]
        described = host.client.get_workflow_handle(root)
        await until(lambda: is_over(described))
        over = await trees.dismiss(host.service, root, actor="ann")
        assert (over.root_job_id, over.over) == (root, True)
        assert [leg.branch for leg in over.unmerged] == [f"service/{root}"], "what it made is not forgotten"
        assert attention.find(host.service).blocked == ()
        assert task(host, root).state is TaskState.CANCELLED
        assert task(host, root).reason.startswith("dismissed by ann; it was blocked: ")
        with pytest.raises(RefusedError, match="nothing to end"):
            await trees.dismiss(host.service, root, actor="ann")
        with pytest.raises(RefusedError, match="dismissed by ann"):
            await trees.retry(host.service, root, actor="ann")


@pytest.mark.long
@pytest.mark.ruling("engine:outside")
async def test_a_pipeline_run_that_was_terminated_ends_with_its_stages(host: PipelineHost) -> None:
    await host.add(
        "name: p\nrepo: acme/shop\nstages:\n  - {id: think, kind: agent, agent: dev, action: ask, prompt: STAY}\n"
    )
    async with host.working():
        run_id = await host.run()
        await host.until(lambda: host.there("held"))
        root = host.show(run_id).stages[0].job_id or ""
        await temporal(host, "terminate", ids.workflow_id(host.name), "--reason", REASON)
        await until_seen(host, root)
        await lookout(host).check()
    shown = host.show(run_id)
    assert (shown.state, host.states(run_id)) == ("cancelled", {"think": "cancelled"})
    assert REASON in shown.reason
    assert "service pipeline run" in shown.reason
    assert task(host, root).state is TaskState.BLOCKED


@pytest.mark.long
@pytest.mark.ruling("engine:outside.reset")
async def test_a_tree_whose_rows_are_of_another_course_is_told_once_to_write_them_all(host: PipelineHost) -> None:
    """Simulates a tree that was reset, and has nothing to write for a long time."""

    def writer() -> writers.TreeWriter:
        with host.service.store.connect() as connection:
            row = writers.get(connection, root)
        assert row is not None
        return row

    async def asked() -> int:
        history = await host.client.get_workflow_handle(root).fetch_history()
        signals = [event.workflow_execution_signaled_event_attributes.signal_name for event in history.events]
        return signals.count("look_again")

    async with host.working():
        root = await ask(host, "ask a person")
        await until_state(host, root, TaskState.AWAITING_HUMAN)
        mine = writer().run_id
        with host.service.store.begin() as connection:
            connection.execute(update(schema.writers).values(run_id="a course that was given up"))
            connection.execute(update(schema.tasks).values(state=TaskState.OPEN, reason="of that course"))
            left = seeds.job(f"{root}.7", reason="nobody works on it")
            job_rows.write(connection, Records(jobs=(left,)))
        seen = lookout(host)

        async def looked() -> int:
            await seen.check()
            return await asked()

        await until(looked)
        await host.until(lambda: writer().run_id == mine)
        assert task(host, root).state is TaskState.AWAITING_HUMAN
        given_up = job_rows.get(host.service.store, left.job_id)
        assert given_up is not None
        assert (given_up.state, given_up.reason[:8]) == (JobState.CANCELLED, "given up")
        with host.service.store.begin() as connection:
            connection.execute(update(schema.writers).values(run_id="a course that was given up"))
        await seen.check()
        assert await asked() == 1, "once for each course: it writes by itself when it has something to say"
        await resume.resume(host.service, answer(root))
        await until_state(host, root, TaskState.DONE)


@pytest.mark.ruling("engine:dismiss", "I5")
async def test_who_dismisses_a_task_is_told_which_branches_hold_work_nobody_has_merged(
    host: PipelineHost, capsys: pytest.CaptureFixture[str]
) -> None:
    async with host.working():
        roots = []
        for _ in range(2):
            new = new_jobs.NewJob("dev", "implement", "decide: failed", "acme/shop")
            roots.append(await new_jobs.start(host.service, new))
            await until_state(host, roots[-1], TaskState.BLOCKED)
            described = host.client.get_workflow_handle(roots[-1])
            while (await described.describe()).status is WorkflowExecutionStatus.RUNNING:
                await asyncio.sleep(0.02)
        first, second = roots
        assert await asyncio.to_thread(main, ["job", "dismiss", first]) == 0
        assert capsys.readouterr().out.splitlines() == [
            f"{first} is over",
            f"  not merged: service/{first} (service job drop {first} --force)",
        ]
        assert await asyncio.to_thread(main, ["job", "dismiss", second, "--json"]) == 0
        answer = json.loads(capsys.readouterr().out)
        assert answer == {"root_job_id": second, "over": True, "unmerged_branches": [f"service/{second}"]}


@pytest.mark.ruling("N1")
async def test_a_tree_begun_under_another_key_is_ended_and_says_how_to_begin_it_anew(host: PipelineHost) -> None:
    """Simulates a tree of a release without seals: it waits for a person, and the next step would hang for ever."""
    async with host.working():
        root = await ask(host, "ask a person")
        await until_state(host, root, TaskState.AWAITING_HUMAN)
    key = b"x" * seal_key.BYTES
    (host.service.home.root / seal_key.FILE).write_bytes(key)
    host.client = speaking(host.client, sealing_converter(key))
    async with host.working():
        with pytest.raises(RefusedError, match=r"under another seal\.key") as refused:
            await resume.resume(host.service, answer(root))
    assert refused.value.hint.startswith("service agent ask dev ")
    ended = task(host, root)
    assert ended.state is TaskState.CANCELLED
    assert "under another seal.key" in ended.reason


@pytest.mark.ruling("Q10")
async def test_a_tree_that_waits_under_a_key_that_0_2_0_turned_goes_on(host: PipelineHost) -> None:
    home = host.service.home.root
    host.client = speaking(host.client, sealing_converter(home))
    async with host.working():
        root = await ask(host, "ask a person")
        await until_state(host, root, TaskState.AWAITING_HUMAN)
    turn(home)
    host.client = speaking(host.client, sealing_converter(home))
    with pytest.raises(RefusedError, match=f"{root} would end"):
        await asyncio.to_thread(seal_keys.replace, host.service)
    async with host.working():
        await resume.resume(host.service, answer(root))
        await until_state(host, root, TaskState.DONE)

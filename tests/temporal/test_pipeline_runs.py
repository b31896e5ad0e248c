"""Pipelines on the real server with real workers: git, processes and the store are a real host's."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
import pytest_asyncio
from temporalio.api.common.v1 import Payload
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.common import RawValue, RetryPolicy

from activities.pipelines import plan as planning
from activities.settings.model import Settings
from activities.store import attempt_rows, job_rows, tree_rows
from activities.store.registry import host_rows
from bridge.operations.orders import resume, trees
from bridge.operations.pipelines import definitions, runs, workflows
from bridge.operations.pipelines.runs import ActiveRunError, RunFilter, RunView
from bridge.operations.service import Service
from cli import pipeline
from tests.temporal.people import failed_tasks, shows
from tests.temporal.pipeline_stage import PipelineHost
from tests.temporal.server import speaking
from tests.waiting import until
from workflows.model import ids
from workflows.model.errors import NotFoundError, RefusedError, UnreachableError
from workflows.model.orders import ResumeOrder
from workflows.model.states import TaskState
from workflows.pipeline.plan import RunState, Trigger
from workflows.pipeline.syntax import Format
from workflows.temporal import placing, search
from workflows.temporal.pipeline_calls import Firing
from workflows.temporal.pipeline_schedule import PipelineFiring

HOLD = "touch $STAGE/held; while [ ! -e $STAGE/go ]; do sleep 0.02; done"
HEAD = "name: p\nrepo: acme/shop\n"


@pytest_asyncio.fixture
async def host(host: PipelineHost) -> AsyncIterator[PipelineHost]:
    yield host
    host.touch("go")
    await workflows.delete(host.service, host.name)


def shell(name: str, command: str, **more: object) -> str:
    rest = "".join(f", {key}: {value}" for key, value in more.items())
    return f"  - {{id: {name}, kind: shell, command: '{command}'{rest}}}\n"


@pytest.mark.ruling("K1", "J5")
async def test_a_run_from_end_to_end(host: PipelineHost) -> None:
    """A shell stage, an agent that implements, a check that sees its work; the payload reaches both."""
    await host.add(
        f"{HEAD}stages:\n"
        + shell(
            "lint", 'echo "$SERVICE_PAYLOAD_BRANCH" > $STAGE/branch; env > $STAGE/env; echo fine', env="{LEVEL: high}"
        )
        + "  - {id: make, kind: agent, agent: dev, action: implement, prompt: Make it, needs: [lint]}\n"
        + shell("check", "cat made.txt", needs="[make]")
    )
    async with host.working():
        run_id = await host.run(branch="a b\nc")
        assert host.show(run_id).state in {"pending", "running"}, "there as soon as its id is known"
        shown = await host.until_over(run_id)
    assert (shown.state, shown.reason, shown.halt_stage, shown.trigger) == ("succeeded", "", None, "cli")
    assert shown.payload == {"branch": "a b\nc"}
    lint, make, check = shown.stages
    assert (lint.summary, lint.attempt, lint.job_id, lint.decision) == ("fine", 1, None, None)
    assert (make.decision, make.summary, make.needs, make.kind) == ("implemented", "did it", ("lint",), "agent")
    assert check.summary == "made"
    assert (host.folder / "branch").read_text() == "a b\nc\n"
    variables = (host.folder / "env").read_text()
    assert "LEVEL=high\n" in variables
    assert f"SERVICE_RUN_ID={run_id}\n" in variables
    assert "PYTEST" not in variables
    assert ">\na b\nc\n</data-" in (host.folder / "prompt").read_text()
    assert make.job_id is not None
    assert [job.state for job in job_rows.tree(host.service.store, make.job_id)] == ["succeeded"]
    tree = tree_rows.get(host.service.store, make.job_id)
    assert tree is not None
    assert tree.host == host.service.settings.host
    assert not list(host.service.home.worktrees.glob("*check*")), "worktrees are disposed of"


@pytest.mark.ruling("J5")
async def test_a_run_is_shown_in_exactly_this_shape(host: PipelineHost) -> None:
    await host.add(f"{HEAD}stages:\n" + shell("a", "true"))
    async with host.working():
        shown = (await host.until_over(await host.run())).model_dump(mode="json")
    assert list(shown) == (
        [
            "id",
            "pipeline",
            "pull_request",
            "issue",
            "trigger",
            "state",
            "reason",
            "halt_stage",
            "started_at",
            "finished_at",
            "tokens",
            "cost_usd",
            "price_assumed",
            "belongs_to",
            "payload",
            "stages",
        ]
    )
    assert list(shown["stages"][0]) == (
        [
            "id",
            "kind",
            "needs",
            "state",
            "attempt",
            "job_id",
            "decision",
            "summary",
            "started_at",
            "finished_at",
            "tokens",
        ]
    )


@pytest.mark.ruling("J4")
async def test_of_fifty_at_once_exactly_one_runs(host: PipelineHost) -> None:
    await host.add(f"{HEAD}stages:\n" + shell("a", HOLD))
    async with host.working():
        answers = await asyncio.gather(*(host.run() for _ in range(50)), return_exceptions=True)
        begun = [each for each in answers if isinstance(each, str)]
        refused = [each for each in answers if isinstance(each, ActiveRunError)]
        assert (len(begun), len(refused)) == (1, 49)
        assert begun[0].startswith("prun-")
        assert (refused[0].status, refused[0].exit_code) == (409, 3)
        assert begun[0] in refused[0].message
        host.touch("go")
        await host.until_over(begun[0])
        assert [run.id for run in runs.list_runs(host.service, RunFilter()).runs] == begun
        again = await host.run()
        await host.until_over(again)


@pytest.mark.ruling("J4")
async def test_a_caller_that_brings_an_id_has_one_run_however_often_it_asks(host: PipelineHost) -> None:
    await host.add(f"{HEAD}stages:\n" + shell("a", HOLD))

    async def ask(run_id: str) -> str:
        return await definitions.run(host.service, host.name, {}, Trigger.BRIDGE, run_id)

    async with host.working():
        assert set(await asyncio.gather(*(ask("prun-mine") for _ in range(5)))) == {"prun-mine"}
        with pytest.raises(ActiveRunError):
            await ask("prun-yours")
        host.touch("go")
        await host.until_over("prun-mine")
        assert await ask("prun-mine") == "prun-mine"
        assert len(runs.list_runs(host.service, RunFilter()).runs) == 1


@pytest.mark.ruling("J4")
async def test_a_caller_that_asks_again_just_as_its_run_ends_starts_nothing_twice(host: PipelineHost) -> None:
    """Between the caller's look-up, which found nothing, and its start, that run began and ended."""
    await host.add(f"{HEAD}stages:\n  - {{id: a, kind: agent, agent: dev, action: ask, prompt: x}}\n")
    late = planning.plan(
        host.service.store,
        host.service.settings,
        host.service.artifacts,
        name=host.name,
        run_id="prun-again",
        trigger=Trigger.BRIDGE,
        payload={},
    )
    async with host.working():
        await definitions.run(host.service, host.name, {}, Trigger.BRIDGE, "prun-again")
        before = await host.until_over("prun-again")
        await host.client.get_workflow_handle(ids.workflow_id(host.name)).result()  # its rows end before it closes
        assert await workflows.start(host.service, late) == "prun-again"
        with pytest.raises(WorkflowFailureError) as over:
            await host.client.get_workflow_handle(ids.workflow_id(host.name)).result()
        assert "prun-again is over: succeeded" in str(over.value.cause)
        assert host.show("prun-again") == before
        assert len(job_rows.find(host.service.store, job_rows.JobFilter())) == 1
        await host.until_over(await host.run())


@pytest.mark.ruling("K1", "J4")
async def test_every_stage_of_a_run_starts_from_the_commit_it_was_started_on(host: PipelineHost) -> None:
    """Other commits do not matter; only the work of its own stages is added."""
    await host.add(
        f"{HEAD}stages:\n"
        + shell("a", f"git rev-parse HEAD; {HOLD}")
        + "  - {id: look, kind: agent, agent: dev, action: ask, prompt: Look, needs: [a]}\n"
        + "  - {id: make, kind: agent, agent: dev, action: implement, prompt: Make it, needs: [a]}\n"
        + shell("b", "git rev-parse HEAD", needs="[a]")
        + shell("c", "ls", needs="[make]")
    )
    async with host.working():
        run_id = await host.run()
        await host.until(lambda: host.there("held"))
        later = host.commit("later.txt")
        host.touch("go")
        shown = {stage.id: stage for stage in (await host.until_over(run_id)).stages}
        again = await host.until_over(await host.run())
    first = shown["a"].summary
    assert first != later
    assert shown["b"].summary == first
    attempts = [attempt_rows.get(host.service.store, shown[stage].job_id or "", 1) for stage in ("look", "make")]
    assert [attempt and attempt.base_sha for attempt in attempts] == [first, first]
    assert shown["c"].summary == "made.txt"
    assert runs.stage_output(host.service, run_id, "c").output == "made.txt\n"
    assert again.stages[0].summary == later


@pytest.mark.ruling("K1", "K6")
async def test_what_a_stage_printed_can_be_read(host: PipelineHost, capsys: pytest.CaptureFixture[str]) -> None:
    """Long output is cut to its end, without secrets; earlier attempts can be read too."""
    await host.add(
        f"{HEAD}stages:\n"
        + shell("talk", "seq 100000; echo token=ghp_0123456789abcdefghijABCDEFGHIJ012345; echo oh >&2; echo last")
        + "  - {id: think, kind: agent, agent: dev, action: ask, prompt: x}\n"
        + shell("after", "true", needs="[talk]")
    )
    async with host.working():
        run_id = await host.run()
        shown = await host.until_over(run_id)
    output = runs.stage_output(host.service, run_id, "talk")
    assert (output.state, output.attempt, output.said, output.stderr) == ("succeeded", 1, "last", "oh\n")
    assert output.output.endswith("\nlast\n")
    assert "99999\n100000\n" in output.output
    assert "ghp_0123" not in output.output
    assert len(output.output) < 13_000
    with pytest.raises(RefusedError, match="is an agent's") as agents:
        runs.stage_output(host.service, run_id, "think")
    assert agents.value.hint == f"service job show {shown.stages[1].job_id}"
    with pytest.raises(NotFoundError, match="has no stage thnk; it has talk, think, after"):
        runs.stage_output(host.service, run_id, "thnk")
    with pytest.raises(NotFoundError, match="has no recorded attempt 2"):
        runs.stage_output(host.service, run_id, "talk", 2)
    pipeline.show_output(host.service, run_id, "talk", None, json=False)
    printed = capsys.readouterr().out
    assert printed.startswith("talk succeeded attempt 1  last\n\noutput:\n  | [")
    assert printed.endswith("last\n\nstderr:\n  | oh\n")


@pytest.mark.ruling("J4")
async def test_later_edits_never_touch_a_run(host: PipelineHost) -> None:
    first = f"{HEAD}stages:\n" + shell("a", HOLD) + shell("b", "echo first", needs="[a]")
    await host.add(first)
    async with host.working():
        run_id = await host.run()
        await host.until(lambda: host.there("held"))
        await host.add(f"{HEAD}stages:\n" + shell("b", "echo second"))
        host.touch("go")
        shown = await host.until_over(run_id)
        assert [(stage.id, stage.summary) for stage in shown.stages] == [("a", ""), ("b", "first")]
        assert runs.definition_of_run(host.service, run_id) == first.replace("name: p", f"name: {host.name}")
        again = await host.until_over(await host.run())
    assert [(stage.id, stage.summary) for stage in again.stages] == [("b", "second")]


@pytest.mark.ruling("K1", "engine:runs")
async def test_a_stage_survives_its_worker_and_is_not_repeated(host: PipelineHost) -> None:
    await host.add(f"{HEAD}stages:\n" + shell("a", f"echo x >> $STAGE/ran; {HOLD}") + shell("b", "true", needs="[a]"))
    async with host.working():
        run_id = await host.run()
        await host.until(lambda: host.there("held"))
    host.touch("go")
    async with host.working():
        shown = await host.until_over(run_id)
    assert (shown.state, (host.folder / "ran").read_text()) == ("succeeded", "x\n")


@pytest.mark.ruling("K1")
async def test_a_cancel_stops_commands_and_agents(host: PipelineHost) -> None:
    await host.add(
        f"{HEAD}stages:\n"
        + shell("loop", "touch $STAGE/looping; while true; do sleep 0.02; done")
        + "  - {id: think, kind: agent, agent: dev, action: ask, prompt: STAY}\n"
        + shell("later", "true", needs="[loop]")
    )
    async with host.working():
        run_id = await host.run()
        await host.until(lambda: host.there("looping") and host.there("held"))
        await definitions.cancel(host.service, run_id, actor="ann")
        shown = await host.until_over(run_id)
    assert (shown.state, shown.reason) == ("cancelled", "cancelled by ann")
    assert host.states(run_id) == dict.fromkeys(("loop", "think", "later"), "cancelled")
    job = shown.stages[1].job_id
    assert job is not None
    assert [each.state for each in job_rows.tree(host.service.store, job)] == ["cancelled"]
    with pytest.raises(RefusedError, match="has ended"):
        await definitions.cancel(host.service, run_id, actor="ann")


async def told(client: Client, host: PipelineHost, wanted: dict[str, str]) -> None:
    """Wait until the run has these search attributes in the web UI."""
    shown: dict[str, object] = {}

    async def as_wanted() -> bool:
        nonlocal shown
        described = await client.get_workflow_handle(ids.workflow_id(host.name)).describe()
        shown = {pair.key.name: pair.value for pair in described.typed_search_attributes}
        return wanted.items() <= shown.items()

    await until(as_wanted, lambda: f"{shown}, not {wanted}")


@pytest.mark.ruling("K1")
async def test_a_run_waits_for_people_with_its_stage(host: PipelineHost, client: Client) -> None:
    await host.add(
        f"{HEAD}stages:\n"
        "  - {id: review, kind: agent, agent: dev, action: review, prompt: ask a person}\n"
        + shell("after", "true", needs="[review]")
    )
    async with host.working():
        run_id = await host.run()
        shown = await host.until_state(run_id, "awaiting_human")
        assert shown.reason == "stage review waits for people (ask): service attention"
        assert host.states(run_id) == {"review": "running", "after": "pending"}
        job = shown.stages[0].job_id
        assert job is not None
        await told(client, host, {search.STATE.name: "awaiting_human", search.PIPELINE.name: host.name})
        await resume.resume(host.service, ResumeOrder(job_id=job, channel="cli", verb="answer", text="q: this"))
        shown = await host.until_over(run_id)
    assert shown.state == "succeeded"


@pytest.mark.ruling("K1")
async def test_a_failed_stage_is_tried_again_and_a_decision_that_is_no_success_halts(
    host: PipelineHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workflows.pipeline.reducer.retry_backoff", lambda _: 0.05)
    await host.add(
        f"{HEAD}stages:\n"
        + shell("flaky", "[ $SERVICE_ATTEMPT = 2 ] || { echo oh no >&2; exit 3; }", retry=1)
        + shell("slow", "sleep 60", timeout="200ms", needs="[flaky]")
        + "  - {id: gate, kind: agent, agent: dev, action: review, prompt: 'decide: changes_requested '}\n"
        + "  - {id: none, kind: agent, agent: dev, action: review, prompt: 'decide: skipped '}\n"
        + shell("deploy", "true", needs="[gate]")
    )
    async with host.working():
        run_id = await host.run()
        shown = await host.until_over(run_id)
    by_id = {stage.id: stage for stage in shown.stages}
    assert (by_id["flaky"].state, by_id["flaky"].attempt) == ("succeeded", 2)
    assert by_id["slow"].summary == "the command was stopped after its timeout of 200ms"
    assert (by_id["gate"].state, by_id["gate"].decision) == ("failed", "changes_requested")
    assert (by_id["none"].state, by_id["none"].decision) == ("succeeded", "skipped")
    assert (by_id["deploy"].state, by_id["deploy"].summary) == ("skipped", "it needs gate, which failed")
    assert shown.state == "failed"
    first = attempt_rows.get(host.service.store, f"{run_id}.1", 1)
    assert first is not None
    assert first.diagnostics is not None
    assert first.diagnostics["stderr"] == "oh no\n"


@pytest.mark.ruling("K1")
async def test_a_schedule_runs_what_is_registered_and_skips_while_one_is_active(host: PipelineHost) -> None:
    def seen() -> list[str]:
        return [run.state.value for run in runs.list_runs(host.service, RunFilter()).runs]

    async def rests() -> bool:
        """Return whether every firing has its run, and all runs have ended."""
        fired = await host.client.get_schedule_handle(ids.workflow_id(host.name)).describe()
        return len(seen()) == fired.info.num_actions and not {"running", "pending"} & {*seen()}

    async with host.working():
        await host.add(f"{HEAD}schedule: {{interval: 1s}}\nstages:\n" + shell("a", HOLD))
        await host.until(lambda: "skipped" in seen() and "running" in seen())
        await host.add(f"{HEAD}schedule: {{interval: 1s}}\nstages:\n" + shell("new", "true"))
        host.touch("go")
        await host.until(lambda: seen().count("succeeded") >= 2)
        await definitions.disable(host.service, host.name)
        await until(rests, seen)
        listed = runs.list_runs(host.service, RunFilter()).runs
        await asyncio.sleep(1.5)
        assert len(runs.list_runs(host.service, RunFilter()).runs) == len(listed), "a disabled schedule rests"
        await definitions.remove(host.service, host.name)
    assert len({run.id for run in listed}) == len(listed), "each firing has a run of its own"
    assert {run.trigger for run in listed} == {Trigger.SCHEDULE}
    skipped = next(run for run in listed if run.state is RunState.SKIPPED)
    assert skipped.reason == "an earlier run of the pipeline was still active when its schedule fired"
    newest = next(run for run in listed if run.state is RunState.SUCCEEDED)
    assert [stage.id for stage in host.show(newest.id).stages] == ["new"]
    assert [each async for each in await host.client.list_schedules() if each.id == ids.workflow_id(host.name)] == []


@pytest.mark.ruling("K1")
async def test_a_firing_that_cannot_run_leaves_a_row_that_says_why(host: PipelineHost, queue: str) -> None:
    await host.add(f"{HEAD}enabled: false\nstages:\n" + shell("a", "true"))
    async with host.working():
        sentence = await host.client.execute_workflow(
            PipelineFiring.run, Firing(pipeline=host.name), id=f"firing-{queue}", task_queue=queue
        )
    (run,) = runs.list_runs(host.service, RunFilter()).runs
    assert (run.state, run.reason) == (RunState.FAILED, f"the pipeline {host.name} is disabled")
    assert sentence == f"{run.id} failed: the pipeline {host.name} is disabled"


@pytest.mark.ruling("K6")
async def test_without_temporal_nothing_is_recorded(host: PipelineHost) -> None:
    await host.add(f"{HEAD}stages:\n" + shell("a", "true"))
    config = host.service.home.config
    config.write_text(config.read_text().replace(host.client.service_client.config.target_host, "127.0.0.1:1"))
    cut_off = Service(host.service.home)
    with pytest.raises(UnreachableError):
        await definitions.run(cut_off, host.name)
    assert runs.list_runs(cut_off, RunFilter()).runs == ()
    scheduled = "name: q\nschedule: {cron: '@daily'}\nstages:\n" + shell("a", "true")
    with pytest.raises(UnreachableError):
        await definitions.add(cut_off, scheduled, Format.YAML)
    with pytest.raises(NotFoundError):
        definitions.get(cut_off, "q")


@pytest.mark.ruling("J4")
async def test_what_may_not_run_is_refused_with_the_specs_status(host: PipelineHost) -> None:
    with pytest.raises(NotFoundError) as missing:
        await definitions.run(host.service, "nope")
    assert (missing.value.status, missing.value.exit_code) == (404, 4)
    await host.add("name: p\nstages:\n" + shell("a", "true"))
    with pytest.raises(RefusedError, match="has no repo") as homeless:
        await host.run()
    await host.add("name: p\nrepo: acme/other\nstages:\n" + shell("a", "true"))
    with pytest.raises(RefusedError, match="acme/other is not registered") as unknown:
        await host.run()
    await host.add(f"{HEAD}stages:\n" + shell("a", "true"))
    await definitions.disable(host.service, host.name)
    with pytest.raises(RefusedError, match="is disabled") as disabled:
        await host.run()
    await host.add(f"{HEAD}stages:\n  - {{id: a, kind: agent, agent: nobody, action: ask, prompt: x}}\n")
    with pytest.raises(RefusedError, match=": no agent nobody") as gate:
        await host.run()
    assert {each.value.status for each in (homeless, unknown, disabled, gate)} == {400}
    assert runs.list_runs(host.service, RunFilter()).runs == ()


async def test_runs_are_listed_newest_first_page_by_page(host: PipelineHost) -> None:
    await host.add(f"{HEAD}stages:\n" + shell("a", "true"))
    async with host.working():
        begun = [(await host.until_over(await host.run())).id for _ in range(3)]
    page = runs.list_runs(host.service, RunFilter(limit=2))
    assert [run.id for run in page.runs] == begun[:0:-1]
    rest = runs.list_runs(host.service, RunFilter(limit=2, cursor=page.next_cursor))
    assert ([run.id for run in rest.runs], rest.next_cursor) == (begun[:1], None)
    assert runs.list_runs(host.service, RunFilter(state="failed")).runs == ()
    assert runs.list_runs(host.service, RunFilter(pipeline="other")).runs == ()


@pytest.mark.long
async def test_a_stage_whose_tree_is_killed_is_cancelled_and_halts_the_run(host: PipelineHost) -> None:
    await host.add(f"{HEAD}stages:\n  - {{id: think, kind: agent, agent: dev, action: ask, prompt: STAY}}\n")
    async with host.working():
        run_id = await host.run()
        await host.until(lambda: host.there("held"))
        job = host.show(run_id).stages[0].job_id or ""
        await trees.kill(host.service, job, actor="ann", immediate=True)
        shown: RunView = await host.until_over(run_id)
    assert (shown.state, shown.halt_stage, host.states(run_id)) == ("cancelled", "think", {"think": "cancelled"})


async def test_a_run_whose_workflow_was_terminated_can_be_closed(host: PipelineHost) -> None:
    await host.add(f"{HEAD}stages:\n" + shell("a", HOLD) + shell("b", "true", needs="[a]"))
    async with host.working():
        run_id = await host.run()
        await host.until(lambda: host.there("held"))
        await host.client.get_workflow_handle(ids.workflow_id(host.name)).terminate()
        shown = await definitions.cancel(host.service, run_id, actor="ann")
    why = f"its workflow was ended from outside; closed by ann; start it again: service pipeline run {host.name}"
    assert (shown.state, shown.reason) == ("cancelled", why)
    assert host.states(run_id) == {"a": "cancelled", "b": "cancelled"}
    await definitions.remove(host.service, host.name)


@pytest.mark.ruling("B6")
@pytest.mark.parametrize(
    ("when", "times"), [("INSERT ON claims", 0), ("UPDATE ON attempts WHEN NEW.ended_at IS NOT NULL", 1)]
)
async def test_a_stage_whose_run_the_store_never_takes_fails_at_once(host: PipelineHost, when: str, times: int) -> None:
    await host.add(f"{HEAD}stages:\n" + shell("a", "echo x >> $STAGE/ran"))
    with host.service.store.begin() as connection:
        words = f"CREATE TRIGGER never BEFORE {when} BEGIN SELECT RAISE(ABORT, 'not this one'); END"
        connection.exec_driver_sql(words)
    async with host.working():
        shown = await host.until_over(await host.run())
    assert (shown.state, shown.halt_stage) == ("failed", "a")
    assert "the store refuses what the run has to write: IntegrityError: not this one" in shown.reason
    assert "service doctor" in shown.reason
    assert host.there("ran") == bool(times)
    assert not times or (host.folder / "ran").read_text() == "x\n"


BROKEN = RawValue(Payload(metadata={"encoding": b"json/plain"}, data=b'{"actor": '))
TAKES = "the signal 'cancel' takes nothing, or an object with 'run_id' and 'actor': "
UNREADABLE: tuple[tuple[list[Any], str], ...] = (
    ([{}, {}], f"{TAKES}one value is taken, not 2"),
    ([BROKEN], f"{TAKES}what was sent cannot be read as JSON"),
    (["now"], f"{TAKES}a text was sent"),
    ([{"who": "bob"}], f"{TAKES}unknown key 'who'"),
    ([{"actor": 5}], f"{TAKES}'actor' must be a text, not a number"),
    ([{"run_id": "prun-other"}], "the signal 'cancel' was meant for prun-other, and this is prun-"),
)


async def held(host: PipelineHost, client: Client) -> tuple[str, WorkflowHandle[Any, Any]]:
    """Start a run whose only stage lasts, and return a handle without the key."""
    await host.add(f"{HEAD}stages:\n" + shell("a", HOLD))
    run_id = await host.run()
    await host.until(lambda: host.there("held"))
    return run_id, speaking(client).get_workflow_handle(ids.workflow_id(host.name))


@pytest.mark.long
@pytest.mark.ruling("F6.by_hand", "K1")
@pytest.mark.parametrize("what", [[], [None], [{}], [{"actor": "bob"}]])
async def test_a_cancel_sent_by_hand_needs_no_words(host: PipelineHost, client: Client, what: list[Any]) -> None:
    async with host.working():
        run_id, workflow = await held(host, client)
        await workflow.signal("cancel", args=what)
        shown = await host.until_over(run_id)
        assert await failed_tasks(workflow) == 0
    who = "bob" if what and what[0] else "somebody"
    assert (shown.state, shown.reason) == ("cancelled", f"cancelled by {who}, in Temporal")


@pytest.mark.ruling("N1")
async def test_where_messages_by_hand_are_turned_off_no_run_is_cancelled_by_one(
    host: PipelineHost, client: Client
) -> None:
    config = host.service.home.config
    config.write_text(config.read_text().replace("by_hand = true\n", "by_hand = false\n"))
    host.service = Service(host.service.home)
    async with host.working():
        run_id, workflow = await held(host, client)
        for what in ([], [{"actor": "bob"}]):
            await workflow.signal("cancel", args=what)
            await shows(workflow, "[temporal].by_hand")
        assert host.show(run_id).state == "running"
        await definitions.cancel(host.service, run_id, actor="ann")
        shown = await host.until_over(run_id)
    assert shown.reason == "cancelled by ann"


@pytest.mark.ruling("F6.by_hand", "K1")
async def test_a_cancel_that_cannot_be_read_ends_nothing_and_says_so(
    host: PipelineHost, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    async with host.working():
        run_id, workflow = await held(host, client)
        for what, why in UNREADABLE:
            for name in ("cancel", "attention", "outcome"):
                await workflow.signal(name, args=what)
            assert "Refused: somebody, in Temporal, " in await shows(workflow, why)
        assert await failed_tasks(workflow) == 0
        assert host.show(run_id).state == "running"
        host.touch("go")
        shown = await host.until_over(run_id)
    assert (shown.state, shown.reason) == ("succeeded", "")
    assert "Traceback" not in caplog.text


GATED = (
    f"{HEAD}stages:\n"
    "  - {id: gate, kind: agent, agent: dev, action: review, prompt: 'decide: blocked '}\n"
    + shell("slow", "while [ ! -e $STAGE/go ]; do sleep 0.05; done")
    + shell("deploy", "true", needs="[gate]")
)


@pytest.mark.ruling("K1", "D4")
@pytest.mark.parametrize("over", [True, False], ids=["over", "active"])
async def test_a_retry_inside_a_blocked_tree_moves_its_stage_and_the_run_on(host: PipelineHost, *, over: bool) -> None:
    """Whether the run has ended meanwhile or another stage still works."""
    await host.add(GATED)
    async with host.working():
        run_id = await host.run()
        if over:
            host.touch("go")
        await host.until(lambda: host.states(run_id)["gate"] == "blocked")
        if over:
            assert (await host.until_over(run_id)).state == "blocked"
        job = host.show(run_id).stages[0].job_id
        assert job is not None
        host.touch("better")
        await trees.retry(host.service, job, actor="ann, in the terminal")
        await host.until(lambda: host.states(run_id)["deploy"] == "succeeded")
        host.touch("go")
        await host.until(lambda: host.show(run_id).state == "succeeded")
    shown = host.show(run_id)
    assert {each.id: each.state for each in shown.stages} == dict.fromkeys(("gate", "slow", "deploy"), "succeeded")
    assert (shown.stages[0].job_id, shown.stages[0].attempt, shown.halt_stage) == (job, 1, None)
    task = job_rows.task_of(host.service.store, job)
    assert task is not None
    assert task.state is TaskState.DONE


@pytest.mark.ruling("K1", "J4")
async def test_while_a_later_run_is_active_a_retry_waits_for_its_end(host: PipelineHost) -> None:
    await host.add(GATED)
    async with host.working():
        host.touch("go")
        first = await host.run()
        await host.until_over(first)
        (host.folder / "go").unlink()
        second = await host.run()
        job = host.show(first).stages[0].job_id
        assert job is not None
        with pytest.raises(RefusedError, match=f"already has an active run, {second}"):
            await trees.retry(host.service, job, actor="ann, in the terminal")
        host.touch("go")
        await host.until_over(second)
        host.touch("better")
        await trees.retry(host.service, job, actor="ann, in the terminal")
        await host.until(lambda: host.show(first).state == "succeeded")


@pytest.mark.ruling("Q4")
async def test_a_stage_waits_for_a_host_with_its_label_and_says_so(
    host: PipelineHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = RetryPolicy(initial_interval=timedelta(milliseconds=20), maximum_interval=timedelta(milliseconds=50))
    monkeypatch.setattr(placing, "PLACE_RETRIES", quick)
    monkeypatch.setattr(Settings, "is_fleet", property(lambda _: True))
    see = partial(host_rows.see, host.service.store, host.service.settings.host, slots=2, started_at=1.0)
    see(labels=("runtime:shell",))
    agent = "  - {id: make, kind: agent, agent: dev, action: ask, prompt: Look, needs: [lint], require: [gpu]}\n"
    await host.add(f"{HEAD}stages:\n" + shell("lint", "echo fine", require="[gpu]") + agent)
    async with host.working():
        run_id = await host.run()
        await host.until(lambda: host.show(run_id).stages[0].summary == "no host has the label gpu: service host list")
        see(labels=("runtime:shell", "gpu"))
        shown = await host.until_over(run_id)
    assert [stage.state for stage in shown.stages] == ["succeeded", "succeeded"]
    assert shown.stages[0].summary == "fine"

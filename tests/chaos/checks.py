"""What holds after every case: rows against the marks of agents, against histories, screens and branches."""

import asyncio
import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from temporalio.client import Client
from temporalio.service import RPCError

from activities.git.git_branches import tip
from activities.runs.os_processes import marks as process_marks
from activities.runs.supervised_run import home_mark
from activities.settings.home import Home
from activities.store import attempt_rows, event_rows, job_rows, round_rows, run_rows
from activities.store.github import facts
from bridge.operations.home import gc
from bridge.operations.temporal import client_of
from tests.chaos.play import Look, Play
from tests.chaos.stack import BUDGET, Mark, Stack
from tests.chaos.workloads import ANSWER
from tests.e2e.script import git
from tests.temporal.books import Books
from tests.waiting import wait_for
from workflows.github.facts import fact_in
from workflows.model.event_kinds import BranchEventKind, EventKind
from workflows.model.rows import JobRecord, Records
from workflows.model.settings import Bounds
from workflows.model.states import Continuation, JobState, TaskState
from workflows.temporal.delegation_tree import DelegationTree

CLOCKS = 0.5
"""Seconds by which a mark may be later than the end that is recorded of its job."""
SOON = 60.0
ABANDONED = 100.0
"""Seconds after which nothing of an ended job is left, also where its host died while it was stopped."""
AGAIN = frozenset({EventKind.RUN_STARTED_AGAIN, EventKind.RESULT_REPAIRED})
"""Events that say of an attempt that its program ran once more."""


def of_play(play: Play) -> Iterator[str]:
    """Yield what is wrong with one case."""
    if play.workload.pipeline:
        yield from _of_run(play)
        return
    store, root = play.stack.service.seen.store, play.root
    task, jobs = job_rows.task_of(store, root), job_rows.tree(store, root)
    events = event_rows.of_tree(store, root)
    of_tree = tuple(event for event in events if event.kind not in set(BranchEventKind))
    records = Records(task=task, jobs=tuple(jobs), events=of_tree, rounds=tuple(round_rows.of_tree(store, root)))
    try:
        Books([records]).check([], Bounds(max_delegation_total_jobs=BUDGET))
    except AssertionError as error:
        yield f"the rows disagree: {error}"
    yield from _marks(
        play, jobs, Counter((event.job_id, event.data.get("attempt")) for event in events if event.kind in AGAIN)
    )
    yield from over_budget(root, jobs, play.stack.marks_of(root))
    yield from shown_wrongly(play.looks, play.stack.marks_of(root))
    yield from _ends(play, jobs, task.state.value if task else "missing")
    yield from _prompts(play, jobs)
    yield from _branches(play)
    yield from _comments(play)
    yield from _screens(play, jobs, task.state.value if task else "missing")


def _marks(play: Play, jobs: list[JobRecord], again: Counter[tuple[str, object]]) -> Iterator[str]:
    """Compare what agents did with what is said of them: each attempt ran as often as its row says, and not later."""
    known = {row.job_id: row for row in jobs}
    marks = play.stack.marks_of(play.root)
    mine = [mark for mark in marks if re.fullmatch(rf"{re.escape(play.root)}(\.\d+)?", mark.job)]
    begun, ended = (
        Counter((mark.job, mark.attempt) for mark in mine if mark.word == word) for word in ("begin", "end")
    )
    for job, attempt in begun:
        row = known.get(job)
        if row is None or attempt > row.attempt:
            yield f"an agent of {job}, attempt {attempt}, ran, which no row knows"
    for row in jobs:
        key = row.job_id, row.attempt
        limits = len(attempt_rows.deferrals_of_run(play.stack.service.seen.store, *key))
        sure, other = (
            limits + again[row.job_id, row.attempt],
            again[row.job_id, None],
        )  # a repair may be an earlier attempt's
        ran, more = begun[key], sure + min(other, max(0, begun[key] - 1 - sure))
        at_once = row.state is JobState.CANCELLED and play.workload.at_once  # perhaps before its first mark
        may = at_once or _of_harmed_job(play, row.job_id)
        if row.started_at is None and ran:
            yield f"{row.job_id} ran {ran} times, and its row says that it never began"
        if row.started_at is not None and not (ran == 1 + more or (may and ran <= 1 + more)):
            yield f"{row.job_id}, attempt {row.attempt}, ran {ran} times in place of {1 + more}"
        if row.state is JobState.SUCCEEDED and not ended[key]:
            yield f"{row.job_id} succeeded, and its agent never came to its end"
    for mark in mine:
        row = known.get(mark.job)
        if row and row.attempt == mark.attempt and row.ended_at and mark.at > row.ended_at + CLOCKS:
            yield f"{mark.word} of {mark.job} {mark.at - row.ended_at:.1f} s after its end"


def over_budget(root: str, jobs: list[JobRecord], marks: list[Mark]) -> Iterator[str]:
    """Count the attempts that began, by their marks: no more than the bound, beside the root and the finalize."""
    free = {row.job_id for row in jobs if row.continuation is Continuation.FINALIZE}
    begun = (mark for mark in marks if mark.word == "begin" and mark.job.startswith(f"{root}."))
    spent = {(mark.job, mark.attempt) for mark in begun if mark.job not in free}
    if len(spent) > BUDGET:
        yield f"{len(spent)} attempts began, of {BUDGET} that are allowed: {sorted(spent)}"


def shown_wrongly(looks: list[Look], marks: list[Mark]) -> Iterator[str]:
    """Compare what the task's page showed while the case ran with what agents had done at that time."""
    for look in looks:
        for (job, attempt), state in look.jobs.items():
            at = {mark.word: mark.at for mark in marks if (mark.job, mark.attempt) == (job, attempt)}
            last = max(at.values(), default=0.0)
            if state.has_ended and state is not JobState.SKIPPED and last > look.until + CLOCKS:
                yield f"{job} was shown as {state} {last - look.until:.1f} s before its agent's last mark"
            passed = at.get({JobState.QUEUED: "begin", JobState.RUNNING: "end"}.get(state, ""), look.since)
            if look.calm and passed < look.since - SOON:
                yield f"{job} was shown as {state} {look.since - passed:.0f} s after that was over"


def _of_harmed_job(play: Play, job: str) -> bool:
    """Return whether the fault may have kept this job's agent from what it does."""
    arrival = play.aim.arrival
    return arrival is not None and play.fault.harms(play.case.station)


def _ends(play: Play, jobs: list[JobRecord], task: str) -> Iterator[str]:
    """Compare the end with the one without a fault."""
    if play.fault.harms(play.case.station):
        if task not in (play.workload.task, "blocked", "cancelled"):
            yield f"the task is {task}"
        return
    ended = {row.delegation_id or row.continuation.value: row.state.value for row in jobs}
    if task != play.workload.task:
        yield f"the task is {task}, in place of {play.workload.task}"
    if ended != dict(play.workload.states):
        yield f"the jobs ended {ended}, in place of {dict(play.workload.states)}: {[row.reason for row in jobs]}"


def _prompts(play: Play, jobs: list[JobRecord]) -> Iterator[str]:
    """Check that what a person said is in the prompt of one job, once."""
    answers = [text for _, text in play.workload.resumes if ANSWER in text]
    if not answers or play.fault.harms(play.case.station):
        return
    folder = play.stack.plans / "prompts"
    prompts = {path.name.rpartition(".")[0] for path in folder.glob(f"{play.root}*") if ANSWER in path.read_text()}
    if len(prompts) != 1:
        yield f"what a person said is in the prompts of {sorted(prompts)}"


def _branches(play: Play) -> Iterator[str]:
    """Check that the task's branch has the files of its legs."""
    if not play.workload.files or play.fault.harms(play.case.station):
        return
    branch, repo = f"service/{play.root.replace('job-', 'task-')}", play.stack.service.repo

    def files() -> set[str]:
        return set(git(repo, "ls-tree", "--name-only", branch).split())

    try:
        wait_for(
            lambda: tip(repo, branch) is not None and set(play.workload.files) <= files(),
            "",
            _soon(play.stack),
        )
    except AssertionError:
        yield f"{branch} does not have {play.workload.files}"


def _soon(stack: Stack) -> float:
    """Return in how many seconds what comes after a tree's end is there: it may be under a fault that still lasts."""
    return SOON + max(0.0, stack.troubled_until - time.time())


def _comments(play: Play) -> Iterator[str]:
    """Check that each fact stands on GitHub once, and the end is told."""
    if not play.issue:
        return

    store = play.stack.service.seen.store

    def marks() -> list[str]:
        return [mark for body in play.stack.github.bodies(play.issue) if (mark := fact_in(body))]

    try:
        wait_for(lambda: any(mark.endswith("-end") for mark in marks()), "", _soon(play.stack))
    except AssertionError:
        known = [(fact.fact_id, fact.state, fact.error) for fact in facts.of_root(store, play.root)]
        yield f"the end is not told on GitHub: {marks()}, of {known}"
    if twice := [mark for mark, number in Counter(marks()).items() if number > 1]:
        yield f"told twice on GitHub: {twice}"


def _screens(play: Play, jobs: list[JobRecord], task: str) -> Iterator[str]:
    """Compare the page's JSON with the rows."""
    shown = play.stack.get(f"/v1/jobs/{play.root}/tree")
    if shown is None:
        yield "the bridge does not show the tree"
        return
    states = {row["job_id"]: row["state"] for row in shown["jobs"]}
    if (shown["task"]["state"], states) != (task, {row.job_id: row.state.value for row in jobs}):
        yield f"the bridge shows {shown['task']['state']} {states}"


def _of_run(play: Play) -> Iterator[str]:
    store = play.stack.service.seen.store
    run = run_rows.get(store, play.root)
    stages = {stage.stage_id: stage.state.value for stage in run_rows.stages_of(store, play.root)}
    if not play.fault.harms(play.case.station) and stages != dict(play.workload.states):
        yield f"the stages ended {stages}: {run and run.record.reason}"
    marks = play.stack.marks_of(play.root)
    begun = Counter((mark.job, mark.attempt, mark.name) for mark in marks if mark.word == "begin")
    if twice := {key: number for key, number in begun.items() if key[0] == play.root and number > 1}:
        yield f"commands of stages ran twice: {twice}"


def of_stack(stack: Stack, plays: list[Play]) -> Iterator[str]:
    """Yield what is wrong once all cases are over: what is left, and what screens say. Each names the tree it is of."""
    if any(play.fault.alone for play in plays):  # what a disk that failed kept from being removed is listed, and swept
        stack.service.run("repo", "sweep", "--yes")

    def left() -> set[str]:
        return {*_agents(stack), *_folders(stack), *_locks(stack)} - stack.left

    until = time.monotonic() + ABANDONED
    while (new := left()) and time.monotonic() < until:
        time.sleep(1)  # a look reads what is known of every process
    new -= set(_kept_with_work(stack)) if new else set()
    yield from new
    yield from _held_in_memory(stack, min((play.struck_at for play in plays if play.struck_at), default=time.time()))
    attention = stack.service.json("attention")
    for play in plays:
        for part, rows in attention.items():
            expected = _is_blocked(play) if part == "blocked" else part == "undelivered" and play.fault.alone
            if play.root and play.root in json.dumps(rows) and not expected:
                yield f"attention names {play.root} as {part}, which is over"
    yield from asyncio.run(_histories(stack, plays))
    stack.left |= new  # last: a check that the store keeps from its end is made again


def _is_blocked(play: Play) -> bool:
    task = job_rows.task_of(play.stack.service.seen.store, play.root)
    return task is not None and task.state is TaskState.BLOCKED


async def _histories(stack: Stack, plays: list[Play]) -> list[str]:
    """Compare the rows with the state of each tree's workflow, which may be behind them for a while."""
    client, until = await client_of(stack.service.seen), time.monotonic() + SOON
    while (wrong := await _differences(stack, client, plays)) and time.monotonic() < until:
        await asyncio.sleep(1)
    return wrong


async def _differences(stack: Stack, client: Client, plays: list[Play]) -> list[str]:
    wrong = []
    for play in plays:
        if play.failures or play.workload.pipeline:
            continue
        try:
            workflow = client.get_workflow_handle(play.root)
            state = await workflow.query(DelegationTree.state, rpc_timeout=timedelta(seconds=SOON))
        except (RPCError, RuntimeError) as error:
            wrong.append(f"the workflow of {play.root} does not answer: {error}")
            continue
        rows = {row.job_id: row.state for row in job_rows.tree(stack.service.seen.store, play.root)}
        known = {job: row.state for job, row in state.jobs.items()}
        if known != rows:
            wrong.append(f"{play.root}: its workflow knows {known}, its rows {rows}")
    running = [run.id async for run in client.list_workflows("ExecutionStatus = 'Running'")]
    over = {play.root for play in plays if play.root and not play.failures}
    if left := [run for run in running if run.partition(".")[0] in over]:
        wrong.append(f"workflows still run: {left}")
    return wrong


def _held_in_memory(stack: Stack, since: float) -> list[str]:
    """Return what the worker says of workflows that it could not evict, as an await after a cancellation has them."""
    lines = (stack.home / "logs/worker.log").read_text().splitlines()
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(since))
    return [line for line in lines if "can't be removed from memory" in line and line > at]


def _agents(stack: Stack) -> list[str]:
    ours = tuple(f"@{home_mark(Home(host.home).runs)}" for host in stack.hosts)
    return [f"an agent is left: {pid} {mark}" for pid, mark in process_marks() if mark.endswith(ours)]


def _folders(stack: Stack) -> list[str]:
    return [_of_folder(path) for path in (stack.home / "worktrees").glob("*")]


def _of_folder(path: Path) -> str:
    return f"a work folder is left: {path.name}"


def _kept_with_work(stack: Stack) -> Iterator[str]:
    """Yield the work folders that are to stay: a failed attempt's, whose work is nowhere else, as a sweep says."""
    for repository in gc.sweep(stack.service.seen):
        for left in repository.found:
            path = Path(left.name)
            job_id, _, attempt = path.name.rpartition("+")[2].rpartition("-")
            if left.keep and attempt.isdecimal():
                job = job_rows.get(stack.service.seen.store, job_id)  # None for a stage of a pipeline
                if job is None or job.state is not JobState.SUCCEEDED or job.attempt > int(attempt):
                    yield _of_folder(path)


def _locks(stack: Stack) -> list[str]:
    repos = (stack.service.repo / ".git", stack.folder / "hub.git")
    return [f"a lock is left: {path}" for repo in repos for path in repo.rglob("*.lock")]

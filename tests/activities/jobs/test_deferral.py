"""Deferred runs: rate limits and network failures delay a job, but do not end it."""

import asyncio
import time
from dataclasses import replace
from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.agents.faults import Blocker, BlockerKind
from activities.agents.registry import adapters_of
from activities.host.slots import Slots
from activities.jobs import deferral as deferring
from activities.jobs.run_job import Jobs
from activities.runs.status import RunStage as LiveStage
from activities.settings.model import RuntimeSection
from activities.store import attempt_rows, claim_rows, job_rows
from activities.store.attempt_rows import Deferral, Offered
from bridge.operations.jobs import jobs as shown
from bridge.operations.service import Service
from tests.activities.jobs.conftest import Stage, git
from tests.activities.jobs.programs import a_job, calls, driving, lasted, limit_of
from tests.activities.store import rows
from tests.waiting import soon
from workflows.contract.models import Action, AutonomyPolicy
from workflows.model.jobs import JobOutcome, JobRun
from workflows.model.orders import StopReason
from workflows.model.rows import Records
from workflows.model.spend import Usage
from workflows.model.states import Continuation, JobState
from workflows.temporal.messages import Begun, HeldUp

LIMITED = "claude('You have hit your usage limit', True, 429, tokens=3)"


@pytest.fixture(autouse=True)
def users_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(deferring, "MARGIN_SECONDS", 0.0)
    home = tmp_path / "h"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    return home


def limited(stage: Stage, script: str, times: int = 1, **section: object) -> Stage:
    section = {"rate_limit_backoff": "1s", "network_backoff": "1s"} | section
    return driving(stage, "runtime_b", f"if number <= {times}:\n    {script}\nclaude(RESULT)", **section)


async def put_off(stage: Stage, job: JobRun) -> float:
    """Return the run's wait. It is called again after a minute at the latest: the case `limited, run put off, 1, hold
    the interpreter's lock` of the matrix of faults, with a worker's clock that was an hour behind.
    """
    with pytest.raises(ApplicationError) as caught:
        await stage.play(job)
    wait = attempt_rows.deferrals_of_run(stage.context.store, job.job_id, job.attempt)[-1].until - time.time()
    assert not caught.value.non_retryable
    delay = caught.value.next_retry_delay
    assert delay is not None
    assert min(wait, 60) <= delay.total_seconds() <= 60
    return max(wait, delay.total_seconds())


async def after(stage: Stage, job: JobRun, seconds: float) -> JobOutcome:
    await asyncio.sleep(seconds)
    return await stage.play(job)


@pytest.mark.ruling("B3")
async def test_a_limit_puts_the_run_off_and_the_next_try_starts_the_program_anew(
    stage: Stage, users_home: Path
) -> None:
    driven = limited(stage, LIMITED)
    job = a_job(driven, "runtime_b")
    wait = await put_off(driven, job)
    assert 0 < wait <= 1
    outcome = await after(driven, job, wait)
    assert (outcome.state, outcome.summary) == (JobState.SUCCEEDED, "fine")
    assert outcome.usage == Usage(input_tokens=13, output_tokens=2), "what the first try used counts"
    [run] = attempt_rows.of_job(stage.context.store, job.job_id)
    first = Path(run.run_dir).name
    assert sorted(path.name for path in stage.context.home.runs.iterdir()) == [first, f"{first}.try2"]
    assert calls(users_home) == 2
    assert await driven.play(job) == outcome


@pytest.mark.ruling("G2.stops")
@pytest.mark.parametrize("action", [Action.ASK, Action.IMPLEMENT])
async def test_a_run_that_is_put_off_is_stopped_by_its_order_without_another_try(
    stage: Stage, users_home: Path, action: Action
) -> None:
    driven = limited(stage, LIMITED, rate_limit_backoff="1h")
    job = a_job(driven, "runtime_b", AutonomyPolicy.WORKSPACE_WRITE, action=action)
    await put_off(driven, job)
    offered = Offered(job.job_id, job.attempt, job.offer)
    assert claim_rows.call_off(stage.context.store, offered, StopReason.CANCELLED)
    context, slots = driven.context, Slots(driven.context.settings)
    slots.hold("the disk is full")
    full = replace(driven, jobs=Jobs(context, adapters_of(context.settings, context.environ), slots))
    outcome = await soon(full.play(job))
    assert (outcome.state, outcome.reason) == (JobState.CANCELLED, "stopped on order")
    assert outcome.usage == Usage(input_tokens=3, output_tokens=1), "what the first try used counts"
    assert calls(users_home) == 1
    assert not list(stage.context.home.worktrees.glob("*"))
    assert await full.play(job) == outcome


@pytest.mark.ruling("A10")
async def test_a_later_try_has_the_time_that_those_before_left_and_the_wait_is_not_counted(stage: Stage) -> None:
    driven = limited(stage, "import time; time.sleep(0.5); " + LIMITED)
    job = a_job(driven, "runtime_b", timeout_seconds=600)
    await after(driven, job, await put_off(driven, job))
    first, second = sorted(stage.context.home.runs.iterdir())
    assert limit_of(second) == pytest.approx(limit_of(first) - lasted(first), abs=0.01)
    assert lasted(first) > 0.4


async def test_called_too_early_it_waits_on_and_starts_nothing(stage: Stage, users_home: Path) -> None:
    driven = limited(stage, LIMITED, rate_limit_backoff="1h")
    job = a_job(driven, "runtime_b")
    for _ in range(3):
        assert 3590 < await put_off(driven, job) <= 3600
    assert calls(users_home) == 1
    assert len(attempt_rows.deferrals_of_run(stage.context.store, job.job_id, 1)) == 1


async def test_a_call_that_is_repeated_too_early_sends_its_tree_no_report(stage: Stage) -> None:
    """A report is a signal in the history of the tree: a wait of hours would have hundreds."""
    driven, again = limited(stage, LIMITED, rate_limit_backoff="1h"), ActivityEnvironment()
    job, again.info = a_job(driven, "runtime_b"), replace(again.info, attempt=2)
    await put_off(driven, job)
    reported = driven.context.reports.waiting
    with pytest.raises(ApplicationError):
        await again.run(driven.jobs.run_job, job)
    assert driven.context.reports.waiting == reported
    await put_off(driven, job)
    assert driven.context.reports.waiting != reported, "a tree that offers it again hears that it has begun"


async def test_what_a_writer_had_done_is_there_when_it_goes_on(stage: Stage, users_home: Path) -> None:
    script = "open('half.py', 'w').write('x'); " + LIMITED
    driven = limited(stage, script, rate_limit_backoff="300ms")
    job = a_job(driven, "runtime_b", AutonomyPolicy.WORKSPACE_WRITE, action=Action.IMPLEMENT)
    wait = await put_off(driven, job)
    (worktree,) = stage.context.home.worktrees.iterdir()
    assert (worktree / "half.py").exists()
    outcome = await after(driven, job, wait)
    assert (outcome.state, outcome.touched_files) == (JobState.SUCCEEDED, ("half.py",))
    prompts = [path / "prompt" for path in sorted(stage.context.home.runs.iterdir())]
    assert ["An earlier try" in path.read_text() for path in prompts] == [False, True]
    assert git(stage.repo, "show", f"{outcome.branch}:half.py") == "x"


async def test_while_a_reader_is_put_off_it_has_no_worktree(stage: Stage) -> None:
    driven = limited(stage, "open('junk', 'w'); " + LIMITED, rate_limit_backoff="300ms")
    job = a_job(driven, "runtime_b")
    wait = await put_off(driven, job)
    assert git(stage.repo, "worktree", "list").count("\n") == 1
    assert (await after(driven, job, wait)).state is JobState.SUCCEEDED
    assert git(stage.repo, "worktree", "list").count("\n") == 1


@pytest.mark.ruling("B3")
@pytest.mark.parametrize(
    ("script", "section", "words"),
    [
        (LIMITED, {"rate_limit_retries": 0}, "tried 1 times, as often as rate_limit_retries = 0 allows"),
        (
            "claude('You have hit your limit, try again in 9 days', True, 429)",
            {},
            "longer than rate_limit_wait = 6h allows",
        ),
        ("claude('API Error: 500 x', True, 500)", {"network_retries": 0}, "network_retries = 0"),
    ],
)
async def test_a_wait_beyond_its_bounds_fails_the_job_and_says_so(
    stage: Stage, script: str, section: dict[str, object], words: str
) -> None:
    outcome = await limited(stage, script, 99, **section).play(a_job(stage, "runtime_b"))
    assert outcome.state is JobState.FAILED
    assert words in outcome.reason
    assert "[runtimes.runtime_b]" in outcome.reason


@pytest.mark.ruling("G2")
async def test_a_finalize_does_not_keep_its_tree_open_for_hours(stage: Stage) -> None:
    driven = limited(stage, "claude('You have hit your limit, resets in 3 hours', True, 429)", 99)
    last = a_job(driven, "runtime_b", continuation=Continuation.FINALIZE)
    job = last.model_copy(update={"continuation": Continuation.NONE, "attempt": 2})
    assert await put_off(driven, job) > 3 * 3600 - 60
    outcome = await driven.play(last)
    assert outcome.state is JobState.FAILED
    assert "longer than rate_limit_wait = 5m allows" in outcome.reason


async def test_a_run_that_is_never_better_ends_after_its_last_try(stage: Stage, users_home: Path) -> None:
    driven = limited(stage, LIMITED, 99, rate_limit_retries=2, rate_limit_backoff="300ms")
    job = a_job(driven, "runtime_b")
    for _ in range(2):
        await asyncio.sleep(await put_off(driven, job))
    outcome = await driven.play(job)
    assert outcome.state is JobState.FAILED
    assert "tried 3 times" in outcome.reason
    assert outcome.usage == Usage(input_tokens=9, output_tokens=3)
    assert calls(users_home) == 3


@pytest.mark.ruling("B3")
async def test_everybody_sees_what_it_waits_for_and_until_when(stage: Stage) -> None:
    driven = limited(stage, LIMITED, rate_limit_backoff="1h")
    job = a_job(driven, "runtime_b")
    await put_off(driven, job)
    begun, held_up = stage.context.reports.waiting[job.root_job_id]
    assert isinstance(begun, Begun)
    assert isinstance(held_up, HeldUp)
    assert (held_up.job_id, held_up.attempt) == (job.job_id, job.attempt)
    assert held_up.reason.startswith("waits for runtime_b until 20")
    assert "usage limit" in held_up.reason
    assert held_up.next.endswith(f"service job kill {job.job_id} --now")


@pytest.mark.ruling("B3")
async def test_while_it_waits_it_is_shown_as_put_off_and_its_events_keep_why(stage: Stage) -> None:
    driven = limited(stage, LIMITED, rate_limit_backoff="1h")
    job, row = a_job(driven, "runtime_b"), rows.job(state=JobState.RUNNING)
    assert job.job_id == row.job_id
    await put_off(driven, job)
    job_rows.write(stage.context.store, Records(jobs=(row,)))
    service = Service(stage.context.home)
    seen = shown.live(service, row)
    assert seen is not None
    assert seen.stage is LiveStage.PUT_OFF
    (waited,) = shown.waits(service, job.job_id)
    assert (waited.kind, waited.data["attempt"]) == ("runtime_waits", 1)
    assert waited.message.startswith("waits for runtime_b until 20")


async def test_an_order_to_stop_that_comes_as_it_is_put_off_ends_it(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    driven = limited(stage, LIMITED, rate_limit_backoff="1h")
    environment, really_defer = ActivityEnvironment(), deferring.defer

    def defer(*words: object) -> Deferral | Blocker:
        environment.cancel()
        time.sleep(0.2)
        return really_defer(*words)  # type: ignore[arg-type]

    monkeypatch.setattr(deferring, "defer", defer)
    outcome = await environment.run(driven.jobs.run_job, a_job(driven, "runtime_b"))
    assert (outcome.state, outcome.reason) == (JobState.CANCELLED, "stopped on order")
    assert outcome.usage == Usage(input_tokens=3, output_tokens=1)


def a_deferral(number: int, kind: BlockerKind = BlockerKind.RATE_LIMIT) -> Deferral:
    return Deferral("job-0123456789ab", 1, number, "runtime_b", kind, "m", 0.0, 1.0)


def test_waits_double_up_to_the_longest_and_each_kind_counts_for_itself() -> None:
    limit, network = Blocker(BlockerKind.RATE_LIMIT, "m"), Blocker(BlockerKind.NETWORK, "m")
    section, none = RuntimeSection(), ()
    before = [a_deferral(n) for n in range(1, 9)]
    assert [deferring.due(limit, section, before[:n], 0) for n in range(4)] == [60, 120, 240, 480]
    assert isinstance(deferring.due(limit, section, before, 0), str)
    assert deferring.due(network, section, before, 0) == 15
    assert deferring.due(limit, RuntimeSection(rate_limit_wait="90s"), before[:3], 0) == 90  # type: ignore[arg-type]
    assert deferring.due(Blocker(BlockerKind.LOGIN, "m"), section, none, 0) == "waiting does not help"


@pytest.mark.ruling("B3")
async def test_a_program_that_is_killed_is_tried_again_once(stage: Stage, users_home: Path) -> None:
    killed = "import signal; os.kill(os.getpid(), signal.SIGKILL)"
    once = limited(stage, killed)
    job = a_job(once, "runtime_b")
    outcome = await after(once, job, await put_off(once, job))
    assert (outcome.state, calls(users_home)) == (JobState.SUCCEEDED, 2)
    ever = limited(stage, killed, times=9)
    job = job.model_copy(update={"job_id": "job-0123456789ac"})
    outcome = await after(ever, job, await put_off(ever, job))
    assert (outcome.state, calls(users_home)) == (JobState.FAILED, 4)
    assert outcome.reason == "claude was killed by signal 9 (it was tried again once)"
    never = limited(stage, killed, times=9, network_retries=0)
    assert (await never.play(job.model_copy(update={"job_id": "job-0123456789ad"}))).state is JobState.FAILED

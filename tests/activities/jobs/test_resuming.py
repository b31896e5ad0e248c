"""Continuations that resume a session (ruling K3), and restarted runs: their course and their notices."""

import json
from pathlib import Path
from typing import Any

import pytest

from activities.store import attempt_rows
from tests.activities.jobs.conftest import Stage
from tests.activities.jobs.continued import ROOT, kept, next_of, told
from tests.activities.jobs.programs import a_job, calls, driving
from workflows.contract.models import Action, AutonomyPolicy
from workflows.model.spend import Usage
from workflows.model.states import JobState
from workflows.model.workers import SessionScope

pytestmark = pytest.mark.usefixtures("users_home")

SAYS = {"runtime_a": "codex(RESULT, 1000 * number)", "runtime_b": "claude(RESULT)", "runtime_c": "kimi(RESULT)"}
SEEN = '(here / f"seen{number}").write_text(json.dumps([prompt, os.getcwd()]))\n'
APPROVED = 'print(\'{"service_result": {"decision": "approved", "summary": "fine"}}\')\n'


def words(home: Path) -> list[list[str]]:
    return [json.loads(line) for line in (home / "calls").read_text().splitlines()]


@pytest.mark.ruling("K3", "spec:limits.token_capture")
@pytest.mark.parametrize("runtime", SAYS)
async def test_a_coordinator_goes_on_in_its_session_and_folder_with_the_whole_brief(
    stage: Stage, users_home: Path, runtime: str
) -> None:
    driven = driving(stage, runtime, SEEN + SAYS[runtime])
    first = kept(a_job(driven, runtime))
    second = next_of(first, 2)
    ran = [await driven.play(run) for run in (first, second, next_of(second, 3))]
    assert {outcome.state for outcome in ran} == {JobState.SUCCEEDED}, [outcome.reason for outcome in ran]
    assert [told(outcome, "session_not_resumed") for outcome in ran] == [[], [], []]
    prompts, folders = zip(*(json.loads((users_home / f"seen{n}").read_text()) for n in (1, 2, 3)), strict=True)
    assert len(set(folders)) == 1, "programs know a session by its folder"
    assert not Path(folders[0]).exists()
    for prompt in prompts[1:]:
        assert '"service_result"' in prompt, "the contract again"
        assert "### Leg `a`" in prompt
    flag, session = {"runtime_a": ("resume", "s-1"), "runtime_b": ("--resume", None), "runtime_c": ("-S", "session_1")}[
        runtime
    ]
    _, *later = words(users_home)
    for call in later:
        assert call[call.index(flag) + 1] == (session or ran[0].session)
    if runtime == "runtime_a":
        used = Usage(input_tokens=1000, output_tokens=1), Usage(input_tokens=1000), Usage(input_tokens=1000)
        assert tuple(outcome.usage for outcome in ran) == used, "the session counts on, a job what it used"


@pytest.mark.ruling("K3")
@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"attempt": 2}, "another attempt of a job begins afresh"),
        ({"parent_job_id": f"{ROOT}.9"}, f"{ROOT}.9 left no session"),
    ],
)
async def test_where_it_cannot_go_on_it_begins_afresh_and_says_why(
    stage: Stage, users_home: Path, changes: dict[str, Any], why: str
) -> None:
    driven = driving(stage, "runtime_a", SAYS["runtime_a"])
    first = kept(a_job(driven, "runtime_a"))
    await driven.play(first)
    outcome = await driven.play(next_of(first, 2, **changes))
    (notice,) = told(outcome, "session_not_resumed")
    assert notice.data["why"] == why
    assert "resume" not in words(users_home)[-1]


@pytest.mark.ruling("K3")
async def test_another_host_or_an_occupied_folder_begins_afresh(stage: Stage, users_home: Path) -> None:
    driven = driving(stage, "runtime_a", SAYS["runtime_a"])
    first = kept(a_job(driven, "runtime_a"))
    await driven.play(first)
    left = attempt_rows.get(driven.context.store, ROOT, 1)
    assert left is not None
    Path(left.worktree or "").mkdir()
    occupied = await driven.play(next_of(first, 2))
    assert [n.data["why"] for n in told(occupied, "session_not_resumed")] == ["the folder it worked in was not free"]
    Path(left.worktree or "").rmdir()
    with driven.context.store.begin() as connection:
        connection.exec_driver_sql("UPDATE attempts SET host = 'elsewhere'")
    moved = await driven.play(next_of(first, 3))
    assert [n.data["why"] for n in told(moved, "session_not_resumed")] == ["it is on the host elsewhere"]
    assert not any("resume" in call for call in words(users_home))


LOST = {
    "runtime_a": "Error: thread/resume: thread/resume failed: no rollout found for thread id s-1 (code -32600)",
    "runtime_b": "No conversation found with session ID: s-1",
    "runtime_c": 'error: failed to run prompt: Session "session_1" not found.',
}


@pytest.mark.ruling("K3")
@pytest.mark.parametrize("runtime", LOST)
async def test_a_program_that_lost_its_session_is_asked_afresh(stage: Stage, users_home: Path, runtime: str) -> None:
    lost = f"if number == 2:\n    print({LOST[runtime]!r}, file=sys.stderr); sys.exit(1)\n"
    driven = driving(stage, runtime, lost + SAYS[runtime])
    first = kept(a_job(driven, runtime))
    await driven.play(first)
    again = next_of(first, 2)
    outcome = await driven.play(again)
    assert (outcome.state, outcome.summary, calls(users_home)) == (JobState.SUCCEEDED, "fine", 3)
    (notice,) = told(outcome, "session_not_resumed")
    assert notice.data["why"] == "its program has lost it"
    assert await driven.play(again) == outcome
    assert calls(users_home) == 3


@pytest.mark.ruling("K3")
async def test_unless_it_is_told_to_an_agent_begins_every_job_afresh(stage: Stage, users_home: Path) -> None:
    driven = driving(stage, "runtime_a", SAYS["runtime_a"])
    first = kept(a_job(driven, "runtime_a"), SessionScope.FRESH)
    await driven.play(first)
    outcome = await driven.play(next_of(first, 2))
    assert outcome.notices == ()
    assert not any("resume" in call for call in words(users_home))


@pytest.mark.ruling("K3", "I1")
async def test_a_writer_that_goes_on_has_a_branch_of_its_own_in_the_same_folder(stage: Stage) -> None:
    driven = driving(stage, "runtime_a", "open(f'made{number}', 'w')\n" + SAYS["runtime_a"])
    first = kept(a_job(driven, "runtime_a", AutonomyPolicy.WORKSPACE_WRITE, action=Action.IMPLEMENT))
    ran = [await driven.play(run) for run in (first, next_of(first, 2))]
    assert [(each.branch, each.touched_files) for each in ran] == [
        (f"service/{ROOT}", ("made1",)),
        (f"service/{ROOT}.2", ("made2",)),
    ]


MORTAL = (
    "import os, pathlib, signal, time\ncount = pathlib.Path(os.environ['HOME'], 'count')\n"
    "count.write_text(count.read_text() + 'x' if count.exists() else 'x')\n"
    "if len(count.read_text()) == 1:\n    os.kill(os.getppid(), signal.SIGKILL); time.sleep(600)\n"
)


@pytest.mark.ruling("engine:runs", "B4")
@pytest.mark.parametrize("action", [Action.ASK, Action.REVIEW])
async def test_a_reader_whose_supervisor_died_is_started_again_and_that_is_told(stage: Stage, action: Action) -> None:
    reasons: list[str] = []
    stage.context.reports.held_up = lambda run, reason, what_next: reasons.append(reason)  # type: ignore[method-assign]
    outcome = await stage.play(stage.job(MORTAL + APPROVED, action))
    assert (outcome.state, outcome.summary) == (JobState.SUCCEEDED, "fine")
    (notice,) = told(outcome, "run_started_again")
    assert "its supervisor died" in notice.message
    assert [reason.partition(":")[0] for reason in reasons] == ["started again"], "seen while it runs, too"


@pytest.mark.ruling("engine:runs")
async def test_a_writer_whose_supervisor_died_is_not_started_again(stage: Stage) -> None:
    outcome = await stage.play(stage.job(MORTAL + APPROVED, Action.IMPLEMENT))
    assert (outcome.state, told(outcome, "run_started_again")) == (JobState.FAILED, [])
    assert (stage.tmp / "h" / "count").read_text() == "x"

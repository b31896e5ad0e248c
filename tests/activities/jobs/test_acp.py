"""Jobs of agents that speak ACP (ruling S7), by a fake one that misbehaves: this table is the documentation."""

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from activities.agents.acp import entries as acp_entries
from activities.agents.registry import adapters_of
from activities.host.slots import Slots
from activities.jobs.run_job import Jobs
from activities.store import attempt_rows
from tests import acp_agent
from tests.activities.jobs.conftest import Stage
from tests.activities.jobs.continued import kept, next_of, told
from tests.activities.jobs.programs import a_job
from tests.unboxed import unboxed
from workflows.contract.models import Action, AutonomyPolicy
from workflows.model.jobs import JobRun
from workflows.model.long_texts import Text
from workflows.model.spend import Usage
from workflows.model.states import JobState

pytestmark = [pytest.mark.ruling("S7"), pytest.mark.usefixtures("users_home")]

MINE = "mine"
WRITES, FULL = AutonomyPolicy.WORKSPACE_WRITE, AutonomyPolicy.DANGER_FULL_ACCESS


@pytest.fixture
def acp(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setenv("COPILOT_PROVIDER_API_KEY", "any")
    return _with(stage)


def _with(stage: Stage, runtime: str = MINE, section: dict[str, object] | None = None) -> Stage:
    """Return the stage with the fake agent as a runtime of its own, or as another runtime."""
    own = {"adapter": "acp", "command": [sys.executable, acp_agent.__file__]}
    settings = unboxed({"runtimes": {runtime: (own if runtime == MINE else {}) | (section or {})}})
    context = replace(stage.context, settings=settings)
    return replace(stage, context=context, jobs=Jobs(context, adapters_of(settings, context.environ), Slots(settings)))


def _job(
    stage: Stage, deed: str, policy: AutonomyPolicy = AutonomyPolicy.READ_ONLY, runtime: str = MINE, **fields: object
) -> JobRun:
    return a_job(stage, runtime, policy, prompt=Text(inline=f"Do it. [[acp:{deed}]]"), **fields)


def _records(stage: Stage, suffix: str = "") -> list[dict[str, Any]]:
    row = attempt_rows.get(stage.context.store, "job-0123456789ab", 1)
    assert row is not None
    folder = Path(row.run_dir)
    lines = folder.with_name(folder.name + suffix).joinpath("stdout.log").read_text().splitlines()
    return [json.loads(line) for line in lines]


def _of(records: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [record for record in records if record["type"] == kind]


@dataclass(frozen=True)
class Odd:
    """What an agent does, and the outcome of its job."""

    deed: str
    state: JobState = JobState.SUCCEEDED
    reason: str = ""
    timeout: float | None = None
    note: str = ""
    """Part of a note in the job's log."""


FAILED = JobState.FAILED
TABLE = (
    Odd("good"),
    Odd("floods", note="more faulty messages of the agent are left out"),
    Odd("long-line", note="the agent sent a line that is too long"),
    Odd("nonsense", note="the agent sent an answer to no request of ours"),
    Odd("ends-twice", note="the agent sent an answer to no request of ours"),
    Odd("asks-for-what-is-off", note="declined a question, since nobody is there: Which port?"),
    Odd("never-ends", FAILED, "the agent was stopped after its timeout", timeout=3.0),
    Odd("deaf", FAILED, "the agent was stopped after its timeout", timeout=3.0),
    Odd("reads-nothing", FAILED, "mine: it reads none of its messages", timeout=60.0),
    Odd("closes-output", FAILED, "mine: it closed its output before it answered session/prompt"),
    Odd("asks-after-end"),
    Odd("dies", FAILED, "mine: it ended with exit status 7 before it answered session/prompt"),
    Odd("says-nothing", FAILED, "mine on mine ended without saying anything"),
    Odd("refuses", FAILED, "mine: it stopped early: refusal"),
    Odd("ends-without-reason", FAILED, "mine: it stopped early: without a reason"),
    Odd("odd-error", FAILED, "mine: an error without a message"),
)


@pytest.mark.ruling("S8")
@pytest.mark.parametrize("odd", TABLE, ids=lambda odd: odd.deed)
async def test_an_agent_that_misbehaves_loses_nothing_and_stops_nobody(acp: Stage, users_home: Path, odd: Odd) -> None:
    outcome = await acp.play(_job(acp, odd.deed, timeout_seconds=odd.timeout))
    assert (outcome.state, odd.reason in outcome.reason) == (odd.state, True), outcome.reason
    assert (users_home / "starts").read_text() == "x", "the agent is started once"
    records = _records(acp)
    assert odd.note in json.dumps(_of(records, "note"))
    assert len(records) < 60, "an agent's flood is no flood of records"
    assert _of(records, "usage"), "tokens are counted, however it ends"


async def test_a_job_by_acp_works_and_its_log_tells_plan_tools_and_permission(acp: Stage) -> None:
    outcome = await acp.play(_job(acp, "works", WRITES, action=Action.IMPLEMENT))
    assert outcome.state is JobState.SUCCEEDED, outcome.reason
    assert (outcome.touched_files, outcome.session) == (("a.txt",), "s-1")
    entries = [entry for record in _records(acp) for entry in acp_entries(record)]
    texts = [(entry.kind.value, entry.tool or entry.text) for entry in entries]
    assert texts == [
        ("note", "fake 1.2.3, by ACP"),
        ("note", "session s-1"),
        ("thought", "Where is it?"),
        ("note", "plan:\n[x] look\n[ ] write"),
        ("tool", "edit"),
        ("note", "permission allowed: write a.txt"),
        ("result", "written"),
        ("said", acp_agent.IMPLEMENTED),
        ("usage", "as the agent says"),
    ]
    (call,) = (entry for entry in entries if entry.tool)
    assert [name.rpartition("/")[2] for name in call.files] == ["a.txt"]


@pytest.mark.parametrize(
    ("policy", "answers"),
    [
        (AutonomyPolicy.AUTO, "yes no no no no no no"),
        (AutonomyPolicy.READ_ONLY, "yes no no no no no no"),
        (WRITES, "yes yes no no no no no"),
        (FULL, "yes yes yes yes yes yes yes"),
    ],
)
async def test_a_permission_request_is_answered_by_the_policy_once_and_at_once(
    acp: Stage, users_home: Path, policy: AutonomyPolicy, answers: str
) -> None:
    outcome = await acp.play(_job(acp, "asks-for-all", policy))
    assert outcome.state is JobState.SUCCEEDED, outcome.reason
    assert (users_home / "answers").read_text() == answers
    events = [record["answer"] for record in _of(_records(acp), "permission")]
    assert events == ["allowed" if answer == "yes" else "refused" for answer in answers.split()]


@pytest.mark.ruling("P5")
async def test_what_an_agent_s_own_settings_refused_is_a_refusal_and_nothing_is_implemented(acp: Stage) -> None:
    outcome = await acp.play(_job(acp, "held-by-itself", WRITES, action=Action.IMPLEMENT))
    assert (outcome.state, 'by the policy "workspace-write" and wrote nothing' in outcome.reason) == (FAILED, True)
    assert [record["answer"] for record in _of(_records(acp), "permission")] == ["refused"]


async def test_results_of_tools_are_told_as_people_read_them(acp: Stage) -> None:
    await acp.play(_job(acp, "many-forms"))
    texts = [record["text"] for record in _of(_records(acp), "result")]
    assert texts == ["a.txt", "from content", "from message", "plain", '{"odd": 1}', '["odd"]', ""]


async def test_files_terminals_and_what_is_unknown_are_refused_and_a_question_is_declined(
    acp: Stage, users_home: Path
) -> None:
    await acp.play(_job(acp, "asks-for-what-is-off", FULL))
    *refused, declined = json.loads((users_home / "answers").read_text())
    assert [answer["error"]["code"] for answer in refused] == [-32601] * 3
    assert declined["result"] == {"action": "decline"}


async def test_a_stopped_job_cancels_the_prompt_and_permits_nothing_more(acp: Stage, users_home: Path) -> None:
    run = _job(acp, "asks-after-cancel", FULL, timeout_seconds=4.0)
    outcome = await acp.play(run)
    assert "stopped after its timeout" in outcome.reason
    assert (users_home / "answers").read_text() == "cancelled"
    assert [record["answer"] for record in _of(_records(acp), "permission")] == ["cancelled"]


async def test_a_rate_limit_puts_the_job_off(acp: Stage) -> None:
    with pytest.raises(Exception, match="429 Too Many Requests"):
        await acp.play(_job(acp, "rate-limit"))


async def test_a_killed_agent_puts_the_job_off_as_any_program_that_is_killed(acp: Stage) -> None:
    with pytest.raises(Exception, match="mine was killed by signal 9"):
        await acp.play(_job(acp, "is-killed"))
    assert _of(_records(acp), "error")[0]["message"] == "it was ended by signal 9 before it answered session/prompt"


async def test_a_login_that_is_missing_blocks_the_job_with_the_agents_own_words(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_LOGGED_OUT", "1")
    acp = _with(stage, section={"env": ["FAKE_LOGGED_OUT"]})
    outcome = await acp.play(_job(acp, "good"))
    assert outcome.state is JobState.BLOCKED
    assert "it is not logged in: Authentication required (Run `fake login`)" in outcome.reason
    assert outcome.first == "log in with the program itself"


async def test_a_command_that_is_missing_blocks_the_job(stage: Stage) -> None:
    acp = _with(stage, section={"command": ["/no/such/agent"]})
    outcome = await acp.play(_job(acp, "good"))
    assert (outcome.state, "there is no /no/such/agent" in outcome.reason) == (JobState.BLOCKED, True), outcome.reason


async def test_a_continuation_resumes_the_session_in_a_new_process_without_a_replay(
    acp: Stage, users_home: Path
) -> None:
    first = kept(_job(acp, "good"))
    assert (await acp.play(first)).state is JobState.SUCCEEDED
    outcome = await acp.play(next_of(first, 2))
    assert (outcome.state, outcome.session, told(outcome, "session_not_resumed")) == (JobState.SUCCEEDED, "s-1", [])
    prompts = [json.loads(line) for line in (users_home / "prompts").read_text().splitlines()]
    assert [session for session, _ in prompts] == ["s-1", "s-1"]
    (users_home / "sessions").write_text("")
    outcome = await acp.play(next_of(first, 3))
    assert outcome.session == "s-1"
    assert told(outcome, "session_not_resumed")[0].data["why"] == "its program has lost it"


async def test_an_agent_that_can_only_load_a_session_repeats_it_and_nothing_of_that_counts(
    stage: Stage, users_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_LOADS", "1")
    acp = _with(stage, section={"env": ["FAKE_LOADS"]})
    first = kept(_job(acp, "good"))
    assert (await acp.play(first)).state is JobState.SUCCEEDED
    later = next_of(first, 2)
    outcome = await acp.play(later)
    assert (outcome.state, outcome.session, told(outcome, "session_not_resumed")) == (JobState.SUCCEEDED, "s-1", [])
    row = attempt_rows.get(acp.context.store, later.job_id, 1)
    assert row is not None
    output = Path(row.run_dir, "stdout.log").read_text()
    assert ("fine" in output, "said before" in output, "old" in output) == (True, False, False)


async def test_the_mode_and_the_model_are_chosen_and_what_is_not_offered_fails_with_what_is(
    stage: Stage, users_home: Path
) -> None:
    acp = _with(stage, section={"modes": {WRITES: "code", FULL: "yolo"}})
    outcome = await acp.play(_job(acp, "good", WRITES, model="M2"))
    assert (users_home / "chosen").read_text().split() == ["code", "m2"]
    assert (outcome.model, outcome.state) == ("m2", JobState.SUCCEEDED)
    failed = await acp.play(_job(acp, "good", model="gpt", attempt=2))
    assert (failed.state, "unknown model gpt: it offers m1, m2" in failed.reason) == (FAILED, True), failed.reason
    failed = await acp.play(_job(acp, "good", FULL, attempt=3))
    assert "unknown mode yolo: it offers" in failed.reason


@pytest.mark.ruling("K5")
async def test_tokens_count_only_where_the_agent_is_known_to_count_right(acp: Stage, users_home: Path) -> None:
    (users_home / "copilot").write_text(f'#!/bin/sh\nexec {sys.executable} {acp_agent.__file__} "$@"\n')
    (users_home / "copilot").chmod(0o755)
    right = _with(acp, "copilot", {"command": [str(users_home / "copilot")], "env": ["HOME"]})
    outcome = await right.play(_job(right, "good", runtime="copilot"))
    assert (outcome.usage, outcome.estimated) == (Usage(input_tokens=1000, output_tokens=50), False), outcome.reason
    outcome = await acp.play(_job(acp, "good", attempt=2))
    assert (outcome.usage.output_tokens, outcome.estimated) == (50, True)
    assert outcome.usage.input_tokens > 1000, "a quarter of the characters of its prompt, which are more than it counts"

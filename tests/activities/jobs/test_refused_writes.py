"""An implement job whose program was refused its writes, wrote nothing and reports `implemented` (ruling P5)."""

from pathlib import Path

import pytest

from activities.store import attempt_rows
from activities.store.registry import agent_rows
from cli.main import main
from tests.activities.jobs.conftest import Stage
from tests.activities.jobs.programs import a_job, driving
from workflows.contract.models import Action, AutonomyPolicy
from workflows.model.states import JobState

pytestmark = pytest.mark.ruling("P5")

RESULT = 'RESULT = json.dumps({"service_result": {"decision": "implemented", "summary": "made it"} | MORE})\n'
REFUSED = """
say(type="result", subtype="success", is_error=False, result=RESULT, session_id=session,
    permission_denials=[{"tool_name": "Write"}, {"tool_name": "Bash"}, {"tool_name": "Bash"}])
"""
WRITE = AutonomyPolicy.WORKSPACE_WRITE
WAY_OUT = (
    "service agent add NAME --runtime runtime_b --capabilities implement --autonomy danger-full-access --repo acme/shop"
)


@pytest.fixture(autouse=True)
def users_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)


async def test_it_fails_and_names_the_policy_and_what_changes_it(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    driven = driving(stage, "runtime_b", "MORE = {}\n" + RESULT + REFUSED)
    job = a_job(driven, "runtime_b", WRITE, action=Action.IMPLEMENT)
    outcome = await driven.play(job)
    assert (outcome.state, outcome.decision) == (JobState.FAILED, None)
    assert outcome.reason == (
        'its program was refused 3 tool calls (Write, Bash) by the policy "workspace-write" and wrote nothing, but its '
        "result says implemented; another attempt has the same policy, so give the work to an agent that may do more "
        f"(try: {WAY_OUT})"
    )
    row = attempt_rows.get(driven.context.store, job.job_id, 1)
    assert row is not None
    assert "implemented" in (row.diagnostics or {})["output"]
    monkeypatch.setenv("SERVICE_HOME", str(driven.context.home.root))
    assert main(WAY_OUT.split()[1:]) == 0
    registered = agent_rows.get(driven.context.store, "NAME")
    assert registered
    assert registered.worker.autonomy_policy is AutonomyPolicy.DANGER_FULL_ACCESS


@pytest.mark.parametrize(
    ("more", "before"),
    [
        ({}, 'pathlib.Path("made.txt").write_text("made")\n'),
        ({"decision": "approved"}, ""),
        ({"delegations": [{"id": "a", "agent": "dev", "action": "ask", "prompt": "do it"}]}, ""),
    ],
    ids=["it wrote all the same", "it claims no change", "it hands the work on"],
)
async def test_any_other_result_stands(stage: Stage, more: dict[str, object], before: str) -> None:
    driven = driving(stage, "runtime_b", f"MORE = {more!r}\n{before}" + RESULT + REFUSED)
    outcome = await driven.play(a_job(driven, "runtime_b", WRITE, action=Action.IMPLEMENT))
    assert outcome.state is JobState.SUCCEEDED, outcome.reason


async def test_implemented_without_a_change_and_without_a_refusal_stands(stage: Stage) -> None:
    driven = driving(stage, "runtime_b", "MORE = {}\n" + RESULT + "claude(RESULT)")
    outcome = await driven.play(a_job(driven, "runtime_b", WRITE, action=Action.IMPLEMENT))
    assert outcome.state is JobState.SUCCEEDED, outcome.reason

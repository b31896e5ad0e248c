"""A job through each agent program, from prompt to recorded outcome, with stand-ins for the programs."""

import asyncio
import json
import sys
import time
from pathlib import Path

import pytest
from temporalio.activity import ActivityCancellationDetails
from temporalio.testing import ActivityEnvironment

from activities.agents.installed_program import InstalledProgram
from activities.runtimes.known_runtimes import CLAUDE, CODEX, PROGRAMS
from activities.store import attempt_rows, job_rows
from tests import rows
from tests.activities.jobs.conftest import Stage
from tests.activities.jobs.programs import PRELUDE, a_job, calls, driving
from tests.waiting import until
from workflows.contract.models import Action, AutonomyPolicy
from workflows.model.rows import Records
from workflows.model.spend import Usage
from workflows.model.states import JobState

pytestmark = pytest.mark.usefixtures("users_home")

SAYS = {"runtime_a": "codex(RESULT, 1000)", "runtime_b": "claude(RESULT)", "runtime_c": "kimi(RESULT)"}
USED = {
    "runtime_a": Usage(input_tokens=1000, output_tokens=1),
    "runtime_b": Usage(input_tokens=10, output_tokens=1),
    "runtime_c": Usage(),
}


@pytest.mark.parametrize("runtime", SAYS)
@pytest.mark.ruling("spec:limits.token_capture")
async def test_a_job_that_goes_well(stage: Stage, users_home: Path, runtime: str) -> None:
    look = '(here / "seen").write_text(json.dumps([prompt, os.getcwd(), os.environ.get("TMPDIR", "")]))\n'
    driven = driving(stage, runtime, look + SAYS[runtime])
    outcome = await driven.play(a_job(driven, runtime))
    assert (outcome.state, outcome.summary, outcome.usage) == (JobState.SUCCEEDED, "fine", USED[runtime])
    assert outcome.session
    prompt, cwd, temporary = json.loads((users_home / "seen").read_text())
    assert "look at it" in prompt
    assert "service_result" in prompt
    assert cwd.startswith(str(stage.context.home.worktrees))
    assert not temporary.startswith(str(stage.context.home.runs)) or not Path(temporary).exists()


@pytest.mark.ruling("K5")
async def test_the_model_a_program_says_it_used_is_the_jobs_and_no_other_is(stage: Stage) -> None:
    say = 'say(type="system", subtype="init", model="claude-sonnet-5-5" if number < 3 else None)\n'
    draft = 'claude("a draft") if number == 1 else claude(RESULT)\n'
    driven = driving(stage, "runtime_b", say + draft)
    asked = a_job(driven, "runtime_b", model="sonnet")
    assert (await driven.play(asked)).model == "claude-sonnet-5-5", "the repair's run, like the first"
    silent = await driven.play(asked.model_copy(update={"job_id": "job-0123456789ac", "attempt": 1}))
    assert (silent.state, silent.model) == (JobState.SUCCEEDED, None), "what was asked for is not what was used"


@pytest.mark.parametrize("runtime", SAYS)
@pytest.mark.ruling("A5", "spec:limits.token_capture")
async def test_a_repair_goes_on_in_the_same_session_and_its_tokens_are_counted_once(
    stage: Stage, users_home: Path, runtime: str
) -> None:
    draft = SAYS[runtime].replace("RESULT", '"a draft"')
    total = SAYS[runtime].replace("1000", "2500")
    driven = driving(stage, runtime, f"if number == 1:\n    {draft}\nelse:\n    {total}")
    outcome = await driven.play(a_job(driven, runtime))
    assert (outcome.state, outcome.summary) == (JobState.SUCCEEDED, "fine")
    first, second = (json.loads(line) for line in (users_home / "calls").read_text().splitlines())
    match runtime:
        case "runtime_a":
            assert second[-3:] == ["resume", "s-1", "-"]
            assert outcome.usage == Usage(input_tokens=2500, output_tokens=1), "the session's last total is the job's"
        case "runtime_b":
            assert second[second.index("--resume") + 1] == first[first.index("--session-id") + 1]
            assert outcome.usage == Usage(input_tokens=20, output_tokens=2)
        case _:
            assert second[:2] == ["-S", "session_1"]


@pytest.mark.parametrize(
    ("runtime", "script", "state", "words"),
    [
        ("runtime_a", "codex_fails('unexpected status 401 Unauthorized: no')", "blocked", "try: codex login"),
        ("runtime_b", "claude('Not logged in · Please run /login', True)", "blocked", "try: claude /login"),
        ("runtime_c", "print('error: failed to run prompt: provider.auth_error: 401 x', file=sys.stderr); sys.exit(1)",
         "blocked", "try: kimi, and in it /login"),
        ("runtime_a", "codex_fails('the model is sad')", "failed", "the model is sad"),
        ("runtime_b", "claude(RESULT, True, 400)", "failed", "claude: "),
        ("runtime_b", "pass", "failed", "ended without a result"),
        ("runtime_b", "claude(RESULT, False) if 0 else print(RESULT); sys.exit(3)", "failed", "claude crashed (exit 3"),
        ("runtime_c", "kimi(RESULT); sys.exit(1)", "failed", "kimi crashed (exit 1)"),
        ("runtime_a", "print('error: unexpected argument --json found', file=sys.stderr); sys.exit(2)", "blocked",
         "npm install -g @openai/codex"),
    ],
)  # fmt: skip
@pytest.mark.ruling("A5", "B3")
async def test_a_run_that_failed_has_no_result_whatever_it_printed(
    stage: Stage, users_home: Path, runtime: str, script: str, state: str, words: str
) -> None:
    driven = driving(stage, runtime, script)
    outcome = await driven.play(a_job(driven, runtime))
    assert (outcome.state, outcome.decision) == (state, None)
    assert words in outcome.reason
    assert bool(outcome.first) is (state == "blocked")
    assert outcome.first in outcome.reason
    assert calls(users_home) == 1, "what fails is not repaired"


@pytest.mark.ruling("B3")
async def test_a_program_that_is_missing_blocks_its_job_with_what_to_install(stage: Stage) -> None:
    driven = driving(stage, "runtime_a", "", command=["no-such-codex"])
    outcome = await driven.play(a_job(driven, "runtime_a"))
    assert outcome.state is JobState.BLOCKED
    assert "there is no no-such-codex (try: npm install -g @openai/codex" in outcome.reason


@pytest.mark.ruling("B3")
async def test_settings_that_cannot_be_read_block_the_job(stage: Stage, users_home: Path) -> None:
    (users_home / ".kimi-code").mkdir()
    (users_home / ".kimi-code" / "config.toml").write_text("hooks = [\n")
    driven = driving(stage, "runtime_c", "kimi(RESULT)")
    outcome = await driven.play(a_job(driven, "runtime_c"))
    assert outcome.state is JobState.BLOCKED
    assert "config.toml cannot be read" in outcome.reason
    assert calls(users_home) == 0
    (users_home / ".kimi-code" / "config.toml").write_text("hooks = []\n")
    assert (await driven.play(a_job(driven, "runtime_c", attempt=2))).state is JobState.SUCCEEDED


async def test_a_prompt_of_a_megabyte_reaches_every_program(stage: Stage, users_home: Path) -> None:
    for number, runtime in enumerate(SAYS, 1):
        script = f'(here / "long").write_text(prompt)\n{SAYS[runtime]}'
        driven = driving(stage, runtime, script)
        long = driven.job("").assignment.prompt.model_copy(update={"inline": "start " + "x" * 1_000_000 + " end"})
        outcome = await driven.play(a_job(driven, runtime, prompt=long, attempt=number))
        assert outcome.state is JobState.SUCCEEDED
        assert "x end" in (users_home / "long").read_text()


async def test_what_a_writer_does_is_committed(stage: Stage) -> None:
    driven = driving(stage, "runtime_a", "open('new.py', 'w').write('x')\n" + SAYS["runtime_a"])
    job = a_job(driven, "runtime_a", AutonomyPolicy.WORKSPACE_WRITE, action=Action.IMPLEMENT)
    outcome = await driven.play(job)
    assert outcome.touched_files == ("new.py",)
    run = attempt_rows.get(driven.context.store, job.job_id, 1)
    assert run is not None
    assert run.outcome is not None
    assert run.outcome["session"] == "s-1"


LOGINS = {
    "runtime_a": ("codex", ".codex/auth.json", "codex login"),
    "runtime_b": ("claude", ".claude/.credentials.json", "claude /login"),
    "runtime_c": ("kimi", ".kimi-code/credentials/kimi.json", "kimi, and in it /login"),
}


def by_its_name(stage: Stage, runtime: str, script: str, **section: object) -> Stage:
    """Return the stage with a stand-in that has the program's name."""
    path = stage.tmp / LOGINS[runtime][0]
    path.write_text(f"#!{sys.executable}\n{PRELUDE}{script}")
    path.chmod(0o755)
    return driving(stage, runtime, "", command=[str(path)], **section)


@pytest.fixture
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for program in PROGRAMS.values():
        for name in program.keys:
            monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("no_key")
@pytest.mark.parametrize("runtime", SAYS)
@pytest.mark.ruling("B3")
async def test_a_program_that_nobody_has_logged_in_to_is_not_started_and_after_the_login_it_is(
    stage: Stage, users_home: Path, runtime: str
) -> None:
    name, login, command = LOGINS[runtime]
    driven = by_its_name(stage, runtime, SAYS[runtime])
    outcome = await driven.play(a_job(driven, runtime))
    assert outcome.state is JobState.BLOCKED
    assert outcome.reason.startswith(f"{name} is not logged in (try: {command}, or set ")
    assert outcome.first in outcome.reason
    assert calls(users_home) == 0
    (users_home / login).parent.mkdir(parents=True, exist_ok=True)
    (users_home / login).write_text("{}")
    assert (await driven.play(a_job(driven, runtime, attempt=2))).state is JobState.SUCCEEDED


@pytest.mark.usefixtures("no_key")
@pytest.mark.ruling("B3")
async def test_what_may_have_a_login_of_its_own_is_started(
    stage: Stage, users_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINE", "x")
    granted = by_its_name(stage, "runtime_a", SAYS["runtime_a"], env=["MINE"])
    assert (await granted.play(a_job(granted, "runtime_a"))).state is JobState.SUCCEEDED
    chosen = by_its_name(stage, "runtime_a", SAYS["runtime_a"], arguments=["-c", "model_provider=mine"])
    assert (await chosen.play(a_job(chosen, "runtime_a", attempt=2))).state is JobState.SUCCEEDED
    assert calls(users_home) == 2


@pytest.mark.usefixtures("no_key")
@pytest.mark.ruling("B3", "engine:runs")
async def test_one_that_runs_already_is_not_asked_for_its_login_again(stage: Stage, users_home: Path) -> None:
    login = users_home / ".codex/auth.json"
    login.parent.mkdir()
    login.write_text("{}")
    waits = "while not (here / 'go').exists(): time.sleep(0.02)\n"
    driven = by_its_name(stage, "runtime_a", waits + SAYS["runtime_a"])
    job = a_job(driven, "runtime_a")
    worker = ActivityEnvironment()
    first = asyncio.create_task(worker.run(driven.jobs.run_job, job))
    await until(lambda: calls(users_home) == 1)
    worker.cancel(ActivityCancellationDetails(worker_shutdown=True))
    await asyncio.gather(first, return_exceptions=True)
    login.unlink()
    (users_home / "go").touch()
    assert (await driven.play(job)).state is JobState.SUCCEEDED
    assert calls(users_home) == 1


RETRIES = """
for attempt in range(1, 1000):
    say(type="system", subtype="api_retry", attempt=attempt, max_retries=10, error_status=STATUS, error="x")
    time.sleep(0.05)
"""


@pytest.mark.ruling("B3")
async def test_one_that_tries_again_to_be_let_in_is_ended_and_its_job_blocked(stage: Stage, users_home: Path) -> None:
    driven = driving(stage, "runtime_b", RETRIES.replace("STATUS", "401"))
    outcome = await driven.play(a_job(driven, "runtime_b"))
    assert outcome.state is JobState.BLOCKED
    assert outcome.reason.startswith("claude is refused: its login is no longer valid (try: claude ")
    assert calls(users_home) == 1


@pytest.mark.parametrize(
    ("line", "is_so"),
    [
        ({"subtype": "api_retry", "attempt": 3, "error_status": 401}, True),
        ({"error_status": 403, "attempt": 10, "subtype": "api_retry"}, True),
        ({"subtype": "api_retry", "attempt": 2, "error_status": 401}, False),
        ({"subtype": "api_retry", "attempt": 9, "error_status": 529}, False),
        ({"text": json.dumps({"subtype": "api_retry", "attempt": 3, "error_status": 401})}, False),
    ],
)
@pytest.mark.ruling("B3")
def test_only_the_programs_own_word_that_it_is_not_let_in_counts(
    tmp_path: Path, line: dict[str, object], is_so: bool
) -> None:
    stdout = tmp_path / "stdout.log"
    stdout.write_text(f'{{"type":"system"}}\n{json.dumps(line, separators=(",", ":"))}\n')
    assert InstalledProgram("runtime_b", CLAUDE).is_in_vain(stdout) is is_so
    assert InstalledProgram("runtime_a", CODEX).is_in_vain(stdout) is False


@pytest.mark.ruling("B3")
async def test_a_refused_model_names_those_that_the_runtime_took_lately(stage: Stage, users_home: Path) -> None:
    for number, (model, state) in enumerate((("gpt-6", "succeeded"), ("gpt-5", "succeeded"), ("gpt-0", "failed"))):
        row = rows.job(
            f"{rows.ROOT}.{number + 5}", runtime="runtime_a", model=model, state=state, ended_at=time.time() - number
        )
        job_rows.write(stage.context.store, Records(jobs=(row,)))
    driven = driving(stage, "runtime_a", "codex_fails('The requested model does not exist.')")
    asked = await driven.play(a_job(driven, "runtime_a", model="gpt-9"))
    assert asked.state is JobState.FAILED
    assert asked.reason == (
        "runtime_a refuses the model gpt-9 (codex: The requested model does not exist.); "
        "it took lately: gpt-6, gpt-5; name one of those, or leave `model` out"
    )


@pytest.mark.ruling("B3")
async def test_a_context_that_is_too_long_names_the_next_command(stage: Stage, users_home: Path) -> None:
    says = "Codex ran out of room in the model context window."
    driven = driving(stage, "runtime_a", f"codex_fails({says!r})")
    outcome = await driven.play(a_job(driven, "runtime_a"))
    assert outcome.state is JobState.FAILED
    assert outcome.reason == (
        f"the work does not fit into the model's context (codex: {says}): give it a smaller part, or a "
        'model with a larger context (try: service agent ask scout "A SMALLER PART" --repo acme/shop --model MODEL)'
    )


@pytest.mark.ruling("N2")
async def test_a_login_that_expired_is_renewed_before_the_program_starts_by_the_operator_s_own(
    stage: Stage, users_home: Path
) -> None:
    """Without that, a service that nobody attends to is blocked when the first login runs out."""
    path = users_home / ".claude" / ".credentials.json"
    path.parent.mkdir()
    login = {"accessToken": "old", "refreshToken": "renews", "expiresAt": 1}
    path.write_text(json.dumps({"claudeAiOauth": login}))
    script = f"""
own = pathlib.Path(os.environ.get("CLAUDE_CONFIG_DIR", here / ".claude"), ".credentials.json")
login = json.loads(own.read_text())["claudeAiOauth"]
if words == ["auth", "status"]:
    assert not [name for name in os.environ if name.startswith("SERVICE_")] and own.parent.parent == here
    own.write_text(json.dumps({{"claudeAiOauth": login | {{"accessToken": "new", "expiresAt": 9_999_999_999_000}}}}))
    sys.exit()
assert login["accessToken"] == "new" and not login["refreshToken"] and own.parent.parent != here
{SAYS["runtime_b"]}
"""
    driven = driving(stage, "runtime_b", script)
    outcome = await driven.play(a_job(driven, "runtime_b"))
    assert outcome.state is JobState.SUCCEEDED, outcome.reason
    assert calls(users_home) == 2

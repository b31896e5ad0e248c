"""One attempt of a job against real git and real processes."""

import asyncio
import json
import re
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError
from temporalio.activity import ActivityCancellationDetails
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.agents.shell import Shell
from activities.git.work_folder.worktrees import add_branch, add_detached
from activities.host.slots import Slots
from activities.jobs import workspace
from activities.jobs.run_job import Jobs
from activities.runs.os_processes import with_mark
from activities.runs.supervised_run import mark_of
from activities.settings.home import Home
from activities.stations import hook
from activities.store import attempt_rows, claim_rows
from activities.store.attempt_rows import Offered
from activities.store.registry import repo_rows
from activities.store.secret_hosts import kept_secrets
from tests import keys
from tests.activities.jobs.conftest import Stage, git
from tests.activities.jobs.programs import lasted, limit_of
from tests.assigned import changed
from tests.unboxed import unboxed
from tests.waiting import PATIENCE, soon, until
from tests.written import ROOT
from workflows.contract.models import Action, Decision
from workflows.model.jobs import JobOutcome
from workflows.model.long_texts import Text
from workflows.model.orders import StopReason
from workflows.model.spend import Usage
from workflows.model.states import JobState
from workflows.model.workers import Worker
from workflows.temporal.calls import REFUSED

APPROVED = 'print(\'{"service_result": {"decision": "approved", "summary": "fine"}}\')\n'
COUNT = "import os, sys; open(os.environ['HOME'] + '/count', 'a').write('x')\n"


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "h").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "h"))


def times_run(stage: Stage) -> int:
    count = stage.tmp / "h" / "count"
    return len(count.read_text()) if count.exists() else 0


def kept(stage: Stage, outcome: JobOutcome) -> attempt_rows.AttemptRow:
    run = attempt_rows.get(stage.context.store, outcome.job_id, outcome.attempt)
    assert run is not None
    return run


async def test_an_answer_is_recorded_and_its_worktree_is_gone(stage: Stage) -> None:
    script = COUNT + 'print(\'{"type":"usage","input_tokens":7,"output_tokens":2}\')\n' + APPROVED
    outcome = await stage.play(stage.job(script))
    assert (outcome.state, outcome.decision, outcome.summary) == (JobState.SUCCEEDED, Decision.APPROVED, "fine")
    assert outcome.usage == Usage(input_tokens=7, output_tokens=2)
    run = kept(stage, outcome)
    assert run.payload == {"service_result": {"decision": "approved", "summary": "fine"} | _empty()}
    assert run.worktree is not None
    assert not Path(run.worktree).exists()
    assert git(stage.repo, "worktree", "list").count("\n") == 1


def _empty() -> dict[str, list[str]]:
    return {key: [] for key in ("findings", "changes_made", "tests_run", "needs", "delegations")}


async def test_called_again_it_returns_what_is_recorded_and_runs_nothing(stage: Stage) -> None:
    job = stage.job(COUNT + APPROVED)
    assert await stage.play(job) == await stage.play(job)
    assert times_run(stage) == 1


async def test_the_prompt_names_the_job_the_task_and_the_contract(stage: Stage) -> None:
    script = "import sys, os; open(os.environ['HOME'] + '/prompt', 'w').write(sys.stdin.read())\n" + APPROVED
    await stage.play(stage.job(script))
    prompt = (stage.tmp / "h" / "prompt").read_text()
    assert "job-0123456789ab" in prompt
    assert "look at it" in prompt
    assert '"service_result"' in prompt
    assert "## Delegating" in prompt


@pytest.mark.ruling("I1", "I4", "spec:result.observation", "spec:run_order.3")
async def test_an_implement_job_gets_a_branch_its_leftovers_are_committed_and_claims_are_graded(stage: Stage) -> None:
    result = {"decision": "implemented", "summary": "s", "changes_made": ["limiter.py: limit", "other.py: nothing"]}
    script = "open('limiter.py', 'w').write('limit = 2\\n'); open('new.py', 'w').write('')\n"
    script += 'print(\'{"type":"usage","input_tokens":5,"model":"large-2"}\')\n'
    script += f"print({json.dumps(json.dumps({'service_result': result}))})"
    outcome = await stage.play(stage.job(script, Action.IMPLEMENT, model="large"))
    branch = outcome.branch or ""
    assert (outcome.state, branch) == (JobState.SUCCEEDED, "service/job-0123456789ab")
    assert sorted(outcome.touched_files) == ["limiter.py", "new.py"]
    assert outcome.head_sha == git(stage.repo, "rev-parse", branch).strip()
    assert git(stage.repo, "show", f"{branch}:limiter.py") == "limit = 2\n"
    message = git(stage.repo, "log", "-1", "--format=%B", branch).split("\n")
    assert message[0] == "s"
    assert {"Job: job-0123456789ab", "Agent: scripted", "Model: large-2", "Task: task-1"} <= {*message}
    assert git(stage.repo, "status", "--porcelain") == ""
    observed = (kept(stage, outcome).payload or {})["result_observation"]
    assert [claim["grade"] for claim in observed["claims"]] == ["observed", "reported"]
    assert (observed["claimed_only"], observed["unclaimed_files"]) == (["other.py"], ["new.py"])


def saying(decision: str, *changes: str) -> str:
    result = {"decision": decision, "summary": "s", "changes_made": changes}
    return f"print({json.dumps(json.dumps({'service_result': result}))})\n"


@pytest.mark.ruling("I2", "P3")
@pytest.mark.parametrize(("decision", "changes"), [("implemented", ()), ("approved", ("limiter.py: raised",))])
async def test_a_reader_that_says_it_changed_files_gets_an_event(
    stage: Stage, decision: str, changes: tuple[str, ...]
) -> None:
    edit = "open('limiter.py', 'w').write('limit = 3\\n')\n"
    (notice,) = (await stage.play(stage.job(edit + saying(decision, *changes)))).notices
    assert (notice.kind, notice.data) == ("edits_discarded", {"files": ["limiter.py"]})
    assert notice.message.endswith("changed files, which are thrown away, because its action is ask: limiter.py")


@pytest.mark.ruling("I2")
async def test_a_reader_that_does_not_speak_of_its_edits_or_has_none_gets_no_event(stage: Stage) -> None:
    edit = "open('limiter.py', 'w').write('limit = 3\\n')\n"
    for number, script in enumerate((edit + saying("approved"), saying("implemented", "limiter.py: raised"))):
        outcome = await stage.play(stage.job(script, job_id=f"job-0123456789ab.{number + 1}"))
        assert outcome.notices == ()


@pytest.mark.ruling("I4", "P3")
async def test_implemented_without_a_change_is_an_event(stage: Stage) -> None:
    (notice,) = (await stage.play(stage.job(saying("implemented"), Action.IMPLEMENT))).notices
    assert (notice.kind, notice.data) == ("nothing_changed", {"claims": 0})
    assert notice.message == "job-0123456789ab says that it implemented its task, and changed no file"
    skipped = await stage.play(stage.job(saying("skipped"), Action.IMPLEMENT, job_id="job-0123456789ab.2"))
    assert skipped.notices == ()


@pytest.mark.ruling("L10", "I2")
async def test_the_commits_that_a_reader_is_given_are_recorded(stage: Stage) -> None:
    """Its verdict is about these commits, even if the branches move later."""
    heads = []
    for name in (1, 2):
        write = f"open('{name}', 'w').write('x')\n" + APPROVED
        heads.append(await stage.play(stage.job(write, Action.IMPLEMENT, job_id=f"job-0123456789ab.{name}")))
    deps = tuple(each.branch or "" for each in heads)
    assert kept(stage, heads[0]).given == []
    read = await stage.play(stage.job(APPROVED, Action.REVIEW, job_id="job-0123456789ab.7", branch_deps=deps))
    assert kept(stage, read).given == [each.head_sha for each in heads]
    assert len({*deps, *(kept(stage, read).given or ())}) == 4


@pytest.mark.ruling("L10", "I1")
async def test_a_reader_whose_branches_do_not_fit_together_was_given_nothing(stage: Stage) -> None:
    branches: list[str] = []
    for name in ("one", "two"):
        write = f"open('limiter.py', 'w').write('{name}')\n" + APPROVED
        made = await stage.play(stage.job(write, Action.IMPLEMENT, job_id=f"job-0123456789ab.{len(branches) + 1}"))
        branches.append(made.branch or "")
    read = await stage.play(
        stage.job(APPROVED, Action.REVIEW, job_id="job-0123456789ab.7", branch_deps=tuple(branches))
    )
    assert read.state is JobState.BLOCKED
    assert kept(stage, read).given is None


@pytest.mark.ruling("A9", "I1")
async def test_any_leg_id_becomes_a_branch(stage: Stage) -> None:
    job = stage.job("open('f', 'w')\n" + APPROVED, Action.IMPLEMENT, delegation_id="a..z.lock.lock")
    outcome = await stage.play(job)
    assert outcome.state is JobState.SUCCEEDED
    assert git(stage.repo, "show", f"{outcome.branch}:f") == ""


@pytest.mark.ruling("D3", "I1")
async def test_another_attempt_begins_afresh_and_keeps_off_the_branch_of_the_one_before(stage: Stage) -> None:
    script = "import os; seen = sorted(os.listdir()); open('left', 'w').write('x'); print(seen, file=sys.stderr)\n"
    look = "import sys\n" + script + "open(os.environ['HOME'] + '/seen', 'w').write(str(seen))\n"
    first = await stage.play(stage.job(look + APPROVED + "sys.exit(1)", Action.IMPLEMENT))
    second = await stage.play(stage.job(look + APPROVED, Action.IMPLEMENT, attempt=2))
    assert (first.state, second.state) == (JobState.FAILED, JobState.SUCCEEDED)
    assert (stage.tmp / "h" / "seen").read_text() == "['.git', 'limiter.py']"
    assert (first.branch, second.branch) == ("service/job-0123456789ab", "service/job-0123456789ab-attempt2")
    assert git(stage.repo, "rev-parse", f"{second.branch}^") == git(stage.repo, "rev-parse", "HEAD")


@pytest.mark.ruling("I2", "spec:run_order.3")
async def test_what_a_reader_changes_is_thrown_away_and_kept_as_evidence(stage: Stage) -> None:
    outcome = await stage.play(stage.job("open('limiter.py', 'w').write('limit = 3\\n')\n" + APPROVED))
    assert outcome.branch is None
    assert "+limit = 3" in (kept(stage, outcome).diagnostics or {})["discarded_diff"]
    assert (stage.repo / "limiter.py").read_text() == "limit = 1\n"


@pytest.mark.ruling("A5", "spec:validation.one_repair")
async def test_a_faulty_result_is_repaired_once_with_the_faults(stage: Stage) -> None:
    script = (
        "import sys; prompt = sys.stdin.read()\n"
        + COUNT
        + "if 'decision is required' in prompt:\n    "
        + APPROVED
        + 'else:\n    print(\'{"service_result": {"summary": "draft"}}\')\n'
        'print(\'{"type":"usage","input_tokens":5}\')\n'
    )
    outcome = await stage.play(stage.job(script))
    assert (outcome.state, outcome.summary) == (JobState.SUCCEEDED, "fine")
    assert outcome.usage == Usage(input_tokens=10)
    assert times_run(stage) == 2
    (notice,) = outcome.notices
    assert (notice.kind, notice.data) == ("result_repaired", {"faults": ["decision is required"], "accepted": True})
    assert notice.message == f"{outcome.job_id} was asked to correct its result, and did: decision is required"


@pytest.mark.ruling("C1", "B6")
async def test_of_a_set_that_is_far_too_wide_only_its_number_travels(stage: Stage) -> None:
    script = (
        "import json\nlegs = [{'id': f'l{n}', 'agent': 'dev', 'action': 'ask', 'prompt': 'p'} for n in range(100000)]\n"
        "print(json.dumps({'service_result': {'decision': 'approved', 'summary': 's', 'delegations': legs}}))\n"
    )
    outcome = await stage.play(stage.job(script))
    assert (outcome.state, outcome.delegations, outcome.not_kept) == (JobState.SUCCEEDED, (), 100_000)
    assert len(outcome.model_dump_json()) < 4_000
    assert len(list(stage.context.home.runs.iterdir())) == 1, "no repair is asked for"


async def test_a_second_faulty_result_fails_with_every_fault(stage: Stage) -> None:
    script = COUNT + 'import random; print(\'{"service_result": {"x": %s}}\' % random.random())'
    outcome = await stage.play(stage.job(script))
    assert outcome.state is JobState.FAILED
    faults = (kept(stage, outcome).diagnostics or {})["faults"]
    assert faults == ["decision is required", "summary is required", 'unknown key "x"']
    assert outcome.reason == "the result has 3 faults after one repair: decision is required"
    assert times_run(stage) == 2
    (notice,) = outcome.notices
    assert (notice.kind, notice.data) == ("result_repaired", {"faults": faults, "accepted": False})
    assert "and did not: decision is required (and 2 more)" in notice.message


@pytest.mark.ruling("A5")
async def test_a_repair_that_says_the_same_fails_with_that_reason(stage: Stage) -> None:
    outcome = await stage.play(stage.job("print('no result here')"))
    fault = "the output holds no JSON object with the key service_result"
    reason = "the repair returned the same output, byte for byte, so its faults are the same"
    assert outcome.reason == f"{reason}: {fault}"
    assert (kept(stage, outcome).diagnostics or {})["faults"] == [fault]


@pytest.mark.ruling("A5")
@pytest.mark.parametrize("then", ["time.sleep(60)", "sys.exit(3)"])
async def test_a_repair_that_ends_badly_hides_no_fault_of_the_first_result(stage: Stage, then: str) -> None:
    script = "import sys, time\nif 'decision is required' in sys.stdin.read():\n    " + then + "\n"
    outcome = await stage.play(stage.job(script + "print('{\"service_result\": {}}')", timeout_seconds=6))
    assert outcome.state is JobState.FAILED
    faults = (kept(stage, outcome).diagnostics or {})["faults"]
    assert faults == ["decision is required", "summary is required"]


@pytest.mark.ruling("A5")
async def test_a_program_that_fails_is_not_repaired_even_with_a_good_result(stage: Stage) -> None:
    token = "ghp_" + "a1B2" * 9
    script = COUNT + APPROVED + f"print('boom {token}', file=sys.stderr); sys.exit(3)"
    outcome = await stage.play(stage.job(script))
    assert outcome.state is JobState.FAILED
    assert outcome.reason.startswith("the agent's program ended with exit code 3: boom ")
    assert token not in outcome.model_dump_json() + json.dumps(kept(stage, outcome).diagnostics)
    assert times_run(stage) == 1


@pytest.mark.ruling("K5")
async def test_the_tokens_of_a_shell_agent_are_to_be_priced(stage: Stage) -> None:
    outcome = await stage.play(stage.job('print(\'{"type":"usage","input_tokens":5}\')\n' + APPROVED))
    assert (outcome.usage, outcome.model, outcome.priced) == (Usage(input_tokens=5), None, True)


@pytest.mark.ruling("A11")
async def test_the_decision_makes_the_state(stage: Stage) -> None:
    outcome = await stage.play(stage.job(APPROVED.replace("approved", "blocked")))
    assert outcome.state is JobState.BLOCKED


async def test_a_program_that_is_missing_is_named(stage: Stage) -> None:
    job = stage.job("")
    job = changed(job, worker=job.assignment.worker.model_copy(update={"command": ("no-such-program",)}))
    outcome = await stage.play(job)
    assert outcome.state is JobState.FAILED
    assert "no-such-program" in outcome.reason


async def test_a_timeout_stops_the_program_and_says_so(stage: Stage) -> None:
    outcome = await stage.play(stage.job("import time; time.sleep(60)", timeout_seconds=0.5))
    assert (outcome.state, outcome.reason) == (JobState.FAILED, "the agent was stopped after its timeout of 500ms")


@pytest.mark.ruling("A10")
async def test_a_repair_has_the_time_that_its_first_run_left(stage: Stage) -> None:
    script = "import sys, time\nif 'decision is required' in sys.stdin.read():\n    " + APPROVED
    script += "time.sleep(0.5)\nprint('{\"service_result\": {}}')"
    await stage.play(stage.job(script, timeout_seconds=600))
    first, repair = sorted(stage.context.home.runs.iterdir())
    assert limit_of(repair) == pytest.approx(limit_of(first) - lasted(first), abs=0.01)
    assert lasted(first) > 0.4


async def test_a_repository_that_moved_away_is_the_jobs_failure_with_the_way_out(stage: Stage) -> None:
    stage.repo.rename(stage.tmp / "elsewhere")
    outcome = await stage.play(stage.job(APPROVED))
    assert outcome.state is JobState.FAILED
    assert str(stage.repo) in outcome.reason


@pytest.mark.ruling("Q2")
async def test_a_job_whose_text_is_missing_or_needs_a_secret_of_another_host_is_refused(stage: Stage) -> None:
    missing = await stage.play(stage.job(APPROVED, prompt=Text(digest="00ff")))
    assert missing.state is JobState.FAILED
    assert missing.reason.startswith("the artifact 00ff is not in ")
    home = keys.give(Home(stage.tmp / "other").ensure())
    url = f"sqlite:///{stage.context.home.store}"
    here, there = (unboxed({"store": {"url": url}, "worker": {"host": name}}) for name in ("here", "there"))
    context = replace(stage.context, settings=here)
    repo_rows.put(context.store, "acme/shop", str(stage.repo), context.host)
    hidden = kept_secrets(home, there).hide("use " + "ghp" + "_" + "a1B2" * 9)
    work = Jobs(context, {"shell": Shell(())}, Slots(context.settings))
    run = stage.job(APPROVED, prompt=Text(inline=hidden), job_id="job-0123456789ac")
    outcome = await ActivityEnvironment().run(work.run_job, run)
    assert outcome.state is JobState.FAILED
    assert f"({hidden[4:]}) that only the host there keeps, and this is here (try: scp -p there:" in outcome.reason
    assert list((context.home.root / "worktrees").iterdir()) == []


@pytest.mark.ruling("I1", "I2")
async def test_dependencies_that_conflict_block_the_job_and_leave_no_worktree(stage: Stage) -> None:
    for leg, text in (("a", "1"), ("b", "2")):
        script = f"open('limiter.py', 'w').write('{text}')\n" + APPROVED
        await stage.play(stage.job(script, Action.IMPLEMENT, job_id=f"job-0123456789ab.{text}", delegation_id=leg))
    branches = ("service/job-0123456789ab.1-a", "service/job-0123456789ab.2-b")
    outcome = await stage.play(stage.job(COUNT + APPROVED, Action.REVIEW, branch_deps=branches))
    assert outcome.state is JobState.BLOCKED
    assert outcome.conflict == f"part b ({branches[1]}) conflicts with a ({branches[0]}) in limiter.py"
    assert times_run(stage) == 0
    assert git(stage.repo, "worktree", "list").count("\n") == 1


@pytest.mark.ruling("I2", "C7", "spec:run_order.3")
async def test_a_reader_sees_the_merged_work_of_its_dependencies(stage: Stage) -> None:
    for number, name in ((1, "a.txt"), (2, "b.txt")):
        script = f"open('{name}', 'w').write('x')\n" + APPROVED
        await stage.play(stage.job(script, Action.IMPLEMENT, job_id=f"job-0123456789ab.{number}", delegation_id="leg"))
    look = "import os, pathlib; pathlib.Path(os.environ['HOME'], 'seen').write_text(str(sorted(os.listdir())))\n"
    branches = tuple(f"service/job-0123456789ab.{n}-leg" for n in (1, 2))
    await stage.play(stage.job(look + APPROVED, Action.REVIEW, branch_deps=branches))
    assert (stage.tmp / "h" / "seen").read_text() == "['.git', 'a.txt', 'b.txt', 'limiter.py']"


@pytest.mark.ruling("I2", "spec:ephemeral.disposed")
@pytest.mark.parametrize(
    ("script", "fields"),
    [
        (APPROVED, {}),
        ("sys.exit(3)", {}),
        ("print('no result')", {}),
        ("import time; time.sleep(60)", {"timeout_seconds": 0.3}),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", {}),
        (APPROVED, {"worker": Worker(name="x", runtime="shell", ephemeral=True, command=("no-such-program",))}),
        (APPROVED, {"worker": Worker(name="x", runtime="runtime_a", ephemeral=True)}),
        (APPROVED, {"branch_deps": ("service/no-such-branch",)}),
    ],
    ids=["well", "failed", "invalid", "timeout", "killed", "missing", "unconfigured", "unmergeable"],
)
async def test_a_reader_s_worktree_is_gone_however_it_ended(stage: Stage, script: str, fields: dict[str, Any]) -> None:
    await stage.play(stage.job(f"import sys\nopen('left', 'w')\n{script}", Action.REVIEW, **fields))
    assert git(stage.repo, "worktree", "list").count("\n") == 1
    assert [path.name for path in stage.context.home.worktrees.glob("*")] == []


@pytest.mark.ruling("I2", "N3", "spec:orchestrate.verifier")
@pytest.mark.parametrize("way", ["update-ref refs/heads/{0} HEAD~1", "checkout -q {0}"])
async def test_a_reader_that_may_run_anything_does_not_move_the_branch_it_checks(stage: Stage, way: str) -> None:
    made = await stage.play(stage.job("open('a', 'w').write('x')\n" + APPROVED, Action.IMPLEMENT))
    branch = made.branch or ""
    commit = "git add . && git -c user.name=x -c user.email=x commit -qm x"
    script = f"import subprocess\nsubprocess.run('git {way.format(branch)}', shell=True, check=True)\n"
    script += f"open('b', 'w')\nsubprocess.run('{commit}', shell=True, check=True)\n"
    check = stage.job(script + APPROVED, Action.REVIEW, job_id="job-0123456789ab.2", branch_deps=(branch,))
    outcome = await stage.play(check)
    assert outcome.state is JobState.SUCCEEDED, outcome.reason
    assert git(stage.repo, "rev-parse", branch).strip() == made.head_sha
    assert (outcome.notices, outcome.touched_files) == ((), ("b",))
    assert git(stage.repo, "worktree", "list").count("\n") == 1


PLANTED = """
import os, subprocess
program = os.path.abspath("program")
with open(program, "w") as file:
    file.write("#!/bin/sh\\ntouch " + os.environ["HOME"] + "/ran\\n")
os.chmod(program, 0o755)
for name in ("core.fsmonitor", "uploadpack.packObjectsHook", "filter.x.clean", "filter.x.smudge", "merge.x.driver"):
    subprocess.run(["git", "config", name, program], check=True)
os.mkfifo("src.pipe")
os.mkfifo(".gitignore")
open(".gitattributes", "w").write("* filter=x merge=x\\n")
os.symlink("/etc", "etc")
subprocess.run(["git", "update-ref", "refs/heads/main", subprocess.run(
    "git -c core.fsmonitor= commit-tree -m x HEAD^{tree}", shell=True, capture_output=True, text=True,
    env={**os.environ, **{f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}},
).stdout.strip()], check=True)
open(os.environ["HOME"] + "/planted", "w")
"""


@pytest.mark.ruling("N3")
@pytest.mark.parametrize("action", [Action.REVIEW, Action.IMPLEMENT])
async def test_what_an_agent_plants_runs_nowhere_and_is_told(stage: Stage, action: Action) -> None:
    before = git(stage.repo, "for-each-ref")
    result = APPROVED if action is Action.REVIEW else APPROVED.replace("approved", "implemented")
    outcome = await stage.play(stage.job(PLANTED + result, action))
    assert outcome.state is JobState.SUCCEEDED, outcome.reason
    assert (stage.tmp / "h" / "planted").exists()
    assert not (stage.tmp / "h" / "ran").exists()
    (notice,) = outcome.notices
    assert notice.data == {"found": [".gitignore: a named pipe", "src.pipe: a named pipe"]}
    after = [row for row in git(stage.repo, "for-each-ref").splitlines(keepends=True) if "service/" not in row]
    assert "".join(after) == before
    if action is Action.IMPLEMENT:
        assert git(stage.repo, "ls-tree", outcome.branch or "", "etc").startswith("120000 blob")


@pytest.mark.ruling("N3")
async def test_a_job_s_place_says_which_folders_of_objects_it_reads(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """These are the repository's own folder, and those that it borrows from."""
    git(tmp_path, "clone", "-q", "--shared", str(stage.repo), str(tmp_path / "borrower"))
    repo_rows.put(stage.context.store, "acme/shop", str(tmp_path / "borrower"), stage.context.host)
    seen: list[workspace.Workspace] = []
    prepare = workspace.prepare

    def told(*words: Any) -> workspace.Workspace:
        seen.append(prepare(*words))
        return seen[-1]

    monkeypatch.setattr(workspace, "prepare", told)
    script = "import subprocess; subprocess.run('git log -1 && git status', shell=True, check=True)\n"
    assert (await stage.play(stage.job(script + APPROVED))).state is JobState.SUCCEEDED
    assert seen[0].lent == (tmp_path / "borrower/.git/objects", stage.repo / ".git/objects")


@pytest.mark.ruling("I3", "spec:delegation.worktree")
async def test_legs_that_share_a_worktree_go_on_where_the_one_before_stopped(stage: Stage) -> None:
    add = "import os; open('log', 'a').write(os.environ['SERVICE_JOB_ID'][-1])\n" + APPROVED
    for number in (1, 2):
        job = stage.job(add, Action.IMPLEMENT, job_id=f"job-0123456789ab.{number}", shared_worktree="bench")
        outcome = await stage.play(job)
        assert outcome.touched_files == ("log",)
    branch = outcome.branch or ""
    assert branch == "service/job-0123456789ab-shared-bench"
    assert git(stage.repo, "show", f"{branch}:log") == "12"


@pytest.mark.ruling("C8.limits")
@pytest.mark.parametrize(
    "limits", [{"worker": {"max_parallel_per_repo": 2}}, {"runtimes": {"shell": {"max_parallel": 2}}}]
)
async def test_no_more_run_at_once_than_the_settings_allow(stage: Stage, limits: dict[str, Any]) -> None:
    home = stage.tmp / "h"
    script = (
        "import os, time, pathlib\nhere = pathlib.Path(os.environ['HOME'])\n"
        "mark = here / ('at-' + os.environ['SERVICE_JOB_ID'])\nmark.touch()\n"
        "for _ in range(500):\n"
        "    with open(here / 'seen', 'a') as f: f.write(str(len(list(here.glob('at-*')))))\n"
        "    if '2' in (here / 'seen').read_text(): break\n"
        "    time.sleep(0.02)\n"
        "time.sleep(0.2); mark.unlink()\n" + APPROVED
    )
    jobs = [stage.job(script, job_id=f"job-0123456789ab.{n}") for n in range(1, 7)]
    context = replace(stage.context, settings=unboxed(limits))
    limited = Jobs(context, {"shell": Shell(())}, Slots(context.settings))
    ended = await asyncio.gather(*(ActivityEnvironment().run(limited.run_job, job) for job in jobs))
    assert {outcome.state for outcome in ended} == {JobState.SUCCEEDED}, [o.reason for o in ended]
    assert max((home / "seen").read_text()) == "2"


@pytest.mark.ruling("B5", "C8.limits")
async def test_a_run_that_is_stopped_while_it_waits_for_a_place_leaves_nothing(stage: Stage) -> None:
    settings = unboxed({"worker": {"max_parallel_jobs": 1}})
    limited = Jobs(replace(stage.context, settings=settings), {"shell": Shell(())}, Slots(settings))
    script = "import os, time\ntime.sleep(60 * os.environ['SERVICE_JOB_ID'].endswith('.1'))\n" + APPROVED
    holds = stage.job(script, job_id="job-0123456789ab.1")
    first = asyncio.create_task(ActivityEnvironment().run(limited.run_job, holds))
    await until(lambda: attempt_rows.get(stage.context.store, "job-0123456789ab.1", 1))
    environment, waiting = ActivityEnvironment(), stage.job(script, Action.IMPLEMENT, job_id="job-0123456789ab.2")
    second = asyncio.create_task(environment.run(limited.run_job, waiting))
    await asyncio.sleep(0.3)
    assert not second.done()
    environment.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    assert attempt_rows.get(stage.context.store, "job-0123456789ab.2", 1) is None
    assert not list(stage.context.home.worktrees.glob("*ab.2*"))
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)


@pytest.mark.ruling("B5")
async def test_what_was_taken_back_never_begins(stage: Stage) -> None:
    job = stage.job("open('ran', 'w')\n" + APPROVED, Action.IMPLEMENT)
    assert claim_rows.take_back(stage.context.store, Offered(job.job_id, job.attempt, job.offer)) is None
    outcome = await stage.play(job)
    assert (outcome.state, outcome.begun_at) == (JobState.CANCELLED, None)
    assert attempt_rows.get(stage.context.store, job.job_id, job.attempt) is None
    assert not list(stage.context.home.worktrees.glob("*"))
    assert stage.context.reports.waiting == {}


@pytest.mark.ruling("B5")
async def test_a_begin_is_reported_and_stands_in_the_outcome(stage: Stage) -> None:
    job = stage.job(APPROVED)
    outcome = await stage.play(job)
    row = attempt_rows.get(stage.context.store, job.job_id, job.attempt)
    assert row is not None
    assert outcome.begun_at == row.started_at
    assert stage.context.reports.waiting == {job.root_job_id: []}, "what has ended needs no report any more"


async def test_an_order_to_stop_ends_the_program_and_keeps_what_it_did(stage: Stage) -> None:
    script = "import time; open('limiter.py', 'w').write('half'); open('started', 'w'); time.sleep(60)"
    job = stage.job(script, Action.IMPLEMENT)
    environment = ActivityEnvironment()
    playing = asyncio.create_task(environment.run(stage.jobs.run_job, job))
    place = stage.context.home.worktrees / "acme--shop+job-0123456789ab-1"
    await until((place / "started").exists)
    environment.cancel()
    outcome = await playing
    assert (outcome.state, outcome.reason) == (JobState.CANCELLED, "stopped on order")
    assert git(stage.repo, "show", f"{outcome.branch}:limiter.py") == "half"


@pytest.mark.ruling("G2.stops")
async def test_a_stop_is_carried_out_though_the_call_is_cancelled_again(stage: Stage) -> None:
    """By a worker that stops meanwhile, or a heartbeat that fails: the job would end, and its program run on."""
    script = (
        "import signal, time; signal.signal(signal.SIGINT, lambda *_: (open('asked', 'w'), time.sleep(0.5), exit()))"
    )
    job = stage.job(f"{script}; open('started', 'w'); time.sleep(60)", Action.IMPLEMENT)
    environment = ActivityEnvironment()
    playing = asyncio.create_task(environment.run(stage.jobs.run_job, job))
    place = stage.context.home.worktrees / "acme--shop+job-0123456789ab-1"
    await until((place / "started").exists)
    environment.cancel()
    await until((place / "asked").exists)
    playing.cancel()
    outcome = await soon(playing)
    assert (outcome.state, outcome.reason) == (JobState.CANCELLED, "stopped on order")


@pytest.mark.ruling("G2.stops")
async def test_a_program_that_begins_is_stopped_though_the_call_is_cancelled_again(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    begins, goes_on = threading.Event(), threading.Event()

    def hold(station: str, *_: str) -> None:
        if station == "claim written":
            begins.set()
            goes_on.wait(PATIENCE)

    monkeypatch.setattr(hook, "hook", hold)
    job, environment = stage.job("import time; time.sleep(60)", Action.IMPLEMENT), ActivityEnvironment()
    playing = asyncio.create_task(environment.run(stage.jobs.run_job, job))
    await until(begins.is_set)
    environment.cancel()
    await asyncio.sleep(0.1)
    playing.cancel()
    await asyncio.sleep(0.1)
    goes_on.set()
    outcome = await soon(playing)
    assert (outcome.state, outcome.reason) == (JobState.CANCELLED, "stopped on order")


@pytest.mark.ruling("Q7")
async def test_an_order_in_the_store_stops_the_program_before_the_server_says_so(stage: Stage) -> None:
    """The server's own word comes with its answer to a heartbeat, while the program still has its grace."""
    script = (
        "import signal, time; signal.signal(signal.SIGINT, lambda *_: (open('asked', 'w'), time.sleep(0.5), exit()))"
    )
    job = stage.job(f"{script}; open('started', 'w'); time.sleep(60)", Action.IMPLEMENT)
    environment, stops, store = ActivityEnvironment(), stage.context.stops, stage.context.store
    playing = asyncio.create_task(environment.run(stage.jobs.run_job, job))
    place = stage.context.home.worktrees / "acme--shop+job-0123456789ab-1"
    await until((place / "started").exists)
    await stops.look(store)
    assert not (place / "asked").exists(), "nobody has ordered it"
    offered = Offered(job.job_id, job.attempt, job.offer)
    assert claim_rows.take_back(store, offered)
    await stops.look(store)
    assert not (place / "asked").exists(), "its tree wanted back what had not begun"
    assert claim_rows.call_off(store, offered, StopReason.CANCELLED)
    await stops.look(store)
    await until((place / "asked").exists)
    environment.cancel()
    outcome = await playing
    assert (outcome.state, outcome.reason) == (JobState.CANCELLED, "stopped on order")


@pytest.mark.ruling("G2.stops")
async def test_the_next_call_finds_the_order_to_stop_of_one_that_died(stage: Stage) -> None:
    job = stage.job("import time; open('started', 'w'); time.sleep(60)", Action.IMPLEMENT)
    first = ActivityEnvironment()
    playing = asyncio.create_task(first.run(stage.jobs.run_job, job))
    await until((stage.context.home.worktrees / "acme--shop+job-0123456789ab-1" / "started").exists)
    first.cancel(ActivityCancellationDetails(worker_shutdown=True))
    with pytest.raises(asyncio.CancelledError):
        await playing
    offered = Offered(job.job_id, job.attempt, job.offer)
    assert claim_rows.call_off(stage.context.store, offered, StopReason.CANCELLED)
    outcome = await soon(stage.play(job))
    assert (outcome.state, outcome.reason) == (JobState.CANCELLED, "stopped on order")


async def test_work_that_cannot_be_committed_stays_where_it_is_and_the_job_says_so(stage: Stage) -> None:
    result = APPROVED.replace("approved", "implemented")
    script = "import os, shutil, subprocess; open('limiter.py', 'w').write('x'); shutil.rmtree('.git')\n"
    script += (
        "subprocess.run('git init -q && git add . && git -c user.name=x -c user.email=x commit -qm x', shell=True)\n"
    )
    script += result
    outcome = await stage.play(stage.job(script, Action.IMPLEMENT))
    assert outcome.state is JobState.FAILED
    assert re.match(r"the work could not be committed: the job left \S+ at \w+, which does not", outcome.reason)
    run = kept(stage, outcome)
    assert (Path(run.worktree or "") / "limiter.py").read_text() == "x"
    assert (run.payload or {})["service_result"]["decision"] == "implemented"


@pytest.mark.ruling("I1", "I2")
@pytest.mark.parametrize("action", [Action.ASK, Action.IMPLEMENT])
async def test_a_worktree_that_outlived_its_record_goes_but_work_stays(stage: Stage, action: Action) -> None:
    job = stage.job(APPROVED, action)
    run = kept(stage, await stage.play(job))
    assert run.worktree is not None
    left = Path(run.worktree)
    if run.branch:
        add_branch(stage.repo, left, run.branch, "HEAD")
        (left / "work.txt").write_text("not committed yet")
        await stage.play(job)
        assert (left / "work.txt").exists()
        (left / "work.txt").unlink()
    else:
        add_detached(stage.repo, left, "HEAD")
    await stage.play(job)
    assert not left.exists()
    assert git(stage.repo, "worktree", "list").count("\n") == 1


async def test_an_agent_that_breaks_the_tie_to_its_repository_loses_nothing(stage: Stage) -> None:
    result = APPROVED.replace("approved", "implemented")
    script = "import shutil; open('limiter.py', 'w').write('x'); shutil.rmtree('.git')\n"
    script += "open('.git', 'w').write('gone')\n" + result
    outcome = await stage.play(stage.job(script, Action.IMPLEMENT))
    assert (outcome.state, outcome.touched_files) == (JobState.SUCCEEDED, ("limiter.py",))
    (notice,) = outcome.notices
    assert (notice.kind, notice.data) == ("work_left_out", {"found": [".git: it is not a folder any more"]})
    assert git(stage.repo, "show", f"{outcome.branch}:limiter.py") == "x"


@pytest.mark.ruling("B6")
@pytest.mark.parametrize(
    ("when", "times"), [("INSERT ON claims", 0), ("UPDATE ON attempts WHEN NEW.ended_at IS NOT NULL", 1)]
)
async def test_what_the_store_never_takes_is_not_tried_again(stage: Stage, when: str, times: int) -> None:
    with stage.context.store.begin() as connection:
        words = f"CREATE TRIGGER never BEFORE {when} BEGIN SELECT RAISE(ABORT, 'not this one'); END"
        connection.exec_driver_sql(words)
    with pytest.raises(ApplicationError, match="IntegrityError: not this one") as refused:
        await stage.play(stage.job(COUNT + APPROVED))
    assert (refused.value.type, refused.value.non_retryable) == (REFUSED, True)
    assert times_run(stage) == times


@pytest.mark.ruling("B6")
async def test_a_store_that_only_has_to_be_waited_for_is_tried_again(stage: Stage) -> None:
    with stage.context.store.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE claims RENAME TO elsewhere")
    with pytest.raises(OperationalError):
        await stage.play(stage.job(APPROVED))
    with stage.context.store.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE elsewhere RENAME TO claims")
    assert (await stage.play(stage.job(APPROVED))).state is JobState.SUCCEEDED


MANUAL = ROOT / "cli/topics/own-agents.md"
LEAVES = """\
import json, os, subprocess, sys
open(os.environ["HOME"] + "/env", "w").write(json.dumps(dict(os.environ)))
left = subprocess.Popen(["sleep", "600"], start_new_session=True, stdin=-3, stdout=-3, stderr=-3)
"""


@pytest.mark.ruling("engine:runs")
@pytest.mark.skipif(sys.platform != "linux", reason="marks are found in /proc")
async def test_an_agents_environment_is_what_the_manual_says_and_its_mark_finds_what_it_leaves(stage: Stage) -> None:
    outcome = await stage.play(stage.job(LEAVES + APPROVED))
    seen: dict[str, str] = json.loads((stage.tmp / "h" / "env").read_text())
    chapter = MANUAL.read_text().partition("## Its environment")[2].partition("\n## ")[0]
    documented = re.findall(r"`(SERVICE_[A-Z_]+)`", chapter)
    others = (re.search(r"`(PATH [A-Z_ ]+)`", chapter) or [""])[0].strip("`").split()
    assert sorted(name for name in seen if name.startswith("SERVICE_")) == sorted(documented)
    assert {name for name in seen if not name.startswith("SERVICE_")} <= {*others, "PWD", "LC_CTYPE"}
    assert seen["SERVICE_RUN_MARK"] == mark_of(Path(kept(stage, outcome).run_dir))
    assert outcome.state is JobState.SUCCEEDED
    assert with_mark(seen["SERVICE_RUN_MARK"]) == set(), "what it left is found by the mark, and ended"

"""Jobs that begin from the line of their chain (rulings O2 to O5)."""

from dataclasses import replace
from typing import Any

import pytest

from activities.agents.shell import Shell
from activities.host.slots import Slots
from activities.jobs.run_job import Jobs
from activities.store import attempt_rows, branch_rows
from activities.store.github import facts
from activities.store.github.facts import FactRow
from tests.activities.jobs.conftest import Stage, git
from workflows.contract.models import Action, SynthesisRule
from workflows.github.facts import FactKind
from workflows.model.briefs import BriefLeg
from workflows.model.event_kinds import BranchEventKind
from workflows.model.event_payloads import BranchEvent
from workflows.model.jobs import JobOutcome, JobRun, Work
from workflows.model.long_texts import Text
from workflows.model.states import Continuation, JobState

ROOT = "job-0123456789ab"
APPROVED = "import json\nprint(json.dumps({'service_result': {'decision': 'approved', 'summary': 's'}}))\n"
IMPLEMENTED = APPROVED.replace("approved", "implemented")
LOOK = """\
import json, os, subprocess
said = lambda *words: subprocess.run(["git", *words], capture_output=True, text=True).stdout
seen = " ".join(sorted(name for name in os.listdir() if name != ".git"))
names = " ".join(said("for-each-ref", "--format=%(refname:short)", "refs/heads/base", "refs/heads/line",
                      "refs/heads/leg").split())
changed = " ".join(said("diff", "--name-only", "base...HEAD").split())
summary = " | ".join([seen, names, changed])
print(json.dumps({"service_result": {"decision": "approved", "summary": summary}}))
"""

RESOLVE = """\
import subprocess
who = ["-c", "user.name=t", "-c", "user.email=t@example.invalid"]
subprocess.run(["git", *who, "merge", "-q", "-X", "theirs", "--no-edit", "leg/b"], check=True)
"""


async def wrote(stage: Stage, number: int, name: str, text: str = "x\n", **changes: Any) -> JobOutcome:
    script = f"open({name!r}, 'w').write({text!r})\n" + IMPLEMENTED
    run = stage.job(script, Action.IMPLEMENT, job_id=f"{ROOT}.{number}", root_job_id=ROOT, **changes)
    outcome = await stage.play(run)
    assert outcome.state is JobState.SUCCEEDED, outcome.reason
    return outcome


def work(leg: str, outcome: JobOutcome) -> Work:
    return Work(leg=leg, job_id=outcome.job_id, branch=outcome.branch or "", head=outcome.head_sha or "")


def later(stage: Stage, script: str, action: Action = Action.ASK, **changes: Any) -> JobRun:
    given = {"job_id": f"{ROOT}.9", "root_job_id": ROOT} | changes
    return stage.job(script, action, **given)


@pytest.mark.ruling("O2", "O4")
async def test_a_later_job_sees_what_its_chain_made_and_has_names_for_it(stage: Stage) -> None:
    a, b = await wrote(stage, 1, "a.py"), await wrote(stage, 2, "b.py")
    seen = await stage.play(later(stage, LOOK, line=(work("a", a), work("b", b))))
    assert seen.summary == "a.py b.py limiter.py | base leg/a leg/b line | a.py b.py"
    row = attempt_rows.get(stage.context.store, seen.job_id, 1)
    assert row is not None
    assert row.base_sha not in {None, git(stage.repo, "rev-parse", "HEAD").strip()}
    assert git(stage.repo, "branch", "--list", "base", "line", "leg/*") == ""


@pytest.mark.ruling("O4")
async def test_the_names_stand_before_branches_of_the_repository_that_are_called_so(stage: Stage) -> None:
    a = await wrote(stage, 1, "a.py")
    for name in ("line/old", "leg", "base"):
        git(stage.repo, "branch", name)
    seen = await stage.play(later(stage, LOOK, line=(work("a", a),)))
    assert seen.summary == "a.py limiter.py | base leg/a line | a.py"


@pytest.mark.ruling("O2")
async def test_a_leg_at_the_base_sees_nothing_of_the_line(stage: Stage) -> None:
    a = await wrote(stage, 1, "a.py")
    seen = await stage.play(later(stage, LOOK, at_base=True, deps=(work("a", a),)))
    assert seen.summary.strip() == "limiter.py | base leg/a line |"


@pytest.mark.ruling("O2", "I5")
async def test_what_a_person_put_on_the_tasks_branch_is_the_lines_first_part(stage: Stage) -> None:
    a = await wrote(stage, 1, "a.py")
    git(stage.repo, "checkout", "-q", "-b", "service/task-1")
    (stage.repo / "mine.py").write_text("x")
    git(stage.repo, "add", ".")
    git(stage.repo, "commit", "-q", "-m", "mine")
    seen = await stage.play(later(stage, LOOK, line=(work("a", a),)))
    assert seen.summary.startswith("a.py limiter.py mine.py |")


@pytest.mark.ruling("O3")
async def test_a_conflict_is_left_out_and_told_once(stage: Stage) -> None:
    a, b = await wrote(stage, 1, "limiter.py", "2\n"), await wrote(stage, 2, "limiter.py", "3\n")
    run = later(stage, LOOK, line=(work("a", a), work("b", b)), continuation=Continuation.NORMAL)
    seen = await stage.play(run)
    assert seen.summary == "limiter.py | base leg/a leg/b line | limiter.py"
    [(kind, job, event)] = branch_rows.events_of(stage.context.store, ROOT)
    assert (kind, job) == (BranchEventKind.LINE_CONFLICT, run.job_id)
    assert event == BranchEvent(
        actor=stage.context.host,
        branch=b.branch or "",
        head_sha=b.head_sha or "",
        task_branch="service/task-1",
        merged=False,
        leg="b",
        against=[a.branch or ""],
        files=["limiter.py"],
    )


@pytest.mark.ruling("O3", "O4")
async def test_a_leg_resolves_a_conflict_by_the_names_it_has(stage: Stage) -> None:
    a, b = await wrote(stage, 1, "limiter.py", "2\n"), await wrote(stage, 2, "limiter.py", "3\n")
    both = (work("a", a), work("b", b))
    run = later(stage, RESOLVE + IMPLEMENTED, Action.IMPLEMENT, job_id=f"{ROOT}.3", line=both)
    solved = await stage.play(run)
    assert solved.state is JobState.SUCCEEDED, solved.reason
    seen = await stage.play(later(stage, LOOK, line=(*both, work("fix", solved)), continuation=Continuation.NORMAL))
    assert seen.summary == "limiter.py | base leg/a leg/b leg/fix line | limiter.py"
    line = git(stage.repo, "show", f"{solved.head_sha}:limiter.py")
    assert line == "3\n"
    given = {"deps": (work("fix", solved),), "branch_deps": (solved.branch,), "delegation_id": "check"}
    assert "Not on the line" not in await told_to(stage, line=both, **given), "its own folder has both"
    assert "Not on the line" in await told_to(stage, line=both)
    assert "Not on the line" not in await told_to(stage, line=(*both, work("fix", solved)))


RESOLVED = "open('limiter.py', 'w').write('both\\n')\n" + IMPLEMENTED
SEEN = """\
import pathlib, subprocess
marked = pathlib.Path("limiter.py").read_text()
assert "<<<<<<<" in marked and "2\\n=======\\n3\\n" in marked, marked
state = subprocess.run(["git", "status"], capture_output=True, text=True).stdout
assert "still merging" in state, state
"""


@pytest.mark.ruling("O3", "O6")
class TestMergeThatIsBegun:
    """A job whose folder has a merge in progress: the agent only edits files."""

    async def both(self, stage: Stage) -> tuple[Work, ...]:
        a, b = await wrote(stage, 1, "limiter.py", "2\n"), await wrote(stage, 2, "limiter.py", "3\n")
        return work("a", a), work("b", b)

    async def merges(self, stage: Stage, script: str, **changes: Any) -> tuple[JobOutcome, tuple[Work, ...]]:
        both = await self.both(stage)
        run = later(stage, script, Action.IMPLEMENT, job_id=f"{ROOT}.3", line=both, merges=("b",), **changes)
        return await stage.play(run), both

    async def test_the_service_commits_what_the_agent_resolved(self, stage: Stage) -> None:
        solved, both = await self.merges(stage, SEEN + RESOLVED)
        assert solved.state is JobState.SUCCEEDED, solved.reason
        assert git(stage.repo, "show", f"{solved.head_sha}:limiter.py") == "both\n"
        assert git(stage.repo, "rev-parse", f"{solved.head_sha}^2").strip() == both[1].head
        assert "Not on the line" not in await told_to(stage, line=(*both, work("fix", solved)))

    async def test_an_agent_that_may_write_git_can_commit_it_itself(self, stage: Stage) -> None:
        commit = "import subprocess\nsubprocess.run(['git', 'commit', '-q', '-a', '--no-edit'], check=True)\n"
        solved, both = await self.merges(stage, SEEN + RESOLVED.replace(IMPLEMENTED, commit + IMPLEMENTED))
        assert solved.state is JobState.SUCCEEDED, solved.reason
        assert git(stage.repo, "rev-parse", f"{solved.head_sha}^2").strip() == both[1].head

    @pytest.mark.parametrize(
        ("script", "why"),
        [
            (IMPLEMENTED, "limiter.py has conflict markers"),
            ("import subprocess\nsubprocess.run(['git', 'merge', '--abort'], check=True)\n" + IMPLEMENTED, "given up"),
        ],
        ids=["markers", "abort"],
    )
    async def test_an_unfinished_merge_fails_the_job(self, stage: Stage, script: str, why: str) -> None:
        end, _ = await self.merges(stage, script)
        assert (end.state, end.head_sha) == (JobState.FAILED, None)
        assert "the merge is not finished" in end.reason
        assert why in end.reason

    async def test_an_agent_that_could_not_do_it_says_why(self, stage: Stage) -> None:
        end, _ = await self.merges(stage, APPROVED.replace("approved", "blocked"))
        assert (end.state, end.head_sha) == (JobState.BLOCKED, None)
        [notice] = [each for each in end.notices if each.kind == "work_left_out"]
        assert "limiter.py has conflict markers" in notice.message

    async def test_several_are_merged_into_one_commit(self, stage: Stage) -> None:
        both = await self.both(stage)
        third = work("c", await wrote(stage, 3, "limiter.py", "4\n"))
        run = later(stage, RESOLVED, Action.IMPLEMENT, job_id=f"{ROOT}.4", line=(*both, third), merges=("b", "c"))
        solved = await stage.play(run)
        assert solved.state is JobState.SUCCEEDED, solved.reason
        assert git(stage.repo, "rev-parse", f"{solved.head_sha}^2", f"{solved.head_sha}^3").split() == [
            both[1].head,
            third.head,
        ]

    async def test_a_file_that_only_one_side_has_is_kept(self, stage: Stage) -> None:
        both = await self.both(stage)
        more = "open('new.py', 'w').write('x')\nopen('limiter.py', 'w').write('5\\n')\n" + IMPLEMENTED
        new = await stage.play(stage.job(more, Action.IMPLEMENT, job_id=f"{ROOT}.5", root_job_id=ROOT))
        line = (both[0], work("new", new))
        solved = await stage.play(
            later(stage, RESOLVED, Action.IMPLEMENT, job_id=f"{ROOT}.6", line=line, merges=("new",))
        )
        assert git(stage.repo, "ls-tree", "--name-only", solved.head_sha or "").split() == ["limiter.py", "new.py"]

    async def test_work_that_merged_meanwhile_needs_nothing(self, stage: Stage) -> None:
        a = work("a", await wrote(stage, 1, "a.py"))
        end = await stage.play(later(stage, IMPLEMENTED, Action.IMPLEMENT, line=(a,), merges=("a",)))
        assert (end.state, end.head_sha) == (JobState.SUCCEEDED, None)

    async def test_an_unknown_leg_is_named(self, stage: Stage) -> None:
        a = work("a", await wrote(stage, 1, "a.py"))
        end = await stage.play(later(stage, IMPLEMENTED, Action.IMPLEMENT, line=(a,), merges=("x",)))
        assert end.state is not JobState.SUCCEEDED
        assert "part x left no work that could be merged here; there is: a" in end.reason

    async def test_its_prompt_says_what_is_begun(self, stage: Stage) -> None:
        both = await self.both(stage)
        script = PROMPT.replace("approved", "blocked")
        await stage.play(later(stage, script, Action.IMPLEMENT, job_id=f"{ROOT}.7", line=both, merges=("b",)))
        prompt = (stage.tmp / "told.txt").read_text()
        assert "The merge of `leg/b` is begun in your folder" in prompt
        assert "Not on the line" not in prompt


@pytest.mark.ruling("O1", "O4")
async def test_what_it_merges_of_a_leg_with_several_branches_is_recorded_as_the_services(stage: Stage) -> None:
    """The branch `leg/b` is a merge that is on no line, since a part of it conflicts."""
    a, b = await wrote(stage, 1, "limiter.py", "2\n"), await wrote(stage, 2, "limiter.py", "3\n")
    below = await wrote(stage, 3, "below.py")
    line = (work("a", a), work("b", b), work("b", below).model_copy(update={"job_id": b.job_id}))
    solved = await stage.play(later(stage, RESOLVE + IMPLEMENTED, Action.IMPLEMENT, job_id=f"{ROOT}.4", line=line))
    row = attempt_rows.get(stage.context.store, solved.job_id, 1)
    assert row
    assert row.diagnostics
    [merge] = row.diagnostics["joined"]
    assert git(stage.repo, "rev-parse", f"{merge}^@").split() == [b.head_sha, below.head_sha]
    assert row.diagnostics["lines"] == [merge]


@pytest.mark.ruling("O2", "I5")
async def test_dropped_work_is_not_on_the_line(stage: Stage) -> None:
    a = await wrote(stage, 1, "a.py")
    dropped = BranchEvent(
        actor="t", branch=a.branch or "", head_sha=a.head_sha or "", task_branch="service/task-1", merged=False
    )
    branch_rows.record(stage.context.store, BranchEventKind.DROPPED, a.job_id, dropped, "dropped")
    git(stage.repo, "branch", "-q", "-D", a.branch or "")
    seen = await stage.play(later(stage, LOOK, line=(work("a", a),)))
    assert seen.summary.strip() == "limiter.py | base line |"


@pytest.mark.ruling("O2", "O1")
async def test_what_people_commit_on_a_legs_branch_is_not_on_the_line(stage: Stage) -> None:
    a = await wrote(stage, 1, "a.py")
    git(stage.repo, "checkout", "-q", a.branch or "")
    (stage.repo / "foreign.py").write_text("x")
    git(stage.repo, "add", ".")
    git(stage.repo, "commit", "-q", "-m", "foreign")
    git(stage.repo, "checkout", "-q", "main")
    seen = await stage.play(later(stage, LOOK, line=(work("a", a),)))
    assert seen.summary.startswith("a.py limiter.py |")


@pytest.mark.ruling("O5")
async def test_a_continuation_goes_on_on_the_branch_of_the_job_before(stage: Stage) -> None:
    first = await wrote(stage, 1, "one.py")
    branch = first.branch or ""
    script = "import os; assert os.path.exists('one.py'); open('two.py', 'w').write('x')\n" + IMPLEMENTED
    run = later(stage, script, Action.IMPLEMENT, own_branch=branch, continuation=Continuation.ANSWERED)
    second = await stage.play(run)
    assert (second.state, second.branch) == (JobState.SUCCEEDED, branch)
    idle = later(stage, IMPLEMENTED, Action.IMPLEMENT, job_id=f"{ROOT}.10", own_branch=branch)
    third = await stage.play(idle)
    assert (third.branch, third.head_sha) == (branch, second.head_sha)
    assert git(stage.repo, "ls-tree", "--name-only", branch).split() == ["limiter.py", "one.py", "two.py"]


@pytest.mark.ruling("O2", "O5")
async def test_a_coordinator_that_writes_goes_on_with_what_its_legs_made(stage: Stage) -> None:
    own = await wrote(stage, 1, "own.py")
    leg = await wrote(stage, 2, "leg.py", line=(work("", own),))
    line = (work("", own), work("a", leg))
    script = "open('more.py', 'w').write('x')\n" + IMPLEMENTED
    end = await stage.play(later(stage, script, Action.IMPLEMENT, own_branch=own.branch, line=line))
    files = git(stage.repo, "ls-tree", "--name-only", end.branch or "").split()
    assert (end.branch, files) == (own.branch, ["leg.py", "limiter.py", "more.py", "own.py"])


PROMPT = """\
import json, pathlib, sys
pathlib.Path(sys.argv[0]).with_name("told.txt").write_text(sys.stdin.read())
print(json.dumps({"service_result": {"decision": "approved", "summary": "s"}}))
"""


async def told_to(stage: Stage, **changes: Any) -> str:
    """Run a later job, and return its prompt."""
    number = len(list(stage.context.home.runs.iterdir())) + 100
    await stage.play(later(stage, PROMPT, Action.REVIEW, job_id=f"{ROOT}.{number}", **changes))
    return (stage.tmp / "told.txt").read_text()


@pytest.mark.ruling("P2", "O3", "O4")
async def test_the_prompt_says_where_the_job_is_and_what_was_left_out(stage: Stage) -> None:
    a, b = await wrote(stage, 1, "limiter.py", "2\n"), await wrote(stage, 2, "limiter.py", "3\n")
    await stage.play(later(stage, PROMPT, line=(work("a", a), work("b", b))))
    told_it = (stage.tmp / "told.txt").read_text()
    place = told_it[told_it.index("# Where you are") :].partition("\n## ")[0]
    base = git(stage.repo, "rev-parse", "HEAD").strip()
    assert (
        f"You begin from the task's line, commit `{(a.head_sha or '')[:12]}`: its base, commit `{base[:12]}`" in place
    )
    assert "with the work of `a`, merged in this order" in place
    assert f"Not on the line: leg `b`, because it conflicts with `{a.branch}` in `limiter.py`." in place
    assert '`"worktree": "@merge:b"`' in place
    assert (
        "Local branches: `base` (where the task began), `line` (with the work merged since), `leg/a`, `leg/b`." in place
    )
    assert "on no branch (detached)" in place


@pytest.mark.ruling("P2")
async def test_the_prompt_of_a_first_job_says_that_nothing_is_on_the_line(stage: Stage) -> None:
    await stage.play(stage.job(PROMPT, Action.IMPLEMENT))
    place = (stage.tmp / "told.txt").read_text()
    assert "no other job's work is merged yet" in place
    assert "on the branch `service/job-0123456789ab`, which stays" in place
    assert "time limit" in place


@pytest.mark.ruling("P3")
async def test_a_check_is_told_the_goal_what_it_looks_at_and_what_its_decision_leads_to(stage: Stage) -> None:
    a = await wrote(stage, 1, "a.py")
    follows = BriefLeg(
        id="a", job_id=a.job_id, worker="dev", action=Action.IMPLEMENT, state=a.state, branch=a.branch, summary="did it"
    )
    run = later(
        stage, PROMPT, Action.REVIEW, deps=(work("a", a),), branch_deps=(a.branch or "",), delegation_id="check"
    )
    verify = {"goal": Text(inline="limit the rate"), "follows": (follows,), "rules": (SynthesisRule.VERIFY,)}
    await stage.play(run.model_copy(update=verify))
    prompt = (stage.tmp / "told.txt").read_text()
    for text in ("limit the rate", "did it", "`git diff base...HEAD`", "`git diff line...leg/a`", "sends it back"):
        assert text in prompt


IDS = ("a..b", "x.", "y.lock", "z.lock.lock", "v1.2")


@pytest.mark.ruling("O4", "A9")
async def test_any_leg_id_becomes_a_name(stage: Stage) -> None:
    a = await wrote(stage, 1, "a.py")
    seen = await stage.play(later(stage, LOOK, line=tuple(work(leg, a) for leg in IDS)))
    base, *legs, line = seen.summary.split(" | ")[1].split()
    assert (base, line) == ("base", "line")
    assert len({name for name in legs if name.startswith("leg/")}) == len(IDS)


@pytest.mark.ruling("O3", "O5", "P2")
async def test_own_work_that_conflicts_with_the_line_is_kept_and_told(stage: Stage) -> None:
    own = await wrote(stage, 1, "limiter.py", "2\n")
    leg = await wrote(stage, 2, "limiter.py", "3\n")
    script = PROMPT.replace("approved", "implemented")
    given = {"own_branch": own.branch, "line": (work("a", leg),), "continuation": Continuation.ANSWERED}
    end = await stage.play(later(stage, script, Action.IMPLEMENT, **given))
    assert (end.branch, end.head_sha) == (own.branch, own.head_sha)
    prompt = (stage.tmp / "told.txt").read_text()
    assert "You begin from what your branch has; the line is not merged into it" in prompt
    assert "`git merge line`" in prompt
    [(kind, _, event)] = branch_rows.events_of(stage.context.store, ROOT)
    assert (kind, event.branch, event.files) == (BranchEventKind.LINE_CONFLICT, own.branch, ["limiter.py"])


@pytest.mark.ruling("O2", "P2")
async def test_what_people_put_on_the_tasks_branch_is_named_as_theirs(stage: Stage) -> None:
    git(stage.repo, "checkout", "-q", "-b", "service/task-1")
    (stage.repo / "mine.py").write_text("x")
    git(stage.repo, "add", ".")
    git(stage.repo, "commit", "-q", "-m", "mine")
    base = git(stage.repo, "rev-parse", "main").strip()
    await stage.play(later(stage, PROMPT, base=base))
    prompt = (stage.tmp / "told.txt").read_text()
    assert "with what people put on the task's branch" in prompt


@pytest.mark.ruling("H3")
async def test_work_that_is_on_the_line_already_is_no_progress(stage: Stage) -> None:
    first = await wrote(stage, 1, "a.py")
    line = (work("a", first),)
    again, once_more = await wrote(stage, 2, "a.py", line=line), await wrote(stage, 3, "a.py", line=line)
    other = await wrote(stage, 4, "a.py", "y\n", line=line)
    assert again.head_sha is None
    assert again.progress == once_more.progress
    assert len({first.progress, again.progress, other.progress}) == 3


@pytest.mark.ruling("H3")
async def test_the_pull_request_of_a_job_is_the_one_its_branch_was_published_as(stage: Stage) -> None:
    first = await wrote(stage, 1, "a.py", pull_request=3, github="acme/shop")
    fact = FactRow("f", FactKind.PUBLISH, ROOT, "acme/shop", 3, first.branch or "", github_id="12")
    facts.declare(stage.context.store, [fact])
    run = later(stage, IMPLEMENTED, Action.IMPLEMENT, own_branch=first.branch, continuation=Continuation.ANSWERED)
    second = await stage.play(run)
    assert (first.pull_request, second.pull_request) == (None, 12)


BUILT = """\
import os
for name in ("__pycache__/a.pyc", "pkg/__pycache__/b.pyc", "node_modules/x/y.js", "target/z", "sub/target/w", "c.pyc"):
    os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
    open(name, "w").write("x")
open("sub/Cargo.toml", "w").write("x")
"""


@pytest.mark.ruling("I4")
class TestBuildProducts:
    """What builds leave behind is not a job's work, although the repository does not ignore it."""

    async def test_they_are_left_out_of_its_commit_and_told_once(self, stage: Stage) -> None:
        end = await stage.play(stage.job(BUILT + IMPLEMENTED, Action.IMPLEMENT))
        files = git(stage.repo, "ls-tree", "-r", "--name-only", end.head_sha or "").split()
        assert files == ["limiter.py", "sub/Cargo.toml", "target/z"], "a folder named target may be anybody's"
        assert end.touched_files == ("sub/Cargo.toml", "target/z")
        [notice] = [each for each in end.notices if each.kind == "work_left_out"]
        assert "build products: __pycache__/, c.pyc, node_modules/, pkg/__pycache__/, sub/target/" in notice.message

    async def test_they_are_no_observed_files_of_a_reader(self, stage: Stage) -> None:
        script = "import os\nos.mkdir('__pycache__')\nopen('__pycache__/a.pyc', 'w')\n"
        end = await stage.play(stage.job(script + APPROVED))
        assert (end.touched_files, end.notices) == ((), ())

    async def test_a_file_of_the_repository_counts(self, stage: Stage) -> None:
        (stage.repo / "node_modules").mkdir()
        (stage.repo / "node_modules" / "kept.js").write_text("x")
        git(stage.repo, "add", ".")
        git(stage.repo, "commit", "-q", "-m", "vendored")
        script = "open('node_modules/kept.js', 'w').write('y')\n" + IMPLEMENTED
        end = await stage.play(stage.job(script, Action.IMPLEMENT))
        assert end.touched_files == ("node_modules/kept.js",)

    async def test_a_setting_takes_them(self, stage: Stage) -> None:
        settings = stage.context.settings
        git_too = settings.git.model_copy(update={"build_products": True})
        context = replace(stage.context, settings=settings.model_copy(update={"git": git_too}))
        stage = replace(stage, context=context, jobs=Jobs(context, {"shell": Shell(())}, Slots(context.settings)))
        end = await stage.play(stage.job("open('c.pyc', 'w').write('x')\n" + IMPLEMENTED, Action.IMPLEMENT))
        assert (end.touched_files, end.notices) == (("c.pyc",), ())

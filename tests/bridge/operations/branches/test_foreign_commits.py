"""Branches that hold commits of others aren't merged, passed or published (ruling O1)."""

import shlex
import subprocess
from pathlib import Path

import pytest

from activities.git.merges.task_line import LinePart, draw
from activities.settings.home import Home
from activities.store import job_rows, tree_rows
from bridge.operations.branches import merge_gate, merges
from bridge.operations.branches.publish import work_of
from bridge.operations.jobs import jobs
from bridge.operations.service import Service
from tests.activities.git.conftest import ENV, commit_file, run_git
from tests.bridge import seeds
from tests.bridge.grown import CHECK, CODE, DOCS, FIX, LAST, RECHECK, REPLAN, Grown, started
from tests.bridge.reviewed import TASK_BRANCH, A, B, Reviewed, reviewed
from tests.bridge.seeds import ROOT
from workflows.contract.models import Action
from workflows.github.merge_gate import GateState
from workflows.model.errors import Commands, RefusedError
from workflows.model.long_texts import Text
from workflows.model.states import Continuation, JobState
from workflows.model.workers import Assignment, Worker
from workflows.tree.state import TreeInput

pytestmark = pytest.mark.ruling("O1")
LEG = f"service/{A}-a"


def begun(tree: Reviewed, base: str, *deps: str) -> None:
    """Record the base that the tree was started with."""
    lead = Assignment(
        worker=Worker(name="lead", runtime="shell"), action=Action.ASK, prompt=Text(inline="do it"), base=base
    )
    start = TreeInput(
        root_job_id=ROOT, task_id=seeds.TASK, repo="acme/shop", assignment=lead, created_at=1.0, branch_deps=deps
    )
    tree_rows.begin(tree.service.store, start, "here")


@pytest.fixture
def tree(home: Home, tmp_path: Path) -> Reviewed:
    """Build a tree of two legs with a base; the operator's own branch has more commits."""
    made = reviewed(Service(home), tmp_path)
    commit_file(made.repo, "secret.txt", "x", "never to be published")
    begun(made, made.base)
    return made


def alone(tree: Reviewed) -> None:
    """Make leg `a` the only one that wrote."""
    tree.write(2, b={"state": JobState.FAILED, "decision": "failed", "head_sha": None, "branch": None})


def refused(tree: Reviewed, *job_ids: str, anyway: bool = False) -> RefusedError:
    with pytest.raises(RefusedError) as no:
        merges.merge(tree.service, job_ids, actor="ann", anyway=anyway)
    return no.value


def typed(hint: str) -> list[list[str]]:
    """Return a hint's commands as typed, in order."""
    commands = hint.commands if isinstance(hint, Commands) else (hint,)
    return [shlex.split(command, comments=True) for command in commands]


def type_all(commands: list[list[str]]) -> None:
    for words in commands:
        subprocess.run(words, env=ENV, check=True, capture_output=True)


def test_the_trees_own_commits_are_merged_and_published(tree: Reviewed) -> None:
    assert merges.merge(tree.service, [A, B], actor="ann").merged == (A, B)
    assert work_of(tree.service, jobs.get(tree.service, ROOT)).branch == TASK_BRANCH


@pytest.mark.parametrize("anyway", [False, True])
def test_a_commit_put_on_a_legs_branch_is_named_and_not_merged(tree: Reviewed, anyway: bool) -> None:
    foreign = tree.commit(LEG)
    no = refused(tree, B, A, anyway=anyway)
    assert no.message == (
        f"{LEG} of part a ({A}) holds a commit that is not of this task: {foreign[:7]} change; nothing was merged"
    )
    assert run_git(tree.repo, "branch", "--list", TASK_BRANCH) == ""


def test_what_came_in_by_a_merge_of_another_branch_is_named(tree: Reviewed) -> None:
    run_git(tree.repo, "checkout", "-q", LEG)
    run_git(tree.repo, "merge", "-q", "--no-edit", "main")
    run_git(tree.repo, "checkout", "-q", "main")
    no = refused(tree, A)
    secret = run_git(tree.repo, "rev-parse", "--short=7", "main")
    assert "holds 2 commits that are not of this task: " in no.message
    assert f"{secret} never to be published" in no.message


def test_many_are_counted(tree: Reviewed) -> None:
    for number in range(9):
        tree.commit(LEG, f"{number}.txt")
    message = refused(tree, A).message
    assert "holds 9 commits that are not of this task: " in message
    assert message.count(" change") == 5
    assert "and 4 more; nothing was merged" in message


def test_they_are_left_out_by_the_first_command(tree: Reviewed) -> None:
    tree.commit(LEG)
    leave, *_ = typed(refused(tree, A).hint)
    type_all([leave])
    assert merges.merge(tree.service, [A], actor="ann").merged == (A,)
    assert "later.txt" not in run_git(tree.repo, "ls-tree", "--name-only", TASK_BRANCH)


def test_they_are_left_out_also_where_the_branch_is_checked_out(tree: Reviewed) -> None:
    tree.commit(LEG)
    run_git(tree.repo, "checkout", "-q", LEG)
    detach, leave, *_ = typed(refused(tree, A).hint)
    type_all([detach, leave])
    assert merges.merge(tree.service, [A], actor="ann").merged == (A,)


@pytest.mark.parametrize("where", ["nowhere", "there", "checked out"])
def test_they_are_taken_in_by_the_others(tree: Reviewed, where: str) -> None:
    if where != "nowhere":
        merges.merge(tree.service, [B], actor="ann")
    foreign = tree.commit(LEG)
    if where == "checked out":
        run_git(tree.repo, "checkout", "-q", TASK_BRANCH)
    _, *take = typed(refused(tree, A).hint)
    type_all(take)
    done = merges.merge(tree.service, [A], actor="ann")
    assert (done.merged, done.already) == ((), (A,))
    run_git(tree.repo, "merge-base", "--is-ancestor", foreign, TASK_BRANCH)
    assert work_of(tree.service, jobs.get(tree.service, ROOT)).commit == done.head


def test_what_people_put_on_the_tasks_branch_is_theirs_to_put(tree: Reviewed) -> None:
    merges.merge(tree.service, [B], actor="ann")
    head = tree.commit(TASK_BRANCH)
    assert merges.merge(tree.service, [A], actor="ann").merged == (A,)
    run_git(tree.repo, "merge-base", "--is-ancestor", head, TASK_BRANCH)


def test_a_leg_that_saw_it_holds_it_too(tree: Reviewed) -> None:
    """Leg `b` depends on `a`, and a commit was put on the branch of `a` before `b` ran."""
    foreign = tree.commit(LEG)
    run_git(tree.repo, "checkout", "-q", f"service/{B}-b")
    run_git(tree.repo, "merge", "-q", "--no-edit", LEG)
    run_git(tree.repo, "checkout", "-q", "main")
    head = run_git(tree.repo, "rev-parse", f"service/{B}-b")
    tree.ran(B, "b", head, [foreign])
    tree.write(2, b={"head_sha": head})
    no = refused(tree, B)
    assert f"holds a commit that is not of this task: {foreign[:7]} change" in no.message
    assert [words[:2] for words in typed(no.hint)] == [["git", "-C"]]
    type_all(typed(no.hint))
    assert merges.merge(tree.service, [B], actor="ann").already == (B,)


def test_what_an_agent_merged_in_itself_is_named(tree: Reviewed) -> None:
    run_git(tree.repo, "checkout", "-q", LEG)
    run_git(tree.repo, "merge", "-q", "--no-edit", "main")
    run_git(tree.repo, "checkout", "-q", "main")
    head, secret = run_git(tree.repo, "rev-parse", LEG), run_git(tree.repo, "rev-parse", "main")
    tree.ran(A, "a", head, [], joined=[secret, tree.heads["b"]])
    tree.write(2, a={"head_sha": head})
    no = refused(tree, A)
    assert f"holds a commit that is not of this task: {secret[:7]} never to be published; nothing" in no.message
    type_all(typed(no.hint))
    assert merges.merge(tree.service, [A], actor="ann").already == (A,)


def test_what_an_agent_merged_of_another_leg_is_the_trees(tree: Reviewed) -> None:
    run_git(tree.repo, "checkout", "-q", LEG)
    run_git(tree.repo, "merge", "-q", "--no-edit", f"service/{B}-b")
    run_git(tree.repo, "checkout", "-q", "main")
    head = run_git(tree.repo, "rev-parse", LEG)
    tree.ran(A, "a", head, [], joined=[tree.heads["b"]])
    tree.write(2, a={"head_sha": head})
    assert merges.merge(tree.service, [A], actor="ann").merged == (A,)


def test_a_branch_that_a_pipelines_stage_needs_is_the_runs(tree: Reviewed) -> None:
    run_git(tree.repo, "checkout", "-q", "-b", "service/stage", tree.base)
    stage = commit_file(tree.repo, "stage.txt", "x")
    run_git(tree.repo, "checkout", "-q", LEG)
    run_git(tree.repo, "merge", "-q", "--no-edit", "service/stage")
    run_git(tree.repo, "checkout", "-q", "main")
    head = run_git(tree.repo, "rev-parse", LEG)
    with tree.service.store.begin() as connection:
        connection.exec_driver_sql("delete from trees")
    begun(tree, tree.base, "service/stage")
    run_git(tree.repo, "branch", "-D", "service/stage")
    tree.ran(A, "a", head, [stage])
    tree.write(2, a={"head_sha": head})
    assert merges.merge(tree.service, [A], actor="ann").merged == (A,)


def test_the_gate_fails_a_head_with_one(tree: Reviewed) -> None:
    alone(tree)
    foreign = tree.commit(LEG)
    verdict = merge_gate.of_tree(tree.service, ROOT)
    assert verdict.state is GateState.FAILING
    [reason] = [each for each in verdict.reasons if "not of this task" in each]
    assert reason.startswith(
        f"{LEG} of part a ({A}) holds a commit that is not of this task: {foreign[:7]} change; next: "
    )
    type_all([shlex.split(reason.partition("; next: ")[2], comments=True)])
    assert not any("not of this task" in each for each in merge_gate.of_tree(tree.service, ROOT).reasons)


@pytest.mark.parametrize("job_id", [ROOT, A])
def test_none_is_published(tree: Reviewed, job_id: str) -> None:
    alone(tree)
    foreign = tree.commit(LEG)
    with pytest.raises(RefusedError, match="not of this task") as no:
        work_of(tree.service, jobs.get(tree.service, job_id))
    assert f"{foreign[:7]} change; nothing was published" in no.value.message
    type_all(typed(no.value.hint)[:1])
    assert work_of(tree.service, jobs.get(tree.service, job_id)).commit == tree.heads["a"]


def replanned(home: Home, where: Path) -> Grown:
    """Build a tree whose second generation wrote on a line that merges two legs of the first one."""
    made = started(Service(home), where)
    made.wrote(CODE, "code", "code\n")
    made.wrote(DOCS, "docs", "docs\n", name="docs.txt")
    made.went_on(REPLAN, ROOT, ("code", "docs"), Continuation.REPLAN)
    return made


@pytest.mark.ruling("O2")
@pytest.mark.parametrize("job_id", [ROOT, FIX])
def test_a_line_that_a_later_leg_wrote_on_is_the_trees(home: Home, tmp_path: Path, job_id: str) -> None:
    tree = replanned(home, tmp_path)
    merge = tree.line
    tree.wrote(FIX, "fix", "code, mended\n", parent=REPLAN)
    tree.looked(RECHECK, "approved", "fix", parent=REPLAN)
    tree.went_on(LAST, REPLAN, ("code", "docs", "fix"), Continuation.NORMAL)
    assert tree.line == tree.heads["fix"]
    assert merge_gate.of_tree(tree.service, ROOT).state is GateState.PASSING
    assert work_of(tree.service, jobs.get(tree.service, job_id)).commit == tree.line
    assert FIX in merges.merge(tree.service, [job_id], actor="ann").merged
    run_git(tree.repo, "merge-base", "--is-ancestor", merge, TASK_BRANCH)


@pytest.mark.ruling("O2")
def test_lines_of_every_generation_are_the_trees(home: Home, tmp_path: Path) -> None:
    tree = replanned(home, tmp_path)
    tree.wrote(FIX, "fix", "code, mended\n", parent=REPLAN)
    tree.wrote(RECHECK, "more", "more\n", parent=REPLAN, name="more.txt")
    tree.went_on(LAST, REPLAN, ("code", "docs", "fix", "more"), Continuation.REPLAN)
    tree.wrote(f"{ROOT}.8", "last", "last\n", parent=LAST, name="last.txt")
    tree.went_on(f"{ROOT}.9", LAST, ("code", "docs", "fix", "more", "last"), Continuation.NORMAL)
    assert run_git(tree.repo, "rev-list", "--count", "--merges", tree.line) == "2"
    assert merge_gate.of_tree(tree.service, ROOT).state is GateState.PASSING
    merges.merge(tree.service, [ROOT], actor="ann")


@pytest.mark.ruling("O2")
@pytest.mark.parametrize("job_id", [ROOT, CODE, FIX])
def test_what_an_agent_merged_in_is_named_also_below_a_line(home: Home, tmp_path: Path, job_id: str) -> None:
    tree = started(Service(home), tmp_path)
    secret = commit_file(tree.repo, "secret.txt", "x", "never to be published")
    tree.wrote(CODE, "code", "code\n")
    tree.merged_in(CODE, "code", secret)
    tree.wrote(DOCS, "docs", "docs\n", name="docs.txt")
    tree.went_on(REPLAN, ROOT, ("code", "docs"), Continuation.REPLAN)
    tree.wrote(FIX, "fix", "code, mended\n", parent=REPLAN)
    tree.went_on(LAST, REPLAN, ("code", "docs", "fix"), Continuation.NORMAL)
    with pytest.raises(RefusedError, match=f"a commit that is not of this task: {secret[:7]} never to be published;"):
        merges.merge(tree.service, [job_id], actor="ann")


@pytest.mark.ruling("O5")
def test_a_coordinator_that_adds_nothing_to_its_line_leaves_the_trees_own(home: Home, tmp_path: Path) -> None:
    """The head of its job is the line itself."""
    tree = replanned(home, tmp_path)
    run_git(tree.repo, "branch", f"service/{ROOT}", tree.line)
    tree.heads["own"] = tree.line
    row = {"action": Action.IMPLEMENT, "branch": f"service/{ROOT}", "head_sha": tree.line, "revision": 2}
    kept = job_rows.get(tree.service.store, REPLAN)
    assert kept
    seeds.write(tree.service, kept.model_copy(update=row))
    tree.ends(REPLAN, tree.line)
    assert merge_gate.of_tree(tree.service, ROOT).state is GateState.PASSING
    merges.merge(tree.service, [ROOT], actor="ann")


@pytest.mark.ruling("O3", "O4")
def test_a_leg_of_several_branches_that_an_agent_merged_is_the_trees(home: Home, tmp_path: Path) -> None:
    """Its work is on no line, because a part of it conflicts."""
    tree = started(Service(home), tmp_path)
    tree.wrote(CODE, "code", "code\n")
    tree.wrote(DOCS, "docs", "docs\n")
    tree.wrote(CHECK, "below", "below\n", parent=DOCS, name="below.txt")
    both = [LinePart("docs", DOCS, leg, tree.heads[leg]) for leg in ("docs", "below")]
    drawn = draw(tree.repo, tree.base, tree.heads["code"], both).legs["docs"]
    tree.went_on(REPLAN, ROOT, ("code",), Continuation.REPLAN)
    tree.wrote(FIX, "fix", "code, mended\n", parent=REPLAN)
    tree.merged_in(FIX, "fix", drawn, lines=[drawn])
    tree.went_on(LAST, REPLAN, ("code", "fix"), Continuation.NORMAL)
    assert merge_gate.of_tree(tree.service, ROOT).state is GateState.PASSING
    merges.merge(tree.service, [ROOT], actor="ann")


def goes_on(tree: Grown, branch: str) -> str:
    """Merge the line onto a branch with earlier work, as the service does before a job goes on with it."""
    run_git(tree.repo, "checkout", "-q", branch)
    run_git(tree.repo, "merge", "-q", "--no-ff", "--no-edit", tree.line)
    run_git(tree.repo, "checkout", "-q", "main")
    return run_git(tree.repo, "rev-parse", branch)


def repaired(tree: Grown, branch: str, start: str) -> None:
    """Let a leg of the second generation go on with the branch of an earlier one."""
    run_git(tree.repo, "checkout", "-q", branch)
    commit_file(tree.repo, "app.txt", "code, mended\n")
    run_git(tree.repo, "checkout", "-q", "main")
    tree.left(FIX, "fix", branch, tree.line, parent=REPLAN)
    tree.ends(FIX, tree.heads["fix"], start_sha=start)
    tree.went_on(LAST, REPLAN, ("code", "docs", "fix"), Continuation.NORMAL)


@pytest.mark.ruling("O5")
def test_a_commit_put_on_a_branch_is_named_also_once_a_job_went_on_with_it(home: Home, tmp_path: Path) -> None:
    tree, branch = replanned(home, tmp_path), f"service/{CODE}-code"
    run_git(tree.repo, "checkout", "-q", branch)
    put = commit_file(tree.repo, "secret.txt", "x", "put there by hand")
    repaired(tree, branch, goes_on(tree, branch))
    with pytest.raises(RefusedError, match=f"a commit that is not of this task: {put[:7]} put there by hand;"):
        merges.merge(tree.service, [ROOT], actor="ann")


@pytest.mark.ruling("O5")
@pytest.mark.parametrize("refused", [False, True])
def test_the_line_that_was_merged_onto_its_branch_is_the_trees(home: Home, tmp_path: Path, refused: bool) -> None:
    """A job that was refused after the line was merged leaves that merge to the next one."""
    tree, branch = replanned(home, tmp_path), f"service/{CODE}-code"
    start = goes_on(tree, branch)
    if refused:
        seeds.write(tree.service, seeds.job(CHECK, state=JobState.FAILED))
        seeds.payload(tree.service, CHECK, {}, branch=branch, base_sha=tree.line, given=[], ended_at=2.0)
        tree.wrote(RECHECK, "more", "more\n", name="more.txt")
        tree.went_on(f"{ROOT}.8", ROOT, ("code", "docs", "more"), Continuation.REPLAN)
        start = goes_on(tree, branch)
    repaired(tree, branch, start)
    merges.merge(tree.service, [ROOT], actor="ann")

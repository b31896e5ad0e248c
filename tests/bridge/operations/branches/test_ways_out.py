"""Each command that a refused merge or drop prints is typed in the very state that printed it (ruling O7)."""

from collections.abc import Callable
from pathlib import Path

import pytest

from activities.settings.home import Home
from activities.store import tree_rows
from bridge.operations.branches import branches, drops, merge_gate, merges
from bridge.operations.branches.publish import work_of
from bridge.operations.jobs import jobs
from bridge.operations.orders import trees
from bridge.operations.registry import agents
from bridge.operations.registry.agents import NewAgent
from bridge.operations.service import Service
from tests.activities.git.conftest import commit_file, run_git
from tests.bridge import seeds
from tests.bridge.grown import DOCS, FILE, FIX, Grown, grown, started
from tests.bridge.reviewed import A, B, Reviewed, V, reviewed
from tests.bridge.seeds import ROOT
from tests.bridge.typist import of_hint, type_all
from workflows.contract.models import Action
from workflows.github.merge_gate import GateState
from workflows.model.errors import ServiceError
from workflows.model.states import JobState, TaskState, WaitsFor
from workflows.tree.state import TreeInput

pytestmark = pytest.mark.ruling("O7", "O6", "I5")
TASK_BRANCH = f"service/{seeds.TASK}"


@pytest.fixture
def tree(home: Home, tmp_path: Path) -> Reviewed:
    """Build a tree of two legs that wrote and one that reviewed them."""
    return reviewed(Service(home), tmp_path)


@pytest.fixture
def lined(home: Home, tmp_path: Path) -> Grown:
    """Build a tree of three generations with a line."""
    return grown(Service(home), tmp_path)


def merge(tree: Reviewed | Grown, *job_ids: str, anyway: bool = False) -> tuple[str, ...]:
    return merges.merge(tree.service, job_ids, actor="ann", anyway=anyway).merged


def ways(act: Callable[[], object]) -> tuple[str, ...]:
    """Return the commands of a refusal."""
    with pytest.raises(ServiceError) as refused:
        act()
    return of_hint(refused.value.hint)


def states(tree: Reviewed | Grown) -> dict[str, str]:
    return {leg.leg: str(leg.state) for leg in branches.of_tree(tree.service, ROOT).legs}


def both(place: Path) -> None:
    """Resolve a conflict in any file."""
    for name in run_git(place, "diff", "--name-only", "--diff-filter=U").splitlines():
        (place / name).write_text("both\n")
    run_git(place, "add", "-A")


class TestMerge:
    def test_what_was_decided_against(self, tree: Reviewed) -> None:
        tree.write(2, a={"decision": "changes_requested"})
        seeds.write(tree.service, seeds.task(revision=2, state=TaskState.BLOCKED))
        show, anyway = ways(lambda: merge(tree, A))
        type_all([show, anyway])
        assert states(tree) == {"a": "merged", "b": "unmerged"}

    def test_a_root_all_of_whose_legs_were_decided_against(self, tree: Reviewed) -> None:
        tree.write(2, a={"decision": "changes_requested"}, b={"decision": "changes_requested"})
        *_, anyway = ways(lambda: merge(tree, ROOT))
        type_all([anyway])
        assert states(tree) == {"a": "merged", "b": "merged"}

    def test_a_job_that_writes_nothing(self, tree: Reviewed) -> None:
        type_all(ways(lambda: merge(tree, V)))

    def test_a_root_without_work(self, tree: Reviewed) -> None:
        tree.write(2, a={"state": JobState.FAILED}, b={"state": JobState.FAILED})
        type_all(ways(lambda: merge(tree, ROOT)))

    def test_a_leg_that_failed(self, tree: Reviewed) -> None:
        tree.write(2, a={"state": JobState.FAILED, "reason": "broke"})
        type_all(ways(lambda: merge(tree, A)))
        tree.write(3, a={"state": JobState.FAILED, "waits_for": WaitsFor.RETRY})
        assert ways(lambda: merge(tree, A)) == (f"service job retry {A}",)

    def test_a_leg_that_changed_nothing(self, tree: Reviewed) -> None:
        tree.write(2, a={"head_sha": None})
        type_all(ways(lambda: merge(tree, A)))

    @pytest.mark.parametrize("how", ["dropped", "deleted"])
    def test_a_branch_that_is_gone(self, tree: Reviewed, how: str) -> None:
        if how == "dropped":
            drops.drop(tree.service, A, actor="ann", force=True)
        else:
            run_git(tree.repo, "branch", "-q", "-D", f"service/{A}-a")
        type_all(ways(lambda: merge(tree, A)))
        assert merge(tree, A) == (A,)

    def test_commits_that_are_gone(self, tree: Reviewed) -> None:
        run_git(tree.repo, "branch", "-q", "-D", f"service/{A}-a")
        run_git(tree.repo, "reflog", "expire", "--expire=now", "--all")
        run_git(tree.repo, "gc", "-q", "--prune=now")
        type_all(ways(lambda: merge(tree, A)))

    @pytest.mark.parametrize("job_ids", [(A, B), (ROOT,)])
    def test_a_task_branch_that_is_checked_out(self, tree: Reviewed, job_ids: tuple[str, ...]) -> None:
        run_git(tree.repo, "checkout", "-q", "-b", TASK_BRANCH, tree.base)
        type_all(ways(lambda: merge(tree, *job_ids)))
        assert states(tree) == {"a": "merged", "b": "merged"}
        assert merge(tree, *job_ids) == ()

    def test_a_task_branch_that_is_checked_out_takes_the_line(self, lined: Grown) -> None:
        run_git(lined.repo, "checkout", "-q", "-b", TASK_BRANCH, lined.base)
        type_all(ways(lambda: merge(lined, ROOT)))
        assert states(lined) == {"code": "merged", "docs": "unmerged", "fix": "merged"}

    @pytest.mark.parametrize("checked_out", [False, True])
    def test_legs_that_conflict(self, tree: Reviewed, checked_out: bool) -> None:
        run_git(tree.repo, "checkout", "-q", f"service/{B}-b")
        tree.heads["b"] = commit_file(tree.repo, "a.txt", "other\n")
        run_git(tree.repo, "checkout", "-q", "main")
        tree.write(2, a={"decision": "changes_requested"})
        first = ways(lambda: merge(tree, A, B, anyway=True))[0]
        type_all([first])
        if checked_out:
            run_git(tree.repo, "checkout", "-q", TASK_BRANCH)
        type_all(ways(lambda: merge(tree, A, B, anyway=True)), both)
        assert states(tree) == {"a": "merged", "b": "merged"}
        assert len(run_git(tree.repo, "worktree", "list").splitlines()) == 1

    def test_a_line_that_conflicts_with_what_people_put_there(self, lined: Grown) -> None:
        run_git(lined.repo, "checkout", "-q", "-b", TASK_BRANCH, lined.base)
        commit_file(lined.repo, FILE, "mine\n")
        run_git(lined.repo, "checkout", "-q", "main")
        resolve, *by_hand = ways(lambda: merge(lined, ROOT))
        assert resolve == f"service job resolve {ROOT}"
        type_all(by_hand, both)
        assert merge(lined, ROOT) == ()
        assert lined.files()[FILE] == "both"


class TestDrop:
    def test_a_leg_that_is_merged_nowhere_is_merged(self, tree: Reviewed) -> None:
        type_all(ways(lambda: drops.drop(tree.service, A, actor="ann", force=False))[:1])
        assert drops.drop(tree.service, A, actor="ann", force=False).dropped[0].merged

    def test_or_dropped_all_the_same(self, tree: Reviewed) -> None:
        type_all(ways(lambda: drops.drop(tree.service, A, actor="ann", force=False))[-1:])
        assert states(tree)["a"] == "dropped"

    @pytest.mark.parametrize("job_id", [A, ROOT])
    def test_a_branch_that_is_checked_out(self, tree: Reviewed, job_id: str) -> None:
        run_git(tree.repo, "checkout", "-q", f"service/{A}-a")
        type_all(ways(lambda: drops.drop(tree.service, job_id, actor="ann", force=True)))
        drops.drop(tree.service, job_id, actor="ann", force=True)
        assert run_git(tree.repo, "branch", "--list", f"service/{A}*") == ""

    def test_a_tree_that_is_merged_nowhere_is_merged(self, tree: Reviewed) -> None:
        mine, look, _ = ways(lambda: drops.drop(tree.service, ROOT, actor="ann", force=False))
        type_all([mine, look])
        drops.drop(tree.service, ROOT, actor="ann", force=False)
        assert run_git(tree.repo, "branch", "--list", "service/*") == ""
        assert (tree.repo / "a.txt").exists()

    def test_or_all_of_it_is_dropped(self, tree: Reviewed) -> None:
        type_all(ways(lambda: drops.drop(tree.service, ROOT, actor="ann", force=False))[-1:])
        assert run_git(tree.repo, "branch", "--list", "service/*") == ""

    @pytest.mark.parametrize("forced", [False, True])
    def test_the_task_branch_stays_until_it_is_taken_over(self, tree: Reviewed, forced: bool) -> None:
        merge(tree, ROOT)
        gone = drops.drop(tree.service, ROOT, actor="ann", force=False)
        assert (len(gone.dropped), gone.stays) == (2, TASK_BRANCH)
        mine, drop, force = gone.ways_on
        type_all([force] if forced else [mine, drop])
        assert (tree.repo / "a.txt").exists() is not forced
        assert run_git(tree.repo, "branch", "--list", "service/*") == ""

    def test_a_line_was_taken_and_what_conflicts_was_not(self, lined: Grown) -> None:
        merges.merge(lined.service, [ROOT], actor="ann", into_mine=True, without=["docs"])
        commands = ways(lambda: drops.drop(lined.service, ROOT, actor="ann", force=False))
        assert [each for each in commands if "merge" in each] == [], "docs conflicts: no merge takes it"
        type_all(commands)
        assert run_git(lined.repo, "branch", "--list", "service/*") == ""

    def test_a_tree_without_branches(self, lined: Grown) -> None:
        drops.drop(lined.service, ROOT, actor="ann", force=True)
        type_all(ways(lambda: drops.drop(lined.service, ROOT, actor="ann", force=True)))
        type_all(ways(lambda: drops.drop(lined.service, DOCS, actor="ann", force=True)))


class TestGate:
    """The commands in the gate's reasons; the reasons themselves: `tests/github/test_merge_gate.py`."""

    def told(self, tree: Reviewed | Grown) -> list[str]:
        verdict = merge_gate.of_tree(tree.service, ROOT)
        assert verdict.state is not GateState.PASSING
        return [reason.rpartition("; next: ")[2] for reason in verdict.reasons]

    def test_work_that_is_not_merged_is_merged(self, tree: Reviewed) -> None:
        type_all(self.told(tree))
        assert merge_gate.of_tree(tree.service, ROOT).state is GateState.PASSING

    def test_work_that_is_not_merged_and_was_decided_against(self, tree: Reviewed) -> None:
        merge(tree, B)
        tree.write(2, a={"decision": "changes_requested"})
        type_all(self.told(tree))
        assert states(tree) == {"a": "merged", "b": "merged"}

    def test_work_on_the_line_that_is_not_merged(self, lined: Grown) -> None:
        """A person has merged only the first leg."""
        merge(lined, f"{ROOT}.1", anyway=True)
        type_all(self.told(lined))
        assert states(lined)["fix"] == "merged"

    def test_what_nobody_has_looked_at(self, tree: Reviewed, monkeypatch: pytest.MonkeyPatch) -> None:
        async def start(service: Service, new: TreeInput, host: str) -> str:
            tree_rows.begin(service.store, new, host)
            return new.root_job_id

        monkeypatch.setattr(trees, "start", start)
        agents.add(tree.service, NewAgent("critic", "shell", command="cat", repos=("acme/shop",)))
        merge(tree, ROOT)
        tree.commit(TASK_BRANCH)
        type_all(self.told(tree))

    def test_a_branch_that_is_gone(self, tree: Reviewed) -> None:
        merge(tree, A)
        run_git(tree.repo, "branch", "-q", "-D", f"service/{B}-b")
        type_all(self.told(tree))

    def test_a_task_branch_that_is_gone(self, tree: Reviewed) -> None:
        merge(tree, ROOT)
        for name in (f"service/{A}-a", f"service/{B}-b", TASK_BRANCH):
            run_git(tree.repo, "branch", "-q", "-D", name)
        type_all(self.told(tree))

    def test_a_review_that_is_against_it(self, tree: Reviewed) -> None:
        merge(tree, ROOT)
        tree.write(2, v={"decision": "changes_requested"})
        type_all(self.told(tree))


class TestPublish:
    """Refusals to publish; the pushing itself: `tests/bridge/github/test_publishing.py`."""

    def ways(self, tree: Reviewed, job_id: str) -> tuple[str, ...]:
        return ways(lambda: work_of(tree.service, jobs.get(tree.service, job_id)))

    def test_several_branches_are_merged(self, tree: Reviewed) -> None:
        type_all(self.ways(tree, ROOT))
        assert work_of(tree.service, jobs.get(tree.service, ROOT)).branch == TASK_BRANCH

    def test_several_branches_all_of_which_were_decided_against(self, tree: Reviewed) -> None:
        tree.write(2, a={"decision": "changes_requested"}, b={"decision": "changes_requested"})
        type_all(self.ways(tree, ROOT))
        assert work_of(tree.service, jobs.get(tree.service, ROOT)).branch == TASK_BRANCH

    def test_a_leg_without_a_branch(self, tree: Reviewed) -> None:
        merge(tree, ROOT)
        assert self.ways(tree, V) == (f"service job publish {ROOT}",)
        assert work_of(tree.service, jobs.get(tree.service, ROOT)).branch == TASK_BRANCH

    @pytest.mark.parametrize(
        "fields", [{"state": JobState.FAILED}, {"head_sha": None}, {"branch": "elsewhere"}], ids=str
    )
    def test_a_leg_that_left_nothing_to_publish(self, tree: Reviewed, fields: dict[str, object]) -> None:
        if "branch" in fields:
            run_git(tree.repo, "branch", "elsewhere", tree.heads["a"])
        tree.write(2, a=fields)
        type_all(self.ways(tree, A))

    def test_a_branch_that_is_gone(self, tree: Reviewed) -> None:
        run_git(tree.repo, "branch", "-q", "-D", f"service/{A}-a")
        type_all(self.ways(tree, A))
        assert work_of(tree.service, jobs.get(tree.service, A)).commit == tree.heads["a"]

    def test_a_task_branch_that_is_gone(self, tree: Reviewed) -> None:
        merge(tree, ROOT)
        for name in (f"service/{A}-a", f"service/{B}-b", TASK_BRANCH):
            run_git(tree.repo, "branch", "-q", "-D", name)
        type_all(self.ways(tree, ROOT))


def test_sixty_legs_go_at_one_word(home: Home, tmp_path: Path) -> None:
    tree = started(Service(home), tmp_path)
    for number in range(1, 61):
        tree.wrote(f"{ROOT}.{number}", f"leg{number}", "x\n", name=f"{number}.txt")
    assert len(run_git(tree.repo, "branch", "-a").splitlines()) == 61
    type_all([f"service job merge {ROOT} --into-mine", f"service job drop {ROOT}"])
    assert run_git(tree.repo, "branch", "-a") == "* main"
    assert len(list(tree.repo.glob("*.txt"))) == 60


def test_a_leg_that_is_dropped_is_not_merged_with_the_line(lined: Grown) -> None:
    """Without its repair, the fault that the check found is back."""
    for leg in (FIX, DOCS):
        drops.drop(lined.service, leg, actor="ann", force=True)
    *_, anyway = ways(lambda: merge(lined, ROOT))
    type_all([anyway])
    assert lined.files()[FILE] == "code"


def test_a_running_leg_is_not_said_to_have_work(tree: Reviewed) -> None:
    """Its next command is to wait for the tree."""
    tree.write(2, a={"state": JobState.RUNNING, "action": Action.IMPLEMENT})
    assert ways(lambda: merge(tree, A)) == (f"service job tree {A} --watch",)
    assert ways(lambda: drops.drop(tree.service, A, actor="ann", force=True)) == (f"service job kill {A}",)

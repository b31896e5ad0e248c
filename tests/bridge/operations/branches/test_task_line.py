"""Merging an ended tree by its line (rulings O6, O7)."""

from pathlib import Path
from typing import Any

import pytest

from activities.settings.home import Home
from bridge.operations.branches import branches, diffs, drops, merge_gate, merge_offer, merges
from bridge.operations.branches.publish import work_of
from bridge.operations.jobs import jobs
from bridge.operations.service import Service
from cli.main import main
from tests.activities.git.conftest import commit_file, run_git
from tests.bridge import seeds
from tests.bridge.grown import CHECK, CODE, DOCS, FILE, FIX, RECHECK, REPLAN, TASK_BRANCH, Grown, grown
from tests.bridge.seeds import ROOT
from tests.bridge.typist import of_hint, type_all
from workflows.github.merge_gate import GateState
from workflows.model.errors import RefusedError, UsageError
from workflows.model.states import Continuation, TaskState

pytestmark = pytest.mark.ruling("O6", "O7")


@pytest.fixture
def tree(home: Home, tmp_path: Path) -> Grown:
    return grown(Service(home), tmp_path)


def merged(tree: Grown, *, into_mine: bool = False, without: tuple[str, ...] = ()) -> merges.MergedLegs:
    return merges.merge(tree.service, [ROOT], actor="ann", into_mine=into_mine, without=without)


def both(place: Path) -> None:
    """Resolve the conflict."""
    (place / FILE).write_text("both\n")
    run_git(place, "add", FILE)


def test_a_root_stands_for_the_line_of_its_tree(tree: Grown) -> None:
    """Leg by leg, `docs` would be merged first, and `fix` refused."""
    done = merged(tree)
    assert done.merged == (CODE, FIX)
    assert run_git(tree.repo, "rev-parse", TASK_BRANCH) == tree.line == done.head
    assert tree.files()[FILE] == "code, mended"
    assert branches.of_tree(tree.service, ROOT).line == tree.line
    again = merged(tree)
    assert (again.merged, again.already, again.head) == ((), (CODE, FIX), done.head)


def test_what_is_left_out_is_named_with_every_way_out(tree: Grown) -> None:
    [left] = merged(tree).left_out
    assert left.says == f"part docs is missing: it conflicts with code and fix in {FILE}"
    resolve, *by_hand, drop = left.commands
    assert resolve == f"service job resolve {ROOT}"
    assert drop == f"service job drop {DOCS} --force"
    type_all(by_hand, both)
    assert tree.files()[FILE] == "both"
    done = merged(tree)
    assert (done.merged, done.already, done.left_out) == ((), (CODE, FIX), ())
    assert not Path(f"{tree.repo}-task-0123456789ab").exists()


def test_a_leg_that_is_left_out_is_dropped_by_the_last_way(tree: Grown) -> None:
    [left] = merged(tree).left_out
    type_all(left.commands[-1:])
    assert merged(tree).left_out == ()
    assert run_git(tree.repo, "branch", "--list", f"service/{DOCS}*") == ""


def test_the_gate_judges_the_line_before_it_is_merged_and_after(home: Home, tmp_path: Path) -> None:
    tree = grown(Service(home), tmp_path, Continuation.NORMAL)
    verdict = merge_gate.of_tree(tree.service, ROOT)
    assert (verdict.head, verdict.state) == (tree.line, GateState.PENDING)
    [reason] = verdict.reasons
    assert "part docs is missing: it conflicts with " in reason
    assert reason.endswith(f"; next: service job resolve {ROOT}")
    drops.drop(tree.service, DOCS, actor="ann", force=True)
    assert merge_gate.of_tree(tree.service, ROOT).state is GateState.PASSING
    merged(tree)
    assert merge_gate.of_tree(tree.service, ROOT).state is GateState.PASSING


def test_the_line_is_published_before_it_is_merged(tree: Grown) -> None:
    work = work_of(tree.service, jobs.get(tree.service, ROOT))
    assert (work.branch, work.commit) == (TASK_BRANCH, tree.line)


@pytest.mark.ruling("O1")
@pytest.mark.parametrize("leg", [CODE, DOCS, FIX])
@pytest.mark.parametrize("way", ["without", "with"])
def test_a_foreign_commit_on_any_leg_keeps_the_line_out(tree: Grown, leg: str, way: str) -> None:
    branch = run_git(tree.repo, "branch", "--list", f"service/{leg}-*").strip()
    run_git(tree.repo, "checkout", "-q", branch)
    commit_file(tree.repo, "secret.txt", "x", "put there by hand")
    run_git(tree.repo, "checkout", "-q", "main")
    with pytest.raises(RefusedError, match="put there by hand; nothing was merged") as refused:
        merged(tree)
    reasons = merge_gate.of_tree(tree.service, ROOT).reasons
    assert any("put there by hand" in each for each in reasons)
    without, *take = of_hint(refused.value.hint)
    type_all([without] if way == "without" else take)
    if leg == DOCS and way == "with":
        return  # it is on the task's branch now, where it conflicts with the line
    merged(tree)
    assert ("secret.txt" in tree.files()) is (way == "with")
    assert tree.files()[FILE] == "code, mended"


def test_a_check_of_the_last_generation_still_counts(tree: Grown) -> None:
    tree.looked(RECHECK, "changes_requested", "fix", parent=REPLAN, revision=2)
    with pytest.raises(RefusedError, match="asks for changes; nothing was merged") as refused:
        merged(tree)
    assert CHECK not in refused.value.message
    type_all(of_hint(refused.value.hint))
    assert tree.files()[FILE] == "code, mended"


def test_a_tree_that_was_given_up_has_all_objections(home: Home, tmp_path: Path) -> None:
    made = grown(Service(home), tmp_path)
    seeds.write(made.service, seeds.task(revision=2, state=TaskState.CANCELLED, ended_at=2.0))
    with pytest.raises(RefusedError, match="which looked at it, asks for changes"):
        merged(made)


def test_commits_of_the_line_are_the_legs_own(tree: Grown) -> None:
    """No merge commit is made if the branch can be moved."""
    merged(tree)
    assert run_git(tree.repo, "log", "--format=%s", "--first-parent", f"{tree.base}..{TASK_BRANCH}").splitlines()
    assert run_git(tree.repo, "rev-list", "--count", f"{tree.line}..{TASK_BRANCH}") == "0"


def test_what_people_put_on_the_task_branch_meanwhile_is_merged_with_it(tree: Grown) -> None:
    run_git(tree.repo, "checkout", "-q", "-b", TASK_BRANCH, tree.base)
    commit_file(tree.repo, "mine.txt", "mine")
    run_git(tree.repo, "checkout", "-q", "main")
    done = merged(tree)
    assert run_git(tree.repo, "log", "-1", "--format=%s", done.head) == "Merge the line: the app"
    assert set(tree.files()) == {*tree.files(tree.line), "mine.txt"}


def test_what_is_offered_before_and_after(tree: Grown) -> None:
    """An objection that a later check withdrew does not block the merge; conflicting legs are not offered."""

    def offered() -> tuple[list[str], list[str], list[str]]:
        offer = merge_offer.offer(tree.service, jobs.tree(tree.service, ROOT), branches.of_tree(tree.service, ROOT))
        return (
            [leg.leg for leg in offer.fresh],
            [leg.leg for leg in offer.objected],
            [each.leg for each in offer.left_out],
        )

    assert offered() == (["code", "fix"], [], ["docs"])
    look, merge = merge_offer.next_commands(tree.service, jobs.tree(tree.service, ROOT))
    assert (look, merge) == (f"service job diff {ROOT} --tree", f"service job merge {ROOT}")
    merges.merge(tree.service, [CODE], actor="ann", anyway=True)
    assert offered() == (["fix"], [], ["docs"])
    merged(tree)
    assert offered() == ([], [], ["docs"])
    drops.drop(tree.service, DOCS, actor="ann", force=True)
    assert offered() == ([], [], [])


def test_the_diff_of_a_tree_is_its_work_against_its_base_without_what_conflicts(tree: Grown) -> None:
    diff = diffs.of_tree(tree.service, DOCS)
    assert (diff.job_id, diff.source, diff.base, diff.left_out) == (ROOT, "tree", tree.base, ("docs",))
    assert b"+code, mended" in b"".join(diff.pieces())
    assert [each.path for each in diff.files] == [FILE]


class TestAllOrNothing:
    """A merge into the operator's own branch takes all of a tree's work, or leaves out what they name."""

    def refused(self, tree: Grown, **options: Any) -> RefusedError:
        before = run_git(tree.repo, "for-each-ref")
        with pytest.raises(RefusedError) as refused:
            merges.merge(tree.service, [ROOT], actor="ann", into_mine=True, **options)
        assert run_git(tree.repo, "for-each-ref") == before
        return refused.value

    def test_a_part_that_conflicts_keeps_everything_out_until_it_is_named(self, tree: Grown) -> None:
        refused = self.refused(tree)
        assert refused.message == (
            f"part docs is missing: it conflicts with code and fix in {FILE}; nothing was merged"
        )
        resolve, take = of_hint(refused.hint)
        assert resolve == f"service job resolve {ROOT}"
        assert take == f"service job merge {ROOT} --into-mine --without docs"
        type_all([take, take])
        assert (tree.repo / FILE).read_text() == "code, mended\n"

    def test_it_is_asked_for_after_the_tasks_branch_was_merged_too(self, tree: Grown) -> None:
        merged(tree)
        assert "part docs" in self.refused(tree).message
        assert merged(tree, into_mine=True, without=(DOCS,)).into_mine == "fast-forwarded"

    def test_the_exit_code_says_so(self, tree: Grown, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["job", "merge", ROOT, "--into-mine"]) == 3
        assert "part docs" in capsys.readouterr().err

    def test_a_part_that_the_branch_has_already_is_not_left_out_of_it(self, tree: Grown) -> None:
        run_git(tree.repo, "merge", "-q", f"service/{DOCS}-docs")
        with pytest.raises(RefusedError, match="it conflicts in") as refused:
            merged(tree, into_mine=True)
        assert "is missing" not in refused.value.message

    def test_a_name_that_is_not_left_out_is_an_error(self, tree: Grown) -> None:
        with pytest.raises(UsageError, match="code is not left out; nothing was merged"):
            merged(tree, into_mine=True, without=("docs", "code"))
        with pytest.raises(UsageError, match="is for `--into-mine`") as without:
            merged(tree, without=("docs",))
        assert run_git(tree.repo, "branch", "--list", TASK_BRANCH) == ""
        type_all(of_hint(without.value.hint))

    def test_dropping_offers_the_merge_that_works(self, tree: Grown) -> None:
        with pytest.raises(RefusedError, match=f"dropping {ROOT} loses unmerged commits on 3 branches") as refused:
            drops.drop(tree.service, ROOT, actor="ann", force=False)
        type_all(of_hint(refused.value.hint))

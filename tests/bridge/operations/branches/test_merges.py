"""Merges that respect the decisions of legs and reviewers, and merges with `--anyway` (rulings L10, I5)."""

from pathlib import Path
from typing import Any

import pytest
from pydantic_core import to_jsonable_python
from sqlalchemy import update

from activities.settings.home import Home
from activities.store import branch_rows, schema
from bridge.operations.branches import branches, drops, merges
from bridge.operations.jobs import jobs
from bridge.operations.registry import repos
from bridge.operations.service import Service
from tests.activities.git.conftest import commit_file, run_git
from tests.bridge import seeds
from tests.bridge.reviewed import TASK_BRANCH, A, B, Reviewed, V, reviewed
from tests.bridge.seeds import ROOT
from tests.bridge.typist import of_hint, type_all
from workflows.contract.models import Decision
from workflows.model.errors import NotFoundError, RefusedError, UsageError
from workflows.model.states import JobState, TaskState, WaitsFor
from workflows.policy.decisions import report

pytestmark = pytest.mark.ruling("L10", "I5")


@pytest.fixture
def tree(home: Home, tmp_path: Path) -> Reviewed:
    return reviewed(Service(home), tmp_path)


def merge(tree: Reviewed, *job_ids: str, anyway: bool = False) -> tuple[str, ...]:
    return merges.merge(tree.service, job_ids, actor="ann, in the terminal", anyway=anyway).merged


def refusal(tree: Reviewed, *job_ids: str) -> RefusedError:
    with pytest.raises(RefusedError) as refused:
        merge(tree, *job_ids)
    assert run_git(tree.repo, "branch", "--list", TASK_BRANCH) == "", "nothing was merged"
    return refused.value


def test_a_root_stands_for_all_of_its_legs_that_can_be_merged(tree: Reviewed) -> None:
    tree.write(2, a={"decision": "changes_requested"})
    assert merge(tree, ROOT) == (B,)
    tree.write(3)
    assert merge(tree, ROOT) == (A,)
    assert merge(tree, ROOT) == (), "all of it is there already"


def test_a_root_without_anything_to_merge_says_so(tree: Reviewed) -> None:
    tree.write(
        2, a={"decision": "failed", "state": JobState.FAILED}, b={"decision": "failed", "state": JobState.FAILED}
    )
    no = refusal(tree, ROOT)
    assert (no.message, no.hint) == (f"no part of {ROOT} can be merged", f"service job branches {ROOT}")


def test_legs_of_two_trees_are_merged_tree_by_tree(tree: Reviewed) -> None:
    other = "job-00000000000f"
    mine = {"parent_job_id": other, "root_job_id": other, "delegation_id": "a", "action": "implement"}
    seeds.write(tree.service, seeds.job(f"{other}.1", state=JobState.SUCCEEDED, **mine))
    with pytest.raises(UsageError, match="and the others are of several tasks") as refused:
        merge(tree, A, f"{other}.1")
    assert of_hint(refused.value.hint) == (f"service job merge {A}", f"service job merge {other}.1")


def test_a_leg_that_was_dropped_is_merged_no_more_and_can_be_had_back(tree: Reviewed) -> None:
    drops.drop(tree.service, A, actor="ann", force=True)
    with pytest.raises(NotFoundError, match="was dropped; its commits are still there") as refused:
        merge(tree, A)
    assert tree.heads["a"] in str(refused.value.hint)


class TestIntoMine:
    """Merging a task's branch into the operator's own."""

    @pytest.mark.ruling("O6", "O7")
    @pytest.mark.parametrize("way", [0, 1])
    def test_a_leg_that_is_not_approved_keeps_everything_out_until_it_is_named(self, tree: Reviewed, way: int) -> None:
        tree.write(2, a={"decision": "changes_requested"})
        with pytest.raises(RefusedError, match=r"part a is missing: it is not approved: .*; nothing was") as no:
            self.taken(tree)
        assert run_git(tree.repo, "branch", "--list", TASK_BRANCH) == ""
        anyway, without = of_hint(no.value.hint)
        assert without == f"service job merge {ROOT} --into-mine --without a"
        type_all([(anyway, without)[way]])
        assert [(tree.repo / name).exists() for name in ("a.txt", "b.txt")] == [not way, True]

    def taken(self, tree: Reviewed) -> str:
        return merges.merge(tree.service, [ROOT], actor="ann", into_mine=True).into_mine

    def test_it_is_fast_forwarded_or_merged_and_then_there(self, tree: Reviewed) -> None:
        assert self.taken(tree) == "fast-forwarded"
        assert run_git(tree.repo, "rev-parse", "main") == run_git(tree.repo, "rev-parse", TASK_BRANCH)
        assert self.taken(tree) == "was there already"

    def test_it_is_done_with_the_operators_own_filters_and_name(self, tree: Reviewed) -> None:
        """Filters such as those of LFS turn pointers into content."""
        run_git(tree.repo, "config", "filter.lfs.smudge", "tr a-z A-Z")
        run_git(tree.repo, "config", "user.name", "Ann")
        run_git(tree.repo, "config", "user.email", "ann@example.org")
        commit_file(tree.repo, ".gitattributes", "*.txt filter=lfs\n")
        assert self.taken(tree) == "merged"
        assert run_git(tree.repo, "log", "-1", "--format=%cn %an") == "Ann Ann"
        made = [path for path in tree.repo.glob("*.txt") if path.name != "mine.txt"]
        assert made
        assert all(path.read_text().isupper() for path in made)

    def test_a_branch_that_went_on_is_merged(self, tree: Reviewed) -> None:
        commit_file(tree.repo, "mine.txt", "mine\n")
        assert self.taken(tree) == "merged"
        assert run_git(tree.repo, "status", "--porcelain") == ""
        assert (tree.repo / "mine.txt").exists()

    def test_uncommitted_changes_are_refused_with_what_to_do(self, tree: Reviewed) -> None:
        commit_file(tree.repo, "mine.txt", "mine\n")
        (tree.repo / "mine.txt").write_text("changed\n")
        with pytest.raises(RefusedError) as refused:
            self.taken(tree)
        assert "has 1 uncommitted change; nothing was merged" in refused.value.message
        assert run_git(tree.repo, "branch", "--list", TASK_BRANCH) == ""
        type_all(of_hint(refused.value.hint))
        assert (tree.repo / "a.txt").exists()
        assert (tree.repo / "mine.txt").read_text() == "changed\n"

    def test_an_untracked_file_in_the_way_is_kept_aside(self, tree: Reviewed) -> None:
        (tree.repo / "a.txt").write_text("mine\n")
        with pytest.raises(RefusedError, match="has the work, and is not merged into") as refused:
            self.taken(tree)
        type_all(of_hint(refused.value.hint))
        assert (tree.repo / "a.txt").read_text() == "a"
        assert run_git(tree.repo, "stash", "list").count("stash@") == 1

    def test_a_merge_that_is_not_done_is_ended_first(self, tree: Reviewed) -> None:
        run_git(tree.repo, "checkout", "-q", "-b", "other")
        commit_file(tree.repo, "x.txt", "1\n")
        run_git(tree.repo, "checkout", "-q", "main")
        commit_file(tree.repo, "y.txt", "1\n")
        run_git(tree.repo, "merge", "-q", "--no-commit", "other")
        with pytest.raises(RefusedError, match="in the middle of a merge; nothing was merged") as refused:
            self.taken(tree)
        type_all(of_hint(refused.value.hint))
        assert (tree.repo / "a.txt").exists()
        assert not (tree.repo / "x.txt").exists()

    def test_a_checkout_without_a_branch_is_given_one_first(self, tree: Reviewed) -> None:
        run_git(tree.repo, "checkout", "-q", "--detach")
        with pytest.raises(RefusedError, match="has no branch checked out; nothing was merged") as refused:
            self.taken(tree)
        type_all(each.replace("NAME", "mine") for each in of_hint(refused.value.hint))
        assert run_git(tree.repo, "rev-parse", "mine") == run_git(tree.repo, "rev-parse", TASK_BRANCH)

    def test_a_bare_repository_has_none(self, tree: Reviewed, tmp_path: Path) -> None:
        """A branch of it is moved by a push to itself."""
        run_git(tmp_path, "clone", "-q", "--mirror", str(tree.repo), "bare.git")
        bare = tmp_path / "bare.git"
        repos.add(tree.service, "acme/shop", bare, move=True)
        with pytest.raises(
            RefusedError, match="is bare: no branch is checked out there; nothing was merged"
        ) as refused:
            self.taken(tree)
        assert refused.value.hint == f"service job merge {ROOT}"
        done = merges.merge(tree.service, [ROOT], actor="ann")
        type_all([done.taking_over.replace(":BRANCH", ":main")])
        assert run_git(bare, "rev-parse", "main") == run_git(bare, "rev-parse", TASK_BRANCH)

    def test_a_conflict_leaves_the_checkout_as_it_was(self, tree: Reviewed) -> None:
        file = run_git(tree.repo, "diff", "--name-only", tree.base, tree.heads["a"]).splitlines()[0]
        head = commit_file(tree.repo, file, "something else\n")
        with pytest.raises(RefusedError) as refused:
            self.taken(tree)
        assert f"it conflicts in {file}; the checkout is as it was" in refused.value.message
        assert run_git(tree.repo, "rev-parse", "HEAD") == head
        assert run_git(tree.repo, "status", "--porcelain") == ""
        assert of_hint(refused.value.hint)[0] == f"service job resolve {ROOT} --with-mine"

        def both(place: Path) -> None:
            (place / file).write_text("both\n")
            run_git(place, "commit", "-q", "-a", "--no-edit")

        type_all(of_hint(refused.value.hint)[1:], both)
        assert self.taken(tree) == "was there already"


class TestDropOfATree:
    def test_what_is_merged_nowhere_takes_force(self, tree: Reviewed) -> None:
        merges.merge(tree.service, [A], actor="ann")
        with pytest.raises(RefusedError) as refused:
            drops.drop(tree.service, ROOT, actor="ann", force=False)
        assert f"dropping {ROOT} loses unmerged commits on 2 branches: " in refused.value.message
        assert refused.value.hint.split("\n     ") == [
            f"service job merge {ROOT} --into-mine",
            f"service job branches {ROOT}",
            f"service job drop {ROOT} --force",
        ]
        assert len(run_git(tree.repo, "branch", "--list", "service/*").splitlines()) == 3
        gone = drops.drop(tree.service, ROOT, actor="ann", force=True)
        assert [each.merged for each in gone.dropped] == [True, False, False]
        assert run_git(tree.repo, "branch", "--list", "service/*") == ""

    def test_what_was_decided_against_is_not_offered_to_be_merged(self, tree: Reviewed) -> None:
        tree.write(2, b={"decision": "changes_requested"})
        merges.merge(tree.service, [ROOT], actor="ann", into_mine=True, without=["b"])
        with pytest.raises(RefusedError) as refused:
            drops.drop(tree.service, ROOT, actor="ann", force=False)
        assert f"loses unmerged commits on 1 branch: service/{B}-b" in refused.value.message
        assert refused.value.hint.split("\n     ") == [
            f"service job branches {ROOT}",
            f"service job drop {ROOT} --force",
        ]

    def test_a_tree_at_work_or_a_branch_in_use_loses_none(self, tree: Reviewed) -> None:
        run_git(tree.repo, "switch", "-q", f"service/{B}-b")
        with pytest.raises(RefusedError) as refused:
            drops.drop(tree.service, ROOT, actor="ann", force=True)
        assert "is checked out in" in refused.value.message
        run_git(tree.repo, "switch", "-q", "-")
        tree.write(2, b={"decision": None, "state": JobState.RUNNING})
        with pytest.raises(RefusedError) as refused:
            drops.drop(tree.service, ROOT, actor="ann", force=True)
        assert refused.value.hint == f"service job kill {ROOT}"
        assert len(run_git(tree.repo, "branch", "--list", "service/*").splitlines()) == 2

    def test_what_was_taken_over_goes_at_a_word(self, tree: Reviewed) -> None:
        merges.merge(tree.service, [ROOT], actor="ann", into_mine=True)
        gone = drops.drop(tree.service, ROOT, actor="ann", force=False)
        assert gone.dropped[-1].branch == TASK_BRANCH
        assert run_git(tree.repo, "branch", "--list", "service/*") == ""
        with pytest.raises(NotFoundError):
            drops.drop(tree.service, ROOT, actor="ann", force=False)


@pytest.mark.parametrize("decision", ["implemented", "approved", None])
def test_what_is_approved_is_merged(tree: Reviewed, decision: str | None) -> None:
    tree.write(2, a={"decision": decision})
    assert merge(tree, A, B) == (A, B)


@pytest.mark.parametrize("decision", ["changes_requested", "blocked", "failed", "skipped"])
def test_a_leg_that_decided_otherwise_is_refused(tree: Reviewed, decision: str) -> None:
    tree.write(2, a={"decision": decision})
    no = refusal(tree, B, A)
    assert no.message == f"part a ({A}) is not approved: {A} {report(Decision(decision))}; nothing was merged"
    assert no.hint.split("\n     ") == [f"service job show {A}", f"service job merge {B} {A} --anyway"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"decision": "changes_requested"}, "asks for changes"),
        ({"decision": "failed", "state": JobState.FAILED}, "reports that it failed"),
        ({"decision": None, "state": JobState.FAILED}, "failed"),
        ({"decision": "blocked", "state": JobState.BLOCKED}, "reports that it is blocked"),
    ],
)
def test_a_leg_that_its_reviewer_is_against_is_refused(tree: Reviewed, fields: dict[str, Any], words: str) -> None:
    tree.write(2, v=fields)
    no = refusal(tree, A)
    assert f"part v ({V}), which looked at it, {words}" in no.message
    assert f"service job show {V}" in no.hint


@pytest.mark.parametrize(
    "fields",
    [
        {"decision": "approved"},
        {"decision": "skipped"},
        {"decision": None, "state": JobState.CANCELLED},
        {"decision": None, "state": JobState.RUNNING},
        {"decision": None, "state": JobState.SKIPPED},
    ],
)
def test_who_says_nothing_against_it_refuses_nothing(tree: Reviewed, fields: dict[str, Any]) -> None:
    tree.write(2, v=fields)
    assert merge(tree, A) == (A,)


def test_a_reviewer_speaks_for_the_head_it_saw(tree: Reviewed) -> None:
    tree.write(2, v={"decision": "changes_requested"})
    tree.commit(f"service/{A}-a")
    assert merge(tree, A) == (A,), "somebody went on with the branch since"


def test_a_reviewer_whose_worktree_was_never_made_refuses_nothing(tree: Reviewed) -> None:
    """So it is when the branches it depends on conflict."""
    tree.write(2, v={"decision": None, "state": JobState.BLOCKED})
    with tree.service.store.begin() as connection:
        connection.execute(update(schema.attempts).where(schema.attempts.c.job_id == V).values(given=None))
    assert merge(tree, A) == (A,)


def test_a_verify_leg_of_another_action_is_a_reviewer_too(tree: Reviewed) -> None:
    tree.write(2, v={"action": "ask", "decision": "changes_requested"})
    assert merge(tree, A) == (A,), "an opinion that was asked for"
    legs = [{"id": "v", "agent": "dev", "action": "ask", "prompt": "v", "synthesis_rule": "verify"}]
    with tree.service.store.begin() as connection:
        payload = {"service_result": {"delegations": legs}}
        connection.execute(update(schema.attempts).where(schema.attempts.c.job_id == ROOT).values(payload=payload))
    with pytest.raises(RefusedError, match="part v"):
        merge(tree, B)


def test_a_leg_that_delegated_says_what_its_last_job_says(tree: Reviewed) -> None:
    after = {"delegation_id": None, "parent_job_id": A, "continuation": "normal", "state": JobState.SUCCEEDED}
    seeds.write(tree.service, seeds.job(f"{ROOT}.4", **after, decision="changes_requested"))
    assert f"{ROOT}.4 asks for changes" in refusal(tree, A).message


def test_whoever_insists_is_recorded(tree: Reviewed) -> None:
    tree.write(2, v={"decision": "changes_requested"})
    assert merge(tree, A, anyway=True) == (A,)
    [merged] = [event for event in jobs.events(tree.service, ROOT) if event.kind == "branch_merged"]
    assert merged.message == (
        f"ann, in the terminal merged service/{A}-a into {TASK_BRANCH},"
        f" although part v ({V}), which looked at it, asks for changes"
    )
    [(_, job_id, event)] = branch_rows.events_of(tree.service.store, ROOT)
    assert (job_id, event.actor) == (A, "ann, in the terminal")
    assert event.anyway.endswith("asks for changes")


def test_insisting_where_nobody_objects_is_not_recorded_as_such(tree: Reviewed) -> None:
    merge(tree, A, anyway=True)
    [(_, _, event)] = branch_rows.events_of(tree.service.store, ROOT)
    assert event.anyway == ""


def test_what_is_merged_already_is_not_refused(tree: Reviewed) -> None:
    tree.write(2, a={"decision": "changes_requested"})
    tree.merge("a")
    done = merges.merge(tree.service, [A, B], actor="ann")
    assert (done.merged, done.already) == ((B,), (A,))


def test_a_blocked_task_says_what_opens_it_again(tree: Reviewed) -> None:
    tree.write(2, v={"decision": "changes_requested"})
    again = {"state": TaskState.BLOCKED, "waits_for": WaitsFor.RETRY, "next": f"service job retry {V}"}
    seeds.write(tree.service, seeds.task(revision=2, **again))
    assert refusal(tree, A).hint.split("\n     ")[1] == f"service job retry {V}"


def test_every_command_that_is_printed_for_a_merge_is_taken(tree: Reviewed) -> None:
    tree.write(2, a={"decision": "changes_requested"})
    legs = {leg.job_id: leg for leg in branches.of_tree(tree.service, ROOT).legs}
    assert legs[A].merge == f"service job merge {A} --anyway"
    assert legs[B].merge == f"service job merge {B}"
    assert to_jsonable_python(branches.of_tree(tree.service, ROOT))["legs"][0]["merge"] == legs[A].merge


def test_the_way_out_of_a_conflict_insists_where_it_must(tree: Reviewed) -> None:
    run_git(tree.repo, "checkout", "-q", f"service/{B}-b")
    tree.heads["b"] = commit_file(tree.repo, "a.txt", "other\n")
    run_git(tree.repo, "checkout", "-q", "main")
    tree.write(2, a={"decision": "changes_requested"}, v={"state": JobState.BLOCKED, "decision": None})
    clash = {"branch": f"service/{B}-b", "against": [f"service/{A}-a"], "files": ["a.txt"]}
    seeds.write(tree.service, seeds.task(revision=2, state=TaskState.BLOCKED))
    with tree.service.store.begin() as connection:
        values = {"given": None, "diagnostics": {"conflict": clash}}
        connection.execute(update(schema.attempts).where(schema.attempts.c.job_id == V).values(**values))
    [way] = branches.ways_out(tree.service, [ROOT])
    assert way.commands[0] == f"service job merge {A} --anyway"
    with pytest.raises(RefusedError) as refused:
        merge(tree, A, B, anyway=True)
    assert refused.value.hint.startswith(f"service job merge {A} --anyway\n")
    assert merge(tree, A, anyway=True) == (A,)

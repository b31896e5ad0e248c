"""The merge gate over rows and a real repository (ruling L10)."""

from pathlib import Path

import pytest
from pydantic_core import to_jsonable_python
from sqlalchemy import update

from activities.settings.home import Home
from activities.store import schema
from activities.store.registry import repo_rows
from bridge.operations.branches import merge_gate
from bridge.operations.jobs import jobs
from bridge.operations.registry import reviews
from bridge.operations.service import Service
from tests.activities.git.conftest import run_git
from tests.bridge import seeds
from tests.bridge.reviewed import TASK_BRANCH, A, B, Reviewed, V, reviewed
from tests.bridge.seeds import ROOT
from workflows.github.merge_gate import GateState, GateVerdict
from workflows.model.rounds import RoundEnd, RoundKind
from workflows.model.rows import FailingRecord
from workflows.model.states import JobState, TaskState

pytestmark = pytest.mark.ruling("L10")


@pytest.fixture
def service(home: Home) -> Service:
    return Service(home)


@pytest.fixture
def tree(service: Service, tmp_path: Path) -> Reviewed:
    return reviewed(service, tmp_path)


def judged(tree: Reviewed, pull_request: int | None = None, *, fetch: bool = True) -> GateVerdict:
    return merge_gate.of_tree(tree.service, V, pull_request=pull_request, fetch=fetch)


def only(verdict: GateVerdict, state: GateState = GateState.PENDING) -> str:
    assert (verdict.state, len(verdict.reasons)) == (state, 1), verdict.reasons
    return verdict.reasons[0]


def test_merged_and_looked_at_it_is_ready(tree: Reviewed) -> None:
    waits = only(judged(tree))
    assert waits == f"nothing is merged into {TASK_BRANCH} yet; next: service job merge {A} {B}"
    tree.merge("a")
    verdict = judged(tree)
    assert verdict.state is GateState.PENDING
    assert f"part v ({V}) looked at {tree.base[:7]} with " in verdict.reasons[0]
    assert verdict.reasons[1].endswith(f"is not in {TASK_BRANCH}; next: service job merge {B}")
    head = tree.merge("a", "b")
    assert judged(tree) == GateVerdict(GateState.PASSING, (), head)
    assert to_jsonable_python(judged(tree)) == {"state": "passing", "reasons": [], "head": head, "unseen": []}


def test_it_proposes_no_merge_that_would_be_refused(tree: Reviewed) -> None:
    tree.write(2, a={"decision": "changes_requested"})
    assert judged(tree).reasons[-1].endswith(f"; next: service job merge {B}")
    tree.write(3, v={"decision": "changes_requested"})
    assert judged(tree).reasons[-1].endswith(f"; next: service job branches {ROOT}")


def test_a_head_that_moves_waits_for_a_new_look(tree: Reviewed) -> None:
    tree.merge("a", "b")
    head = tree.commit(TASK_BRANCH)
    reason = only(judged(tree))
    looked = f"{tree.base[:7]} with {tree.heads['a'][:7]} and {tree.heads['b'][:7]}"
    assert reason == (
        f"part v ({V}) looked at {looked}, the head is {head[:7]}: it has not seen 1 commit in later.txt; "
        f"next: service job review {ROOT}"
    )
    assert judged(tree).unseen == (V,)


def test_a_leg_that_a_person_went_on_with_was_not_looked_at(tree: Reviewed) -> None:
    tree.heads["a"] = tree.commit(f"service/{A}-a")
    tree.merge("a", "b")
    assert "part v" in only(judged(tree))


def test_without_a_task_branch_the_only_branch_is_the_head(tree: Reviewed) -> None:
    tree.write(2, b={"head_sha": None, "branch": None})
    with tree.service.store.begin() as connection:
        connection.execute(update(schema.attempts).where(schema.attempts.c.job_id == V).values(given=[tree.heads["a"]]))
    assert judged(tree) == GateVerdict(GateState.PASSING, (), tree.heads["a"])


def test_a_tree_without_branches_is_asked_about_with_its_own_pull_request(tree: Reviewed) -> None:
    lost = {"head_sha": None, "branch": None}
    tree.write(2, a=lost, b=lost)
    assert only(judged(tree)).endswith(f"; next: service job gate {ROOT} --pr N")
    seeds.write(tree.service, seeds.job(revision=9, state=JobState.SUCCEEDED, action="review", pull_request=7))
    assert only(judged(tree)).endswith(f"; next: service job gate {ROOT} --pr 7")


def test_a_task_that_is_not_done_is_not_looked_up_in_git(tree: Reviewed) -> None:
    tree.repo.rename(tree.repo.with_name("moved"))
    seeds.write(tree.service, seeds.task(revision=2, state=TaskState.AWAITING_HUMAN), seeds.round_())
    assert f"round 1 of {ROOT} needs an answer" in only(judged(tree))
    seeds.write(tree.service, seeds.round_(revision=2, end=RoundEnd.ANSWERED, closed_at=3.0))
    seeds.write(tree.service, seeds.task(revision=3, state=TaskState.BLOCKED, reason="why", next="service job retry x"))
    assert only(judged(tree), GateState.FAILING) == f"the task {ROOT} is blocked: why; next: service job retry x"


def test_a_finalize_is_told_with_its_cause(tree: Reviewed) -> None:
    tree.merge("a", "b")
    last = seeds.job(f"{ROOT}.4", delegation_id=None, continuation="finalize", state=JobState.SUCCEEDED)
    data = {"cause": "delegation_cost_exceeded", "reason": "100 tokens are used"}
    event = seeds.event(4, last.job_id, kind="delegation_finalize_enqueued", data=data)
    seeds.write(tree.service, last, event)
    reason = only(judged(tree), GateState.FAILING)
    assert "ended early: 100 tokens are used (delegation_cost_exceeded)" in reason


def test_an_operator_s_drop_is_respected_and_a_lost_branch_is_not(tree: Reviewed) -> None:
    tree.merge("a")
    run_git(tree.repo, "branch", "-D", f"service/{B}-b")
    verdict = judged(tree)
    assert verdict.state is GateState.FAILING
    assert "its branch is gone" in verdict.reasons[0]


def test_a_policy_of_the_delegating_result_counts(tree: Reviewed) -> None:
    """The coordinator declared that the failure of this leg does not matter."""
    tree.merge("a", "b")
    tree.write(2, b={"state": JobState.FAILED, "decision": "failed"})
    assert judged(tree).state is GateState.FAILING
    legs = [
        {"id": "b", "agent": "dev", "action": "implement", "prompt": "b", "failure_policy": "continue"},
        {"id": "v", "agent": "dev", "action": "review", "prompt": "v"},
    ]
    payload = {"service_result": {"delegations": legs}}
    with tree.service.store.begin() as connection:
        connection.execute(update(schema.attempts).where(schema.attempts.c.job_id == ROOT).values(payload=payload))
    assert judged(tree).state is GateState.PASSING


def test_reviews_that_people_record_never_enter(tree: Reviewed) -> None:
    head = tree.merge("a", "b")
    opened = reviews.open_review(
        tree.service, kind="review", pull_request=7, head_sha=head, workflow="own", repo="acme/shop"
    )
    reviews.close(tree.service, opened.review_id, "changes_requested")
    assert judged(tree).state is GateState.PASSING
    tree.write(2, v={"decision": "changes_requested"})
    again = reviews.open_review(
        tree.service, kind="review", pull_request=7, head_sha=head, workflow="own", repo="acme/shop"
    )
    reviews.close(tree.service, again.review_id, "approved")
    assert judged(tree).state is GateState.FAILING


class TestRepositoriesThatCannotBeSeen:
    def test_on_another_host(self, tree: Reviewed) -> None:
        repo_rows.put(tree.service.store, "acme/shop", str(tree.repo), "elsewhere")
        says = only(judged(tree), GateState.UNKNOWN)
        assert says.endswith(
            f"acme/shop is on the host elsewhere, not here; next: ssh elsewhere service job gate {ROOT}"
        )
        again = f"next: ssh elsewhere service job gate {ROOT} --pr 7"
        assert only(judged(tree, 7), GateState.UNKNOWN).endswith(again)

    def test_moved(self, tree: Reviewed) -> None:
        tree.repo.rename(tree.repo.with_name("moved"))
        assert "next: service repo add acme/shop PATH" in only(judged(tree), GateState.UNKNOWN)

    def test_commits_that_are_gone(self, tree: Reviewed) -> None:
        tree.merge("a", "b")
        with tree.service.store.begin() as connection:
            gone = update(schema.attempts).where(schema.attempts.c.job_id == V).values(given=["0123456789" * 4])
            connection.execute(gone)
        assert "git does not know all of its commits any more" in only(judged(tree))

    def test_a_run_that_recorded_nothing(self, tree: Reviewed) -> None:
        tree.merge("a", "b")
        with tree.service.store.begin() as connection:
            connection.execute(update(schema.attempts).where(schema.attempts.c.job_id == V).values(given=None))
        assert "its run tells no commits" in only(judged(tree))


class TestPullRequests:
    @pytest.fixture
    def remote(self, tree: Reviewed, tmp_path: Path) -> Path:
        run_git(tmp_path, "init", "-q", "--bare", "remote.git")
        run_git(tree.repo, "remote", "add", "origin", str(tmp_path / "remote.git"))
        return tmp_path / "remote.git"

    def propose(self, tree: Reviewed, head: str) -> None:
        run_git(tree.repo, "push", "-q", "--force", "origin", f"{head}:refs/pull/7/head")

    def test_its_head_is_fetched_and_judged(self, tree: Reviewed, remote: Path) -> None:
        self.propose(tree, head := tree.merge("a", "b"))
        assert "is not fetched yet; next: service job gate" in only(judged(tree, 7, fetch=False), GateState.UNKNOWN)
        assert judged(tree, 7) == judged(tree, 7, fetch=False) == GateVerdict(GateState.PASSING, (), head)

    def test_a_new_head_has_to_be_reviewed_again(self, tree: Reviewed, remote: Path) -> None:
        tree.merge("a", "b")
        self.propose(tree, tree.commit(TASK_BRANCH))
        assert only(judged(tree, 7)).endswith('next: service agent review scout "MESSAGE" --repo acme/shop --pr 7')

    def test_a_review_of_a_head_that_was_pushed_over_says_to_order_another(self, tree: Reviewed, remote: Path) -> None:
        """Its tree is done: nothing is to come that could change this verdict."""
        tree.merge("a", "b")
        tree.write(2, v={"pull_request": 7})
        pushed_over = run_git(tree.repo, "commit-tree", "-m", "anew", f"{TASK_BRANCH}^{{tree}}")
        self.propose(tree, pushed_over)
        verdict = judged(tree, 7)
        assert verdict.state is GateState.FAILING
        assert verdict.reasons[0] == (
            f"part v ({V}) reviewed an older head, before {pushed_over[:7]} was pushed over it: order a review; "
            'next: service agent review scout "MESSAGE" --repo acme/shop --pr 7'
        )
        with tree.service.store.begin() as connection:
            gone = update(schema.attempts).where(schema.attempts.c.job_id == V).values(base_sha="0123456789" * 4)
            connection.execute(gone)
        assert judged(tree, 7).reasons[0] == verdict.reasons[0], "git removes the older commits after a while"

    def test_what_is_merged_here_has_to_be_published(self, tree: Reviewed, remote: Path) -> None:
        tree.merge("a", "b")
        self.propose(tree, tree.heads["a"])
        reasons = judged(tree, 7).reasons
        assert reasons[-1].endswith(f"is not in pull request 7; next: service job publish {ROOT}")

    def test_one_that_has_nothing_of_the_tree(self, tree: Reviewed, remote: Path) -> None:
        self.propose(tree, tree.base)
        assert judged(tree, 7).state is GateState.PENDING

    def test_one_that_cannot_be_fetched(self, tree: Reviewed, remote: Path) -> None:
        reason = only(judged(tree, 8), GateState.UNKNOWN)
        assert "the head of pull request 8 cannot be seen: there is no pull request #8 at the remote origin" in reason
        assert reason.endswith(f"next: git -C {tree.repo} ls-remote origin 'refs/pull/*/head'")

    def test_of_a_github_of_its_own_it_is_looked_for_there(self, tree: Reviewed, remote: Path) -> None:
        tree.service.home.config.write_text('[github]\napi_url = "https://ghe.example/api/v3"\n')
        run_git(tree.repo, "remote", "remove", "origin")
        repo_rows.put(tree.service.store, "acme/shop", str(tree.repo), tree.service.settings.host, "acme/shop")
        reason = only(merge_gate.of_tree(Service(tree.service.home), V, pull_request=8), GateState.UNKNOWN)
        assert "remote add origin https://ghe.example/acme/shop.git" in reason


def test_a_round_that_a_person_closed_by_continue_is_heeded(tree: Reviewed) -> None:
    failed = FailingRecord(leg="b", job_id=B, attempt=1, state=JobState.FAILED)
    over = seeds.round_(kind=RoundKind.FAILURE, questions=(), failing=(failed,), end=RoundEnd.CONTINUED, closed_at=3.0)
    seeds.write(tree.service, over.model_copy(update={"revision": 2}))
    tree.write(2, b={"decision": "failed", "state": JobState.FAILED})
    tree.merge("a")
    assert not any(B in reason for reason in judged(tree).reasons)


def test_a_writer_has_seen_its_own_commits(tree: Reviewed) -> None:
    whole = jobs.tree(tree.service, ROOT)
    assert merge_gate.seen_by(tree.service, whole, A) == (tree.base, tree.heads["a"])
    assert merge_gate.seen_by(tree.service, whole, V) == (tree.base, tree.heads["a"], tree.heads["b"])

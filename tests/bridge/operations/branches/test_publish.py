"""Publishing: the published commit, refusals, and the next command of each (ruling L9)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from activities.settings.home import Home
from activities.store.github import account, facts
from activities.store.registry import repo_rows
from bridge.operations.branches import drops, merges, publish
from bridge.operations.branches.publish import NamedCommit, work_of
from bridge.operations.jobs import jobs
from bridge.operations.service import Service
from tests.activities.git.conftest import run_git
from tests.bridge.published import FACT, LEGS, SHOP, TASK_BRANCH, Scene, scene
from tests.bridge.seeds import ROOT
from workflows.contract.models import Action
from workflows.model.errors import NotFoundError, ServiceError, UsageError
from workflows.model.states import JobState, TaskState, WaitsFor

pytestmark = pytest.mark.ruling("L9")


@pytest.fixture
def tree(home: Home, tmp_path: Path) -> Iterator[Scene]:
    with scene(home, tmp_path) as made:
        made.task()
        yield made


@pytest.fixture
def batch(tree: Scene) -> Scene:
    """Build a tree of two legs, nothing merged."""
    tree.job(action=Action.ASK)
    tree.run(LEGS["a"], delegation_id="a")
    tree.run(LEGS["b"], delegation_id="b")
    return tree


def work(tree: Scene, job_id: str = ROOT) -> NamedCommit:
    return work_of(tree.service, jobs.get(tree.service, job_id))


def refusal(tree: Scene, job_id: str = ROOT, base: str | None = None) -> ServiceError:
    with pytest.raises(ServiceError) as refused:
        publish.publish(tree.service, job_id, actor="ann, in the terminal", base=base)
    assert facts.get(tree.service.store, f"{job_id}-publish") is None
    assert refused.value.hint
    return refused.value


def test_the_one_branch_goes_under_the_name_of_the_tasks(tree: Scene) -> None:
    commit = tree.run()
    answer = publish.publish(tree.service, ROOT, actor="ann, in the terminal")
    assert (answer.branch, answer.state, answer.url, answer.github) == (TASK_BRANCH, "push", "", SHOP)
    assert work(tree) == NamedCommit(TASK_BRANCH, commit)
    assert (tree.fact.host, tree.fact.kind, tree.fact.number) == (tree.service.settings.host, "publish", 0)
    assert publish.publication(tree.fact).actor == "ann, in the terminal"


def test_after_a_merge_it_is_the_tasks_branch(batch: Scene) -> None:
    done = merges.merge(batch.service, [LEGS["a"]], actor="ann, in the terminal")
    assert work(batch) == NamedCommit(TASK_BRANCH, done.head)


def test_a_branch_that_has_the_others_in_it_is_all_work(batch: Scene) -> None:
    last = f"service/{LEGS['b']}"
    run_git(batch.repo, "checkout", "-q", last)
    run_git(batch.repo, "merge", "-q", "--no-edit", f"service/{LEGS['a']}")
    run_git(batch.repo, "checkout", "-q", "main")
    assert work(batch) == NamedCommit(TASK_BRANCH, run_git(batch.repo, "rev-parse", last))


def test_a_leg_is_published_on_its_own_branch(batch: Scene) -> None:
    answer = publish.publish(batch.service, LEGS["a"], actor="ann, in the terminal")
    assert (answer.branch, answer.job_id, answer.root_job_id) == (f"service/{LEGS['a']}", LEGS["a"], ROOT)
    assert [each.job_id for each in publish.of_tree(batch.service, ROOT)] == [LEGS["a"]]


def test_several_branches_are_merged_first(batch: Scene) -> None:
    no = refusal(batch)
    assert no.message == f"2 branches hold work of {ROOT}, and {TASK_BRANCH} is not made yet"
    assert no.hint == f"service job merge {ROOT}"


def test_a_root_that_runs_is_published_as_far_as_it_is(tree: Scene) -> None:
    tree.task(TaskState.OPEN)
    commit = tree.run(state=JobState.RUNNING, head_sha=None, ended_at=None)
    assert work(tree).commit == commit


def test_a_root_that_has_no_commits_yet_is_refused(tree: Scene) -> None:
    tree.job(state=JobState.RUNNING, ended_at=None)
    no = refusal(tree)
    assert no.message == f"there is nothing to publish: no job of {ROOT} has left commits"


@pytest.mark.parametrize(
    ("fields", "message", "hint"),
    [
        ({"state": JobState.RUNNING, "ended_at": None}, "is still running", f"service job tree {LEGS['a']} --watch"),
        (
            {"state": JobState.FAILED, "reason": "broke", "waits_for": WaitsFor.RETRY},
            "failed: broke; only",
            f"service job retry {LEGS['a']}",
        ),
        ({"action": Action.ASK}, "(ask) has no branch", f"service job publish {ROOT}"),
        ({"head_sha": None}, "changed nothing", f"service job show {LEGS['a']}"),
        ({"branch": "topic"}, "topic is not a branch of the service", f"service job branches {ROOT}"),
    ],
)
def test_a_leg_that_cannot_be(tree: Scene, fields: dict[str, object], message: str, hint: str) -> None:
    tree.job(action=Action.ASK)
    if fields.get("branch"):
        run_git(tree.repo, "branch", "topic")
        fields = {**fields, "head_sha": run_git(tree.repo, "rev-parse", "topic")}
    tree.run(LEGS["a"], **fields)
    no = refusal(tree, LEGS["a"])
    assert message in no.message
    assert no.hint == hint


def test_a_leg_whose_branch_is_gone(batch: Scene) -> None:
    drops.drop(batch.service, LEGS["a"], actor="ann, in the terminal", force=True)
    no = refusal(batch, LEGS["a"])
    assert isinstance(no, NotFoundError)
    assert no.hint.startswith(f"git -C {batch.repo} branch service/{LEGS['a']} ")


def test_without_an_account_it_is_refused(tree: Scene) -> None:
    tree.run()
    tree.service.home.config.write_text("")
    no = refusal(Scene(Service(tree.service.home), tree.repo, tree.bare, tree.hub))
    assert "GitHub is not set up" in no.message
    assert "service config check" in no.hint


def test_without_a_name_on_github_it_is_refused(tree: Scene) -> None:
    tree.run()
    repo_rows.put(tree.service.store, SHOP, str(tree.repo), tree.service.settings.host)
    assert refusal(tree).hint == f"service repo add {SHOP} {tree.repo} --github OWNER/NAME"


def test_a_repository_that_is_not_served_is_refused(tree: Scene) -> None:
    tree.run()
    settings = tree.service.home.config
    settings.write_text(settings.read_text() + 'repos = ["acme/other"]\n')
    no = refusal(Scene(Service(tree.service.home), tree.repo, tree.bare, tree.hub))
    assert no.message.startswith("[github].repos does not name acme/shop")


def test_a_repository_elsewhere_is_refused(tree: Scene) -> None:
    tree.run()
    repo_rows.put(tree.service.store, SHOP, str(tree.repo), "far", SHOP)
    assert refusal(tree).hint == f"ssh far service job publish {ROOT}"


@pytest.mark.parametrize("base", ["-x", "a b", "a..b", "/a", "a~1", TASK_BRANCH, "a.lock", "refs/", "x" * 201])
def test_a_base_that_is_none(tree: Scene, base: str) -> None:
    tree.run()
    assert isinstance(refusal(tree, base=base), UsageError)


def test_asked_again_nothing_changes_and_new_work_goes_too(tree: Scene) -> None:
    commit = tree.run()
    publish.publish(tree.service, ROOT, actor="ann, in the terminal", base="stable")
    pushed = publish.publication(tree.fact).model_copy(update={"commit": commit}).model_dump_json()
    facts.note(tree.service.store, FACT, text=pushed)
    facts.mark_written(tree.service.store, FACT, github_id="4", url="https://github.com/acme/shop/pull/4")
    again = publish.publish(tree.service, ROOT, actor="bob, in the terminal")
    assert (again.state, again.url, again.commit) == ("done", "https://github.com/acme/shop/pull/4", commit)
    run_git(tree.repo, "branch", "-f", f"service/{ROOT}", commit)
    run_git(tree.repo, "branch", TASK_BRANCH, "main")
    more = publish.publish(tree.service, ROOT, actor="bob, in the terminal")
    assert (more.state, more.url) == ("push", "https://github.com/acme/shop/pull/4")
    assert publish.publication(tree.fact).base == "stable"


def test_what_failed_is_tried_again_when_somebody_asks(tree: Scene) -> None:
    tree.run()
    publish.publish(tree.service, ROOT, actor="ann, in the terminal")
    facts.give_up(tree.service.store, FACT, "no")
    assert publish.current(tree.service, ROOT) is not None
    assert publish.publish(tree.service, ROOT, actor="ann, in the terminal").state == "push"
    assert (tree.fact.attempts, tree.fact.error) == (0, "")


def test_it_is_said_what_it_waits_for(tree: Scene) -> None:
    tree.run()
    assert "service daemon start" in publish.publish(tree.service, ROOT, actor="ann, in the terminal").says
    account.note(tree.service.store, blocked_until=4e9, problem="the quota is used up")
    waits = publish.current(tree.service, ROOT)
    assert waits is not None
    assert waits.says.startswith("GitHub is left alone until 2096")
    assert "the quota is used up; it will be done then" in waits.says
    assert not waits.over


def test_an_unknown_job_is_said(tree: Scene) -> None:
    with pytest.raises(NotFoundError):
        publish.publish(tree.service, "job-ffffffffffff", actor="ann, in the terminal")

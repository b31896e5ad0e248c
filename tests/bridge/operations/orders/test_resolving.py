"""Starting a job that resolves the conflicts in a tree's work (rulings O6, O7)."""

from pathlib import Path

import pytest

from activities.settings.home import Home
from activities.store import job_rows, tree_rows
from activities.store.registry import agent_rows
from bridge.operations.branches import branches, drops, merges
from bridge.operations.orders import follow_ups
from bridge.operations.registry import agents, init
from tests.activities.git.conftest import commit_file, run_git
from tests.bridge import seeds
from tests.bridge.grown import DOCS, FILE, TASK_BRANCH, Grown
from tests.bridge.operations.orders.team import add
from tests.bridge.seeds import ROOT
from tests.bridge.typist import of_hint, type_all
from workflows.contract.models import Action, AutonomyPolicy
from workflows.model.errors import NotFoundError, RefusedError, ServiceError
from workflows.model.states import JobState, TaskState
from workflows.tree.reducer import root_run
from workflows.tree.state import TreeInput

pytestmark = pytest.mark.ruling("O6", "O7")


async def test_it_begins_from_all_of_the_tree_and_is_told_what_to_merge(tree: Grown, begun: list[TreeInput]) -> None:
    started = await follow_ups.resolve(tree.service, DOCS)
    [start] = begun
    asked = start.assignment
    assert (asked.action, asked.base, asked.task_branch) == (Action.IMPLEMENT, tree.base, TASK_BRANCH)
    assert [(each.leg, each.head) for each in start.line] == list(tree.heads.items())
    assert (started.job_id, started.agent, started.task_branch) == (start.root_job_id, "dev", TASK_BRANCH)
    [conflict] = started.conflicts
    assert (conflict.leg, conflict.files) == ("docs", (FILE,))
    assert "- `leg/docs` conflicts with `service/" in (asked.prompt.inline or "")
    assert root_run(start).merges == start.merges == ("docs",)


async def test_one_that_was_started_is_found_again(tree: Grown, begun: list[TreeInput]) -> None:
    seeds.write(tree.service, seeds.job("job-aaaaaaaaaaaa"))
    started = await follow_ups.resolve(tree.service, ROOT, root="job-aaaaaaaaaaaa")
    assert (started.job_id, begun) == ("job-aaaaaaaaaaaa", [])


async def refused(tree: Grown, **asked: object) -> tuple[str, ...]:
    with pytest.raises(ServiceError) as no:
        await follow_ups.resolve(tree.service, ROOT, **asked)  # type: ignore[arg-type]
    return of_hint(no.value.hint)


async def test_who_does_it(tree: Grown, begun: list[TreeInput]) -> None:
    """The agent whose work conflicts comes first, if it is there."""
    add(tree.service, "another")
    row = job_rows.get(tree.service.store, DOCS)
    assert row is not None
    seeds.write(tree.service, row.model_copy(update={"agent": "another", "revision": 2}))
    assert (await follow_ups.resolve(tree.service, ROOT)).agent == "another"
    agent_rows.remove(tree.service.store, "another")
    assert (await follow_ups.resolve(tree.service, ROOT)).agent == "dev"
    assert (await follow_ups.resolve(tree.service, ROOT, agent="dev")).agent == "dev"
    with pytest.raises(NotFoundError):
        await follow_ups.resolve(tree.service, ROOT, agent="nobody")


async def test_who_does_not_write_is_not_asked(tree: Grown, begun: list[TreeInput]) -> None:
    agent_rows.remove(tree.service.store, "dev")
    add(tree.service, "reader", can="review", autonomy="read-only")
    add_one = await refused(tree)
    assert add_one[0].startswith("service agent add merger --runtime RUNTIME --capabilities implement ")
    type_all(await refused(tree, agent="reader"))
    assert begun == []


@pytest.mark.parametrize("builds", [AutonomyPolicy.WORKSPACE_WRITE, AutonomyPolicy.DANGER_FULL_ACCESS])
async def test_the_team_of_init_can_do_it(tree: Grown, begun: list[TreeInput], builds: AutonomyPolicy) -> None:
    agent_rows.remove(tree.service.store, "dev")
    for member in init.members(init.Programs("runtime_a", "runtime_b"), "acme/shop", [], lambda _: builds):
        agents.add(tree.service, member.new)
    assert follow_ups.possible(tree.service, Action.IMPLEMENT, "acme/shop")
    assert (await follow_ups.resolve(tree.service, ROOT)).agent == "builder"
    assert begun[0].assignment.worker.autonomy_policy is builds


async def test_where_nothing_conflicts_it_is_merged(tree: Grown, begun: list[TreeInput]) -> None:
    run_git(tree.repo, "branch", "-D", f"service/{DOCS}-docs")
    row = job_rows.get(tree.service.store, DOCS)
    assert row is not None
    seeds.write(tree.service, row.model_copy(update={"state": JobState.FAILED, "revision": 2}))
    type_all(await refused(tree))
    assert tree.files()[FILE] == "code, mended"
    type_all(await refused(tree, with_mine=True))
    assert (tree.repo / FILE).read_text() == "code, mended\n"
    assert begun == []


async def test_the_branch_that_is_checked_out_is_a_part_of_it_where_that_is_asked_for(
    tree: Grown, begun: list[TreeInput]
) -> None:
    head = commit_file(tree.repo, FILE, "mine\n")
    with pytest.raises(RefusedError, match="it conflicts in") as no:
        merges.merge(tree.service, [ROOT], actor="ann", into_mine=True, without=["docs"])
    assert of_hint(no.value.hint)[0] == f"service job resolve {ROOT} --with-mine"
    started = await follow_ups.resolve(tree.service, ROOT, with_mine=True)
    assert [each.leg for each in started.conflicts] == ["docs", "mine"]
    assert (begun[0].line[-1].branch, begun[0].line[-1].head) == ("main", head)


async def test_a_tree_at_work_and_one_without_a_base_are_refused(
    home: Home, tmp_path: Path, tree: Grown, begun: list[TreeInput]
) -> None:
    seeds.write(tree.service, seeds.task(revision=2, state=TaskState.OPEN))
    assert await refused(tree) == (f"service job tree {ROOT} --watch",)
    seeds.write(tree.service, seeds.task(revision=3, state=TaskState.DONE))
    with tree.service.store.begin() as connection:
        connection.exec_driver_sql("delete from trees")
    type_all(await refused(tree))
    assert begun == []


@pytest.mark.ruling("O1")
async def test_foreign_commits_are_refused_before_it_starts(tree: Grown, begun: list[TreeInput]) -> None:
    run_git(tree.repo, "checkout", "-q", f"service/{DOCS}-docs")
    commit_file(tree.repo, "secret.txt", "x", "put there by hand")
    run_git(tree.repo, "checkout", "-q", "main")
    without, *_ = await refused(tree)
    type_all([without])
    await follow_ups.resolve(tree.service, ROOT)
    assert len(begun) == 1


async def test_its_tree_has_the_branch_of_the_other_task_and_leaves_it_there(
    tree: Grown, begun: list[TreeInput]
) -> None:
    merges.merge(tree.service, [ROOT], actor="ann")
    started = await follow_ups.resolve(tree.service, ROOT)
    new, branch = started.job_id, f"service/{started.job_id}"
    run_git(tree.repo, "branch", branch, tree.line)
    tree_rows.begin(tree.service.store, begun[0], "here")
    wrote = {"action": Action.IMPLEMENT, "branch": branch, "head_sha": tree.line, "state": JobState.SUCCEEDED}
    seeds.write(tree.service, seeds.task(new, state=TaskState.DONE), seeds.job(new, **wrote))
    seeds.payload(tree.service, new, {}, base_sha=tree.base, given=[], branch=branch)
    resolved = branches.of_tree(tree.service, new)
    assert (resolved.task_branch, resolved.owns_task_branch, resolved.base) == (TASK_BRANCH, False, tree.base)
    assert [each.branch for each in drops.drop(tree.service, new, actor="ann", force=False).dropped] == [branch]
    assert run_git(tree.repo, "rev-parse", TASK_BRANCH) == tree.line

"""A review of what a tree's reviews have not seen, and what the gate makes of it (ruling L10)."""

import re
from pathlib import Path

import pytest

from activities.settings.home import Home
from activities.store import tree_rows
from bridge.operations.branches import merge_gate
from bridge.operations.orders import follow_ups, trees
from bridge.operations.registry import agents
from bridge.operations.registry.agents import NewAgent
from bridge.operations.service import Service
from tests.activities.git.conftest import run_git
from tests.bridge import seeds
from tests.bridge.reviewed import TASK_BRANCH, A, Reviewed, reviewed
from tests.bridge.seeds import ROOT
from workflows.contract.models import Action
from workflows.github.merge_gate import GateState, GateVerdict
from workflows.model.errors import NotFoundError, RefusedError, UsageError
from workflows.model.states import JobState, TaskState
from workflows.tree.state import TreeInput

pytestmark = pytest.mark.ruling("L10")


@pytest.fixture
def service(home: Home) -> Service:
    return Service(home)


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[TreeInput]:
    """Collect the trees that are started, in place of Temporal."""
    started: list[TreeInput] = []

    async def start(service: Service, tree: TreeInput, host: str) -> str:
        started.append(tree)
        root = tree.root_job_id
        tree_rows.begin(service.store, tree, host)
        row = seeds.job(root, root_job_id=root, action=Action.REVIEW, state=JobState.RUNNING)
        seeds.write(service, seeds.task(root, task_id=tree.task_id), row)
        return root

    monkeypatch.setattr(trees, "start", start)
    return started


@pytest.fixture
def tree(service: Service, tmp_path: Path) -> Reviewed:
    """Return a merged tree, to whose branch a person has added a commit."""
    made = reviewed(service, tmp_path)
    agents.add(service, NewAgent("critic", "shell", command="cat", repos=("acme/shop",)))
    made.merge("a", "b")
    made.commit(TASK_BRANCH)
    return made


async def ask(tree: Reviewed, agent: str = "") -> follow_ups.ReviewAnswer:
    return await follow_ups.review(tree.service, A, actor="ann, in the terminal", agent=agent)


def ends(tree: Reviewed, review: follow_ups.ReviewAnswer, **fields: object) -> None:
    """End a review: it has looked at the commit that it was asked to review."""
    job = review.job_id
    row = seeds.job(job, root_job_id=job, action=Action.REVIEW, revision=2, **{"state": JobState.SUCCEEDED} | fields)
    seeds.write(tree.service, seeds.task(job, state=TaskState.DONE, revision=2), row)
    seeds.payload(tree.service, job, {}, base_sha=review.head, given=[])


def judged(tree: Reviewed) -> GateVerdict:
    return merge_gate.of_tree(tree.service, ROOT)


async def test_it_begins_from_the_head_and_is_told_what_is_unseen(tree: Reviewed, begun: list[TreeInput]) -> None:
    head = run_git(tree.repo, "rev-parse", TASK_BRANCH)
    started = await ask(tree)
    assert (started.root_job_id, started.agent, started.head) == (ROOT, "critic", head)
    assert started.files == ("later.txt",)
    assert len(started.commits) == 1
    asked = begun[0].assignment
    assert (asked.action, asked.base, asked.worker.name) == (Action.REVIEW, head, "critic")
    message = asked.prompt.inline or ""
    assert started.commits[0] in message
    shows = re.search(r"`git (log .*?)`", message)
    assert shows is not None
    shown = run_git(tree.repo, *shows[1].replace("HEAD", head).split())
    assert [line for line in shown.splitlines() if line.startswith("+")][1:] == ["+later"]


async def test_the_gate_waits_for_it_and_counts_its_verdict(tree: Reviewed, begun: list[TreeInput]) -> None:
    started = await ask(tree)
    waits = judged(tree)
    assert waits.reasons == (
        f"the later review {started.job_id} is not done; next: service job tree {started.job_id} --watch",
    )
    assert (waits.state, waits.unseen) == (GateState.PENDING, ())
    with pytest.raises(RefusedError, match="has no commit that still needs a review"):
        await ask(tree)
    ends(tree, started, decision="approved")
    assert judged(tree) == GateVerdict(GateState.PASSING, (), started.head)


async def test_a_rejection_fails_the_gate_and_another_commit_asks_anew(tree: Reviewed, begun: list[TreeInput]) -> None:
    first = await ask(tree)
    ends(tree, first, decision="changes_requested")
    assert judged(tree).reasons == (
        f"the later review {first.job_id} asks for changes; next: service job show {first.job_id}",
    )
    assert judged(tree).state is GateState.FAILING
    tree.commit(TASK_BRANCH, "repaired.txt")
    assert "2 commits in later.txt, repaired.txt" in judged(tree).reasons[0]
    second = await ask(tree)
    ends(tree, second, decision="approved")
    assert judged(tree).state is GateState.PASSING


async def test_an_abstention_leaves_it_open(tree: Reviewed, begun: list[TreeInput]) -> None:
    ends(tree, await ask(tree), decision="skipped")
    assert "has not seen 1 commit" in judged(tree).reasons[0]
    await ask(tree)
    assert len(begun) == 2


async def test_it_never_outweighs_a_rejection(tree: Reviewed, begun: list[TreeInput]) -> None:
    ends(tree, await ask(tree), decision="approved")
    tree.write(2, v={"decision": "changes_requested"})
    assert judged(tree).state is GateState.FAILING


async def test_nobody_who_can_is_said(tree: Reviewed, begun: list[TreeInput]) -> None:
    with pytest.raises(NotFoundError, match="no agent nobody"):
        await ask(tree, "nobody")
    agents.deny(tree.service, "critic", "acme/shop")
    with pytest.raises(UsageError, match="no agent that may work on acme/shop has the capability review"):
        await ask(tree)
    assert begun == []


async def test_a_repeated_call_starts_one(tree: Reviewed, begun: list[TreeInput]) -> None:
    root = trees.new_root_id()
    for _ in range(2):
        done = await follow_ups.review(tree.service, ROOT, actor="ann, in the terminal", root=root)
        assert (done.job_id, done.agent) == (root, "critic")
    assert len(begun) == 1


def test_an_error_at_an_able_agent_is_not_swallowed(service: Service, tree: Reviewed) -> None:
    able = follow_ups.able(service, Action.REVIEW, "acme/shop")
    assert next(able).worker.name == "critic"
    with pytest.raises(RefusedError, match="of the caller"):
        able.throw(RefusedError("of the caller"))

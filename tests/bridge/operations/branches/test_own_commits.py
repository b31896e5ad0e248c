"""What real jobs leave is the tree's own, whatever the service merged before they began (rulings O1, O2, O5)."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from activities.store import tree_rows
from bridge.operations.branches import merges
from bridge.operations.service import Service
from tests.activities.jobs.conftest import Stage, git, repo, stage
from tests.bridge import seeds
from tests.bridge.seeds import ROOT
from workflows.contract.models import Action
from workflows.model.errors import RefusedError
from workflows.model.jobs import JobOutcome, Work
from workflows.model.long_texts import Text
from workflows.model.states import Continuation, JobState, TaskState
from workflows.model.workers import Assignment, Worker
from workflows.tree.state import TreeInput

__all__ = ["repo", "stage"]

pytestmark = pytest.mark.ruling("O1", "O2", "O5")
WRITES = """\
import json
open({name!r}, "w").write("x")
print(json.dumps({{"service_result": {{"decision": "implemented", "summary": "write {name}"}}}}))
"""


@dataclass
class Chain:
    """The jobs of a coordinator's chain, each of which leaves one file."""

    stage: Stage
    service: Service
    base: str
    line: tuple[Work, ...] = ()
    """The work that the next job begins from."""
    done: list[JobOutcome] = field(default_factory=list)

    async def leg(self, leg: str, **changes: Any) -> Work:
        """Run a leg that begins from the line, and return its work."""
        number = len(self.done) + 1
        ids = {"job_id": f"{ROOT}.{number}", "root_job_id": ROOT, "task_id": seeds.TASK, "delegation_id": leg}
        given = ids | {"base": self.base, "line": self.line} | changes
        ended = await self.stage.play(self.stage.job(WRITES.format(name=f"{number}.txt"), Action.IMPLEMENT, **given))
        assert ended.state is JobState.SUCCEEDED, ended.reason
        left = {"branch": ended.branch, "head_sha": ended.head_sha, "state": ended.state, "decision": ended.decision}
        row = {"parent_job_id": ROOT, "delegation_id": leg, "action": Action.IMPLEMENT}
        seeds.write(self.service, seeds.job(ended.job_id, **(row | left)))
        self.done.append(ended)
        return Work(leg=leg, job_id=ended.job_id, branch=ended.branch or "", head=ended.head_sha or "")

    def merge(self) -> tuple[str, ...]:
        """Merge the last job's work, and return the names of the files in the task's branch."""
        done = merges.merge(self.service, [self.done[-1].job_id], actor="ann")
        return tuple(git(self.stage.repo, "ls-tree", "--name-only", done.head).split())


@pytest.fixture
def chain(stage: Stage) -> Chain:
    service, base = Service(stage.context.home), git(stage.repo, "rev-parse", "HEAD").strip()
    seeds.write(service, seeds.task(state=TaskState.DONE, ended_at=2.0), seeds.job(state=JobState.SUCCEEDED))
    worker = Worker(name="lead", runtime="shell")
    lead = Assignment(worker=worker, action=Action.ASK, prompt=Text(inline="do it"), base=base)
    start = TreeInput(root_job_id=ROOT, task_id=seeds.TASK, repo="acme/shop", assignment=lead, created_at=1.0)
    tree_rows.begin(service.store, start, "here")
    return Chain(stage, service, base)


async def test_of_a_leg_that_begins_from_a_line_and_has_dependencies(chain: Chain) -> None:
    chain.line = (await chain.leg("a"), await chain.leg("b"))
    c = await chain.leg("c")
    await chain.leg("d", deps=(c,), branch_deps=(c.branch,))
    assert chain.merge() == ("1.txt", "2.txt", "3.txt", "4.txt", "limiter.py")


async def test_of_legs_that_share_a_worktree(chain: Chain) -> None:
    chain.line = (await chain.leg("a"), await chain.leg("b"))
    await chain.leg("c", shared_worktree="bench")
    d = await chain.leg("d")
    await chain.leg("e", shared_worktree="bench", deps=(d,), branch_deps=(d.branch,))
    assert chain.merge() == ("1.txt", "2.txt", "3.txt", "4.txt", "5.txt", "limiter.py")


@pytest.mark.parametrize("foreign", [False, True])
async def test_of_a_job_that_goes_on_with_the_branch_of_an_earlier_one(chain: Chain, foreign: bool) -> None:
    own = await chain.leg("own")
    if foreign:
        git(chain.stage.repo, "checkout", "-q", own.branch)
        git(chain.stage.repo, "commit", "-q", "--allow-empty", "-m", "put there by hand")
        git(chain.stage.repo, "checkout", "-q", "main")
    chain.line = (own,)
    chain.line = (own, await chain.leg("a"), await chain.leg("b"))
    await chain.leg("again", own_branch=own.branch, continuation=Continuation.NORMAL)
    if foreign:
        with pytest.raises(RefusedError, match=r"a commit that is not of this task: [0-9a-f]{7} put there by hand;"):
            chain.merge()
    else:
        assert chain.merge() == ("1.txt", "2.txt", "3.txt", "4.txt", "limiter.py")

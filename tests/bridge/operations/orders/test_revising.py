"""Sending comments on a diff back, as the next instructions for the work (rulings F3, M2, O1, O6)."""

from typing import Any

import pytest

from activities.store.registry import agent_rows
from bridge.operations.jobs import jobs
from bridge.operations.orders import resume, revising
from bridge.operations.orders.revising import DiffComment, Feedback, ReviseAnswer, revise
from bridge.operations.service import Service
from tests.activities.git.conftest import commit_file, run_git
from tests.bridge import seeds
from tests.bridge.grown import CODE, DOCS, FILE, TASK_BRANCH, Grown
from tests.bridge.operations.orders.team import add
from tests.bridge.seeds import ROOT
from tests.bridge.typist import of_hint, type_all
from workflows.contract.models import Action
from workflows.model.errors import NotFoundError, RefusedError, ServiceError, UsageError
from workflows.model.orders import ResumeOrder
from workflows.model.rounds import RoundKind
from workflows.model.rows import FailingRecord
from workflows.model.states import JobState, TaskState
from workflows.tree.state import TreeInput

pytestmark = pytest.mark.ruling("O6", "M2")

ON_CODE = DiffComment(FILE, 1, "Say what it is.\nIn one word.")


async def said(
    tree: Grown, job_id: str, *comments: DiffComment, text: str = "", head: str = "", whole: bool = False, **more: Any
) -> ReviseAnswer:
    what = Feedback(comments, text, head, whole)
    return await revise(tree.service, job_id, what, actor="ann", channel="cli", **more)


async def test_a_new_job_goes_on_from_the_legs_work_and_gets_the_comments(tree: Grown, begun: list[TreeInput]) -> None:
    made = await said(tree, CODE, ON_CODE, text="Nearly.")
    [start] = begun
    asked = start.assignment
    assert made.model_dump() == {
        "job_id": start.root_job_id,
        "root_job_id": ROOT,
        "agent": "dev",
        "task_branch": TASK_BRANCH,
        "again": False,
    }
    assert (asked.action, asked.base, asked.task_branch) == (Action.IMPLEMENT, tree.base, TASK_BRANCH)
    assert [(each.leg, each.job_id, each.head) for each in start.line] == [("code", CODE, tree.heads["code"])]
    assert start.title == "Nearly."
    assert asked.prompt.inline == (
        f"Revise the work of `code` ({CODE}) in the task `the app`: a person has read its diff, and says what to"
        f" change.\n\nNearly.\n\n- `{FILE}:1` (new): > `code`\n\n  Say what it is.\n  In one word.\n\n"
        "Do what each comment asks, and change nothing else. Run the tests."
    )


async def test_comments_may_be_about_all_work_of_a_tree(tree: Grown, begun: list[TreeInput]) -> None:
    await said(tree, DOCS, DiffComment(FILE, 1, "No."), whole=True)
    assert [each.leg for each in begun[0].line] == ["code", "docs", "fix"]
    assert "Revise all work in the task `the app`" in (begun[0].assignment.prompt.inline or "")
    assert begun[0].title == "No.", "without words on the whole, the first comment's"
    assert "> `code, mended`" in (begun[0].assignment.prompt.inline or "")


async def test_who_said_what_is_recorded_and_which_job_works_on_it(tree: Grown, begun: list[TreeInput]) -> None:
    first = await said(tree, CODE, ON_CODE)
    second = await said(tree, CODE, text="And shorter.")
    events = [each for each in jobs.events(tree.service, CODE) if each.kind == "branch_revised"]
    assert [each.data["by"] for each in events] == [first.job_id, second.job_id]
    assert events[0].message == f"ann, in the terminal sent 1 comment on its diff; {first.job_id} works on that"
    assert events[0].data["comments"] == [f"{FILE}:1: Say what it is.\nIn one word."]


async def test_one_that_was_started_is_found_again(tree: Grown, begun: list[TreeInput]) -> None:
    seeds.write(tree.service, seeds.job("job-aaaaaaaaaaaa"))
    made = await said(tree, CODE, ON_CODE, root="job-aaaaaaaaaaaa")
    assert (made.job_id, begun) == ("job-aaaaaaaaaaaa", [])


@pytest.mark.ruling("F3")
async def test_a_leg_that_its_round_asks_about_runs_again_with_them(
    tree: Grown, begun: list[TreeInput], monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = FailingRecord(leg="code", job_id=CODE, attempt=1, state=JobState.FAILED)
    asked = seeds.round_(kind=RoundKind.FAILURE, questions=(), failing=(failed,), verbs=("retry",))
    seeds.write(tree.service, seeds.task(revision=9, state=TaskState.AWAITING_HUMAN), asked)
    orders: list[ResumeOrder] = []

    async def take(_: Service, order: ResumeOrder) -> None:
        orders.append(order)

    monkeypatch.setattr(resume, "resume", take)
    made = await said(tree, CODE, ON_CODE)
    [order] = orders
    assert (order.verb, order.job_id, order.round, order.digest) == ("retry", ROOT, asked.number, asked.digest)
    assert "Say what it is." in order.text
    assert (made.job_id, made.again, begun) == (CODE, True, [])
    made = await said(tree, DOCS, text="Another leg is another matter.")
    assert (made.again, len(begun)) == (False, 1)


async def test_who_does_it(tree: Grown, begun: list[TreeInput]) -> None:
    """The worker of the job, where that may still implement; else another; or the one that is named."""
    add(tree.service, "another")
    row = jobs.get(tree.service, CODE)
    seeds.write(tree.service, row.model_copy(update={"agent": "another", "revision": 2}))
    assert (await said(tree, CODE, ON_CODE)).agent == "another"
    agent_rows.remove(tree.service.store, "another")
    assert (await said(tree, CODE, ON_CODE)).agent == "dev" == revising.receiver(tree.service, row)
    with pytest.raises(NotFoundError):
        await said(tree, CODE, ON_CODE, agent="nobody")
    add(tree.service, "reader", can="review", autonomy="read-only")
    with pytest.raises(RefusedError, match="reader only reviews: choose review"):
        await said(tree, CODE, ON_CODE, agent="reader")
    agent_rows.remove(tree.service.store, "dev")
    with pytest.raises(UsageError, match="no agent may implement on acme/shop"):
        await said(tree, CODE, ON_CODE)


async def test_an_ephemeral_worker_is_used_again(tree: Grown, begun: list[TreeInput]) -> None:
    spec = {
        "runtime": "runtime_b",
        "capabilities": ["implement"],
        "autonomy_policy": "workspace-write",
        "role": "coder",
    }
    leg = {"id": "code", "ephemeral": spec, "action": "implement", "prompt": "write it"}
    with tree.service.store.begin() as connection:
        connection.exec_driver_sql("delete from attempts where job_id = ?", (ROOT,))
    seeds.payload(tree.service, ROOT, {"service_result": {"delegations": [leg]}})
    row = jobs.get(tree.service, CODE)
    seeds.write(tree.service, row.model_copy(update={"agent": "coder", "ephemeral": True, "revision": 2}))
    assert (await said(tree, CODE, ON_CODE)).agent == "coder"
    assert (begun[0].assignment.worker.runtime, begun[0].assignment.worker.ephemeral) == ("runtime_b", True)


async def refused(tree: Grown, job_id: str, *comments: DiffComment, **more: Any) -> ServiceError:
    with pytest.raises(ServiceError) as no:
        await said(tree, job_id, *comments, **more)
    hints = of_hint(no.value.hint)
    if hints[0] and f"service job tree {ROOT} --watch" not in hints:  # which would be watched for ever
        type_all(hints)
    return no.value


async def test_what_cannot_be_sent_is_said_before_anything_starts(tree: Grown, begun: list[TreeInput]) -> None:
    assert "nothing to send" in (await refused(tree, CODE)).message
    assert f"the comment on {FILE}:1 is empty" in (await refused(tree, CODE, DiffComment(FILE, 1, " \n"))).message
    assert "has no file 'other.txt'" in (await refused(tree, CODE, DiffComment("other.txt", 1, "x"))).message
    assert (
        f"does not show line 9 of the old {FILE}"
        in (await refused(tree, CODE, DiffComment(FILE, 9, "x", old=True))).message
    )
    assert "more than 200" in (await refused(tree, CODE, *[ON_CODE] * 201)).message
    stale = await refused(tree, CODE, ON_CODE, head=tree.base)
    assert "has changed since it was read" in stale.message
    assert (await said(tree, CODE, ON_CODE, head=tree.heads["code"])).agent == "dev"
    assert len(begun) == 1


async def test_work_that_goes_on_and_foreign_commits_are_refused(tree: Grown, begun: list[TreeInput]) -> None:
    run_git(tree.repo, "checkout", "-q", f"service/{DOCS}-docs")
    commit_file(tree.repo, "secret.txt", "x", "put there by hand")
    run_git(tree.repo, "checkout", "-q", "main")
    assert "put there by hand" in (await refused(tree, DOCS, text="x")).message
    row = jobs.get(tree.service, CODE)
    seeds.write(tree.service, row.model_copy(update={"state": JobState.RUNNING, "revision": 2}))
    seeds.write(tree.service, seeds.task(revision=2, state=TaskState.OPEN))
    assert f"{CODE} is still running" in (await refused(tree, CODE, text="x")).message
    assert f"{ROOT} is still at work" in (await refused(tree, DOCS, text="x", whole=True)).message
    assert f"{ROOT} left no commits" in (await refused(tree, ROOT, text="x")).message
    assert begun == []

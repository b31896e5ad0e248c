"""The comment on a tree's end: decision, summary, findings, branches, spend, and the caveat of its result."""

from collections.abc import Iterator

from workflows.contract.render import render_comment
from workflows.github.bound_tree import BoundTree, last_job
from workflows.github.texts import views
from workflows.github.texts.parts import Part, code, comment, line, quote
from workflows.model.states import TaskState

RESULT_BYTES = 36_000
BRANCHES_BYTES = 8_000
_TITLES = {TaskState.DONE: "Done", TaskState.CANCELLED: "Cancelled", TaskState.BLOCKED: "Blocked"}


def end(tree: BoundTree, fact_id: str) -> str:
    """Render the whole comment; the result looks as `service result render` prints it."""
    return comment(fact_id, _parts(tree))


def _parts(tree: BoundTree) -> Iterator[Part]:
    all_of_it = views.everything(tree)
    yield Part(
        [views.heading(tree, "Cut short" if tree.task.cut_short else _TITLES.get(tree.task.state, "Ended"))], 2_000, ""
    )
    yield Part([each for said in views.why(tree) for each in (said, "")], 4_000, all_of_it)
    if tree.caveat and tree.caveat not in tree.task.reason:
        yield Part([f"Read it with this in mind: {line(tree.caveat, 600)}"], 3_000, "")
    yield Part(_result(tree), RESULT_BYTES, all_of_it)
    branches = list(_branches(tree))
    if branches:
        yield Part(["#### Branches", "", *branches], BRANCHES_BYTES, all_of_it)
    yield views.published(tree)
    yield Part([views.used(tree), "", f"{all_of_it} {views.updated(tree)}"], 2_000, "")


def _result(tree: BoundTree) -> list[str]:
    """Render the tree's result, or the last job's row if no job has a result."""
    if tree.result is not None:
        return render_comment(tree.result, RESULT_BYTES).split("\n")
    job = last_job(tree)
    if job is None or not (job.decision or job.summary or job.reason):
        return ["Nobody summed it up."]
    return [f"### Result: {job.decision or job.state}", "", *quote(job.summary or job.reason)]


def _branches(tree: BoundTree) -> Iterator[str]:
    for job in tree.jobs:
        for branch in job.work:
            done = branch in tree.merged
            how = "merged" if done else f"not merged: {code(f'service job merge {job.job_id}')}"
            yield f"- {code(branch)} {how}"

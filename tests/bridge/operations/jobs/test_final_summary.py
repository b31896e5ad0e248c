"""The final summary of a tree: from its coordinator's last job."""

from bridge.operations.jobs.jobs import Tree
from tests.bridge import seeds
from tests.bridge.seeds import ROOT
from workflows.model.rows import JobRecord
from workflows.model.settings import Bounds
from workflows.model.states import Continuation, JobState, TaskState

LEG, LAST = f"{ROOT}.1", f"{ROOT}.2"


def ended(job_id: str, at: float, summary: str, **fields: object) -> JobRecord:
    return seeds.job(job_id, **{"state": JobState.SUCCEEDED, "ended_at": at, "summary": summary} | fields)


def tree(*jobs: JobRecord, state: TaskState = TaskState.DONE) -> Tree:
    return Tree(seeds.task(state=state), jobs, Bounds())


def test_the_finalize_has_the_last_word_and_not_a_leg_that_ended_later() -> None:
    root, leg = ended(ROOT, 1.0, "I delegate"), ended(LEG, 9.0, "did it")
    last = ended(LAST, 3.0, "all is in", delegation_id=None, continuation=Continuation.FINALIZE)
    assert tree(root, leg, last).final_summary == "all is in"
    silent = last.model_copy(update={"summary": ""})
    assert tree(root, leg, silent).final_summary == "I delegate"


def test_a_recipe_ends_with_the_words_of_its_last_leg() -> None:
    root, leg = ended(ROOT, 1.0, ""), ended(LEG, 2.0, "built")
    assert tree(root, leg, ended(LAST, 3.0, "checked", delegation_id="check")).final_summary == "checked"


def test_a_tree_that_goes_on_has_none() -> None:
    assert tree(ended(ROOT, 1.0, "I delegate"), state=TaskState.OPEN).final_summary == ""
    assert tree(seeds.job(), state=TaskState.CANCELLED).final_summary == ""

"""The search attributes of jobs, trees and pipeline runs in the Temporal web UI."""

from typing import Any

from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes

from workflows.model.jobs import JobRun
from workflows.pipeline.plan import RunInput
from workflows.text.markdown import summary_line
from workflows.tree.state import TreeInput

REPO = SearchAttributeKey.for_keyword("SvcRepo")
AGENT = SearchAttributeKey.for_keyword("SvcAgent")
ACTION = SearchAttributeKey.for_keyword("SvcAction")
STATE = SearchAttributeKey.for_keyword("SvcState")
TASK = SearchAttributeKey.for_keyword("SvcTask")
ROOT = SearchAttributeKey.for_keyword("SvcRoot")
PARENT = SearchAttributeKey.for_keyword("SvcParent")
ATTENTION = SearchAttributeKey.for_keyword("SvcAttention")
PIPELINE = SearchAttributeKey.for_keyword("SvcPipeline")
PULL_REQUEST = SearchAttributeKey.for_int("SvcPullRequest")
ISSUE = SearchAttributeKey.for_int("SvcIssue")

KEYWORDS = (REPO, AGENT, ACTION, STATE, TASK, ROOT, PARENT, ATTENTION, PIPELINE)
NUMBERS = (PULL_REQUEST, ISSUE)
NAMES = {key.name: "Keyword" for key in KEYWORDS} | {key.name: "Int" for key in NUMBERS}
"""Every search attribute and its type, to register them at a server."""


def attributes(run: JobRun, state: str) -> TypedSearchAttributes:
    """Return the search attributes with which a job's workflow starts."""
    pairs: list[SearchAttributePair[Any]] = [
        SearchAttributePair(REPO, run.repo),
        SearchAttributePair(AGENT, run.assignment.worker.name),
        SearchAttributePair(ACTION, run.assignment.action.value),
        SearchAttributePair(STATE, state),
        SearchAttributePair(TASK, run.task_id),
        SearchAttributePair(ROOT, run.root_job_id),
    ]
    if run.parent_job_id:
        pairs.append(SearchAttributePair(PARENT, run.parent_job_id))
    pairs += _belongs_to(run.assignment.pull_request, run.assignment.issue)
    return TypedSearchAttributes(pairs)


def stage_attributes(tree: TreeInput, pipeline: str) -> TypedSearchAttributes:
    """Return the search attributes of a pipeline stage's tree."""
    return TypedSearchAttributes(
        [
            SearchAttributePair(REPO, tree.repo),
            SearchAttributePair(AGENT, tree.assignment.worker.name),
            SearchAttributePair(ACTION, tree.assignment.action.value),
            SearchAttributePair(STATE, "running"),
            SearchAttributePair(TASK, tree.task_id),
            SearchAttributePair(ROOT, tree.root_job_id),
            SearchAttributePair(PIPELINE, pipeline),
            *_belongs_to(tree.assignment.pull_request, tree.assignment.issue),
        ]
    )


def run_attributes(run: RunInput) -> TypedSearchAttributes:
    """Return the search attributes of a pipeline run, which is the root of all that it starts."""
    return TypedSearchAttributes(
        [
            SearchAttributePair(REPO, run.repo),
            SearchAttributePair(ACTION, "pipeline"),
            SearchAttributePair(STATE, "running"),
            SearchAttributePair(ROOT, run.run_id),
            SearchAttributePair(PIPELINE, run.pipeline),
            *_belongs_to(run.pull_request, run.issue),
        ]
    )


def _belongs_to(pull_request: int | None, issue: int | None) -> list[SearchAttributePair[Any]]:
    numbers = ((PULL_REQUEST, pull_request), (ISSUE, issue))
    return [SearchAttributePair(key, number) for key, number in numbers if number]


def run_summary(run: RunInput) -> str:
    """Describe a run on one line, for lists of workflows."""
    return summary_line(run.pipeline, f"run {run.run_id}, by {run.trigger}", run.repo)

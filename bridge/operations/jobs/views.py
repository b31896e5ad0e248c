"""The views of rows that HTTP, `--json` and the dashboard's pages show (ruling J6).

The views' class names appear in the OpenAPI document. `Tree` is that of `jobs`, without the fields that only pages
need.
"""

from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field

from bridge.operations.jobs.binding_view import Belonging
from bridge.operations.jobs.jobs import JobDetail
from bridge.operations.jobs.tree_list import TreeRow, TreeSummary
from workflows.model.rows import EventRecord, JobRecord, RoundRecord, TaskRecord
from workflows.model.settings import Bounds
from workflows.model.spend import Ledger


class RowView(BaseModel):
    """The base of views: a row's fields without those in `left_out`. Optional fields are always present."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)
    left_out: ClassVar[frozenset[str]] = frozenset({"revision"})

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        for name in cls.left_out & cls.model_fields.keys():
            cls.model_fields[name].exclude, cls.model_fields[name].default = True, None
        cls.model_rebuild(force=True)

    @classmethod
    def of(cls, row: object) -> Self:
        """Return the view of a row."""
        return cls.model_validate(row, from_attributes=True)


class JobSummary(RowView, JobRecord):
    """A job in a list."""

    next: str = Field(default="", description="What happens next, and the command that moves it.")


class ListedTree(JobSummary):
    """The first job of a tree in a list, and the tree."""

    tree: TreeSummary


class Round(RowView, RoundRecord):
    """A pause, with everything needed to end it (ruling F1)."""

    left_out = frozenset(
        {"revision", "root_job_id", "job_id", "task_id", "repo", "end", "closed_at", "closed", "said"},
    )


class Task(RowView, TaskRecord):
    """The unit of work a tree belongs to."""


class Event(RowView, EventRecord):
    """A lifecycle event (ruling B4)."""


class Tree(RowView):
    """A whole tree."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=False)

    task: Task
    jobs: list[JobSummary]
    bounds: Bounds
    spent: Ledger
    over: bool
    hosts: dict[str, str] = Field(default={}, description="The host of each job, by job id, where several share work.")


class WholeTree(Tree):
    """A tree, and the pull request or issue it belongs to."""

    belongs_to: Belonging


def listed_tree(row: TreeRow) -> ListedTree:
    """Return the view of a tree: its first job, with `tree` added."""
    return ListedTree.model_validate(row.root.model_dump() | {"tree": row.tree})


def detail(row: JobDetail) -> dict[str, Any]:
    """Return a job with the evidence of its last attempt, which is not shown over HTTP."""
    task = Task.of(row.task) if row.task else None
    evidence = {"task": task, "payload": row.payload, "diagnostics": row.diagnostics}
    more = {"live": row.live, "belongs_to": row.belongs_to, "host": row.host}
    return JobSummary.of(row.job).model_dump(mode="json") | evidence | more

"""Rows as every surface shows them: HTTP, `--json` and the dashboard's pages (ruling J6)."""

from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field

from bridge.operations.jobs.belongs_to import Belonging
from bridge.operations.jobs.jobs import JobDetail
from bridge.operations.jobs.tree_list import TreeRow, TreeSummary
from workflows.model.rows import EventRecord, JobRecord, RoundRecord, TaskRecord
from workflows.model.settings import Bounds
from workflows.model.spend import Ledger


class Shown(BaseModel):
    """A row as a response, without the fields in `left_out`; optional fields are always present."""

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


class JobSummary(Shown, JobRecord):
    """A job in a list."""

    next: str = Field(default="", description="What happens next, and the command that moves it.")


class ListedTree(JobSummary):
    """The first job of a tree in a list, and the tree."""

    tree: TreeSummary


class Round(Shown, RoundRecord):
    """A pause, with everything needed to end it (ruling F1)."""

    left_out = frozenset(
        {"revision", "root_job_id", "job_id", "task_id", "repo", "end", "closed_at", "closed", "said"},
    )


class Task(Shown, TaskRecord):
    """The unit of work a tree belongs to."""


class Event(Shown, EventRecord):
    """A lifecycle event (ruling B4)."""


class Tree(Shown):
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


def listed(row: TreeRow) -> ListedTree:
    """Return the view of a tree: its first job, with `tree` added."""
    return ListedTree.model_validate(row.root.model_dump() | {"tree": row.tree})


def detail(found: JobDetail) -> dict[str, Any]:
    """Return a job with the evidence of its last run, which stays on this machine."""
    task = Task.of(found.task) if found.task else None
    told = {"task": task, "payload": found.payload, "diagnostics": found.diagnostics}
    more = {"live": found.live, "belongs_to": found.belongs_to, "host": found.host}
    return JobSummary.of(found.job).model_dump(mode="json") | told | more

"""Values with an assignment, from plain fields: what a test says of a job, wherever the model keeps it."""

from collections.abc import Mapping
from typing import TypeVar

from workflows.model.jobs import JobRun
from workflows.model.workers import Assignment
from workflows.tree.state import TreeInput

Holder = TypeVar("Holder", JobRun, TreeInput)


def nested(fields: Mapping[str, object]) -> dict[str, object]:
    """The fields as a run or a tree's input takes them."""
    ours = {name: each for name, each in fields.items() if name in Assignment.model_fields}
    rest = {name: each for name, each in fields.items() if name not in ours}
    return rest | {"assignment": Assignment.model_validate(ours)}


def changed(value: Holder, **fields: object) -> Holder:
    """The same with these fields instead."""
    ours = {name: each for name, each in fields.items() if name in Assignment.model_fields}
    rest = {name: each for name, each in fields.items() if name not in ours}
    return value.model_copy(update=rest | {"assignment": value.assignment.model_copy(update=ours)})

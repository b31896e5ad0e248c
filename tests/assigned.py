"""Runs and tree inputs with an assignment, built from flat fields, so that tests don't depend on their nesting."""

from collections.abc import Mapping
from typing import TypeVar

from workflows.model.jobs import JobRun
from workflows.model.workers import Assignment
from workflows.tree.state import TreeInput

Holder = TypeVar("Holder", JobRun, TreeInput)


def nested(fields: Mapping[str, object]) -> dict[str, object]:
    """Return the fields nested as a run or a tree's input takes them."""
    ours = {name: field for name, field in fields.items() if name in Assignment.model_fields}
    rest = {name: field for name, field in fields.items() if name not in ours}
    return rest | {"assignment": Assignment.model_validate(ours)}


def changed(value: Holder, **fields: object) -> Holder:
    """Return a copy with these fields changed."""
    ours = {name: field for name, field in fields.items() if name in Assignment.model_fields}
    rest = {name: field for name, field in fields.items() if name not in ours}
    return value.model_copy(update=rest | {"assignment": value.assignment.model_copy(update=ours)})

"""The move tables as drawn in the README."""

import re
from collections.abc import Iterator, Mapping, Set
from enum import StrEnum

import pytest

from tests.written import ROOT, keep
from workflows.model.states import JOB_MOVES, TASK_MOVES, JobState, TaskState

README = ROOT / "workflows/tree/README.md"


def drawn(first: StrEnum, moves: Mapping[JobState, Set[JobState]] | Mapping[TaskState, Set[TaskState]]) -> str:
    """Return a mermaid state diagram of the moves."""
    return "\n".join(["```mermaid", "stateDiagram-v2", f"    [*] --> {first}", *_arrows(moves), "```"])


def _arrows(moves: Mapping[JobState, Set[JobState]] | Mapping[TaskState, Set[TaskState]]) -> Iterator[str]:
    for old, following in moves.items():
        yield from (f"    {old} --> {new}" for new in type(old) if new in following)


@pytest.mark.ruling("B2")
def test_the_readme_draws_the_tables_as_they_are() -> None:
    text = README.read_text()
    for name, picture in (("job", drawn(JobState.QUEUED, JOB_MOVES)), ("task", drawn(TaskState.OPEN, TASK_MOVES))):
        text, count = re.subn(
            rf"(<!-- {name} moves -->\n).*?(?=\n<!-- end -->)", rf"\1{picture}", text, flags=re.DOTALL
        )
        assert count == 1
    keep(README, text)


def test_the_readme_names_every_module_once_and_no_other() -> None:
    table = re.findall(r"^\| (`.*?) \|", README.read_text(), flags=re.MULTILINE)
    named = [name for row in table for name in re.findall(r"`(\w+)`", row)]
    assert sorted(named) == sorted(path.stem for path in README.parent.glob("*.py") if path.stem != "__init__")


@pytest.mark.ruling("B2")
def test_a_move_that_is_added_changes_the_picture() -> None:
    assert "    done --> open" not in drawn(TaskState.OPEN, TASK_MOVES)
    assert "    done --> open" in drawn(TaskState.OPEN, {**TASK_MOVES, TaskState.DONE: frozenset({TaskState.OPEN})})

"""The title and body of a pull request; the result looks as `service result render` prints it (rulings L9, L11)."""

from collections.abc import Iterator
from dataclasses import dataclass

from workflows.contract.models import ServiceResult
from workflows.contract.render import render_comment
from workflows.github.texts.parts import Part, code, comment, line, quote
from workflows.model.rows import JobRecord, TaskRecord
from workflows.model.states import TaskState

TITLE, RESULT_BYTES = 200, 52_000
CUT = "The rest does not fit here."
RUNNING = "The agents are still at work: what follows is how it stands so far, and is replaced at the end."


@dataclass(frozen=True, slots=True)
class Told:
    """The data of a pull request's text."""

    task: TaskRecord
    job: JobRecord
    """The published leg, or the root."""
    last: JobRecord | None
    """The job whose result is shown: the leg, or the tree's last one."""
    result: ServiceResult | None
    page: str = ""
    """The tree's page on the dashboard; empty without an address."""

    @property
    def running(self) -> bool:
        """True while the tree may still add commits to the pull request."""
        return not self.task.state.closed


def title(told: Told) -> str:
    """Return the task's title, with the leg's name for a leg's work."""
    leg = told.job.delegation_id
    return line(f"{told.task.title}: {leg}" if leg else told.task.title, TITLE) or told.task.task_id


def body(told: Told, fact_id: str) -> str:
    """Render the pull request's whole body; the last line is the fact's mark."""
    return comment(fact_id, _parts(told))


def _parts(told: Told) -> Iterator[Part]:
    if told.running:
        yield Part([RUNNING], 400, "")
    elif told.task.cut_short:
        yield Part([f"The task was {line(told.task.reason, 600)}"], 4_000, CUT)
    elif told.task.state is not TaskState.DONE:
        yield Part([f"The task ended {told.task.state}. {line(told.task.reason, 600)}".rstrip()], 4_000, CUT)
    yield Part(_result(told), RESULT_BYTES, CUT)
    yield Part([_footer(told)], 2_000, "")


def _result(told: Told) -> list[str]:
    """Render the job's result, or the job's row if it has no result."""
    if told.result is not None:
        return render_comment(told.result, RESULT_BYTES).split("\n")
    job = told.last
    if job is None or not (job.decision or job.summary or job.reason):
        return []
    return [f"### Result: {job.decision or job.state}", "", *quote(job.summary or job.reason)]


def _footer(told: Told) -> str:
    where = told.page or code(f"service job tree {told.task.root_job_id}")
    number = told.job.pull_request or told.job.issue
    asked = f", asked for on #{number}" if number else ""
    return f"The work of {code(told.job.job_id)}{asked}: {where}"

"""The texts of a pull request: title, body, and the gate's verdict as a check (rulings L9 to L11)."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass

from pydantic import JsonValue

from workflows.contract.models import Finding, ServiceResult
from workflows.github.merge_gate import GateState, GateVerdict
from workflows.github.texts.parts import Part, code, comment, line, result_lines
from workflows.model.rows import JobRecord, TaskRecord
from workflows.model.states import TaskState
from workflows.secrets.redact import redact, redact_value
from workflows.text.inert import visible

TITLE, RESULT_BYTES = 200, 52_000
CUT = "The rest does not fit here."
RUNNING = "The agents are still at work: what follows is how it stands so far, and is replaced at the end."
TITLES = {
    GateState.PASSING: "Ready to be merged",
    GateState.FAILING: "Not to be merged",
    GateState.PENDING: "Not decided yet",
    GateState.UNKNOWN: "Cannot be judged",
}
MOST_REASONS = 50
MESSAGE_CHARACTERS = 4_000
PATH_CHARACTERS = 500
LAST_LINE = 10_000_000
_PATH_KEYS = ("file", "path", "filename")
_LINE_KEYS = ("line", "lines", "start_line")
_TITLE_KEYS = ("title", "summary", "finding", "name")
_LINES = re.compile(r"\s*L?(\d{1,8})(?:\s*[-:–]\s*L?(\d{1,8}))?\s*")  # noqa: RUF001
_LEVELS = {
    "failure": ("critical", "blocker", "high", "error", "major"),
    "warning": ("medium", "moderate", "warning", "minor"),
}


@dataclass(frozen=True, slots=True)
class PullRequestData:
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
        return not self.task.state.is_closed


@dataclass(frozen=True, slots=True)
class Annotation:
    """A finding at a file and a line, in GitHub's form."""

    path: str
    start_line: int
    end_line: int
    annotation_level: str
    message: str
    title: str

    def as_json(self) -> dict[str, str | int]:
        """Return the annotation as JSON for GitHub's API."""
        return asdict(self)


def title(data: PullRequestData) -> str:
    """Return the task's title, with the leg's name for a leg's work."""
    leg = data.job.delegation_id
    return line(f"{data.task.title}: {leg}" if leg else data.task.title, TITLE) or data.task.task_id


def body(data: PullRequestData, fact_id: str) -> str:
    """Render the pull request's whole body; the last line is the fact's mark."""
    return comment(fact_id, _parts(data))


def check_title(verdict: GateVerdict) -> str:
    """Return the check's title: the verdict's state, and the number of objections."""
    count = len(verdict.reasons)
    return TITLES[verdict.state] + (f": {count} reason{'s' if count > 1 else ''}" if count else "")


def check_summary(verdict: GateVerdict) -> str:
    """Return the check's summary: one objection per line."""
    shown = [f"- {line(reason, 1_000)}" for reason in verdict.reasons[:MOST_REASONS]]
    more = len(verdict.reasons) - MOST_REASONS
    return "\n".join([*shown, *([f"- and {more} more"] if more > 0 else [])]) or "Nothing speaks against it."


def annotations(findings: Iterable[Finding]) -> Iterator[Annotation]:
    """Yield annotations for findings that name a file and a line."""
    for finding in findings:
        if isinstance(finding, dict) and (made := _annotation(finding)):
            yield made


def _parts(data: PullRequestData) -> Iterator[Part]:
    if data.running:
        yield Part([RUNNING])
    elif data.task.cut_short:
        yield Part([f"The task was {line(data.task.reason, 600)}"], 4_000, CUT)
    elif data.task.state is not TaskState.DONE:
        yield Part([f"The task ended {data.task.state}. {line(data.task.reason, 600)}".rstrip()], 4_000, CUT)
    yield Part(result_lines(data.result, data.last, RESULT_BYTES), RESULT_BYTES, CUT)
    yield Part([_footer(data)])


def _footer(data: PullRequestData) -> str:
    where = data.page or code(f"service job tree {data.task.root_job_id}")
    number = data.job.pull_request or data.job.issue
    asked = f", asked for on #{number}" if number else ""
    return f"The work of {code(data.job.job_id)}{asked}: {where}"


def _annotation(finding: dict[str, JsonValue]) -> Annotation | None:
    path = next((finding[key] for key in _PATH_KEYS if key in finding), None)
    first, last = _lines(next((finding[key] for key in _LINE_KEYS if key in finding), None))
    if not isinstance(path, str) or not _is_inside(path) or not first:
        return None
    if isinstance(end := finding.get("end_line"), int) and not isinstance(end, bool):
        last = end
    heading = next((finding[key] for key in _TITLE_KEYS if isinstance(finding.get(key), str)), "Finding")
    rest = {key: value for key, value in finding.items() if key not in (*_PATH_KEYS, *_LINE_KEYS, "end_line")}
    words = "\n".join(f"{key}: {value}" for key, value in _redact(rest).items())
    return Annotation(
        path=path.removeprefix("./"),
        start_line=first,
        end_line=min(max(first, last), LAST_LINE),
        annotation_level=_level(finding.get("severity")),
        message=visible(words)[:MESSAGE_CHARACTERS] or "see the finding",
        title=visible(redact(str(heading)))[:200],
    )


def _redact(value: dict[str, JsonValue]) -> dict[str, JsonValue]:
    redacted = redact_value(value)
    return redacted if isinstance(redacted, dict) else {}


def _lines(value: JsonValue) -> tuple[int, int]:
    """Parse a line number, or two with a dash between; (0, 0) for anything else."""
    if isinstance(value, int) and not isinstance(value, bool):
        return (value, value) if 0 < value <= LAST_LINE else (0, 0)
    if isinstance(value, list) and value:
        return _lines(value[0])
    match = _LINES.fullmatch(value) if isinstance(value, str) else None
    if match is None or not 0 < int(match[1]) <= LAST_LINE:
        return 0, 0
    return int(match[1]), int(match[2] or match[1])


def _is_inside(path: str) -> bool:
    """Return whether a path is inside the repository."""
    plain = path.isprintable() and 0 < len(path) <= PATH_CHARACTERS and not path.startswith(("/", "~"))
    return plain and ".." not in path.split("/") and "\\" not in path


def _level(severity: JsonValue) -> str:
    word = str(severity or "").strip().lower()
    return next((level for level, words in _LEVELS.items() if word in words), "notice")

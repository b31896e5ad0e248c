"""Rows reduced until any store accepts them, for those that were refused (ruling B6)."""

import math

from workflows.contract.size_limits import MOST_TOKENS
from workflows.model.rows import EventRecord, JobRecord, QuestionRecord, Records, RoundRecord, TaskRecord
from workflows.model.spend import Usage

MARK = "[reduced: the store refused it as it was] "


TEXT_LIMIT = 1_000


LABEL_LIMIT = 60


LARGEST = 2**31 - 1
"""Largest value of the smallest number column."""


def reduced(records: Records) -> Records:
    """Reduce all rows: texts plain and short, numbers within their columns' range."""
    return records.model_copy(
        update={
            "task": reduced_task(records.task) if records.task else None,
            "jobs": tuple(map(reduced_job, records.jobs)),
            "events": tuple(map(_event, records.events)),
            "rounds": tuple(map(_round, records.rounds)),
        }
    )


def reduced_job(job: JobRecord) -> JobRecord:
    """Reduce a job's row; its ids, state and times are the service's own, and are kept."""
    used = Usage(input_tokens=_count(job.usage.input_tokens), output_tokens=_count(job.usage.output_tokens))
    return job.model_copy(
        update={
            **{name: text(getattr(job, name)) for name in ("reason", "summary", "next")},
            **{name: _label(getattr(job, name)) for name in ("model", "effort", "phase", "head_sha")},
            "agent": label(job.agent),
            "branch": _plain(job.branch) if job.branch else None,
            "result_digest": _label(job.result_digest),
            "preflight_failed": text(job.preflight_failed) if job.preflight_failed else None,
            "pull_request": _number(job.pull_request),
            "issue": _number(job.issue),
            "usage": used,
            "cost_usd": job.cost_usd if math.isfinite(job.cost_usd) else 0.0,
        }
    )


def reduced_task(task: TaskRecord) -> TaskRecord:
    """Reduce a task's row."""
    return task.model_copy(update={name: text(getattr(task, name)) for name in ("title", "reason", "next")})


def _event(event: EventRecord) -> EventRecord:
    data = {label(name): _value(value) for name, value in list(event.data.items())[:LABEL_LIMIT]}
    return event.model_copy(update={"kind": label(event.kind), "message": text(event.message), "data": data})


def _value(value: str | float | bool | list[str] | None) -> str | int | float | bool | list[str] | None:
    match value:
        case str():
            return text(value)
        case list():
            return [text(each) for each in value[:LABEL_LIMIT]]
        case bool() | None:
            return value
        case int():
            return max(-MOST_TOKENS, min(value, MOST_TOKENS))
        case float():
            return value if math.isfinite(value) else None


def _round(record: RoundRecord) -> RoundRecord:
    return record.model_copy(
        update={
            "questions": tuple(map(_question, record.questions)),
            "failing": tuple(each.model_copy(update={"reason": text(each.reason)}) for each in record.failing),
            "commands": tuple(text(each) for each in record.commands),
            "closed": text(record.closed),
            "said": text(record.said),
        }
    )


def _question(question: QuestionRecord) -> QuestionRecord:
    return question.model_copy(
        update={
            "prompt": text(question.prompt),
            "choices": tuple(text(each) for each in question.choices),
            "answer": text(question.answer) if question.answer else question.answer,
        }
    )


def text(value: str) -> str:
    """Return printable ASCII, with a mark if the text was changed."""
    plain = _plain(value)[:TEXT_LIMIT]
    return value if plain == value else f"{MARK}{plain}"[:TEXT_LIMIT]


def label(value: str) -> str:
    """Return printable ASCII of a label's length."""
    return _plain(value)[:LABEL_LIMIT]


def _label(value: str | None) -> str | None:
    return None if value is None else label(value)


def _plain(value: str) -> str:
    return "".join(letter if letter.isascii() and letter.isprintable() else "?" for letter in value[: 2 * TEXT_LIMIT])


def _number(number: int | None) -> int | None:
    """Return a valid number of a pull request or an issue, or None."""
    return number if number and 0 < number <= LARGEST else None


def _count(number: int) -> int:
    return max(0, min(number, MOST_TOKENS))

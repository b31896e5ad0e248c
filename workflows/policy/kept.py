"""How much a tree keeps of what its jobs bring (ruling B6): its state travels as one payload.

Sets of delegations that wait, what people are asked, files, findings. What is kept where is the tree's own matter.
"""

from collections.abc import Collection, Iterable, Sequence

from pydantic import JsonValue

from workflows.contract.models import Decision
from workflows.contract.strings import BOUNDS, Bound, cut_to, fitted, size
from workflows.model.jobs import JobOutcome
from workflows.model.rounds import Asked
from workflows.model.texts import RefusedSet
from workflows.model.wire import Wire

KEPT_BYTES = 128 * 1024
"""What all sets that wait may take together: the largest of the usual width, or some 150 legs as they mostly are.

A pause, a block and an end find coordinators running, and each may come back with a set as large as the contract
allows. Where trees go on as new, sets travel twice, in the state and in what is next.
"""

ASKED_BYTES = 64 * 1024
"""What the open questions of a whole tree may take of its memory; what is asked beyond that is shown cut."""

FINDINGS_BYTES = 64_000
"""What the findings of one batch may take of the tree's memory, shared by the legs that have some."""

NEEDS_BYTES = 250
"""A batch may have so many legs that all of this takes as much again."""

BEFORE_BYTES = 4_000
"""What a leg is told of the findings of those that it depends on: every leg of a batch may depend on all before it."""

PROMPT_LIMIT = 2_000
SHORT_LIMIT = 200
MOST_CHOICES = 20
FILES_LIMIT = 40
FILES_BYTES = 1_000
_A_SET = frozenset({"delegations", "long_prompts", "agents", "templates"})
_NOT_HELD = frozenset({"notices", "findings", "touched_files", "human_questions", "conflict", "first"})


def fits(outcome: JobOutcome, waiting: Iterable[Wire]) -> bool:
    """Whether there is room for this result's set beside those that wait already."""
    return sum(map(_set_bytes, waiting)) + _set_bytes(outcome) <= KEPT_BYTES


def _set_bytes(what: Wire) -> int:
    dumped: JsonValue = what.model_dump(mode="json", include=set(_A_SET))
    return size(dumped)


def without_set(outcome: JobOutcome) -> JobOutcome:
    """A result whose set there is no room for."""
    return outcome.model_copy(update={"delegations": (), "long_prompts": {}, "agents": (), "templates": ()})


def as_shown(outcome: JobOutcome) -> RefusedSet:
    """A result's delegations as a prompt shows them."""
    long = {leg: prompt.digest for leg, prompt in outcome.long_prompts.items()}
    return RefusedSet(job_id=outcome.job_id, delegations=outcome.delegations, long_prompts=long)


def left_out(job_id: str, count: int) -> RefusedSet:
    """A set that was not kept: only how many there were is known of it."""
    return RefusedSet(job_id=job_id, delegations=(), left_out=count)


def held(outcome: JobOutcome, *, comes_back: bool) -> JobOutcome:
    """A result that waits. A set that comes back to its coordinator, and not out, needs no workers."""
    dropped = _NOT_HELD | {"agents"} if comes_back else _NOT_HELD
    said = {"summary": fitted("summary", outcome.summary), "reason": fitted("summary", outcome.reason)}
    return JobOutcome.model_validate(outcome.model_copy(update=said).model_dump(exclude=set(dropped)))


def asked(new: Asked, mine: Sequence[Asked], taken: Collection[str], all_open: Sequence[Asked]) -> Asked | None:
    """A question as it waits for its answer; None where the same leg asks it already (ruling F2).

    One whose id is taken is asked as `<leg>.<id>`. Choices beyond what a round lists are told, as far as there is
    room; an answer need not be one of them. In a tree that asks very much it is shortened.
    """
    more = new.question.choices[MOST_CHOICES:]
    rest = _cut(f"\n[and {len(more)} more choices: {'; '.join(more)}]") if more else ""
    choices = tuple(_cut(each) for each in new.question.choices[:MOST_CHOICES])
    shown = fitting = new.question.model_copy(update={"prompt": _cut(new.question.prompt) + rest, "choices": choices})
    if size([each.model_dump() for each in (*(each.question for each in all_open), shown)]) > ASKED_BYTES:
        short = f"{fitted('reason', shown.prompt)[:SHORT_LIMIT]} [cut: the whole question is in the job's result]"
        fitting = shown.model_copy(update={"prompt": short, "choices": ()})
    if any(each.leg == new.leg and each.question in (shown, fitting) for each in mine):
        return None
    names = [new.id, f"{new.leg}.{new.id}"] if new.leg else [new.id]
    names += [f"{names[-1]}.{n}" for n in range(2, len(taken) + 3)]
    return new.model_copy(update={"id": next(each for each in names if each not in taken), "question": fitting})


def _cut(text: str) -> str:
    return text if len(text) <= PROMPT_LIMIT else f"{text[:PROMPT_LIMIT]} [cut: {len(text):,} characters in all]"


def findings(outcome: JobOutcome, legs: int) -> str:
    """Each leg of a batch whose findings are kept has its share."""
    return cut_to(outcome.findings, Bound(BOUNDS["findings"].characters, FINDINGS_BYTES // max(16, legs)))


def needs(outcome: JobOutcome) -> str:
    """The beginning of what a leg that implements found or needs, where it could not go on."""
    gave_up = outcome.decision in (Decision.BLOCKED, Decision.FAILED)
    return cut_to(outcome.findings, Bound(NEEDS_BYTES, NEEDS_BYTES)) if gave_up else ""


def findings_beside(text: str, legs: int) -> str:
    """Each of the legs that one leg depends on has its share in what that is told."""
    return cut_to(text, Bound(BEFORE_BYTES // legs, BEFORE_BYTES // legs))


def files(outcome: JobOutcome) -> tuple[str, ...]:
    """As many as are shown, and as a history has room for."""
    names, left = [], FILES_BYTES
    for name in outcome.touched_files[:FILES_LIMIT]:
        left -= size(name) + 1
        if left < 0:
            break
        names.append(name)
    return tuple(names)

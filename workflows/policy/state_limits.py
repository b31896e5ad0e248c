"""Limits on what a tree keeps of its jobs' results (ruling B6): its state travels as one payload.

The limits apply to waiting sets of delegations, questions to people, files and findings. The tree decides where each is
kept.
"""

from collections.abc import Collection, Iterable, Sequence

from pydantic import JsonValue

from workflows.contract.models import Decision
from workflows.contract.size_limits import BOUNDS, Bound, cut_to, cut_to_bound, size
from workflows.model.event_kinds import EventKind
from workflows.model.jobs import JobOutcome
from workflows.model.long_texts import RefusedSet
from workflows.model.rounds import Asked
from workflows.model.wire import Wire
from workflows.text.markdown import cut
from workflows.text.plurals import quantity

KEPT_BYTES = 128 * 1024
"""The most bytes of all waiting sets: enough for the largest set of the usual width, or for some 150 typical legs.

At a pause, a block or an end, running coordinators may each return a set as large as the contract allows. When a tree
continues as new, sets travel twice: in the state and in the next commands.
"""

ASKED_BYTES = 64 * 1024
"""The most bytes of a tree's open questions; further questions are shortened."""

FINDINGS_BYTES = 64_000
"""The most bytes of one batch's findings, shared by the legs that have findings."""

NEEDS_BYTES = 250
"""The most bytes of what one implement leg needs. In the largest batch, all legs together need as much as
`FINDINGS_BYTES`.
"""

BEFORE_BYTES = 4_000
"""The most bytes of dependencies' findings in a leg's prompt: a leg may depend on all earlier legs of its batch."""

PROMPT_LIMIT = 2_000
SHORT_LIMIT = 200
MOST_CHOICES = 20
FILES_LIMIT = 40
FILES_BYTES = 1_000
_A_SET = frozenset({"delegations", "long_prompts", "agents", "templates"})
_NOT_HELD = frozenset({"notices", "findings", "touched_files", "human_questions", "conflict", "first"})


def fits(outcome: JobOutcome, waiting: Iterable[Wire]) -> bool:
    """Return whether a result's delegations fit into the tree's state beside the `waiting` sets."""
    return sum(map(_set_bytes, waiting)) + _set_bytes(outcome) <= KEPT_BYTES


def _set_bytes(what: Wire) -> int:
    dumped: JsonValue = what.model_dump(mode="json", include=set(_A_SET))
    return size(dumped)


def without_set(outcome: JobOutcome) -> JobOutcome:
    """Return a copy of the result without its delegations, for one that exceeds the limit."""
    return outcome.model_copy(update={"delegations": (), "long_prompts": {}, "agents": (), "templates": ()})


def refused_set(outcome: JobOutcome) -> RefusedSet:
    """Return a result's delegations as a refused set, with long prompts as digests."""
    long = {leg: prompt.digest for leg, prompt in outcome.long_prompts.items()}
    return RefusedSet(job_id=outcome.job_id, delegations=outcome.delegations, long_prompts=long)


def left_out(job_id: str, count: int) -> RefusedSet:
    """Return the record of a set that was not kept: only the number of its delegations."""
    return RefusedSet(job_id=job_id, delegations=(), left_out=count)


def reduce_held_result(outcome: JobOutcome, *, comes_back: bool) -> JobOutcome:
    """Return what the tree keeps of a result that it holds back. With `comes_back`, the coordinator runs again, so the
    agents are dropped too.
    """
    dropped = _NOT_HELD | {"agents"} if comes_back else _NOT_HELD
    texts = {"summary": cut_to_bound("summary", outcome.summary), "reason": cut_to_bound("summary", outcome.reason)}
    return JobOutcome.model_validate(outcome.model_copy(update=texts).model_dump(exclude=set(dropped)))


def waiting_question(
    new: Asked, mine: Sequence[Asked], taken: Collection[str], all_open: Sequence[Asked]
) -> Asked | None:
    """Return a question in the form in which it waits for an answer, or None if its leg already asks it (ruling F2).

    A question whose id is taken becomes `<leg>.<id>`. A round lists only so many choices; further ones are appended to
    the prompt as far as there is room, since other answers are valid too. In a tree with very many questions, the
    question is shortened.
    """
    more = new.question.choices[MOST_CHOICES:]
    rest = _cut_prompt(f"\n[and {quantity(len(more), 'more choice')}: {'; '.join(more)}]") if more else ""
    choices = tuple(_cut_prompt(each) for each in new.question.choices[:MOST_CHOICES])
    shown = fitting = new.question.model_copy(
        update={"prompt": _cut_prompt(new.question.prompt) + rest, "choices": choices}
    )
    if size([each.model_dump() for each in (*(each.question for each in all_open), shown)]) > ASKED_BYTES:
        short = f"{cut_to_bound('reason', shown.prompt)[:SHORT_LIMIT]} [cut: the whole question is in the job's result]"
        fitting = shown.model_copy(update={"prompt": short, "choices": ()})
    if any(each.leg == new.leg and each.question in (shown, fitting) for each in mine):
        return None
    names = [new.id, f"{new.leg}.{new.id}"] if new.leg else [new.id]
    names += [f"{names[-1]}.{n}" for n in range(2, len(taken) + 3)]
    return new.model_copy(update={"id": next(each for each in names if each not in taken), "question": fitting})


def _cut_prompt(text: str) -> str:
    return cut(text, PROMPT_LIMIT, f" [cut: {len(text):,} characters in all]")


def findings(outcome: JobOutcome, legs: int) -> str:
    """Return a leg's findings, cut to its share of the batch's limit."""
    return cut_to(outcome.findings, Bound(BOUNDS["findings"].characters, FINDINGS_BYTES // max(16, legs)))


def needs(outcome: JobOutcome) -> str:
    """Return what an implement leg needs: the beginning of its findings if it is blocked or failed, else ""."""
    gave_up = outcome.decision in (Decision.BLOCKED, Decision.FAILED)
    return cut_to(outcome.findings, Bound(NEEDS_BYTES, NEEDS_BYTES)) if gave_up else ""


def findings_beside(text: str, legs: int) -> str:
    """Return a dependency's findings, cut to their share of the dependent leg's prompt."""
    return cut_to(text, Bound(BEFORE_BYTES // legs, BEFORE_BYTES // legs))


def discarded_files(outcome: JobOutcome) -> tuple[str, ...]:
    """Return the files of edits that are discarded although the result names them, cut like `files` (I2)."""
    spoke = any(notice.kind == EventKind.EDITS_DISCARDED for notice in outcome.notices)
    return files(outcome) if spoke else ()


def files(outcome: JobOutcome) -> tuple[str, ...]:
    """Return the touched files, cut to a number and a size that the history can hold."""
    names, left = [], FILES_BYTES
    for name in outcome.touched_files[:FILES_LIMIT]:
        left -= size(name) + 1
        if left < 0:
            break
        names.append(name)
    return tuple(names)

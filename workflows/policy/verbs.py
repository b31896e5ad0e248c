"""The verbs of each kind of round, how they are typed, and the refusals of others (ruling F4)."""

from collections.abc import Sequence
from enum import StrEnum

from workflows.model.errors import Refusal, ResumeFault
from workflows.model.rounds import RoundKind
from workflows.policy.answers import clean, one_line, parse
from workflows.text.durations import DurationError, format_duration, parse_duration

TEXT_LIMIT = 16_000


LONGEST_PAUSE_SECONDS = 365 * 86_400.0


class Verb(StrEnum):
    """A person's verb in a round."""

    ANSWER = "answer"
    RETRY = "retry"
    CONTINUE = "continue"
    ABORT = "abort"
    EXTEND = "extend"


TAKES: dict[RoundKind, tuple[Verb, ...]] = {
    RoundKind.ASK: (Verb.ANSWER, Verb.EXTEND),
    RoundKind.FAILURE: (Verb.RETRY, Verb.CONTINUE, Verb.ABORT, Verb.EXTEND),
}


def commands(job_id: str, verbs: Sequence[Verb], question_ids: Sequence[str]) -> tuple[str, ...]:
    """Return the exact commands, one per verb."""
    return tuple(_command(job_id, verb, question_ids) for verb in verbs)


def _command(job_id: str, verb: Verb, question_ids: Sequence[str]) -> str:
    start = f"service resume {job_id} {verb}"
    match verb:
        case Verb.ANSWER:
            return " ".join([start, *(f'"{each}: <text>"' for each in question_ids)])
        case Verb.RETRY | Verb.CONTINUE | Verb.ABORT:
            return start  # instructions may follow
        case Verb.EXTEND:
            return f"{start} <duration>"


def refuse_verb(verb: str, text: str, kind: RoundKind, ids: Sequence[str], what: str) -> Refusal | None:
    """Return why this round refuses the verb or its text, or None. `what` names the round."""
    takes = TAKES[kind]
    if verb not in takes:
        named = ", ".join(f"`{each}`" for each in takes)
        message = f"{what} is {_ARTICLE[kind]} round: it takes {named}, not `{one_line(verb, 40)}`"
        return Refusal(ResumeFault.WRONG_VERB, message, {"kind": kind, "verbs": list(takes)})
    if refusal := refuse_length(text):
        return refusal
    if verb == Verb.ANSWER and not ((said := parse(text, ids)).by_id or said.guidance):
        return Refusal(ResumeFault.EMPTY_ANSWER, f"the answer is empty: {what} asks {', '.join(ids)}")
    return _refuse_duration(text) if verb == Verb.EXTEND else None


def refuse_length(text: str) -> Refusal | None:
    """Refuse a text that is too long. Surfaces check before they send: a longer text could not be transmitted."""
    if len(text) <= TEXT_LIMIT:
        return None
    message = f"{len(text):,} characters are more than the {TEXT_LIMIT:,} a resume takes"
    return Refusal(ResumeFault.TOO_LONG, f"{message}: put them where the agents can read them, and say where that is")


_ARTICLE = {RoundKind.ASK: "an ask", RoundKind.FAILURE: "a failure"}


def _refuse_duration(text: str) -> Refusal | None:
    try:
        seconds = duration(text)
    except DurationError as error:
        return Refusal(ResumeFault.BAD_DURATION, f"the duration {error}")
    if seconds <= 0:
        return Refusal(ResumeFault.BAD_DURATION, "the duration must be positive")
    if seconds > LONGEST_PAUSE_SECONDS:
        longest = format_duration(LONGEST_PAUSE_SECONDS)
        return Refusal(ResumeFault.BAD_DURATION, f"the duration must be at most {longest} at a time")
    return None


def duration(text: str) -> float:
    """Return the seconds of `extend <duration>` (ruling A10)."""
    return parse_duration(clean(text).strip())

"""A rule's refusal: a word for programs and a sentence for people. What a command fails with is in `errors`."""

from dataclasses import dataclass, field
from enum import StrEnum

from workflows.model.event_kinds import EventKind
from workflows.model.payload import Data


class ResumeFault(StrEnum):
    """Why a resume is refused."""

    UNKNOWN_JOB = "unknown_job"
    TREE_OVER = "tree_over"
    NO_OPEN_ROUND = "no_open_round"
    ROUND_OVER = "round_over"
    UNKNOWN_ROUND = "unknown_round"
    STALE_ROUND = "stale_round"
    AMBIGUOUS = "ambiguous"
    DUPLICATE = "duplicate"
    WRONG_VERB = "wrong_verb"
    UNREADABLE = "unreadable"
    EMPTY_ANSWER = "empty_answer"
    NOT_WHOLE = "not_whole"
    BAD_DURATION = "bad_duration"
    TOO_LONG = "too_long"
    NO_ROOM = "no_room"


@dataclass(frozen=True)
class Refusal:
    """Why a set of delegations is not dispatched, which is an event in the making, or a resume not taken."""

    kind: EventKind | ResumeFault
    message: str
    data: Data = field(default_factory=dict)

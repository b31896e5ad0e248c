"""A rule's refusal: a code for programs and a sentence for people. Errors of commands are in `errors`, which loads no
library.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from workflows.model.event_kinds import Data, EventKind


class ResumeFault(StrEnum):
    """The reason a resume is refused."""

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
    """The refusal of a set of delegations, which becomes an event, or of a resume."""

    kind: EventKind | ResumeFault
    message: str
    data: Data = field(default_factory=dict)

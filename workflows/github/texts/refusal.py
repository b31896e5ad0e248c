"""Why a command was not carried out, and what to write instead."""

from collections.abc import Sequence

from workflows.contract.lines import Lines
from workflows.github.texts.parts import Part, comment, item, line, to_copy

ANSWER_BYTES = 10_000


def refusal(fact_id: str, who: str, whys: Sequence[str], commands: Sequence[str] = ()) -> str:
    """A sentence for each command of the comment that was refused; `commands` are lines to copy, ours only."""
    lines: Lines = []
    for each in whys:
        lines += item("", each, 1_000)
    head = f"Not carried out, what {line(who, 60) or 'somebody'} wrote:"
    instead = ["Write instead, in a comment of its own:", "", *to_copy(map(as_comment, commands))] if commands else []
    return comment(fact_id, [Part([head, "", *lines], ANSWER_BYTES, ""), Part(instead, ANSWER_BYTES, "")])


def as_comment(command: str) -> str:
    """A line of the command line as it is written in a comment."""
    text = " ".join(command.split())
    return f"/{text}" if text.startswith("service resume ") else text

"""The reply to refused commands: the reasons, and what to write instead."""

from collections.abc import Sequence
from itertools import zip_longest

from workflows.github.texts.parts import Part, code, comment, item, line, to_copy
from workflows.text.markdown import Lines, cut

ANSWER_BYTES = 10_000
QUOTED = 159
"""Characters quoted of a refused line."""


def refusal(
    fact_id: str, who: str, whys: Sequence[str], commands: Sequence[str] = (), lines: Sequence[str] = ()
) -> str:
    """Render a sentence for each refused command, with its line; `commands` are corrected lines to copy."""
    said: Lines = []
    for about, why in zip_longest(lines, whys, fillvalue=""):
        said += item(f"{code(cut(about, QUOTED))}: " if about else "", why, 1_000)
    head = f"Not carried out, what {line(who, 60) or 'somebody'} wrote:"
    instead = ["Write instead, in a comment of its own:", "", *to_copy(map(as_comment, commands))] if commands else []
    return comment(fact_id, [Part([head, "", *said], ANSWER_BYTES, ""), Part(instead, ANSWER_BYTES, "")])


def as_comment(command: str) -> str:
    """Convert a command line to its form in a comment."""
    text = " ".join(command.split())
    return f"/{text}" if text.startswith("service resume ") else text

"""The lines of a tree of jobs, as `workflows.tree.details.nested` writes them, with the looks of their states."""

from cli.drawing.lines import FOLDED, Line, Piece
from cli.drawing.looks import OF_MARKS, Look, of_state

_BRANCHES = " │├└─"


def tree_line(line: str) -> Line:
    """Return one job's line, its shape and state coloured, folded if it does not fit."""
    rest = line.lstrip(_BRANCHES)
    stem = line[: len(line) - len(rest)]
    state = OF_MARKS.get(rest[:1], "")
    below = stem.replace("├─", "│ ").replace("└─", "  ") + "  " + FOLDED
    if not state:
        return Line(line, below=below)
    return Line(Piece(stem, Look.QUIET), Piece(rest[0], of_state(state)), *_marked(rest[1:], state), below=below)


def state_line(line: str, state: str) -> Line:
    """Return a line with the first occurrence of the state's word coloured."""
    return Line(*_marked(line, state), below="  " + FOLDED)


def _marked(text: str, state: str) -> tuple[Piece | str, ...]:
    before, word, after = text.partition(state)
    return before, Piece(word, of_state(state)), after

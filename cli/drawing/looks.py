"""One vocabulary: what each state and each part of a line looks like on a terminal.

Only the sixteen colours that a terminal's own theme defines, and of these only what can be read on light and on dark.
The shapes of states are those of the Temporal web UI and of GitHub comments (`workflows.tree.details.MARKS`).
"""

from enum import StrEnum


class Look(StrEnum):
    """A meaning; its value is the number of the terminal's sequence that shows it."""

    PLAIN = ""
    STRONG = "1"
    QUIET = "2"
    """Not yet, not any more, or beside the matter."""
    BAD = "31"
    GOOD = "32"
    ASKS = "1;35"
    """A person must say something."""
    GOES = "36"
    STUCK = "1;31"
    """Nothing goes on before somebody does something."""


END = "\x1b[0m"
_STATES = {
    **dict.fromkeys(
        ("succeeded", "done", "approved", "implemented", "confirmed", "ok", "yes", "works", "merged"), Look.GOOD
    ),
    **dict.fromkeys(("running", "starting", "open", "active", "being worked on", "unmerged"), Look.GOES),
    **dict.fromkeys(("queued", "pending", "skipped", "cancelled", "retired", "closed", "-"), Look.QUIET),
    **dict.fromkeys(("not made yet", "no commits", "dropped", "gone"), Look.QUIET),
    **dict.fromkeys(("failed", "error", "wrong", "no", "rejected", "changes_requested"), Look.BAD),
    **dict.fromkeys(("awaiting_human", "warning", "warn"), Look.ASKS),
    "blocked": Look.STUCK,
}
OF_MARKS = {"·": "queued", "▶": "running", "✔": "succeeded", "✘": "failed", "■": "blocked", "○": "cancelled"} | {
    "-": "skipped",
    "⏸": "awaiting_human",
}
"""The state that each shape stands for."""


def of_state(word: str) -> Look:
    """How a state looks; plain when it is none that is known."""
    return _STATES.get(word, Look.PLAIN)

"""One vocabulary of looks for states and parts of lines on a terminal.

Only the sixteen colours of the terminal's own theme are used, and of these only those readable on light and on dark.
The shapes of states are those of the Temporal web UI and of GitHub comments (`workflows.tree.details.MARKS`).
"""

from enum import StrEnum


class Look(StrEnum):
    """A meaning; its value is the number of the escape sequence that shows it."""

    PLAIN = ""
    STRONG = "1"
    QUIET = "2"
    """Secondary, no longer valid, or not yet."""
    BAD = "31"
    GOOD = "32"
    ASKS = "1;35"
    """A person must answer."""
    GOES = "36"
    STUCK = "1;31"
    """Nothing continues before somebody acts."""


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
"""The state of each shape."""


def of_state(word: str) -> Look:
    """Return the look of a state; plain if the state is unknown."""
    return _STATES.get(word, Look.PLAIN)

"""What of a comment was not carried out, as the row of the fact that answers it keeps it (rulings L4, L6)."""

from workflows.model.wire import Wire


class Refused(Wire):
    """A sentence for each command that was refused, and lines of ours that can be written in their place."""

    why: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    """The line that each sentence is about; none of a stranger's."""
    stranger: bool = False
    """The comment is of somebody who may command nothing."""
    instead: tuple[str, ...] = ()

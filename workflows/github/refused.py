"""The refused commands of a comment, as stored in the row of the answering fact (rulings L4, L6)."""

from workflows.model.wire import Wire


class Refused(Wire):
    """A sentence for each refused command, and command lines of ours to write instead."""

    why: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    """The line each sentence is about; empty for strangers."""
    stranger: bool = False
    """True if the author may command nothing."""
    instead: tuple[str, ...] = ()

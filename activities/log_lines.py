"""How our processes log: an event is one line, nothing in it is unseen, no secret is (rulings N6, N7)."""

import logging
import sys

from workflows.contract.visible import one_line


class OneLine(logging.Formatter):
    """A traceback too stands on the line of its event: what a stranger wrote can begin no line of the log."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        from activities.redaction.redacted import redacted

        return one_line(redacted(super().format(record)))


def where_nothing_is_set_up() -> None:
    """What is logged in a command, which sets nothing up, goes out the same way."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(OneLine("%(message)s"))


def to_stderr(form: str) -> None:
    """Log what is said from here on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneLine(form))
    logging.basicConfig(level=logging.INFO, handlers=[handler])

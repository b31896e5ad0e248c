"""Log format of the service's processes: one line per event, without invisible characters and secrets (rulings N6,
N7).
"""

import logging
import sys

from workflows.text.invisible import one_line


class OneLine(logging.Formatter):
    """A formatter that puts a traceback on its event's line too: foreign text can't begin a line of the log."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        from activities.redaction.redacted import redacted

        return one_line(redacted(super().format(record)))


def where_nothing_is_set_up() -> None:
    """Format log records in this way in commands, which configure no logging."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(OneLine("%(message)s"))


def to_stderr(form: str) -> None:
    """Log to standard error from here on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneLine(form))
    logging.basicConfig(level=logging.INFO, handlers=[handler])

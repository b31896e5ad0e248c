"""The processes of the service: the format of their logs, without invisible characters and secrets; and their exit
(rulings N6, N7).
"""

import logging
import os
import sys
from collections.abc import Callable
from typing import NoReturn

from workflows.model.errors import ServiceError
from workflows.text.invisible import one_line, visible


class OneLine(logging.Formatter):
    """A formatter that puts a traceback on its event's line too: foreign text can't begin a line of the log."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        from activities.redaction.redact import redacted

        return one_line(redacted(super().format(record)))


def where_nothing_is_set_up() -> None:
    """Set up the format of log records in a process that has configured no logging, such as a command."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(OneLine("%(message)s"))


def to_stderr(form: str) -> None:
    """Log to standard error from here on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneLine(form))
    logging.basicConfig(level=logging.INFO, handlers=[handler])


def run(serve: Callable[[], None], *, quiet: tuple[str, ...] = ()) -> NoReturn:
    """Run `serve`, then leave by `os._exit`: Temporal's threads can crash an orderly exit.

    Print an error that people can mend as the `service` command does, with its exit code. `quiet`: loggers that log
    warnings only.
    """
    from activities.redaction.redact import redacted  # commands log too, and start without it

    to_stderr("%(asctime)s %(levelname)s %(name)s %(message)s")
    for name in quiet:
        logging.getLogger(name).setLevel(logging.WARNING)
    code = 0
    try:
        serve()
    except ServiceError as error:
        sys.stderr.write(
            visible(f"error: {redacted(error.message)}\n" + (f"try: {error.hint}\n" if error.hint else ""))
        )
        code = error.exit_code
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)

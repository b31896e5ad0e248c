"""A process that the daemon runs: its log and its exit."""

import logging
import os
import sys
from collections.abc import Callable
from typing import NoReturn

from activities import log_lines
from activities.redaction.redacted import redacted
from workflows.model.errors import ServiceError
from workflows.text.invisible import visible


def run(serve: Callable[[], None], *, quiet: tuple[str, ...] = ()) -> NoReturn:
    """Run `serve`, then leave by `os._exit`: Temporal's threads can crash an orderly exit.

    Print an error that people can mend as the `service` command does, with its exit code. `quiet`: loggers that log
    warnings only.
    """
    log_lines.to_stderr("%(asctime)s %(levelname)s %(name)s %(message)s")
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

"""The processes of the service: their imports; the format of their logs, without invisible characters and secrets; and
their exit (rulings N6, N7).
"""

import gc
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn, TypeVar

from workflows.model.errors import ServiceError
from workflows.text.invisible import one_line, visible

if TYPE_CHECKING:
    import asyncio

log = logging.getLogger(__name__)
T = TypeVar("T")


class OneLine(logging.Formatter):
    """A formatter that writes an event and its traceback on one line, so that foreign text can't begin a line of the
    log.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        from activities.redaction.redact import redact_text

        return one_line(redact_text(super().format(record)))


class StoreOutage(logging.Filter):
    """A filter that logs only one line for each outage of the store."""

    def __init__(self) -> None:
        super().__init__()
        self.is_told = False

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to log the record: the first one about an outage, without its traceback."""
        error = _outage(record)
        if error is None:
            return True
        if self.is_told:
            return False
        self.is_told = True
        why, _, _ = str(error).partition("\n")
        record.msg, record.args = "the store cannot be reached; no more is logged until it is: %s", (why,)
        record.exc_info, record.exc_text = None, None
        return True

    def is_over(self) -> None:
        """Log the end of an outage whose beginning was logged. Called for each new connection to the store."""
        if self.is_told:
            self.is_told = False
            log.info("the store is reached again")


def _outage(record: logging.LogRecord) -> BaseException | None:
    """Return the error if the record is about an unreachable store."""
    library = sys.modules.get("sqlalchemy.exc")  # without it there is no such error
    arguments = record.args if isinstance(record.args, tuple) else ()
    causes = [each for each in arguments if isinstance(each, BaseException)]
    causes += [record.exc_info[1]] if record.exc_info and record.exc_info[1] else []
    while library is not None and causes:
        error = causes.pop()
        if isinstance(error, library.DBAPIError) and (error.connection_invalidated or error.statement is None):
            cause: BaseException = error.orig or error
            return cause
        causes += [each for each in (error.__cause__, error.__context__) if each is not None]
    return None


STORE_OUTAGE = StoreOutage()


def where_nothing_is_set_up() -> None:
    """Set up the format of log records in a process that has configured no logging, such as a command."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(OneLine("%(message)s"))


def to_stderr(form: str) -> None:
    """Log to standard error from here on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneLine(form))
    handler.addFilter(STORE_OUTAGE)
    logging.basicConfig(level=logging.INFO, handlers=[handler])


@contextmanager
def importing() -> Iterator[None]:
    """Turn the garbage collector off while a process imports its modules: it would take a sixth of the time and free
    almost nothing. Loaded objects are frozen: it doesn't traverse them, and forks share their memory.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def run(serve: Callable[[], None], *, quiet: tuple[str, ...] = ()) -> NoReturn:
    """Run `serve`, then leave by `os._exit`: Temporal's threads can crash an orderly exit.

    Print a `ServiceError` as the `service` command does, and exit with its code. `quiet`: loggers that log warnings
    only.
    """
    from activities.redaction.redact import redact_text  # commands log too, and start without it

    to_stderr("%(asctime)s %(levelname)s %(name)s %(message)s")
    for name in quiet:
        logging.getLogger(name).setLevel(logging.WARNING)
    code = 0
    try:
        serve()
    except ServiceError as error:
        sys.stderr.write(
            visible(f"error: {redact_text(error.message)}\n" + (f"try: {error.hint}\n" if error.hint else ""))
        )
        code = error.exit_code
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def watch_task(task: "asyncio.Task[T]", *, ends: bool = True) -> "asyncio.Task[T]":
    """Log the failure of a background task, and end this process so that the daemon restarts it. With `ends=False` only
    log: the daemon's exit would end the processes it supervises.
    """

    def log_failure(task: "asyncio.Task[T]") -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a background task has failed%s", ": this process restarts" if ends else "", exc_info=error)
            if ends:
                signal.raise_signal(signal.SIGTERM)

    task.add_done_callback(log_failure)
    return task

"""Classification of failed writes: those that can never succeed, and those that only have to wait (ruling B6).

A database that is locked, unreachable or full accepts the row later. A value that doesn't fit its column is never
accepted.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, StatementError
from temporalio.exceptions import ApplicationError

from workflows.contract.size_limits import cut_to_bound
from workflows.model.errors import NotFoundError
from workflows.temporal.calls import REFUSED

T = TypeVar("T")


def for_good(error: BaseException) -> bool:
    """Return whether another try would fail again."""
    match error:
        case DataError() | IntegrityError():
            return True
        case DBAPIError():
            return False
        case StatementError() | UnicodeError() | OverflowError() | NotFoundError():
            return True
        case _:
            return False


def write_or_refuse(write: Callable[[], T]) -> T:
    """Run `write`; raise a permanent database error as non-retryable."""
    with refusing():
        return write()


@contextmanager
def refusing() -> Iterator[None]:
    """Re-raise permanent database errors inside the `with` block as non-retryable. Other errors pass unchanged."""
    try:
        yield
    except Exception as error:
        if not for_good(error):
            raise
        # The database's own message, without the rows.
        cause = error.orig if isinstance(error, StatementError) and error.orig else error
        message = next((line for line in str(cause).splitlines() if line.strip()), type(cause).__name__)
        why = cut_to_bound("reason", f"{type(cause).__name__}: {message}")
        raise ApplicationError(why, type=REFUSED, non_retryable=True) from None

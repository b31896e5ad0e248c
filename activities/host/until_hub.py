"""An attempt's wait for the hub of its repository, during which it holds no slot and no process (ruling Q3)."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from activities.git.hub import HubAwayError, HubRefusesError
from workflows.temporal.calls import WAITS

FIRST, LONGEST = 5.0, 300.0
"""The first and the longest wait; each is twice the one before."""


@contextmanager
def until_hub(tell: Callable[[str, str], None], *, done: bool = False) -> Iterator[None]:
    """Have Temporal call the attempt again later if the hub is away; report the reason, and the command to type.

    An attempt that is `done` also waits if the hub refuses its commits, until a person has corrected that.
    """
    try:
        yield
    except (HubAwayError, HubRefusesError) as fault:
        if isinstance(fault, HubRefusesError) and not done:
            raise
        what = "has ended, and waits until its work can be pushed" if done else "waits for the hub of its repository"
        tell(f"{what}: {fault.message}", f"it goes on by itself; to see why not: {fault.hint}")
        raise ApplicationError(
            f"{what}: {fault.message}",
            type=WAITS,
            next_retry_delay=timedelta(seconds=min(FIRST * 2.0 ** (activity.info().attempt - 1), LONGEST)),
            category=ApplicationErrorCategory.BENIGN,
        ) from None

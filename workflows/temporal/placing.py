"""The choice of a host for an attempt. An activity makes it, so that it is in the history (ruling Q4)."""

from datetime import timedelta

from temporalio import activity, workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError

from workflows.model.wire import Wire
from workflows.temporal.calls import WAITS, Local, OfferKey, is_of_type

PLACE_RETRIES = RetryPolicy(initial_interval=timedelta(seconds=2), maximum_interval=timedelta(seconds=30))
"""How the server retries the choice of a host: a long wait adds nothing to the history."""

LOCAL_PLACE: Local = {
    "start_to_close_timeout": timedelta(seconds=60),
    "retry_policy": RetryPolicy(maximum_interval=timedelta(seconds=30), non_retryable_error_types=[WAITS]),
}


class Unplaced(Wire):
    """An attempt of a job or a stage that needs a host (ruling Q4)."""

    offer: OfferKey
    root: str
    """The id of the tree or of the pipeline's run."""
    repo: str
    runtime: str
    agent: str = ""
    """The registered agent, whose labels count too; empty for other workers."""
    stage: str = ""
    """The id of a shell stage; empty for a job."""
    host: str
    """The host of the attempt's tree or run."""
    require: tuple[str, ...] = ()
    prefer: tuple[str, ...] = ()
    near: str = ""
    """The host to prefer among those that have equally many of the preferred labels."""


@activity.defn
def place(attempt: Unplaced) -> str:
    """Choose a host, and record the choice; fail with the error type `WAITS` while no host can run the attempt."""
    raise NotImplementedError


async def choose_host(needs: Unplaced) -> str:
    """Wait until a host can run the attempt, and return the chosen one."""
    job = needs.offer.job_id
    try:
        return await workflow.execute_local_activity(place, needs, summary=f"choose a host for {job}", **LOCAL_PLACE)
    except (ActivityError, ApplicationError) as error:
        if not is_of_type(error, WAITS):
            raise
    return await workflow.execute_activity(
        place,
        needs,
        start_to_close_timeout=LOCAL_PLACE["start_to_close_timeout"],
        retry_policy=PLACE_RETRIES,
        summary=f"wait for a host that can run {job}",
    )

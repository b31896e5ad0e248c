"""The activity that writes a tree's rows."""

from collections.abc import Callable

from temporalio import activity

from activities.jobs.context import Context
from activities.store import claims, jobs, trees
from workflows.calls import Claim, Offer
from workflows.tree.records import Records, Written
from workflows.tree.state import TreeState


class Recorder:
    """Writes what trees decide; called again, it changes nothing."""

    def __init__(self, context: Context) -> None:
        self._context = context

    @property
    def activities(self) -> list[Callable[..., object]]:
        return [self.record, self.take_back, self.keep_tree]

    @activity.defn(name="record")
    def record(self, records: Records) -> Written:
        """Write one step of a tree."""
        info = activity.info()
        return jobs.write_as(self._context.store, records, info.workflow_id or "", info.workflow_run_id or "")

    @activity.defn(name="take_back")
    def take_back(self, offer: Offer) -> Claim:
        """Have an offer back that its host has not begun."""
        offered = claims.Offered(offer.job_id, offer.attempt, offer.offer)
        return Claim(begun_at=claims.take_back(self._context.store, offered))

    @activity.defn(name="keep_tree")
    def keep_tree(self, state: TreeState) -> None:
        """Keep a closed tree's state."""
        trees.keep(self._context.store, state, self._context.host, activity.info().workflow_run_id or "")

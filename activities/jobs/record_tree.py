"""Activities of trees: write rows, take offers back, keep a closed tree's state, handle other workflows."""

from collections.abc import Callable

from temporalio import activity
from temporalio.service import RPCError, RPCStatusCode

from activities.host.context import Context
from activities.jobs.why_closed import how_it_closed
from activities.stations.hook import reach
from activities.store import attempt_rows, claim_rows, job_rows, moves, permanent_errors, tree_rows
from workflows.model.rows import Records, Written
from workflows.temporal.calls import CallOff, OfferClaim, OfferKey
from workflows.temporal.moving import GivenUp, GiveUp
from workflows.temporal.writes import writers
from workflows.tree.state import TreeMemory


@activity.defn(name="request_cancel")
async def request_cancel() -> None:
    """Cancel the calling workflow through the server, so that it can close as cancelled."""
    info = activity.info()
    await activity.client().get_workflow_handle(info.workflow_id or "", run_id=info.workflow_run_id).cancel()


@activity.defn(name="is_child")
async def is_child(workflow_id: str) -> bool:
    """Return whether a workflow is a child of the calling one, or of its run before a reset."""
    try:
        described = await activity.client().get_workflow_handle(workflow_id).describe()
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return False
        raise
    return described.parent_id == activity.info().workflow_id


class TreeRecorder:
    """Writes a tree's decisions to the store, idempotently."""

    def __init__(self, context: Context) -> None:
        self._context = context

    @property
    def activities(self) -> list[Callable[..., object]]:
        decisions = (self.take_back, self.call_off, self.give_up, self.keep_tree)
        return [*writers(self.record), request_cancel, is_child, how_it_closed, *decisions]

    def record(self, records: Records) -> Written:
        """Write one step of a tree."""
        info = activity.info()
        store, root, run_id = self._context.store, info.workflow_id or "", info.workflow_run_id or ""
        reach("rows to be written", root, info.activity_type)
        written = permanent_errors.write_or_refuse(lambda: job_rows.write_as(store, records, root, run_id))
        reach("rows written", root, info.activity_type)
        return written

    @activity.defn(name="take_back")
    def take_back(self, offer: OfferKey) -> OfferClaim:
        """Take back an offer, unless its host has begun it."""
        offered = attempt_rows.Offered(offer.job_id, offer.attempt, offer.offer)
        begun_at = permanent_errors.write_or_refuse(lambda: claim_rows.take_back(self._context.store, offered))
        reach("offer taken back", offer.job_id)
        return OfferClaim(begun_at=begun_at)

    @activity.defn(name="call_off")
    def call_off(self, order: CallOff) -> OfferClaim:
        """Take back an offer; if its host has begun it, order the host to stop it."""
        offered, store = (
            attempt_rows.Offered(order.offer.job_id, order.offer.attempt, order.offer.offer),
            self._context.store,
        )
        begun_at = permanent_errors.write_or_refuse(lambda: claim_rows.call_off(store, offered, order.why))
        reach("job called off", offered.job_id)
        return OfferClaim(begun_at=begun_at)

    @activity.defn(name="give_up")
    def give_up(self, order: GiveUp) -> GivenUp:
        """Decide whether an attempt moves from its lost or drained host."""
        offered = attempt_rows.Offered(order.offer.job_id, order.offer.attempt, order.offer.offer)
        store = self._context.store
        outcome = permanent_errors.write_or_refuse(lambda: moves.give_up(store, offered, order.move))
        reach("offer moved", offered.job_id)
        return GivenUp(outcome=outcome)

    @activity.defn(name="keep_tree")
    def keep_tree(self, state: TreeMemory) -> None:
        """Store a closed tree's state."""
        context, run_id = self._context, activity.info().workflow_run_id or ""
        permanent_errors.write_or_refuse(lambda: tree_rows.keep(context.store, state, context.host, run_id))
        reach("state kept", state.root_id)

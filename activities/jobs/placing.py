"""The activity that chooses a host for an attempt from the fleet's table; its answer is in the history (ruling Q4)."""

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from activities.host.context import Context
from activities.stations.hook import reach
from activities.store import permanent_errors, placements, run_rows
from activities.store.placements import Asks
from workflows.policy import placement
from workflows.policy.placement import RUNTIME, Need, Placement
from workflows.temporal.calls import WAITS
from workflows.temporal.messages import HeldUp
from workflows.temporal.placing import Unplaced

TRIES = 5
"""The most tries to place an attempt if other attempts take the chosen host first. The last try is valid even then."""


class Placer:
    """Places attempts by the table in the store."""

    def __init__(self, context: Context) -> None:
        self._context = context

    @activity.defn(name="place")
    def place(self, attempt: Unplaced) -> str:
        """Choose a host, and record the choice; fail while no host can run the attempt."""
        answer = permanent_errors.write_or_refuse(lambda: self.choose(attempt))
        info = activity.info()
        shown = [] if info.is_local else list(info.heartbeat_details)
        if answer.host:
            reach("host chosen", attempt.offer.job_id)
            if shown:
                self._show(attempt, f"waits for a free slot on {answer.host}", "")
            return answer.host
        if not info.is_local:
            if shown != [answer.reason]:
                self._show(attempt, answer.reason, answer.next)
            activity.heartbeat(answer.reason)  # for the next try
        raise ApplicationError(answer.reason, type=WAITS, category=ApplicationErrorCategory.BENIGN)

    def choose(self, attempt: Unplaced) -> Placement:
        """Choose among a few suitable hosts of the current table, and record the choice in the table."""
        store, offer = self._context.store, attempt.offer
        seed = f"{offer.job_id} {offer.attempt}"
        need = need_of(attempt, placements.asks(store, attempt.repo, attempt.agent))
        for left in reversed(range(TRIES)):
            drawn = placements.draw(store, need, seed)
            answer = placement.place(need, [each.host for each in drawn.hosts], seed, drawn.others)
            chosen = next((each for each in drawn.hosts if each.host.name == answer.host), None)
            if chosen is None:
                if drawn.whole:
                    break
            elif placements.take(store, chosen, offer.job_id, offer.attempt, need, at_any_rate=not left):
                break
        return answer

    def _show(self, attempt: Unplaced, reason: str, what_next: str) -> None:
        """Show people what the attempt waits for. A job's tree gets a report; a shell stage's row is written here."""
        context, offer = self._context, attempt.offer
        if attempt.stage:
            words = f"{reason}: {what_next}" if what_next else reason
            run_rows.stage_waits(context.store, attempt.root, attempt.stage, words)
            return
        held = HeldUp(job_id=offer.job_id, attempt=offer.attempt, offer=offer.offer, reason=reason, next=what_next)
        context.reports.waits_for_host(attempt.root, held)


def need_of(attempt: Unplaced, asks: Asks) -> Need:
    """Return what an attempt needs, with the labels that its repository and its agent ask for."""
    return Need(
        attempt.repo,
        require=asks.require | {*attempt.require, f"{RUNTIME}{attempt.runtime}"},
        prefer=asks.prefer | {*attempt.prefer},
        near=attempt.near,
        only=None if asks.remote else asks.checkouts or frozenset({attempt.host}),
    )

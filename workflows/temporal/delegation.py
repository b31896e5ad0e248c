"""The workflow of a delegation, which runs one attempt of a child job."""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from workflows.model.jobs import JobOutcome
    from workflows.policy.decisions import ended_as
    from workflows.policy.moving import Move
    from workflows.temporal import attempts, close_status, search
    from workflows.temporal.messages import DelegationInput
    from workflows.temporal.messages_by_hand import between_ours, takes_anything
    from workflows.temporal.moving import Moves
    from workflows.tree.details import plain

REASON_LIMIT = 300


@workflow.defn(name="Delegation")
class DelegatedAttempt:
    """Runs one attempt on its host and reports the outcome; the tree decides what follows."""

    def __init__(self) -> None:
        self._tells = False
        self._moves = Moves()

    @workflow.signal(description="its tree was reset: tell the new run how this ends")
    @takes_anything
    def take_up(self, *_: object) -> None:
        self._tells = True

    @workflow.signal(description="its host is lost or drained: offer the job elsewhere")
    @between_ours(Move)
    def move(self, order: Move) -> None:
        self._moves.order(order)

    @workflow.run
    async def run(self, start: DelegationInput) -> JobOutcome:
        work = start.summary or f"{start.run.assignment.worker.name} {start.run.assignment.action}"
        workflow.set_current_details(f"**{plain(work)}**\n\n**running**, attempt {start.run.attempt}")
        outcome = await attempts.run_job(start.run, start.host, work, self._moves, placed=start.placed)
        state, why = ended_as(outcome), outcome.reason or outcome.summary
        workflow.upsert_search_attributes([search.STATE.value_set(state.value)])
        parts = (f"**{plain(work)}**", f"**{state}** {outcome.reason}", outcome.summary)
        workflow.set_current_details("\n\n".join(part for part in parts if part))
        ended = "done" if outcome.moved else state  # the job goes on: Temporal's lists show no failed workflow
        return await close_status.close(outcome, ended, why[:REASON_LIMIT], tells=self._tells)

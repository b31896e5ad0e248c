"""The workflow of one delegation: one attempt of a child job."""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from workflows import calls, closing, search
    from workflows.messages import DelegationInput
    from workflows.policy.outcome import ended_as
    from workflows.tree.jobs import JobOutcome

REASON_LIMIT = 300


@workflow.defn
class Delegation:
    """Runs on its host and reports its outcome; the tree decides what that means."""

    @workflow.run
    async def run(self, start: DelegationInput) -> JobOutcome:
        workflow.set_current_details(
            f"**{start.run.action}** by `{start.run.worker.name}`, attempt {start.run.attempt}"
        )
        outcome = await calls.attempt(start.run, start.host)
        state, why = ended_as(outcome), outcome.reason or outcome.summary
        workflow.upsert_search_attributes([search.STATE.value_set(state.value)])
        workflow.set_current_details(f"**{state}** {outcome.reason}\n\n{outcome.summary}")
        return await closing.close(outcome, state, why[:REASON_LIMIT])

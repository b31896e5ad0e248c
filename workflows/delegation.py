"""The workflow of one delegation: one attempt of a child job."""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from workflows import calls, search
    from workflows.messages import DelegationInput
    from workflows.tree.jobs import JobOutcome


@workflow.defn
class Delegation:
    """Runs on its host and reports its outcome; the tree decides what that means."""

    @workflow.run
    async def run(self, start: DelegationInput) -> JobOutcome:
        workflow.set_current_details(
            f"**{start.run.action}** by `{start.run.worker.name}`, attempt {start.run.attempt}"
        )
        outcome = await calls.attempt(start.run, start.host)
        workflow.upsert_search_attributes([search.STATE.value_set(outcome.state.value)])
        workflow.set_current_details(f"**{outcome.state}** {outcome.reason}\n\n{outcome.summary}")
        return outcome

"""The workflow that a schedule starts. It starts the pipeline's run, or records why it cannot."""

from temporalio import workflow
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError

with workflow.unsafe.imports_passed_through():
    from workflows.model import ids
    from workflows.pipeline.plan import RunState
    from workflows.pipeline.rows import skipped_rows
    from workflows.temporal import pipeline_calls, search
    from workflows.temporal.calls import TASK_TIMEOUT
    from workflows.temporal.pipeline_calls import Firing
    from workflows.temporal.pipeline_run import PipelineRun


@workflow.defn
class PipelineFiring:
    """One firing of a schedule: it starts a run of the current definition, or records a skipped run with the reason."""

    @workflow.run
    async def run(self, firing: Firing) -> str:
        fresh = ids.run_id(workflow.time_ns() // 1_000_000, workflow.random().getrandbits(32))
        planned = await pipeline_calls.plan(firing.model_copy(update={"run_id": fresh}))
        start = planned.start
        if planned.refused:
            await pipeline_calls.write(skipped_rows(start, planned.refused, RunState.FAILED))
            return f"{fresh} failed: {planned.refused}"
        try:
            await workflow.start_child_workflow(
                PipelineRun.run,
                start,
                id=ids.workflow_id(start.pipeline),
                task_timeout=TASK_TIMEOUT,
                id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
                parent_close_policy=workflow.ParentClosePolicy.ABANDON,
                static_summary=search.run_summary(start),
                search_attributes=search.run_attributes(start),
            )
        except WorkflowAlreadyStartedError:
            why = "an earlier run of the pipeline was still active when its schedule fired"
            await pipeline_calls.write(skipped_rows(start, why))
            return f"{fresh} skipped: {why}"
        return f"{fresh} started"

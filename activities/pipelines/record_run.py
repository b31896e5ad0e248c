"""The activities that plan scheduled pipeline runs, and write the rows of pipeline runs."""

import json
import time
from functools import partial

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.host import checkouts
from activities.host.context import Context
from activities.pipelines.plan import plan
from activities.stations.hook import reach
from activities.store import job_rows, permanent_errors, run_rows, tree_rows
from activities.store.artifacts import Artifacts
from activities.store.registry import pipeline_rows
from activities.store.run_rows import RunStart
from workflows.model import ids
from workflows.model.errors import ServiceError
from workflows.model.long_texts import Text
from workflows.model.states import TaskState
from workflows.pipeline.definition import StageKind
from workflows.pipeline.plan import OPEN_RUNS, RunInput, StageState, Trigger
from workflows.pipeline.rows import RunRecord, RunRecords, StageRecord
from workflows.temporal.pipeline_calls import Firing, PlannedRun


def definition_and_payload(artifacts: Artifacts, start: RunInput) -> RunStart:
    """Return the definition and payload that a run was started with, in full."""
    return RunStart(artifacts.read(start.definition), json.loads(artifacts.read(start.payload)))


class RunRecorder:
    """The activities that write decisions of runs. Idempotent."""

    def __init__(self, context: Context) -> None:
        self._context = context

    @activity.defn(name="record_run")
    def record_run(self, records: RunRecords) -> None:
        """Write one step of a run."""
        context, start = self._context, records.begins
        with permanent_errors.refusing():
            if start is not None and records.run.state in OPEN_RUNS:
                self._first_of_its_id(start)
            run_rows.write(context.store, records, definition_and_payload(context.artifacts, start) if start else None)
            for tree in records.trees:
                tree_rows.begin(context.store, tree, records.host)
            for stage in records.stages:
                self._supersede(records.run, stage)
            reach("run recorded", records.run.run_id, records.run.state.value)

    def _supersede(self, run: RunRecord, stage: StageRecord) -> None:
        """Dismiss the blocked tree of a stage's previous attempt, because the new attempt's tree replaces it."""
        if stage.kind is not StageKind.AGENT or stage.state is not StageState.RUNNING or stage.attempt < 2:
            return
        earlier = ids.tree_id(run.run_id, run.started_at, stage.number, stage.attempt - 1)
        task = job_rows.task_of(self._context.store, earlier)
        if task is not None and task.state is TaskState.BLOCKED:
            job_rows.dismiss(
                self._context.store, task, f"attempt {stage.attempt} of stage {stage.stage_id} of {run.run_id}"
            )

    @activity.defn(name="plan_run")
    def plan_run(self, firing: Firing) -> PlannedRun:
        """Plan the run that a schedule starts; a refusal is a result too."""
        context, name = self._context, firing.pipeline
        try:
            start = plan(
                context.store,
                context.settings,
                context.artifacts,
                name=name,
                run_id=firing.run_id,
                trigger=Trigger.SCHEDULE,
                payload={},
                here=partial(checkouts.fresh, context),
            )
        except ServiceError as error:
            return PlannedRun(start=self._never(firing), refused=error.message)
        return PlannedRun(start=start)

    def _first_of_its_id(self, start: RunInput) -> None:
        """Refuse a second run with the same id: a caller may repeat its request just after the first run ended."""
        known = run_rows.get(self._context.store, start.run_id)
        if known is None or known.record.state in OPEN_RUNS or known.record.started_at == start.created_at:
            return
        raise ApplicationError(f"{start.run_id} is over: {known.record.state}", type="RunIsOver", non_retryable=True)

    def _never(self, firing: Firing) -> RunInput:
        known = pipeline_rows.get(self._context.store, firing.pipeline)
        return RunInput(
            run_id=firing.run_id,
            pipeline=firing.pipeline,
            repo=(known.repo if known else None) or "",
            host=self._context.host,
            trigger=Trigger.SCHEDULE,
            created_at=time.time(),
            definition=self._context.artifacts.text(known.definition) if known else Text(inline=""),
            stages=(),
        )

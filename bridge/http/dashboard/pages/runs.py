"""The pages of pipeline runs: all of them, and one with its stages, output, and cancellation (ruling M4)."""

import re
from collections.abc import Mapping

from bridge.http.dashboard.frame.page import Done, FormAction, PageRequest, PageView, SubmittedForm, success
from bridge.http.dashboard.parts import lists
from bridge.http.dashboard.parts.lists import Filters
from bridge.operations.pipelines import definitions, runs
from bridge.operations.pipelines.runs import RunFilter, RunView, StageOutput, StageView
from bridge.operations.service import Service
from workflows.model.errors import NotFoundError
from workflows.pipeline.definition import StageKind
from workflows.pipeline.plan import OPEN_RUNS, RunState, StageState
from workflows.policy.decisions import decision_label

FILTERS = ("pipeline", "state", "repo")


def _every(service: Service, asked: PageRequest) -> Mapping[str, object]:
    def find(filters: Filters) -> Mapping[str, object]:
        wanted = RunFilter(
            pipeline=filters["pipeline"] or None,
            repo=filters["repo"] or None,
            state=filters["state"] or None,
            limit=lists.PER_PAGE,
            cursor=asked.query.get("cursor"),
        )
        page = runs.list_runs(service, wanted)
        return {"runs": page.runs, "ways": lists.ways(asked, filters, page.next_cursor)}

    return {
        "title": "Runs",
        "states": list(RunState),
        "names": [pipeline.name for pipeline in definitions.every(service)],
        **lists.searched(asked, FILTERS, find, has_text=False),
    }


def _one(service: Service, asked: PageRequest) -> Mapping[str, object]:
    run = runs.show_run(service, asked.params["run_id"])
    chosen = _choose_stage(run, asked.query.get("stage", ""))
    attempt = asked.query.get("attempt", "")
    number = int(attempt) if re.fullmatch("[0-9]{1,9}", attempt) else None
    return {
        "title": f"Run of {run.pipeline}",
        "run": run,
        "goes_on": run.state in OPEN_RUNS,
        "waits": [stage.job_id for stage in run.stages if stage.job_id and stage.state is StageState.RUNNING],
        "definition": runs.definition_of_run(service, run.id),
        "registered": any(pipeline.name == run.pipeline for pipeline in definitions.every(service)),
        "decided": decision_label,
        "log": chosen and _output_of(service, run, chosen, number),
        "chosen": chosen,
    }


def _choose_stage(run: RunView, wanted: str) -> StageView | None:
    """Return the stage whose output is shown: the requested one, else a running one, the one that halted the run, or
    the last.
    """
    begun = [stage for stage in run.stages if stage.kind is StageKind.SHELL and stage.attempt]
    by_worth = (
        [stage for stage in begun if stage.id == wanted],
        [stage for stage in begun if stage.state is StageState.RUNNING],
        [stage for stage in begun if stage.id == run.halt_stage],
        begun[-1:],
    )
    return next((stages[0] for stages in by_worth if stages), None)


def _output_of(service: Service, run: RunView, stage: StageView, attempt: int | None) -> StageOutput | None:
    if attempt in (None, stage.attempt) and (so_far := runs.stage_so_far(service, run.id, stage.id)):
        return so_far
    try:
        return runs.stage_output(service, run.id, stage.id, attempt)
    except NotFoundError:  # it has not ended, and runs on another host
        return None


async def _cancel(service: Service, form: SubmittedForm) -> Done:
    await definitions.cancel(service, form.asked.params["run_id"], actor=form.actor_in_words)
    return success("The run is being ended: its commands and agents are stopped.")


PAGES = (
    PageView("/runs", "runs.html", _every),
    PageView("/runs/{run_id}", "run.html", _one, fresh_seconds=1.0),
)
ACTIONS = (FormAction("/runs/{run_id}/cancel", _cancel),)

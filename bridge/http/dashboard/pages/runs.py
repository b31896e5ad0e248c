"""The pages of pipeline runs: all of them, and one with its stages, output, and cancellation (ruling M4)."""

import re
from collections.abc import Mapping

from bridge.http.dashboard.frame.page import Action, Asked, Done, Form, Page, done
from bridge.http.dashboard.parts import lists
from bridge.operations.pipelines import definitions, runs
from bridge.operations.pipelines.runs import RunFilter, RunView, StageOutput, StageView
from bridge.operations.service import Service
from workflows.model.errors import NotFoundError
from workflows.pipeline.definition import StageKind
from workflows.pipeline.plan import OPEN_RUNS, RunState, StageState
from workflows.policy.decisions import decision_label

FIELDS = ("pipeline", "repo", "state")


def _every(service: Service, asked: Asked) -> Mapping[str, object]:
    said = lists.wanted(asked, *FIELDS)
    wanted = RunFilter(
        pipeline=said["pipeline"] or None,
        repo=said["repo"] or None,
        state=said["state"] or None,
        limit=lists.PER_PAGE,
        cursor=asked.query.get("cursor"),
    )
    page = runs.list_runs(service, wanted)
    return {
        "title": "Runs",
        "said": said,
        "narrowed": any(said.values()),
        "runs": page.runs,
        "states": list(RunState),
        "names": [each.name for each in definitions.every(service)],
        "ways": lists.ways(asked, said, page.next_cursor),
    }


def _one(service: Service, asked: Asked) -> Mapping[str, object]:
    run = runs.show_run(service, asked.params["run_id"])
    chosen = _chosen(run, asked.query.get("stage", ""))
    attempt = asked.query.get("attempt", "")
    return {
        "title": f"Run of {run.pipeline}",
        "run": run,
        "goes_on": run.state in OPEN_RUNS,
        "waits": [stage.job_id for stage in run.stages if stage.job_id and stage.state is StageState.RUNNING],
        "definition": runs.definition_of_run(service, run.id),
        "registered": any(each.name == run.pipeline for each in definitions.every(service)),
        "decided": decision_label,
        "log": chosen and _printed(service, run, chosen, int(attempt) if re.fullmatch("[0-9]{1,9}", attempt) else None),
        "chosen": chosen,
    }


def _chosen(run: RunView, wanted: str) -> StageView | None:
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
    return next((found[0] for found in by_worth if found), None)


def _printed(service: Service, run: RunView, stage: StageView, attempt: int | None) -> StageOutput | None:
    if attempt in (None, stage.attempt) and (so_far := runs.stage_so_far(service, run.id, stage.id)):
        return so_far
    try:
        return runs.stage_output(service, run.id, stage.id, attempt)
    except NotFoundError:  # it has not ended, and runs on another host
        return None


async def _cancel(service: Service, form: Form) -> Done:
    await definitions.cancel(service, form.asked.params["run_id"], actor=form.signed)
    return done("The run is being ended: its commands and agents are stopped.")


PAGES = (
    Page("/runs", "runs.html", _every),
    Page("/runs/{run_id}", "run.html", _one, fresh_seconds=1.0),
)
ACTIONS = (Action("/runs/{run_id}/cancel", _cancel),)

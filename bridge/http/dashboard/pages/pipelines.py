"""The pages of pipelines: definition, schedule, runs, and starting one (ruling M4)."""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from activities.store.registry.pipeline_rows import Pipeline
from bridge.http.dashboard.frame.page import Done, FormAction, PageRequest, PageView, SubmittedForm, success
from bridge.http.dashboard.parts import firings, lists
from bridge.http.dashboard.parts.payload import EMPTY_ROWS, keys_read, payload_of
from bridge.operations.pipelines import definitions, runs
from bridge.operations.pipelines.runs import RunFilter
from bridge.operations.service import Service
from workflows.pipeline.definition import Definition, ShellStage
from workflows.pipeline.plan import Trigger
from workflows.pipeline.read import read
from workflows.pipeline.schedule_words import in_words
from workflows.pipeline.syntax import Format

RECENT = 20


@lru_cache(256)
def _definition(text: str, format_: Format) -> Definition:
    """Parse a definition, cached because lists read them repeatedly."""
    return read(text, format_)


def _schedule(pipeline: Pipeline) -> str:
    schedule = _definition(pipeline.definition, pipeline.format).schedule if pipeline.scheduled else None
    return in_words(schedule) if schedule else ""


def _next(service: Service, known: Sequence[Pipeline]) -> firings.Firings | None:
    """Return the next firings of the scheduled pipelines; None if Temporal does not answer."""
    return firings.next_firings(
        service, [pipeline.name for pipeline in known if pipeline.scheduled and pipeline.enabled]
    )


def _every(service: Service, asked: PageRequest) -> Mapping[str, object]:
    known = definitions.every(service)
    return {
        "title": "Pipelines",
        "pipelines": known,
        "schedules": {pipeline.name: _schedule(pipeline) for pipeline in known},
        "next": _next(service, known),
        "latest": runs.latest(service),
    }


def _one(service: Service, asked: PageRequest) -> Mapping[str, object]:
    pipeline = definitions.get(service, asked.params["name"])
    definition = _definition(pipeline.definition, pipeline.format)
    wanted = RunFilter(pipeline=pipeline.name, limit=RECENT, cursor=asked.query.get("cursor"))
    page = runs.list_runs(service, wanted)
    keys = keys_read(definition)
    return {
        "title": pipeline.name,
        "pipeline": pipeline,
        "definition": definition,
        "commands": {stage.id: _does(stage) for stage in definition.stages if isinstance(stage, ShellStage)},
        "schedule": _schedule(pipeline),
        "next": _next(service, [pipeline]),
        "keys": keys + ("",) * EMPTY_ROWS,
        "reads": keys,
        "runs": page.runs,
        "active": runs.active(service, pipeline.name),
        "ways": lists.ways(asked, {}, page.next_cursor),
    }


def _does(stage: ShellStage) -> str:
    """Return a stage's command as written in the definition, without `sh -c`."""
    return stage.command[-1] if stage.command[:2] == ("sh", "-c") else " ".join(stage.command)


async def _run(service: Service, form: SubmittedForm) -> Done:
    name = form.asked.params["name"]
    run_id = await definitions.run(
        service,
        name,
        payload_of(form),
        Trigger.DASHBOARD,
        pull_request=lists.number(form.text("pr", "").strip(), "a pull request"),
        issue=lists.number(form.text("issue", "").strip(), "an issue"),
    )
    return success(f"{name} runs: {run_id}.", f"/ui/runs/{run_id}")


async def _enable(service: Service, form: SubmittedForm) -> Done:
    name = form.asked.params["name"]
    await definitions.enable(service, name)
    firings.forget(service, name)
    return success(f"{name} is enabled.")


async def _disable(service: Service, form: SubmittedForm) -> Done:
    name = form.asked.params["name"]
    await definitions.disable(service, name)
    firings.forget(service, name)
    return success(f"{name} is disabled: no run begins any more.")


PAGES = (
    PageView("/pipelines", "pipelines.html", _every),
    PageView("/pipelines/{name}", "pipeline.html", _one),
)
ACTIONS = (
    FormAction("/pipelines/{name}/run", _run),
    FormAction("/pipelines/{name}/enable", _enable),
    FormAction("/pipelines/{name}/disable", _disable),
)

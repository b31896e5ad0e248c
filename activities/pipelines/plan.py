"""Planning of a run: a pipeline's name becomes all that the run needs, frozen (rulings J4, K1)."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sqlalchemy import Engine

from activities.host.base import BoundWork, bound, resolve_base
from activities.settings.model import Settings
from activities.store.artifacts import Artifacts
from activities.store.registry import agent_rows, pipeline_rows, repo_rows
from activities.store.registry.pipeline_rows import Pipeline
from activities.store.registry.repo_rows import Repo
from workflows.model.errors import NotFoundError, RefusedError, ServiceError, with_nearest
from workflows.model.workers import Assignment, Worker
from workflows.pipeline.definition import AgentStage, Definition, ShellStage
from workflows.pipeline.payload import canonical_payload
from workflows.pipeline.plan import PlannedAgent, PlannedShell, RunInput, Trigger
from workflows.pipeline.read import read
from workflows.pipeline.stages import Script, stage_prompt
from workflows.policy.assignments import ephemeral_worker
from workflows.policy.preflight import NO_AGENT, PROGRAM_NAMES, RUNTIME_NAMES
from workflows.text.durations import parse_duration


class NotRunnableError(RefusedError):
    """The pipeline may not run: it is disabled, has no repository, or a gate of its stages refuses.

    Its HTTP status is not 409, which means that a run is active and a later request can succeed (spec: bridge
    statuses).
    """

    code = "pipeline_not_runnable"
    status = 400


def plan(
    store: Engine,
    settings: Settings,
    artifacts: Artifacts,
    *,
    name: str,
    run_id: str,
    trigger: Trigger,
    payload: Mapping[str, str],
    pull_request: int | None = None,
    issue: int | None = None,
    base: str | None = None,
    timeout: str | None = None,
    token: str | None = None,
    describe: Callable[[BoundWork], BoundWork] = lambda binding: binding,
    here: Callable[[Repo], Repo] = lambda repo: repo,
) -> RunInput:
    """Plan a run from the pipeline, its agents and the heads of its pull requests as they are now.

    A given timeout overrides those of the file. The token is sent only to GitHub, to fetch those heads. `describe` adds
    the title and text of each. `here` returns the repository with its path on this host, fetched.
    """
    pipeline = get(store, name)
    definition = read(pipeline.definition, pipeline.format)
    if timeout is not None:
        stages = tuple(each.model_copy(update={"timeout": timeout}) for each in definition.stages)
        definition = definition.model_copy(update={"stages": stages})
    repo = here(_repo(store, pipeline))
    bindings = _bindings(repo, settings, (pull_request, issue), definition, token)
    bindings = {numbers: describe(each) for numbers, each in bindings.items()}
    ours = _with_base(bindings[pull_request, issue], repo, settings.host, base or definition.base)
    return RunInput(
        run_id=run_id,
        pipeline=name,
        repo=repo.name,
        host=repo.host,
        placed=settings.is_fleet,
        base=ours.base,
        pull_request=ours.pull_request,
        issue=ours.issue,
        github=ours.github,
        trigger=trigger,
        created_at=time.time(),
        definition=artifacts.text(pipeline.definition),
        payload=artifacts.text(canonical_payload(payload)),
        settings=settings.snapshot(),
        stages=tuple(
            _bind(_stage(store, settings, artifacts, definition, stage, payload), bindings[_numbers(stage)], ours)
            for stage in definition.stages
        ),
    )


Numbers = tuple[int | None, int | None]
"""Numbers of a pull request and of an issue."""


def _numbers(stage: ShellStage | AgentStage) -> Numbers:
    return (None, None) if isinstance(stage, ShellStage) else (stage.pull_request, stage.issue)


def _bindings(
    repo: Repo, settings: Settings, run: Numbers, definition: Definition, token: str | None
) -> dict[Numbers, BoundWork]:
    """Resolve the bindings of the run and its stages, each once, so that stages of one pull request see one head."""
    wanted: Iterable[Numbers] = dict.fromkeys((run, *map(_numbers, definition.stages)))
    here, web = settings.host, settings.github.web
    try:
        return {numbers: bound(repo, here, *numbers, token, web) for numbers in wanted}
    except RefusedError as refused:
        raise NotRunnableError(refused.message, refused.hint) from None


def _bind(stage: PlannedShell | PlannedAgent, own: BoundWork, runs: BoundWork) -> PlannedShell | PlannedAgent:
    """Bind an agent's stage to the pull request or issue in its file, else to the run's (ruling L1)."""
    if isinstance(stage, PlannedShell):
        return stage
    what = runs if own == BoundWork() else own
    return stage.model_copy(update={"assignment": stage.assignment.model_copy(update=what.fields)})


def get(store: Engine, name: str) -> Pipeline:
    """Return a pipeline; raise NotFoundError with the known names if it is missing."""
    pipeline = pipeline_rows.get(store, name)
    if pipeline is None:
        names = [each.name for each in pipeline_rows.every(store)]
        missing = NotFoundError(f"no pipeline {name}; known: {', '.join(names) or 'none'}", "service pipeline add FILE")
        raise with_nearest(missing, name, names)
    return pipeline


def _repo(store: Engine, pipeline: Pipeline) -> Repo:
    if not pipeline.enabled:
        raise NotRunnableError(f"the pipeline {pipeline.name} is disabled", f"service pipeline enable {pipeline.name}")
    if pipeline.repo is None:
        hint = "add `repo: OWNER/NAME` to its file, then: service pipeline add FILE"
        raise NotRunnableError(f"the pipeline {pipeline.name} has no repo", hint)
    repo = repo_rows.get(store, pipeline.repo)
    if repo is None:
        hint = f"service repo add {pipeline.repo} PATH"
        raise NotRunnableError(f"the pipeline {pipeline.name} has no repo: {pipeline.repo} is not registered", hint)
    return repo


def _with_base(run: BoundWork, repo: Repo, here: str, ref: str | None) -> BoundWork:
    """Resolve one base commit for all stages, so that later commits don't matter (ruling O1).

    Without a `ref`, a fault of the checkout doesn't prevent the run: its stages report it.
    """
    try:
        return resolve_base(run, repo, here, ref)
    except ServiceError:
        if ref is None:
            return run
        raise


def _stage(
    store: Engine,
    settings: Settings,
    artifacts: Artifacts,
    definition: Definition,
    stage: ShellStage | AgentStage,
    payload: Mapping[str, str],
) -> PlannedShell | PlannedAgent:
    timeout = parse_duration(stage.timeout) if stage.timeout else None
    if isinstance(stage, ShellStage):
        script = artifacts.text(Script(command=stage.command, env=stage.env).model_dump_json())
        return PlannedShell(**_common_fields(stage), timeout_seconds=timeout, script=script)
    return PlannedAgent(
        **_common_fields(stage),
        assignment=Assignment(
            worker=artifacts.travelling(_worker(store, settings, definition, stage)),
            action=stage.action,
            prompt=artifacts.text(stage_prompt(stage.prompt, payload)),
            model=stage.model,
            effort=stage.effort,
            timeout_seconds=timeout,
        ),
        success=stage.success,
    )


def _common_fields(stage: ShellStage | AgentStage) -> dict[str, Any]:
    """Return the fields that a plan takes from its stage unchanged."""
    return stage.model_dump(include={"id", "needs", "retry", "require", "prefer"})


def _worker(store: Engine, settings: Settings, definition: Definition, stage: AgentStage) -> Worker:
    """Return a stage's worker. Make the checks of `service agent ask`; a fault prevents the run (as in ruling C6)."""
    where = f"stage {stage.id} of {definition.name}"
    if stage.ephemeral is not None:
        template = stage.ephemeral.template
        if template and template not in agent_rows.templates(store):
            raise NotRunnableError(f"{where}: no registered agent {template} with a template", "service agent list")
        if stage.ephemeral.runtime not in settings.configured_runtimes:
            raise NotRunnableError(f"{where}: {stage.ephemeral.runtime} is not configured here", "service config show")
        return ephemeral_worker(stage.id, stage.ephemeral)
    name = stage.agent or ""
    agent = agent_rows.get(store, name)
    if agent is None:
        if name in {*RUNTIME_NAMES, *PROGRAM_NAMES, *settings.runtimes}:
            raise NotRunnableError(f"{where}: {name} {NO_AGENT}", f"service agent add NAME --runtime {name}")
        raise NotRunnableError(f"{where}: no agent {name}", f"service agent add {name} --runtime RUNTIME")
    try:
        agent.check(stage.action, definition.repo or "")
    except RefusedError as refused:
        raise NotRunnableError(f"{where}: {refused.message}", refused.hint) from None
    return agent.worker

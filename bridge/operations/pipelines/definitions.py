"""Registering pipelines and running them (rulings K1, J4).

Modules that use Temporal are imported inside functions: its client takes longer to import than a list takes to show.
"""

import asyncio
import secrets
import time
from collections.abc import Mapping
from pathlib import Path

from activities.pipelines import plan
from activities.store import run_rows
from activities.store.registry import pipeline_rows
from activities.store.registry.pipeline_rows import Pipeline
from bridge.operations.jobs import binding_view
from bridge.operations.pipelines import runs
from bridge.operations.pipelines.runs import ActiveRunError
from bridge.operations.registry.arguments import limit
from bridge.operations.service import Service
from workflows.model import ids
from workflows.model.errors import NotFoundError, RefusedError, UsageError
from workflows.model.ids import RANDOM_BITS
from workflows.pipeline.definition import Definition
from workflows.pipeline.payload import check_payload
from workflows.pipeline.plan import OPEN_RUNS, Trigger
from workflows.pipeline.read import read
from workflows.pipeline.syntax import Format

FORMATS = {".yaml": Format.YAML, ".yml": Format.YAML, ".toml": Format.TOML}


async def add(service: Service, text: str, format_: Format) -> Pipeline:
    """Register or replace a definition, with its schedule. Active runs keep the definition they began with."""
    from bridge.operations.pipelines import workflows

    text = service.kept.hide(text)
    definition = read(text, format_)
    old = pipeline_rows.get(service.store, definition.name)
    if definition.schedule or (old and old.scheduled):
        await workflows.put(service, definition)
    return pipeline_rows.put(service.store, definition, text, format_)


def required_labels(pipeline: Pipeline) -> frozenset[str]:
    """Return the labels that stages of a pipeline require of their hosts (ruling Q4)."""
    return frozenset(label for stage in definition_of(pipeline).stages for label in stage.require)


async def schedule_again(service: Service) -> None:
    """Write all schedules again, sealed with the current key; paused ones stay paused."""
    from bridge.operations.pipelines import workflows

    for pipeline in pipeline_rows.every(service.store):
        if pipeline.scheduled:
            await workflows.put(service, definition_of(pipeline).model_copy(update={"enabled": pipeline.enabled}))


def read_file(path: Path) -> tuple[str, Format]:
    """Return a definition's text, and its language by the file's name."""
    if path.is_dir():
        raise UsageError(f"{path.absolute()} is a folder", "service pipeline add FILE")
    format_ = FORMATS.get(path.suffix.lower())
    if format_ is None:
        raise UsageError(f"{path} is neither .yaml, .yml nor .toml", "rename it after what it is written in")
    try:
        return path.read_bytes().decode("utf-8-sig"), format_
    except OSError as error:
        raise NotFoundError(f"{path} cannot be read: {error.strerror}", "service pipeline add FILE") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text: byte {error.start + 1} does not fit") from None


def every(service: Service) -> list[Pipeline]:
    """Return the registered pipelines by name."""
    return pipeline_rows.every(service.store)


def get(service: Service, name: str) -> Pipeline:
    """Return one pipeline; raise an error with the known names if it is not registered."""
    return plan.get(service.store, name)


def definition_of(pipeline: Pipeline) -> Definition:
    """Parse a pipeline's file."""
    return read(pipeline.definition, pipeline.format)


async def run(
    service: Service,
    name: str,
    payload: Mapping[str, str] | None = None,
    trigger: Trigger = Trigger.CLI,
    run_id: str | None = None,
    *,
    pull_request: int | None = None,
    issue: int | None = None,
    base: str | None = None,
    stage_timeout: str | None = None,
    token: str | None = None,
) -> str:
    """Start a run completely, or on an error record nothing; return its id.

    With a `run_id`, repeated calls start one run. The token is used only to fetch the heads of pull requests from
    GitHub.
    """
    from bridge.operations.pipelines import workflows

    get(service, name)
    checked = check_payload({} if payload is None else payload)
    limit(stage_timeout)
    if run_id is not None and not ids.is_run_id(run_id):
        raise UsageError(f"{run_id!r} is not a run id; they look like prun-0c5e2v7q9a3k")
    if run_id is not None and run_rows.get(service.store, run_id) is not None:
        return run_id
    start = await asyncio.to_thread(  # it waits for git and GitHub
        plan.plan,
        service.store,
        service.settings,
        service.artifacts,
        name=name,
        run_id=run_id or new_run_id(),
        trigger=trigger,
        payload=checked,
        pull_request=pull_request,
        issue=issue,
        base=base,
        timeout=stage_timeout,
        token=token,
        describe=binding_view.describing(service, token),
    )
    return await workflows.start(service, start)


def new_run_id() -> str:
    """Return the id of a new run."""
    return ids.run_id(time.time_ns() // 1_000_000, secrets.randbits(RANDOM_BITS))


async def cancel(service: Service, run_id: str, *, actor: str) -> runs.RunView:
    """End a run: its commands and agents are stopped. Without a worker the order waits for one."""
    from bridge.operations.pipelines import workflows

    record = runs.get(service, run_id).record
    if record.state not in OPEN_RUNS:
        raise RefusedError(f"the run {run_id} has ended ({record.state})", f"service pipeline watch {run_id}")
    await workflows.cancel(service, record, actor)
    return runs.show_run(service, run_id)


async def enable(service: Service, name: str) -> Pipeline:
    """Let a pipeline run, on demand and by its schedule."""
    return await _switch(service, name, enabled=True)


async def disable(service: Service, name: str) -> Pipeline:
    """Stop new runs of a pipeline; an active run continues."""
    return await _switch(service, name, enabled=False)


async def remove(service: Service, name: str) -> None:
    """Remove a pipeline and its schedule; its runs stay readable."""
    from bridge.operations.pipelines import workflows

    pipeline = get(service, name)
    if active := run_rows.active(service.store, name):
        raise ActiveRunError(f"{name} has an active run, {active.run_id}", f"service pipeline cancel {active.run_id}")
    if pipeline.scheduled:
        await workflows.delete(service, name)
    pipeline_rows.remove(service.store, name)


async def _switch(service: Service, name: str, *, enabled: bool) -> Pipeline:
    from bridge.operations.pipelines import workflows

    pipeline = get(service, name)
    if pipeline.scheduled:
        await workflows.put(service, definition_of(pipeline).model_copy(update={"enabled": enabled}))
    pipeline_rows.enable(service.store, name, enabled=enabled)
    return get(service, name)

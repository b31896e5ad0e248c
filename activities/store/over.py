"""Finished trees and runs of pipelines, and how far back unfinished ones need data (`service gc`)."""

from dataclasses import dataclass

from sqlalchemy import Engine, func, select

from activities.store import schema
from workflows.model.states import ENDED_JOBS, ENDED_TASKS
from workflows.pipeline.plan import OPEN_RUNS


@dataclass(frozen=True)
class Over:
    """Trees and runs of pipelines, by the id of their root or run."""

    owners: frozenset[str]
    """Those that ended for good before the given time. No order opens such a tree again; a blocked one may be."""
    since: float | None
    """Begin of the oldest other tree or run; None if there is no other."""
    open: int
    """Number of trees that have not ended: running, waiting for people, or blocked."""

    def has(self, job_id: str) -> bool:
        """Return whether a job, or a stage of a run, belongs to one of them."""
        return job_id.partition(".")[0] in self.owners


def over(engine: Engine, before: float) -> Over:
    """Find the trees and runs that ended for good. A tree of a pipeline's run counts only once that run has ended
    too.
    """
    tasks, jobs, runs, stages = schema.tasks.c, schema.jobs.c, schema.pipeline_runs.c, schema.pipeline_stages.c
    final = tasks.state.in_(ENDED_TASKS) & (tasks.ended_at < before)
    ended = runs.state.not_in(OPEN_RUNS) & (runs.finished_at < before)
    of_runs = select(stages.job_id).join(schema.pipeline_runs, runs.run_id == stages.run_id)
    at_work = select(jobs.root_job_id).where(jobs.state.not_in(ENDED_JOBS))
    needed = of_runs.where(~ended | runs.finished_at.is_(None), stages.job_id.is_not(None)).union(at_work)
    with engine.connect() as connection:
        roots = {row.root_job_id for row in connection.execute(select(tasks.root_job_id).where(final))}
        roots -= {row[0] for row in connection.execute(needed)}
        of_pipelines = {row.run_id for row in connection.execute(select(runs.run_id).where(ended))}
        not_final = ~final | tasks.ended_at.is_(None) | tasks.root_job_id.in_(at_work)
        first_tree = connection.execute(select(func.min(tasks.opened_at)).where(not_final)).scalar()
        not_ended = ~ended | runs.finished_at.is_(None)
        first_run = connection.execute(select(func.min(runs.started_at)).where(not_ended)).scalar()
        unfinished = select(func.count()).select_from(schema.tasks).where(tasks.state.not_in(ENDED_TASKS))
        count = connection.execute(unfinished).scalar_one()
    since = min((at for at in (first_tree, first_run) if at is not None), default=None)
    return Over(frozenset(roots | of_pipelines), since, count)

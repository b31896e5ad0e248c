"""What is over for good, and since when something else still needs what it has (`service gc`)."""

from dataclasses import dataclass

from sqlalchemy import Engine, func, select

from activities.store import schema
from workflows.model.states import ENDED_JOBS, ENDED_TASKS
from workflows.pipeline.plan import OPEN_RUNS

"""No order opens such a tree again; one that is blocked may be."""


@dataclass(frozen=True)
class Over:
    """Trees and runs of pipelines, by the id of their root or run."""

    owners: frozenset[str]
    """Those that ended for good before the moment that was asked for."""
    since: float | None
    """When the oldest of all others began; None when there is no other."""
    open: int
    """How many trees are not over: they run, wait for people, or are blocked."""

    def has(self, job_id: str) -> bool:
        """Whether a job, or a stage of a run, belongs to one of them."""
        return job_id.partition(".")[0] in self.owners


def over(engine: Engine, before: float) -> Over:
    """Look once; what is over stays so. A tree that a pipeline's run has started is over when the run is, too."""
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

"""Imports everything that any command may need, so that later forks have it."""

from bridge.operations.orders import new_jobs
from bridge.operations.pipelines import definitions
from cli.demo import story
from tests.evil import EVIL
from tests.imported import everything

everything()

RAN = "prun-000000000001"
DONE = "job-00000000000d"
"""A run and a tree that are over: following them ends at once."""


def starts_nothing() -> None:
    """In the child: replace every start by the ended tree or run. The demo has no steps."""

    async def job(*_: object, **__: object) -> str:
        return DONE

    async def recipe(*_: object, **__: object) -> new_jobs.Orchestrated:
        return new_jobs.Orchestrated(DONE, EVIL)

    async def run(*_: object, **__: object) -> str:
        return RAN

    new_jobs.start, new_jobs.orchestrate, definitions.run = job, recipe, run
    story.STORY = ()

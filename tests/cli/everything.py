"""Imports everything that any command may need, so that later forks have it."""

import importlib
import pkgutil

import cli
from bridge import operations
from bridge.operations.orders import new_jobs
from bridge.operations.pipelines import definitions
from cli.demo import story
from cli.main import NOUNS, command_of
from tests.evil import EVIL

for _package in (cli, operations):
    for _module in pkgutil.iter_modules(_package.__path__, f"{_package.__name__}."):
        importlib.import_module(_module.name)
for _noun in NOUNS:
    command_of(_noun)

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

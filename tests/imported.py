"""Import the whole product, so that processes forked for commands import nothing anew."""

import gc
import importlib
import pkgutil

import activities
import cli
from bridge import daemon, operations
from cli.main import NOUNS, command_of

LATE = (
    *("alembic.command", "multiprocessing.shared_memory", "pygit2"),
    *("sqlalchemy.dialects.sqlite", "temporalio.contrib.pydantic", "temporalio.envconfig", "temporalio.worker"),
)
"""Packages of others that commands import where they need them."""


def everything() -> None:
    for package in (activities, cli, daemon, operations):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith(("__main__", "migrations.env")):
                importlib.import_module(module.name)
    for name in LATE:
        importlib.import_module(name)
    for noun in NOUNS:
        command_of(noun)
    gc.collect()
    gc.freeze()

"""Folders of runs that are not needed any more."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from activities.runs.run_folders import Key, key_of
from activities.runs.supervised_run import Claim


def old(runs: Path, is_over: Callable[[Key], bool]) -> Iterator[Path]:
    """Yield the folders of recorded attempts that have ended and have no living process."""
    for run_dir in sorted(runs.glob("*/")):
        key = key_of(run_dir.name)
        if key is not None and is_over(key) and not _lives(run_dir):
            yield run_dir


def discard(run_dir: Path) -> None:
    """Remove a folder unless its run lives; a partly removed folder is found again."""
    if not _lives(run_dir):
        shutil.rmtree(run_dir)


def _lives(run_dir: Path) -> bool:
    claim = Claim.read(run_dir)
    return claim is not None and claim.alive

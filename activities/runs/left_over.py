"""The report of what dead workers and supervisors left, written before it is ended. Standard library only."""

import json
import os
import time
from collections.abc import Collection
from pathlib import Path

FILE = Path("logs", "orphans.jsonl")
"""Path in the service home."""


def told_by(run_dir: Path, supervisor: int | None, pids: Collection[int]) -> str:
    """Describe what is left of a run."""
    what = "nobody waits for it" if supervisor else "its supervisor is dead"
    return f"run {run_dir.name} goes on (processes: {len(pids)}) and {what}"


def tell(path: Path, run_dir: Path, supervisor: int | None, pids: Collection[int]) -> None:
    """Append a line to the report, which `service doctor` shows."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    said = {"run_dir": str(run_dir), "supervisor": supervisor, "pids": sorted(pids)}
    line = json.dumps(said | {"at": time.time(), "said": told_by(run_dir, supervisor, pids)})
    with open(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600), "a") as file:
        file.write(line + "\n")

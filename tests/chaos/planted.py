"""Bugs planted on purpose, each in a copy of the checkout: `python -m tests.chaos.planted` says which case finds it."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.chaos.cases import ROOT, draw, stations
from tests.chaos.play import MISSED
from tests.chaos.scorecard import PLANTED

MOST = 200
"""The seeds among which a bug has to be found, those likeliest to find it first."""
NOT_FOUND = f"not found in {MOST} cases"
Edit = tuple[str, str, str]
"""A file, its text, and what stands there instead."""

SUPERVISOR = "activities/runs/supervisor.py"
CLAIM = """\
    if not claim(run_dir, key, ours, kept=False):  # after a power loss this process is gone as well
        reserved.unlink()
        return
    reach("run claimed", run_dir.name)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)
"""
STARTED = '    reach("command started", run_dir.name)\n'
LATE = """\
    claim(run_dir, key, spec["ours"], kept=False)
    reach("run claimed", run_dir.name)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)
"""
BEGUN = "Begun(job_id=run.job_id, offer=run.offer, at=at)"
RUN = "    step.add(record_of(run, step.now))\n    _run(step, chain, run)\n"
TWICE = """\
    for run in (run, run.model_copy(update={"job_id": next_id(step)})):
        step.state.homes[run.job_id] = chain.coordinator_id
        step.add(record_of(run, step.now))
        _run(step, chain, run)
"""
TAKEN_BACK = """\
        end_on_eviction()
        if work.done():
            raise
"""
AWAITED = """\
        await workflow.wait_condition(work.done)
        end_on_eviction()
        if work.done():
            raise
"""
BUGS: Mapping[str, Sequence[Edit]] = {
    "a claim written after the start": (
        (SUPERVISOR, CLAIM, '    spec["ours"] = ours\n'),
        (SUPERVISOR, STARTED, f"{STARTED}{LATE}"),
    ),
    "a report without a number": (("activities/host/tree_reports.py", BEGUN, BEGUN.replace("run.offer", "0")),),
    "an await after a cancellation": (("workflows/temporal/attempts.py", TAKEN_BACK, AWAITED),),
    "a continuation enqueued twice": (("workflows/tree/continuation.py", RUN, TWICE),),
}


def plant(copy: Path, edits: Sequence[Edit]) -> None:
    for path, old, new in edits:
        text = (copy / path).read_text()
        assert text.count(old) == 1, f"{path} says something else now; write the bug anew"
        (copy / path).write_text(text.replace(old, new))


def seeds(edits: Sequence[Edit]) -> list[int]:
    """Return the seeds in the order in which their cases are played: those first that strike in an edited file."""
    edited = {path for path, _, _ in edits}
    here = [seed for seed in range(1, MOST + 1) if stations()[draw(seed).station.partition(":")[0]] in edited]
    return [*here, *(seed for seed in range(1, MOST + 1) if seed not in here)]


def finds(copy: Path, edits: Sequence[Edit]) -> str:
    """Return the first case that fails in a copy, and how many were played; empty if none does."""
    words = (sys.executable, "-P", "-m", "tests.chaos", "--stacks", "2", "--seed", *map(str, seeds(edits)))
    source = os.environ | {"PYTHONPATH": str(copy)}
    process = subprocess.Popen(words, cwd=copy, env=source, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    number = 0
    try:
        for number, line in enumerate(process.stdout, 1):
            row = json.loads(line)
            case = (row["workload"], row["station"], row["nth"], row["fault"])
            for failure in (failure for failure in row["failures"] if not failure.startswith(MISSED)):
                return f"case {number}, `{', '.join(map(str, case))}`: {failure}"
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()
    assert number, "no case was played"
    return ""


def main(names: Sequence[str]) -> int:
    """Print which case finds each bug; return 1 if one stays unfound."""
    unfound = 0
    for name, edits in BUGS.items():
        if names and name not in names:
            continue
        with TemporaryDirectory(prefix="planted-") as folder:
            copy = Path(shutil.copytree(ROOT, Path(folder, "copy"), ignore=shutil.ignore_patterns(".*", "__pycache__")))
            plant(copy, edits)
            case = finds(copy, edits)
        unfound += not case
        PLANTED.write_text(json.dumps(json.loads(PLANTED.read_text()) | {name: case or NOT_FOUND}, indent=1) + "\n")
        print(f"{name}: {case or NOT_FOUND}", flush=True)
    return 1 if unfound else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Stand-ins for the agent programs: they print as the real ones do, and are a runtime's command in the settings."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from activities.agents.registry import adapters_of
from activities.host.context import Context
from activities.host.slots import Slots
from activities.jobs.run_job import Jobs
from activities.runs.supervised_run import read_end
from tests.activities.jobs.conftest import Stage
from tests.assigned import changed
from tests.unboxed import unboxed
from workflows.contract.models import AutonomyPolicy
from workflows.model.jobs import JobRun
from workflows.model.workers import Worker

PRELUDE = """\
import json, os, pathlib, sys, time
words = sys.argv[1:]
here = pathlib.Path(os.environ["HOME"])
with open(here / "calls", "a") as calls: calls.write(json.dumps(words) + "\\n")
number = len((here / "calls").read_text().splitlines())
told = os.environ.get("SERVICE_PROMPT")
prompt = pathlib.Path(told).read_text() if told else sys.stdin.read()
session = "s-1"
for flag in ("resume", "--resume", "--session-id", "-S"):
    if flag in words: session = words[words.index(flag) + 1]
RESULT = json.dumps({"service_result": {"decision": "approved", "summary": "fine"}})
def say(**record): print(json.dumps(record, separators=(",", ":")), flush=True)
def codex(text, tokens):
    say(type="thread.started", thread_id=session)
    say(type="item.completed", item={"type": "agent_message", "text": text})
    say(type="turn.completed", usage={"input_tokens": tokens, "output_tokens": 1})
def codex_fails(message):
    say(type="thread.started", thread_id=session)
    say(type="turn.failed", error={"message": message})
    sys.exit(1)
def claude(text, error=False, status=None, tokens=10):
    say(type="result", subtype="success", is_error=error, result=text, session_id=session, api_error_status=status,
        usage={"input_tokens": tokens, "output_tokens": 1, "cache_read_input_tokens": 400})
    sys.exit(1 if error else 0)
def kimi(text):
    say(role="assistant", content=text)
    say(role="meta", type="session.resume_hint", session_id="session_1")
"""


def program(stage: Stage, script: str) -> list[str]:
    """Write a stand-in, and return its command."""
    path = stage.tmp / "program.py"
    path.write_text(PRELUDE + script)
    return [sys.executable, str(path)]


def driving(stage: Stage, runtime: str, script: str, **section: Any) -> Stage:
    """Return the stage with a stand-in for a runtime."""
    settings = unboxed({"runtimes": {runtime: {"command": program(stage, script)} | section}})
    context: Context = replace(stage.context, settings=settings)
    return replace(stage, context=context, jobs=Jobs(context, adapters_of(settings, context.environ), Slots(settings)))


def a_job(stage: Stage, runtime: str, policy: AutonomyPolicy = AutonomyPolicy.READ_ONLY, **fields: Any) -> JobRun:
    """Return a job of a worker of that runtime."""
    worker = Worker(name="scout", runtime=runtime, autonomy_policy=policy)
    return changed(stage.job("", **fields), worker=worker)


def calls(home: Path) -> int:
    """Return how often a stand-in was started."""
    path = home / "calls"
    return len(path.read_text().splitlines()) if path.exists() else 0


def limit_of(run_dir: Path) -> float:
    """Return the timeout of a run."""
    return float(json.loads((run_dir / "spec.json").read_text().splitlines()[0])["timeout_seconds"])


def lasted(run_dir: Path) -> float:
    """Return the duration of a run, as recorded by its supervisor."""
    end = read_end(run_dir)
    assert end is not None
    assert end.started_at is not None
    assert end.ended_at is not None
    return end.ended_at - end.started_at

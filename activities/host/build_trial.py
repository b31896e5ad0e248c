"""A trial of the policy under which a runtime's program checks work: can its commands build in their box (ruling P5)?

No model is asked: codex runs the command in its own sandbox. For checks, claude and kimi confine no commands
themselves, so for them only the box is tried.
"""

import asyncio
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from activities.agents.adapter import ProgramCall
from activities.agents.registry import adapters_of
from activities.host import boxing
from activities.host.boxing import Wanted
from activities.runs import run_folders, supervised_run
from activities.runs.output import last_line, read_bounded
from activities.runs.supervised_run import RunRequest
from activities.runtimes.known_runtimes import program_of
from activities.settings.home import Home
from activities.settings.model import Settings
from workflows.contract.models import Action, AutonomyPolicy
from workflows.model.errors import ServiceError
from workflows.model.jobs import JobRun
from workflows.model.long_texts import Text
from workflows.model.workers import Assignment, Worker

SECONDS, SAID = 60.0, 4096
TOOLS = ("git", "make", "node", "npm", "python3", "go", "cargo")
BUILD = f"""
mkdir build && echo 'exit 0' > build/test.sh && sh build/test.sh || exit 1
for tool in {" ".join(TOOLS)}; do command -v $tool > /dev/null && echo $tool; done
exit 0
"""
"""A shell script that writes a build result, runs it, and prints the tools that it finds."""

_NAME = "job-000000000000"


@dataclass(frozen=True)
class Trial:
    """The result of a build under the policy of checks."""

    policy: AutonomyPolicy
    box: str = ""
    tools: tuple[str, ...] = ()
    problem: str = ""
    """The reason why the build failed."""
    fix: str = ""


def build_trial(settings: Settings, environ: Mapping[str, str], runtime: str) -> Trial | None:
    """Build something as a check of this runtime would; return None if the runtime has no known program."""
    program = program_of(runtime, settings.runtime(runtime).adapter)
    if program is None:
        return None
    policy = program.builds_with
    try:
        with tempfile.TemporaryDirectory(prefix="service-check-", ignore_cleanup_errors=True) as folder:
            return _try(Home(Path(folder)), settings, environ, _run(runtime, policy))
    except (ServiceError, OSError) as error:
        return Trial(policy, problem=str(error), fix=getattr(error, "hint", "") or "service doctor")


def _run(runtime: str, policy: AutonomyPolicy) -> JobRun:
    worker = Worker(name="check", runtime=runtime, autonomy_policy=policy)
    assignment = Assignment(worker=worker, action=Action.REVIEW, prompt=Text(inline=""))
    return JobRun(job_id=_NAME, root_job_id=_NAME, task_id="task-0", repo="check/check", assignment=assignment)


def _try(home: Home, settings: Settings, environ: Mapping[str, str], run: JobRun) -> Trial:
    """Build in a temporary home and work folder."""
    worker = run.assignment.worker
    cwd, run_dir = home.worktrees / _NAME, run_folders.new(home.runs, _NAME, 1)
    cwd.mkdir(parents=True)
    call = ProgramCall(run, b"", None, run_dir, cwd, home.programs / worker.runtime)
    adapter = adapters_of(settings, environ)[worker.runtime]
    launch = adapter.launch(call)
    section = settings.runtime(worker.runtime)
    command = (*(section.command or launch.argv[:1]), *section.arguments)
    box = boxing.box_of(home, settings, environ, Wanted(worker.runtime, launch, command, cwd))
    env = launch.env
    if box is not None:
        boxing.hand_over(box, launch.settings)
        env = boxing.environment(env)
    argv = adapter.holding(call, ("sh", "-c", BUILD))
    request = RunRequest(run_dir, argv, cwd, env, timeout_seconds=SECONDS, box=box)
    end = asyncio.run(supervised_run.run(request))
    boxing.take_back(cwd, kept=False)
    if end.exit_code == 0 and (cwd / "build").is_dir():
        tools = read_bounded(end.stdout, 0, SAID).text.split()
        return Trial(worker.autonomy_policy, boxing.name_of(box), tuple(tool for tool in TOOLS if tool in tools))
    problem = end.error or last_line(end.stderr) or f"exit code {end.exit_code}"
    return Trial(worker.autonomy_policy, boxing.name_of(box), problem=problem, fix="service doctor")

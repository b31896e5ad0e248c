"""A job's surroundings in its prompt: the commits of its work folder, and what its box permits (ruling P2)."""

import shutil
from pathlib import Path

from activities.boxes import control_group
from activities.boxes.allowed_hosts import ANY
from activities.boxes.box import Network
from activities.git import pull_requests
from activities.git.merges.task_line import LeftOutBranch, TaskLine
from activities.git.pull_requests import Source
from activities.host import boxing
from activities.host.context import Context
from activities.jobs.workspace import Workspace
from activities.runtimes.known_runtimes import program_of
from activities.settings.model import RuntimeSection, Settings
from workflows.contract.models import AutonomyPolicy
from workflows.model.jobs import JobRun
from workflows.model.workers import Worker
from workflows.policy.binding_words import WEB
from workflows.policy.prompts.surroundings import Allowed, LeftOut, Surroundings
from workflows.policy.reference_names import LINE, leg_reference
from workflows.text.quoted_data import inline

_ORDER = list(AutonomyPolicy)
_OWN_TMP = "`/tmp` is yours alone, and gone afterwards"
_SHARED_TMP = "`/tmp` is shared with the machine's other programs"
_NETWORKS = {
    Network.NONE: "no network",
    Network.FULL: "the network is the machine's own",
}
_MOST_HOSTS = 8


def surroundings_of(context: Context, run: JobRun, workspace: Workspace) -> Surroundings:
    """Return the surroundings of a run that is about to start."""
    worktree = workspace.worktree
    line = workspace.line or TaskLine(worktree.base, worktree.base)
    out = line.left_out
    return Surroundings(
        repo=run.repo,
        folder=str(worktree.path),
        branch=worktree.branch,
        base=line.base,
        line=line.commit,
        given=run.branch_deps,
        allowed=_permissions(context.settings, run),
        people=line.people,
        merged=line.merged,
        at_base=run.at_base,
        target=_target(workspace, run),
        left_out=tuple(LeftOut(each.leg, _reference(each, worktree.branch), each.against, each.files) for each in out),
        merging=tuple(
            LeftOut(part.leg, _reference(part, None), part.against, part.files) for part in workspace.merging
        ),
        references=tuple(worktree.names),
    )


def _target(workspace: Workspace, run: JobRun) -> str:
    asked = run.assignment
    if asked.pull_request is None:
        return ""
    return pull_requests.target(Source(workspace.repo, asked.github, asked.web or WEB), asked.into)


def _reference(left: LeftOutBranch, own: str | None) -> str:
    """Return the name that `git merge` takes for a left-out branch, or for the line."""
    if left.leg:
        return leg_reference(left.leg)
    return LINE if left.branch == own else left.branch


def _permissions(settings: Settings, run: JobRun) -> Allowed:
    worker, own = run.assignment.worker, settings.worker
    policy, section = worker.autonomy_policy, settings.runtime(worker.runtime)
    program = program_of(worker.runtime, section.adapter)
    is_script = _is_script(settings, worker)
    boxed = section.box != "none"
    return Allowed(
        edits=is_script or policy in (AutonomyPolicy.WORKSPACE_WRITE, AutonomyPolicy.DANGER_FULL_ACCESS),
        commands=program is None or _ORDER.index(policy) >= _ORDER.index(program.builds_with),
        commits=may_commit(settings, worker),
        network=_network(section, worker.runtime, boxed=boxed),
        temporary=_OWN_TMP if boxed else _SHARED_TMP,
        write=tuple(section.write),
        read=_dependencies(section, program.name if program else ""),
        boxed=boxed,
        seconds=run.assignment.timeout_seconds,
        memory=control_group.job_limits(own.job_memory, own.job_pids).get(control_group.MEMORY, 0),
    )


def _dependencies(section: RuntimeSection, program: str) -> tuple[str, ...]:
    """Return the places that a job may read, without those that hold the agent's own program."""
    command = shutil.which(section.command[0] if section.command else program) or "/"
    own = (Path(command), Path(command).resolve())
    return tuple(place for place in section.read if not any(path.is_relative_to(Path(place)) for path in own))


def may_commit(settings: Settings, worker: Worker) -> bool:
    """Return whether a worker's program may write `.git`, and so can commit and merge."""
    return _is_script(settings, worker) or worker.autonomy_policy is AutonomyPolicy.DANGER_FULL_ACCESS


def _is_script(settings: Settings, worker: Worker) -> bool:
    """Return whether the program may write and is a script, which only its box confines."""
    program = program_of(worker.runtime, settings.runtime(worker.runtime).adapter)
    return program is None and worker.autonomy_policy is not AutonomyPolicy.READ_ONLY


def _network(section: RuntimeSection, runtime: str, *, boxed: bool) -> str:
    network, hosts = boxing.network_of(section, runtime)
    if not boxed or network is Network.FULL:
        return _NETWORKS[Network.FULL]
    if network is Network.NONE:
        return _NETWORKS[Network.NONE]
    if ANY in hosts:
        return "the internet through a proxy (HTTP, HTTPS), but nothing of this machine or its local network"
    program = program_of(runtime, section.adapter)
    others = [host for host in hosts if not (program and host in program.hosts)]
    more = f" and {len(others) - _MOST_HOSTS} more" if len(others) > _MOST_HOSTS else ""
    listed = f"{', '.join(map(inline, others[:_MOST_HOSTS]))}{more}"
    if program is None:
        return f"of the network only {listed}"
    return f"no network, except your own model's{f' and {listed}' if others else ''}"

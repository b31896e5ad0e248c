"""Doctor's check of boxes: the sandbox that each runtime's programs get here, and whether it holds (ruling N2)."""

import contextlib
import os
from collections.abc import Collection, Iterator
from pathlib import Path

from activities.agents.adapter import CannotLaunchError, Launch
from activities.boxes import control_group, probes, try_boxes
from activities.boxes.box import Network
from activities.host import boxing
from activities.host.boxing import Wanted
from activities.runtimes.known_runtimes import SHELL
from activities.settings import ready
from bridge.operations.health.findings import Finding, Level
from bridge.operations.service import Service

DELEGATE = (
    "run the daemon as root, or where systemd hands it control groups: service daemon install, or "
    "systemd-run --user --scope -p Delegate=yes service daemon start"
)


def box_findings(service: Service) -> Iterator[Finding]:
    """Yield a line for each box in use, and one for each runtime without a box."""
    settings, root = service.settings, service.home.root
    there = try_boxes.look(settings.worker.agents_uid)
    used: dict[Network, list[str]] = {}
    for name in (*settings.configured_runtimes, *settings.acp_runtimes, SHELL):
        try:
            box = boxing.box_of(service.home, settings, os.environ, Wanted(name, Launch((), {}), (), root))
        except CannotLaunchError as refused:
            yield Finding("box", Level.WRONG, refused.message, refused.hint)
            continue
        if box is None:
            says = f"{name} runs in no box: its agents can do whatever this account can"
            yield Finding("box", Level.WARNING, says, f"remove box from [runtimes.{name}] in {service.home.config}")
        else:
            used.setdefault(box.network, []).append(name)
    for network, names in used.items():
        yield _in_use(network, names, there)


def limit_findings(service: Service) -> Iterator[Finding]:
    """Check which limits on agents' memory and processes can be set: by the running worker, or without a worker by this
    process.
    """
    own, worker = service.settings.worker, ready.read(service.home.worker_ready)
    limits = control_group.limits(own.agents_memory)
    jobs = control_group.job_limits(own.job_memory, own.job_pids)
    pid = worker.pid if worker and worker.alive else None
    group = control_group.make(f"service-doctor-{os.getpid()}", limits, jobs, pid)
    if group is None:
        says = "no control group can be made here: agents can use up the machine's memory and processes"
        yield Finding("bounds", Level.WARNING, says, DELEGATE)
        return
    job = group.job()
    of_job = job.make()
    job.remove()
    group.remove()
    together = _may_take(group.folders.keys() & limits.keys(), own.agents_memory, control_group.MOST_PROCESSES)
    says = f"all agents together may take {together}, each job {_may_take(of_job, own.job_memory, own.job_pids)}"
    lacking = (limits.keys() - group.folders.keys()) | (jobs.keys() - of_job)
    if instances := _inotify_instances():
        says += f"; the {instances} inotify instances of an account are shared by all"
    level = Level.WARNING if lacking & {control_group.MEMORY, control_group.PROCESSES} else Level.OK
    yield Finding("bounds", level, says, DELEGATE if level is Level.WARNING else "")


def _inotify_instances() -> str:
    with contextlib.suppress(OSError):
        return Path("/proc/sys/fs/inotify/max_user_instances").read_text().strip()
    return ""


def _may_take(limited: Collection[str], percent: int, most: int) -> str:
    memory = f"{percent} % of this machine's memory" if control_group.MEMORY in limited else "all of the memory"
    processes = most if control_group.PROCESSES in limited else "any number of"
    return f"{memory} and {processes} processes"


def _in_use(network: Network, names: list[str], there: try_boxes.Machine) -> Finding:
    account = f", as account {there.uid}" if there.uid is not None else ""
    wide = "; all of the network is open, this machine's loopback too" if network is Network.FULL else ""
    says = f"bwrap, network {network}, for {', '.join(names)}{account}, by {there.program}: "
    return Finding("box", Level.OK, f"{says}{len(probes.PROBES)} ways out were tried, none leads out{wide}")

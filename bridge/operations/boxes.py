"""What `service doctor` says of boxes: which one each runtime's programs get here, and whether it holds (ruling N2)."""

import os
from collections.abc import Iterator

from activities.agents.adapter import CannotLaunchError, Launch
from activities.boxes import control_group, machine, probes
from activities.boxes.box import BoxKind, Network
from activities.host import boxing
from activities.host.boxing import Wanted
from activities.runtimes.table import SHELL
from bridge.operations.findings import Finding, Level
from bridge.operations.service import Service


def findings(service: Service) -> Iterator[Finding]:
    """A line for each box that is in use, and one for each runtime without any."""
    settings, root = service.settings, service.home.root
    there = machine.look(settings.worker.agents_uid)
    used: dict[tuple[BoxKind, Network, tuple[str, ...]], list[str]] = {}
    for name in (*settings.configured_runtimes, SHELL):
        try:
            box = boxing.box_of(service.home, settings, os.environ, Wanted(name, Launch((), {}), (), root, root))
        except CannotLaunchError as refused:
            yield Finding("box", Level.WRONG, refused.message, refused.hint)
            continue
        if box is None:
            says = f"{name} runs in no box: its agents can do whatever this account can"
            yield Finding("box", Level.WARNING, says, f"remove box from [runtimes.{name}] in {service.home.config}")
        else:
            used.setdefault((box.kind, box.network, box.leaks), []).append(name)
    for (kind, network, leaks), names in used.items():
        yield _in_use(kind, network, leaks, names, there)


def bounds(service: Service) -> Iterator[Finding]:
    """What all agents together may take, as far as this account can limit that here."""
    percent = service.settings.worker.agents_memory
    group = control_group.made(f"service-doctor-{os.getpid()}", control_group.limits(percent))
    if group is None:
        says = "this account may make no control group here: agents can use up the machine's memory and processes"
        yield Finding("bounds", Level.OK, says)
        return
    group.remove()
    memory = f"{percent} % of this machine's memory" if control_group.MEMORY in group.folders else "all of the memory"
    processes = control_group.MOST_PROCESSES if control_group.PROCESSES in group.folders else "any number of"
    yield Finding("bounds", Level.OK, f"all agents together may take {memory} and {processes} processes")


def _in_use(
    kind: BoxKind, network: Network, leaks: tuple[str, ...], names: list[str], there: machine.Machine
) -> Finding:
    whose = f"{kind}, network {network}, for {', '.join(names)}"
    account = f", as account {there.uid}" if there.uid is not None else ""
    if leaks:
        says = f"{whose}{account}: your settings name it, and in it a program can {', '.join(leaks)}"
        return Finding("box", Level.WARNING, says, there.remedy)
    wide = "; all of the network is open, this machine's loopback too" if network is Network.FULL else ""
    return Finding("box", Level.OK, f"{whose}{account}: {len(probes.PROBES)} ways out were tried, none leads out{wide}")

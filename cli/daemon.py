"""`service daemon`: starts, stops, shows and installs the service's processes."""

import shlex
import sys
from itertools import chain
from typing import TYPE_CHECKING, Annotated

import typer

from cli.drawing import daemon
from cli.drawing.output import say, say_json, say_json_line, tell
from cli.invocation.options import Json, service_here
from workflows.model import ids
from workflows.model.errors import UsageError

if TYPE_CHECKING:
    from bridge.operations.jobs.hosts import HostView

app = typer.Typer(help="Run the server, the worker and the bridge.", no_args_is_help=True, rich_markup_mode=None)

TemporalPort = Annotated[
    int | None,
    typer.Option(min=0, max=65_535, help="Port of the embedded Temporal server; the next free one if taken."),
]
UiPort = Annotated[int | None, typer.Option(min=0, max=65_535, hidden=True, help="Without effect.")]
StrictPorts = Annotated[bool, typer.Option("--strict-ports", help="Refuse to start on any other port.")]


@app.command()
def run(temporal_port: TemporalPort = None, ui_port: UiPort = None, strict_ports: StrictPorts = False) -> None:
    """Run everything in the foreground until Ctrl-C."""
    from bridge.daemon import control

    control.run(service_here(), temporal_port, ui_port, strict_ports=strict_ports)


@app.command()
def start(
    temporal_port: TemporalPort = None,
    ui_port: UiPort = None,
    strict_ports: StrictPorts = False,
    as_json: Json = False,
) -> None:
    """Start everything in the background and wait until it works."""
    from bridge.daemon import control
    from cli.drawing.progress import LastHeard, progress
    from cli.drawing.screens import can_move
    from cli.invocation.faults import if_interrupted

    goes_on = if_interrupted("the daemon goes on starting", "service daemon status", "service daemon stop")
    with goes_on, progress("starting") as step:
        heard = LastHeard(step)
        seen = control.start(service_here(), temporal_port, ui_port, strict_ports=strict_ports, step=heard)
    if heard.said and not as_json and can_move(sys.stderr):
        tell(f"started: {heard.said}")
    say_json(seen) if as_json else say(*daemon.lines(seen))


@app.command()
def stop(as_json: Json = False) -> None:
    """Stop everything. Running agents continue, and the next start takes them up again."""
    from bridge.daemon import control
    from cli.drawing.progress import progress
    from cli.invocation.faults import if_interrupted

    goes_on = if_interrupted("the daemon goes on stopping", "service daemon status")
    with goes_on, progress("stopping") as step:
        stopped = control.stop(service_here(), step)
    say_json({"stopped": stopped}) if as_json else say("stopped" if stopped else "not running")


@app.command()
def status(
    every: Annotated[
        bool, typer.Option("--all", help="Also list the hosts that share the store, and shorten nothing.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show the running processes and their addresses. Exit status 1 when nothing runs."""
    from bridge.daemon import control
    from bridge.operations import settings
    from bridge.operations.home import overview
    from bridge.operations.jobs import hosts

    service = service_here()
    seen = control.status(service)
    failures = control.preflight_failures(service)
    glance = overview.find(service, overview.LOOK_SECONDS if every else overview.GLANCE_SECONDS)
    if as_json:
        listed = {"hosts": hosts.every(service)} if every else {}
        figures = {"preflight_failures": failures} | vars(glance)
        say_json(seen.model_dump(mode="json") | figures | listed)
    else:
        changed = daemon.settings(settings.stale_processes(service), whole=every)
        now = [*daemon.figures(glance), *daemon.not_routed(failures), *changed]
        say(*daemon.lines(seen, links=every, now=now))
        if every:
            _say_hosts(hosts.every(service))
    if not seen.running:
        raise typer.Exit(1)


def _say_hosts(hosts: "list[HostView]") -> None:
    from cli.drawing.output import say_table
    from cli.drawing.words import ago

    say()
    headings = ("HOST", "SEEN", "VERSION", "RUNNING", "SLOTS")
    seen = {host.name: f"{'stopped ' if host.stopped_at else ''}{ago(host.last_sign_at)}" for host in hosts}
    rows = [(host.name, seen[host.name], host.version, str(host.running), str(host.slots)) for host in hosts]
    say_table(headings, rows, "no host was ever seen; on each: service daemon start")


@app.command()
def logs(
    member: Annotated[str, typer.Argument(help="server, worker, bridge, github, commands or daemon; else all.")] = "",
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, help="Number of last lines of each log.")] = 20,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Print new lines until Ctrl-C.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, one object for each line.")] = False,
) -> None:
    """Print the last lines of the logs; each line names its process."""
    from activities.settings.home import Home
    from bridge.daemon import logs

    if job_id := ids.find(member):
        raise UsageError("these are the logs of the service's own processes", f"service job log {job_id}")
    home = Home.locate()
    chosen = [member] if member else logs.names(home)
    if not chosen and not json:
        say(f"no logs in {home.logs} yet", "begin: service daemon start")
    width = max(map(len, chosen), default=0)
    ends = ((name, line) for name in chosen for line in logs.last(home, name, lines))
    for name, line in chain(ends, logs.follow(home, chosen) if follow else ()):
        say_json_line({"member": name, "line": line}) if json else say(f"{name:{width}} | {line}")


Show = Annotated[bool, typer.Option("--show", help="Print the file; change nothing.")]
System = Annotated[
    bool, typer.Option("--system", help="As a service of the system, under an account of its own; for root.")
]


@app.command()
def install(show: Show = False, system: System = False, json: Json = False) -> None:
    """Start the daemon at login, and again when it dies: by a systemd user unit, or launchd on macOS. With `--system`,
    start it at boot under an account of its own.
    """
    from activities.settings.home import Home
    from bridge.daemon import installation

    home = Home.locate()
    wanted = installation.plan_for_system() if system else installation.plan(home)
    description = {"path": str(wanted.path), "text": wanted.text, "commands": [list(each) for each in wanted.commands]}
    if show:
        say_json(description) if json else say(f"# {wanted.path}", *wanted.text.rstrip().split("\n"))
        return
    if system:
        installation.require_root("install")
        installation.require_readable()
    loaded = installation.put(wanted) if system else installation.install(home, wanted)
    if json:
        say_json(description | {"loaded": loaded})
        return
    if loaded and system:
        say(f"wrote {wanted.path}; the daemon starts with the machine, as {installation.ACCOUNT}")
        say("next:", f"  sudo -iu {installation.ACCOUNT} {shlex.quote(sys.argv[0])} daemon status")
        return
    if loaded:
        say(f"wrote {wanted.path}; the daemon starts with your session", "next: service daemon status")
        return
    typed = [f"  {shlex.join(each)}" for each in wanted.commands]
    whose = "system" if system else "session"
    say(f"wrote {wanted.path}", f"no manager of your {whose} answers here; where one does, type:", *typed)


@app.command()
def uninstall(system: System = False, json: Json = False) -> None:
    """Stop the daemon and no longer start it automatically. The home is kept."""
    from activities.settings.home import Home
    from bridge.daemon import installation

    if system:
        installation.require_root("uninstall")
    wanted = installation.plan_for_system() if system else installation.plan(Home.locate())
    stopped = installation.uninstall(wanted)
    if json:
        say_json({"removed": str(wanted.path), "stopped": stopped})
        return
    say(f"removed {wanted.path}" + ("" if stopped else "; no manager of your session answers here"))

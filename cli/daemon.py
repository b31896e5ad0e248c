"""`service daemon`: the processes that do the work."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from cli import daemon_installation, daemon_logs, daemon_view
from cli.output import say, say_json, tell

if TYPE_CHECKING:
    from bridge.operations.jobs.hosts import Host

app = typer.Typer(help="Run the server, the worker and the bridge.", no_args_is_help=True, rich_markup_mode=None)

TemporalPort = Annotated[
    int | None,
    typer.Option(min=0, max=65_535, help="Port of the embedded Temporal server; the next free one if taken."),
]
UiPort = Annotated[int | None, typer.Option(min=0, max=65_535, help="Port of its web UI; the next free one if taken.")]
StrictPorts = Annotated[bool, typer.Option("--strict-ports", help="Refuse to start on any other port.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print it as JSON.")]


@app.command()
def run(temporal_port: TemporalPort = None, ui_port: UiPort = None, strict_ports: StrictPorts = False) -> None:
    """Run everything in the foreground until Ctrl-C."""
    from bridge.daemon import control
    from bridge.operations.service import Service

    control.run(Service.locate(), temporal_port, ui_port, strict_ports=strict_ports)


@app.command()
def start(
    temporal_port: TemporalPort = None,
    ui_port: UiPort = None,
    strict_ports: StrictPorts = False,
    as_json: AsJson = False,
) -> None:
    """Start everything in the background and wait until it works."""
    from bridge.daemon import control
    from bridge.operations.service import Service
    from cli.drawing.screens import can_move
    from cli.progress import LastHeard, progress
    from cli.waiting import if_interrupted

    goes_on = if_interrupted("the daemon goes on starting", "service daemon status", "service daemon stop")
    with goes_on, progress("starting") as step:
        heard = LastHeard(step)
        seen = control.start(Service.locate(), temporal_port, ui_port, strict_ports=strict_ports, step=heard)
    if heard.said and not as_json and can_move(sys.stderr):
        tell(f"started: {heard.said}")
    say_json(seen) if as_json else say(*daemon_view.lines(seen))


@app.command()
def stop(as_json: AsJson = False) -> None:
    """Stop everything. Agents that are at work go on, and are found again at the next start."""
    from bridge.daemon import control
    from bridge.operations.service import Service
    from cli.progress import progress
    from cli.waiting import if_interrupted

    goes_on = if_interrupted("the daemon goes on stopping", "service daemon status")
    with goes_on, progress("stopping") as step:
        stopped = control.stop(Service.locate(), step)
    say_json({"stopped": stopped}) if as_json else say("stopped" if stopped else "not running")


@app.command()
def status(
    every: Annotated[
        bool, typer.Option("--all", help="Also the hosts that share the store, when seen; and all in full.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Say what runs and where to look. Exit status 1 when nothing runs."""
    from bridge.daemon import control
    from bridge.operations import settings
    from bridge.operations.home import overview
    from bridge.operations.jobs import hosts
    from bridge.operations.service import Service

    service = Service.locate()
    seen = control.status(service)
    failures = control.preflight_failures(service)
    found = overview.find(service, overview.LOOK_SECONDS if every else overview.GLANCE_SECONDS)
    if as_json:
        listed = {"hosts": hosts.every(service)} if every else {}
        figures = {"preflight_failures": failures} | vars(found)
        say_json(seen.model_dump(mode="json") | figures | listed)
    else:
        hint = " (service job list --preflight-failed)" if failures else ""
        changed = daemon_view.settings(settings.changed(service), whole=every)
        say(*daemon_view.lines(seen, links=every), *daemon_view.figures(found), *changed)
        say(f"{'preflight':16} {failures} delegation preflight failures{hint}")
        if every:
            _say_hosts(hosts.every(service))
    if not seen.running:
        raise typer.Exit(1)


def _say_hosts(found: "list[Host]") -> None:
    from cli.output import say_table
    from cli.words import ago

    say()
    headings = ("HOST", "SEEN", "VERSION", "RUNNING", "SLOTS")
    seen = {host.name: f"stopped {ago(host.stopped_at)}" if host.stopped_at else ago(host.seen_at) for host in found}
    rows = [(host.name, seen[host.name], host.version, str(host.running), str(host.slots)) for host in found]
    say_table(headings, rows, "no host was ever seen; on each: service daemon start")


for verb in (daemon_logs.logs, daemon_installation.install, daemon_installation.uninstall):
    app.command()(verb)

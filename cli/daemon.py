"""`service daemon`: the processes that do the work."""

from typing import TYPE_CHECKING, Annotated

import typer

from cli import daemon_installation, daemon_logs
from cli.output import say, say_json

if TYPE_CHECKING:
    from activities.store.hosts import Host
    from bridge.machine.daemon_state import ChildState, DaemonStatus
    from bridge.operations.service import Service

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

    seen = control.start(Service.locate(), temporal_port, ui_port, strict_ports=strict_ports)
    say_json(seen.model_dump(mode="json")) if as_json else say(*_lines(seen))


@app.command()
def stop(as_json: AsJson = False) -> None:
    """Stop everything. Agents that are at work go on, and are found again at the next start."""
    from bridge.daemon import control
    from bridge.operations.service import Service

    stopped = control.stop(Service.locate())
    say_json({"stopped": stopped}) if as_json else say("stopped" if stopped else "not running")


@app.command()
def status(
    every: Annotated[bool, typer.Option("--all", help="Also the hosts that share the store, and when seen.")] = False,
    as_json: AsJson = False,
) -> None:
    """Say what runs and where to look. Exit status 1 when nothing runs."""
    from bridge.daemon import control
    from bridge.operations import hosts
    from bridge.operations.service import Service

    service = Service.locate()
    seen = control.status(service)
    failures = control.preflight_failures(service)
    if as_json:
        listed = {"hosts": [hosts.as_json(host) for host in hosts.every(service)]} if every else {}
        say_json(seen.model_dump(mode="json") | {"preflight_failures": failures} | listed)
    else:
        hint = " (service job list --preflight-failed)" if failures else ""
        say(*_lines(seen), *_settings(service))
        say(f"{'preflight':16} {failures} delegation preflight failures{hint}")
        if every:
            _say_hosts(hosts.every(service))
    if not seen.running:
        raise typer.Exit(1)


def _settings(service: "Service") -> list[str]:
    """Which running process works with other settings than those there are now."""
    from bridge.operations import settings

    found = settings.changed(service)
    lines = [line for each in found for line in (*settings.in_words(each), *settings.way_to_force(each))]
    return [f"{'settings' if not line.startswith(' ') else '':16} {line}" for line in lines]


def _say_hosts(found: "list[Host]") -> None:
    from cli.output import say_table
    from cli.words import ago

    say()
    headings = ("HOST", "SEEN", "VERSION", "RUNNING", "SLOTS")
    seen = {host.name: f"stopped {ago(host.stopped_at)}" if host.stopped_at else ago(host.seen_at) for host in found}
    rows = [(host.name, seen[host.name], host.version, str(host.running), str(host.slots)) for host in found]
    say_table(headings, rows, "no host was ever seen; on each: service daemon start")


def _lines(seen: "DaemonStatus") -> list[str]:
    state = seen.state
    if not seen.running:
        last = [f"last start failed: {state.problem}", f"try: {state.hint}"] if state and state.problem else []
        return [f"not running      home {seen.home}", *last, "start it         service daemon start"]
    if state is None:
        return [f"starting         process {seen.pid}, home {seen.home}"]
    lists = dict(seen.views)
    look = lists.pop("all", "the web UI of your cluster")
    return [
        f"{state.phase:16} process {seen.pid}, up {seen.uptime}, version {state.version}",
        f"{'home':16} {seen.home}",
        f"{'temporal':16} {state.temporal_address}, namespace {state.namespace}",
        f"{'web ui':16} {look}",
        *(f"{'':16} {name}: {link}" for name, link in lists.items()),
        *([f"{'bridge url':16} {state.bridge_url}"] if state.bridge_url else []),
        *([f"{'dashboard':16} service dashboard"] if state.bridge_url else []),
        *(f"{child.name:16} {_child(child)}" for child in state.children),
        *(f"{'note':16} {note}" for note in state.notes),
    ]


def _child(child: "ChildState") -> str:
    restarts = f"restarted {child.restarts} times" if child.restarts else ""
    again = f"at {child.again_at.astimezone():%H:%M:%S}" if child.again_at else ""
    parts = [child.phase, f"process {child.pid}" if child.pid else "", restarts, child.note, again]
    return ", ".join(part for part in parts if part)


for verb in (daemon_logs.logs, daemon_installation.install, daemon_installation.uninstall):
    app.command()(verb)

"""`service daemon`: the processes that do the work."""

from typing import TYPE_CHECKING, Annotated

import typer

from cli.output import say, say_json

if TYPE_CHECKING:
    from bridge.operations.daemon import DaemonStatus

app = typer.Typer(help="Run the server, the worker and the bridge.", no_args_is_help=True, rich_markup_mode=None)

TemporalPort = Annotated[
    int | None, typer.Option(help="Port of the embedded Temporal server; the next free one if taken.")
]
UiPort = Annotated[int | None, typer.Option(help="Port of its web UI; the next free one if taken.")]
StrictPorts = Annotated[bool, typer.Option("--strict-ports", help="Refuse to start on any other port.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print it as JSON.")]


@app.command()
def run(temporal_port: TemporalPort = None, ui_port: UiPort = None, strict_ports: StrictPorts = False) -> None:
    """Run everything in the foreground until Ctrl-C."""
    from bridge.operations import daemon
    from bridge.operations.service import Service

    daemon.run(Service.locate(), temporal_port, ui_port, strict_ports=strict_ports)


@app.command()
def start(
    temporal_port: TemporalPort = None,
    ui_port: UiPort = None,
    strict_ports: StrictPorts = False,
    as_json: AsJson = False,
) -> None:
    """Start everything in the background and wait until it works."""
    from bridge.operations import daemon
    from bridge.operations.service import Service

    _show(daemon.start(Service.locate(), temporal_port, ui_port, strict_ports=strict_ports), as_json)


@app.command()
def stop() -> None:
    """Stop everything. Agents that are at work go on, and are found again at the next start."""
    from bridge.operations import daemon
    from bridge.operations.service import Service

    say("stopped" if daemon.stop(Service.locate()) else "not running")


@app.command()
def status(as_json: AsJson = False) -> None:
    """Say what runs and where to look. Exit status 1 when nothing runs."""
    from bridge.operations import daemon
    from bridge.operations.service import Service

    service = Service.locate()
    seen = daemon.status(service)
    failures = daemon.preflight_failures(service)
    if as_json:
        say_json(seen.model_dump(mode="json") | {"preflight_failures": failures})
    else:
        hint = " (service job list --preflight-failed)" if failures else ""
        say("\n".join([*_lines(seen), f"{'preflight':16} {failures} delegation preflight failures{hint}"]))
    if not seen.running:
        raise typer.Exit(1)


def _show(seen: "DaemonStatus", as_json: bool) -> None:
    say(seen.model_dump_json(indent=2) if as_json else "\n".join(_lines(seen)))


def _lines(seen: "DaemonStatus") -> list[str]:
    state = seen.state
    if not seen.running:
        last = [f"last start failed: {state.problem}", f"try: {state.hint}"] if state and state.problem else []
        return [f"not running      home {seen.home}", *last, "start it         service daemon start"]
    if state is None:
        return [f"starting         process {seen.pid}, home {seen.home}"]
    look = f"{state.ui_url}/namespaces/{state.namespace}/workflows" if state.ui_url else "the web UI of your cluster"
    return [
        f"{state.phase:16} process {seen.pid}, up {seen.uptime}, version {state.version}",
        f"{'home':16} {seen.home}",
        f"{'temporal':16} {state.temporal_address}, namespace {state.namespace}",
        f"{'web ui':16} {look}",
        *(f"{'':16} {name}: {link}" for name, link in seen.views.items()),
        *([f"{'bridge url':16} {state.bridge_url}"] if state.bridge_url else []),
        *(f"{child.name:16} {_child(child.phase, child.pid, child.restarts, child.note)}" for child in state.children),
        *(f"{'note':16} {note}" for note in state.notes),
    ]


def _child(phase: str, pid: int | None, restarts: int, note: str) -> str:
    parts = [phase, f"process {pid}" if pid else "", f"restarted {restarts} times" if restarts else "", note]
    return ", ".join(part for part in parts if part)

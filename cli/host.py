"""`service host`: the hosts that share one store."""

from typing import TYPE_CHECKING, Annotated

import typer

from cli.drawing.lines import of_state
from cli.drawing.output import say, say_fields, say_json, say_table
from cli.drawing.tables import Column
from cli.drawing.words import ago
from cli.invocation.options import Json, service_here

if TYPE_CHECKING:
    from bridge.operations.jobs.hosts import Host

app = typer.Typer(help="The hosts that share the work.", no_args_is_help=True, rich_markup_mode=None)


Name = Annotated[str, typer.Argument(help="The host's name.")]
LISTED = (
    "HOST",
    Column("STATE", look=of_state),
    "SEEN",
    Column("SLOTS", right=True),
    "VERSION",
    Column("LABELS", leaves=1),
)


@app.command(name="list")
def list_(json: Json = False) -> None:
    """List the hosts that share the store: release, slots in use, labels, when each was seen."""
    from bridge.operations.jobs import hosts

    every = hosts.every(service_here())
    if json:
        say_json(every)
        return
    rows = [
        (host.name, host.state, ago(host.last_sign_at), f"{host.taken}/{host.slots}", host.version, _labels(host))
        for host in every
    ]
    say_table(LISTED, rows, "no host was ever seen; on each: service daemon start")


@app.command()
def show(name: Name, json: Json = False) -> None:
    """Show one host: its state, its key, where its bridge is, its checkouts and open jobs."""
    from activities.host.admission import SHOWN
    from bridge.operations.registry import hosts

    host = hosts.get(service_here(), name)
    if json:
        say_json(host)
        return
    say_fields(
        (
            ("host", host.name),
            ("state", f"{host.state}: {host.held}" if host.held else host.state),
            ("seen", ago(host.last_sign_at)),
            ("slots", f"{host.taken} of {host.slots} in use"),
            ("version", host.version),
            ("labels", _labels(host)),
            ("bridge", host.address or "only for its own machine"),
            ("seal key", host.key[:SHOWN]),
            ("checkouts", ", ".join(host.checkouts)),
            ("open jobs", ", ".join(host.open_jobs)),
        )
    )


@app.command()
def remove(name: Name, json: Json = False) -> None:
    """Forget a host that is gone for good. One with a worker, open jobs or the only checkout of a repository stays."""
    from bridge.operations.registry import hosts

    hosts.remove(service_here(), name)
    say_json({"removed": name}) if json else say(f"{name} is forgotten; nothing on that machine was touched")


def _labels(host: "Host") -> str:
    return ", ".join(host.labels)


@app.command()
def rotate_key(
    wait: Annotated[bool, typer.Option("--wait", help="Also wait for hosts that are away.")] = False,
    json: Json = False,
) -> None:
    """Turn the seal key: make a new one, give it to all hosts, and seal with it once all have it."""
    from bridge.operations.home import seal_keys
    from cli.drawing.progress import progress
    from cli.invocation.faults import if_interrupted

    goes_on = if_interrupted("the new key stays on its way", "service host rotate-key")
    with goes_on, progress("turning the seal key") as step:
        turned = seal_keys.rotate(service_here(), wait=wait, step=step)
    if json:
        say_json(turned)
        return
    say(f"the key {turned.key} seals now" + (f", also on {', '.join(turned.hosts)}" if turned.hosts else ""))
    for host in turned.behind:
        say(f"{host} has it, and seals with it from its next start")
    say(f"{turned.former} still opens what it has sealed; when that is over: service host remove-key {turned.former}")


@app.command()
def remove_key(
    key: Annotated[str, typer.Argument(help="The beginning of its fingerprint; doctor and rotate-key show it.")],
    json: Json = False,
) -> None:
    """Remove a former seal key from all hosts; refused while something is sealed with it."""
    from bridge.operations.home import seal_keys

    removed = seal_keys.remove(service_here(), key)
    say_json(removed) if json else say(f"the key {removed.key} is removed: what it has sealed is not believed any more")
